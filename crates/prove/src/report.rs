//! What was found: as a table, as JSON, and as one page that needs nothing else.

use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// How an experiment ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// The claim holds.
    Held,
    /// The claim does not hold.
    Broken {
        /// What was seen instead.
        why: String,
    },
    /// This machine or this program does not provide it.
    NotProvided {
        /// The reason.
        why: String,
    },
}

/// Something that was observed, and when.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// Since the experiment began.
    pub at_ms: u64,
    /// What was observed.
    pub saw: String,
}

/// One experiment and its signature.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// Its id.
    pub id: String,
    /// What it was to show.
    pub claim: String,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What was observed, in order.
    pub steps: Vec<Step>,
    /// What was counted and measured.
    pub figures: Vec<(String, String)>,
    /// How long it took.
    pub took_ms: u64,
}

/// All findings.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What the program says its version is.
    pub program: String,
    /// One for each experiment.
    pub findings: Vec<Finding>,
    /// How long all of it took.
    pub took_ms: u64,
}

impl Report {
    pub(crate) fn new(program: String, findings: Vec<Finding>, took: Duration) -> Report {
        Report { program, findings, took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX) }
    }

    /// Whether everything that is provided holds.
    pub fn holds(&self) -> bool {
        !self.findings.iter().any(|finding| matches!(finding.outcome, Outcome::Broken { .. }))
    }

    /// How many held, are broken, are not provided.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count =
            |wanted: fn(&Outcome) -> bool| self.findings.iter().filter(|finding| wanted(&finding.outcome)).count();
        (
            count(|outcome| matches!(outcome, Outcome::Held)),
            count(|outcome| matches!(outcome, Outcome::Broken { .. })),
            count(|outcome| matches!(outcome, Outcome::NotProvided { .. })),
        )
    }

    /// The summary in a sentence.
    pub fn summary(&self) -> String {
        let (held, broken, missing) = self.counts();
        format!("{held} held, {broken} broken, {missing} not provided, in {:.1} s", self.took_ms as f64 / 1000.0)
    }

    /// One page with everything, which loads nothing from anywhere.
    pub fn html(&self) -> String {
        let mut page = String::from(HEAD);
        let _ = write!(page, "<h1>holdfast prove</h1><p>{} · {}</p>", escape(&self.program), escape(&self.summary()));
        for finding in &self.findings {
            let (class, word, why) = match &finding.outcome {
                Outcome::Held => ("held", "held", ""),
                Outcome::Broken { why } => ("broken", "broken", why.as_str()),
                Outcome::NotProvided { why } => ("missing", "not provided", why.as_str()),
            };
            let _ = write!(
                page,
                "<section class={class}><h2><b>{word}</b> {} <small>{} · {} ms</small></h2>",
                escape(&finding.claim),
                escape(&finding.id),
                finding.took_ms
            );
            if !why.is_empty() {
                let _ = write!(page, "<p class=why>{}</p>", escape(why));
            }
            page.push_str(&timeline(finding));
            if !finding.steps.is_empty() {
                page.push_str("<ol>");
                for (n, step) in finding.steps.iter().enumerate() {
                    let _ = write!(page, "<li value={}><time>{} ms</time> {}", n + 1, step.at_ms, escape(&step.saw));
                }
                page.push_str("</ol>");
            }
            if !finding.figures.is_empty() {
                page.push_str("<table>");
                for (name, value) in &finding.figures {
                    let _ = write!(page, "<tr><td>{}<td>{}", escape(name), escape(value));
                }
                page.push_str("</table>");
            }
            page.push_str("</section>");
        }
        page
    }
}

/// The steps of an experiment on a line, at their times.
fn timeline(finding: &Finding) -> String {
    if finding.steps.is_empty() {
        return String::new();
    }
    let span = finding.took_ms.max(1) as f64;
    let mut svg =
        String::from("<svg viewBox='0 0 1000 34' role=img aria-label=timeline><line x1=10 x2=990 y1=12 y2=12 />");
    for (n, step) in finding.steps.iter().enumerate() {
        let x = 10.0 + 980.0 * step.at_ms as f64 / span;
        let _ = write!(svg, "<circle cx={x:.1} cy=12 r=5><title>{}</title></circle>", escape(&step.saw));
        let _ = write!(svg, "<text x={x:.1} y=30>{}</text>", n + 1);
    }
    svg + "</svg>"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\'', "&#39;").replace('"', "&quot;")
}

const HEAD: &str = "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'><title>holdfast prove</title><style>
:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}body{max-width:60rem;margin:2rem auto;padding:0 1rem}
section{border-left:4px solid;padding:0 1rem;margin:1.5rem 0}.held{border-color:#2a9d5c}.broken{border-color:#d1495b}.missing{border-color:#999}
h2{font-size:1.05rem;font-weight:600}h2 b{text-transform:uppercase;font-size:.75rem;letter-spacing:.05em;margin-right:.5rem}
.held b{color:#2a9d5c}.broken b,.broken .why{color:#d1495b}small,time{opacity:.65;font-weight:400}svg{width:100%;height:34px}
line{stroke:currentColor;opacity:.3}circle{fill:#2a6fdb}text{font-size:11px;text-anchor:middle;fill:currentColor;opacity:.7}
td{padding:.1rem 1rem .1rem 0}td+td{font-variant-numeric:tabular-nums;font-weight:600}</style>";

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcome: Outcome) -> Report {
        let step = Step { at_ms: 3, saw: "<b>&".into() };
        let finding = Finding {
            id: "x".into(),
            claim: "It holds".into(),
            outcome,
            steps: vec![step],
            figures: vec![],
            took_ms: 9,
        };
        Report::new("holdfast 1".into(), vec![finding], Duration::from_millis(1234))
    }

    #[test]
    fn only_a_broken_claim_makes_it_fail() {
        assert!(report(Outcome::Held).holds());
        assert!(report(Outcome::NotProvided { why: "no root".into() }).holds());
        let broken = report(Outcome::Broken { why: "two lives".into() });
        assert!(!broken.holds());
        assert_eq!(broken.summary(), "0 held, 1 broken, 0 not provided, in 1.2 s");
    }

    #[test]
    fn the_page_shows_texts_as_texts_and_loads_nothing() {
        let page = report(Outcome::Broken { why: "<script>".into() }).html();
        assert!(page.contains("&lt;b&gt;&amp;") && page.contains("&lt;script&gt;"), "{page}");
        for loads in ["src=", "href=", "url(", "<script"] {
            assert!(!page.contains(loads), "{loads}");
        }
    }
}
