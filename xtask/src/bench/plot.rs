//! A series as a drawing: cost against size, both logarithmic, with the line that grows as the size does.

use super::growth::Series;

const W: f64 = 560.0;
const H: f64 = 320.0;
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 40.0;
const RIGHT: f64 = 20.0;

/// From the smallest to the largest, in tenfold steps.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Axis {
        let low = values.clone().fold(f64::MAX, f64::min).max(1e-6).log10().floor();
        let high = values.fold(1e-6, f64::max).log10().ceil();
        Axis { low, high: if high > low { high } else { low + 1.0 }, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value.max(1e-6).log10() - self.low) / (self.high - self.low);
        self.from + part * (self.to - self.from)
    }

    fn ticks(&self) -> Vec<f64> {
        (self.low as i32..=self.high as i32).map(|power| 10f64.powi(power)).collect()
    }
}

fn short(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{}M", value / 1e6),
        value if value >= 1e3 => format!("{}k", value / 1e3),
        value => format!("{}", (value * 1e4).round() / 1e4),
    }
}

/// Draws it.
pub fn svg(series: &Series) -> String {
    let x = Axis::over(series.points.iter().map(|point| point.0), LEFT, W - RIGHT);
    let y = Axis::over(series.points.iter().map(|point| point.1), H - BOTTOM, TOP);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {W} {H}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <rect width=\"{W}\" height=\"{H}\" rx=\"8\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"14\" fill=\"#1f2a3a\">{}</text>\n",
        series.title
    );
    for tick in x.ticks() {
        let at = x.at(tick);
        out += &format!("<path d=\"M{at:.1} {TOP}V{:.1}\" stroke=\"#e3e8ee\"/>", H - BOTTOM);
        out += &format!(
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#5b6b80\">{}</text>\n",
            H - BOTTOM + 16.0,
            short(tick)
        );
    }
    for tick in y.ticks() {
        let at = y.at(tick);
        out += &format!("<path d=\"M{LEFT} {at:.1}H{:.1}\" stroke=\"#e3e8ee\"/>", W - RIGHT);
        out += &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#5b6b80\">{}</text>\n",
            LEFT - 6.0,
            at + 4.0,
            short(tick)
        );
    }
    out += &format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#5b6b80\">{}</text>\n",
        (LEFT + W - RIGHT) / 2.0,
        H - 8.0,
        series.of
    );
    out += &format!("<text x=\"8\" y=\"{:.1}\" fill=\"#5b6b80\">{}</text>\n", TOP - 6.0, series.unit);
    let line = |points: &[(f64, f64)]| {
        points.iter().map(|(size, cost)| format!("{:.1},{:.1}", x.at(*size), y.at(*cost))).collect::<Vec<_>>().join(" ")
    };
    if let (Some(first), Some(last)) = (series.points.first(), series.points.last()) {
        let linear = first.1 * last.0 / first.0;
        // What grows as the size does, as far as it is within the drawing.
        let end = if linear <= 10f64.powf(y.high) {
            (last.0, linear)
        } else {
            (first.0 * 10f64.powf(y.high) / first.1, 10f64.powf(y.high))
        };
        out += &format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"#b9c4d0\" stroke-dasharray=\"5 5\"/>\n",
            line(&[*first, end])
        );
    }
    out += &format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#2f6fb3\" stroke-width=\"2\"/>\n",
        line(&series.points)
    );
    for (size, cost) in &series.points {
        out += &format!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"#2f6fb3\"><title>{size}: {cost:.3} {}</title></circle>\n",
            x.at(*size),
            y.at(*cost),
            series.unit
        );
    }
    out + "</svg>\n"
}

#[test]
fn every_point_is_drawn_within_the_picture() {
    let points = vec![(1.0, 0.4), (10.0, 3.0), (2000.0, 900.0)];
    let series = Series { id: "x", title: "t".into(), of: "sessions", unit: "ms", each: false, points };
    let drawing = svg(&series);
    assert_eq!(drawing.matches("<circle").count(), 3);
    for part in drawing.split("cx=\"").skip(1) {
        let at: f64 = part.split('"').next().unwrap().parse().unwrap();
        assert!((LEFT..=W - RIGHT).contains(&at), "{at}");
    }
}
