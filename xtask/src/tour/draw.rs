//! Screens with colours as one animated SVG, and as an asciicast.

use serde_json::json;

/// A picture, and how long it stands, in tenths of a second.
pub struct Frame {
    pub screen: String,
    pub tenths: u32,
}

const CELL_W: f32 = 8.4;
const CELL_H: f32 = 18.0;
const MARGIN: f32 = 14.0;
const PAPER: &str = "#14181f";
const INK: &str = "#d7dde6";
/// The sixteen colours of a terminal, on dark paper.
const COLOURS: [&str; 16] = [
    "#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dde6", "#5c6773", "#ff7b86",
    "#b5e890", "#ffd68a", "#7cc4ff", "#dd9cf0", "#7fdbe6", "#ffffff",
];

/// One file that plays by itself: each picture is visible in its part of the whole time. Readers who want no motion see the last.
pub fn svg(frames: &[Frame], cols: u16, rows: u16) -> String {
    let total: u32 = frames.iter().map(|frame| frame.tenths).sum();
    let (width, height) = (f32::from(cols) * CELL_W + 2.0 * MARGIN, f32::from(rows) * CELL_H + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"ui-monospace, \
         SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"14\">\n<title>A tour of Holdfast at a terminal</title>\n<style>\n\
         text {{ white-space: pre; fill: {INK} }}\n.f {{ visibility: hidden }}\n.f:last-of-type {{ visibility: visible }}\n\
         @media (prefers-reduced-motion: no-preference) {{\n.f {{ animation: {}s infinite step-end }}\n",
        f64::from(total) / 10.0
    );
    let mut before = 0;
    for (index, frame) in frames.iter().enumerate() {
        let percent = |tenths: u32| f64::from(tenths) * 100.0 / f64::from(total.max(1));
        let (from, to) = (percent(before), percent(before + frame.tenths));
        before += frame.tenths;
        out += &format!(
            "@keyframes k{index} {{ 0% {{ visibility: {} }} {from:.2}% {{ visibility: visible }} {to:.2}% {{ visibility: hidden }} }}\n\
             .f{index} {{ animation-name: k{index} }}\n",
            if index == 0 { "visible" } else { "hidden" }
        );
    }
    out += &format!("}}\n</style>\n<rect width=\"{width:.0}\" height=\"{height:.0}\" rx=\"10\" fill=\"{PAPER}\"/>\n");
    for (index, frame) in frames.iter().enumerate() {
        out += &format!("<g class=\"f f{index}\">\n");
        for (row, line) in frame.screen.lines().enumerate() {
            let spans = spans(line);
            if spans.iter().all(|span| span.text.trim().is_empty()) {
                continue;
            }
            let y = MARGIN + CELL_H * (row as f32 + 0.75);
            out += &format!("<text x=\"{MARGIN}\" y=\"{y:.1}\">");
            out += &spans.iter().map(Span::drawn).collect::<String>();
            out += "</text>\n";
        }
        out += "</g>\n";
    }
    out + "</svg>\n"
}

/// The same for players of asciicasts (version 2).
pub fn cast(frames: &[Frame], cols: u16, rows: u16) -> String {
    let mut out = format!("{}\n", json!({ "version": 2, "width": cols, "height": rows, "title": "Holdfast" }));
    let mut tenths = 0;
    for frame in frames {
        let screen = frame.screen.trim_end().replace('\n', "\r\n");
        let event = json!([f64::from(tenths) / 10.0, "o", format!("\u{1b}[0m\u{1b}[2J\u{1b}[H{screen}")]);
        out += &format!("{event}\n");
        tenths += frame.tenths;
    }
    out
}

/// Text of one look.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Span {
    text: String,
    colour: Option<usize>,
    bold: bool,
    faint: bool,
}

impl Span {
    fn drawn(&self) -> String {
        let text = self.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let mut looks = String::new();
        if let Some(colour) = self.colour.and_then(|colour| COLOURS.get(colour)) {
            looks += &format!(" fill=\"{colour}\"");
        }
        if self.bold {
            looks += " font-weight=\"700\"";
        }
        if self.faint {
            looks += " opacity=\".6\"";
        }
        if looks.is_empty() { text } else { format!("<tspan{looks}>{text}</tspan>") }
    }
}

/// A line with colours as spans. Only what a capture has is understood: SGR with the sixteen colours, bold and faint.
fn spans(line: &str) -> Vec<Span> {
    let mut spans = vec![];
    let mut now = Span::default();
    let mut rest = line.trim_end();
    while let Some(at) = rest.find("\u{1b}[") {
        now.text.push_str(&rest[..at]);
        let Some(end) = rest[at..].find('m') else { break };
        if !now.text.is_empty() {
            spans.push(now.clone());
            now.text.clear();
        }
        for number in rest[at + 2..at + end].split(';') {
            match number.parse::<usize>().unwrap_or(0) {
                0 => now = Span::default(),
                1 => now.bold = true,
                2 => now.faint = true,
                22 => (now.bold, now.faint) = (false, false),
                39 => now.colour = None,
                colour @ 30..=37 => now.colour = Some(colour - 30),
                colour @ 90..=97 => now.colour = Some(colour - 90 + 8),
                _ => {}
            }
        }
        rest = &rest[at + end + 1..];
    }
    now.text.push_str(rest);
    if !now.text.is_empty() {
        spans.push(now);
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_spans_and_text_is_escaped() {
        let drawn: String = spans("\u{1b}[32mwork\u{1b}[0m$ a<b").iter().map(Span::drawn).collect();
        assert_eq!(drawn, "<tspan fill=\"#98c379\">work</tspan>$ a&lt;b");
    }

    #[test]
    fn every_picture_is_in_the_drawing_and_in_the_recording() {
        let frame = |text: &str| Frame { screen: text.into(), tenths: 10 };
        let frames = [frame("one\n"), frame("two\n")];
        let drawing = svg(&frames, 20, 2);
        assert!(
            drawing.contains(">one</text>") && drawing.contains(">two</text>") && drawing.contains("k1"),
            "{drawing}"
        );
        let recording = cast(&frames, 20, 2);
        assert_eq!(recording.lines().count(), 3);
        assert!(recording.contains("[1.0,\"o\","), "{recording}");
    }
}
