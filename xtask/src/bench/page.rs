//! docs/BENCHMARKS.md: what was measured, when, where, and how quiet it was there.

use std::fs;
use std::path::Path;
use std::process::Command;

/// How busy the machine was.
pub struct Noise {
    load: String,
}

impl Noise {
    pub fn before() -> Noise {
        Noise { load: load() }
    }
}

fn load() -> String {
    fs::read_to_string("/proc/loadavg").unwrap_or_default().split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn said(program: &Path, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

/// The page as it comes to be.
pub struct Page {
    head: String,
    parts: Vec<(String, String)>,
}

impl Page {
    pub fn new(program: &Path, full: bool) -> Page {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model =
            info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let gib =
            memory.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or_default() / 1048576.0;
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let head = format!(
            "| | |\n|---|---|\n| date | {} |\n| program | {} |\n| size | {} |\n| machine | {cores} cores, {}, {gib:.0} GiB, Linux {} |\n",
            said(Path::new("date"), &["-u", "+%Y-%m-%d %H:%M UTC"]),
            said(program, &["--version"]),
            if full { "`--full`" } else { "`--quick`: small counts, for a look; take no figure from it" },
            model.unwrap_or("unknown processor"),
            kernel.trim()
        );
        Page { head, parts: vec![] }
    }

    pub fn add(&mut self, title: &str, text: &str) {
        self.parts.push((title.to_owned(), text.to_owned()));
    }

    pub fn finish(self, noise: &Noise) -> String {
        let mut out = String::from(
            "# Benchmarks\n\nWritten by `cargo xtask bench`. Lower is better everywhere. Absolute figures are this machine's; ratios are taken within \
             one run and are the result. [SPEC.md](../SPEC.md) has the targets.\n\n",
        );
        out += &self.head;
        out += &format!("| load before and after (1, 5, 15 minutes) | {} and {} |\n", noise.load, load());
        for (title, text) in self.parts {
            out += &format!("\n## {title}\n\n{}\n", text.trim());
        }
        out
    }
}

#[test]
fn the_page_has_its_parts_and_the_noise() {
    let mut page = Page::new(Path::new("true"), false);
    page.add("Growth", "| x |\n");
    let text = page.finish(&Noise { load: "0.10 0.20 0.30".into() });
    assert!(
        text.contains("## Growth\n\n| x |\n") && text.contains("0.10 0.20 0.30 and ") && text.contains("--quick"),
        "{text}"
    );
}
