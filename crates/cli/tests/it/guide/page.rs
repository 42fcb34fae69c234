//! A page of Markdown as what a test does with it.

use std::path::Path;

/// A page.
pub struct Page {
    /// In their order.
    pub steps: Vec<Step>,
}

/// One thing to do.
pub enum Step {
    /// What was before is over.
    NewHome,
    /// There is a relay from here on.
    Relay,
    /// The address that the pages show for HTTP is a free one from here on.
    Http,
    /// Must be so before what follows.
    Setup { machine: String, line: String, at: String },
    /// A file in the home.
    File { name: String, text: String },
    /// Commands.
    Block { how: How, commands: Vec<Told>, at: String },
}

/// How a block is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// One after the other, as scripts do.
    Plainly,
    /// At a person's terminal.
    AtTerminal,
    /// Beside what follows.
    Meanwhile,
    /// Not: it is only read.
    ParseOnly,
}

/// A command and what stands below it.
pub struct Told {
    /// Where: this machine has no name.
    pub machine: String,
    /// As it is typed.
    pub line: String,
    /// Line by line.
    pub below: String,
}

impl Page {
    /// Reads a page.
    pub fn read(path: &Path) -> Page {
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Page { steps: steps(&text, &path.file_name().unwrap().to_string_lossy()) }
    }
}

fn steps(text: &str, page: &str) -> Vec<Step> {
    let mut steps = vec![];
    let (mut how, mut file) = (How::Plainly, None);
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let at = format!("{page}:{}", number + 1);
        if let Some(told) = line.strip_prefix("<!-- test: ").and_then(|rest| rest.strip_suffix(" -->")) {
            match told.split_once(' ') {
                Some(("new", "home")) => steps.push(Step::NewHome),
                Some(("run", told)) => {
                    let (machine, line) = prompt(told).unwrap_or(("", told));
                    steps.push(Step::Setup { machine: machine.into(), line: line.into(), at });
                }
                Some(("file", name)) => file = Some(name.to_owned()),
                Some(("parse", reason)) if reason.strip_prefix("only, ").is_some_and(|reason| !reason.is_empty()) => {
                    how = How::ParseOnly;
                }
                None if told == "relay" => steps.push(Step::Relay),
                None if told == "http" => steps.push(Step::Http),
                None if told == "terminal" => how = How::AtTerminal,
                None if told == "meanwhile" => how = How::Meanwhile,
                Some(_) | None => panic!("{at}: the test does not know {told:?}"),
            }
        } else if let Some(language) = line.strip_prefix("```") {
            let body: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```")).collect();
            let (how, file) = (std::mem::replace(&mut how, How::Plainly), file.take());
            if let Some(name) = file {
                steps.push(Step::File { name, text: body.join("\n") + "\n" });
            } else if let Some(commands) = commands(language, &body) {
                steps.push(Step::Block { how, commands, at });
            }
        }
    }
    steps
}

/// The commands of a block that has some.
fn commands(language: &str, body: &[&str]) -> Option<Vec<Told>> {
    let mut told: Vec<Told> = vec![];
    let new = |machine: &str, line: &str| Told { machine: machine.into(), line: line.into(), below: String::new() };
    for line in body {
        if let Some(begun) = told.last_mut().filter(|last| last.below.is_empty() && last.line.ends_with('\\')) {
            begun.line += &format!("\n{line}");
            continue;
        }
        match (language, prompt(line)) {
            ("sh", _) if !line.trim().is_empty() => told.push(new("", line)),
            ("console" | "", Some((machine, command))) => told.push(new(machine, command)),
            ("console" | "", None) => {
                if let Some(last) = told.last_mut() {
                    last.below += &format!("{line}\n");
                }
            }
            _ => {}
        }
    }
    // A picture, or another language.
    (!told.is_empty()).then_some(told)
}

/// What is typed at a prompt: that of this machine, or of another one that is named before it (`gpu$ holdfast …`).
fn prompt(line: &str) -> Option<(&str, &str)> {
    let (machine, command) = line.split_once("$ ")?;
    let elsewhere = command.starts_with("holdfast ") && machine.chars().all(|c| c.is_ascii_lowercase());
    (machine.is_empty() || elsewhere).then_some((machine, command))
}

/// Command lines within the text of a page, outside its blocks: `holdfast ls`.
pub fn inline(text: &str) -> Vec<String> {
    let prose: String = text.split("```").step_by(2).collect();
    let spans = prose.split('`').skip(1).step_by(2).map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "));
    spans.filter(|span| span.starts_with("holdfast ")).collect()
}

/// Where the links of a text lead, except to other sites.
pub fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let images = text.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next());
    targets.chain(images).filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// The names of headings, as links call them.
pub fn headings(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    text.lines().filter(|line| line.starts_with('#')).map(name).collect()
}

#[test]
fn a_page_is_taken_apart() {
    let page = "<!-- test: run true -->\n<!-- test: terminal -->\n```console\n$ holdfast new work\nwork$ ls\n```\n\
                ```sh\nholdfast ls\n```\n<!-- test: file a.yaml -->\n```yaml\nx: 1\n```\n```rust\nlet x;\n```\n";
    let long = commands("sh", &["curl \\", "  -o a", "ls"]).unwrap();
    assert_eq!((long.len(), long[0].line.as_str()), (2, "curl \\\n  -o a"));
    let steps = steps(page, "page.md");
    assert!(matches!(&steps[0], Step::Setup { line, .. } if line == "true"));
    let Step::Block { how, commands, at } = &steps[1] else { panic!("a block") };
    assert_eq!((*how, at.as_str(), commands.len()), (How::AtTerminal, "page.md:3", 1));
    assert_eq!((commands[0].line.as_str(), commands[0].below.as_str()), ("holdfast new work", "work$ ls\n"));
    assert!(matches!(&steps[2], Step::Block { how: How::Plainly, commands, .. } if commands[0].line == "holdfast ls"));
    assert!(matches!(&steps[3], Step::File { name, text } if name == "a.yaml" && text == "x: 1\n"));
    assert_eq!(steps.len(), 4);
    assert_eq!(prompt("gpu$ holdfast ls"), Some(("gpu", "holdfast ls")));
    assert_eq!((prompt("work$ make"), prompt("a price of $ 5")), (None, None));
    assert_eq!(
        inline("Use `holdfast\nls`, or `x`.\n```\nholdfast end\n```\n`holdfast ui`"),
        ["holdfast ls", "holdfast ui"]
    );
    assert_eq!(headings("## Ask me, before `rm`!"), ["ask-me-before-rm"]);
}
