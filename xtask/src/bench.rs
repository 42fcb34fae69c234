//! `cargo xtask bench`: the release program beside its neighbours, our own costs, and how they grow with size.
//!
//! Several parts, each of which can stand alone: `bench/` measures terminal-session keepers side by side (ratios within one run); [`growth`]
//! measures what a cost does as sessions, clients, journals and much else grow, and draws it; with `--full` the program's benches
//! (`cargo bench`), the examples that measure a part by itself, and the page in a browser add theirs. [`page`] writes it all into docs/BENCHMARKS.md with the
//! date, the machine and the noise.

mod growth;
mod page;
mod plot;
mod portable;
mod ratios;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::soak::{Place, Plan, Sdks};
use crate::step::{self, cargo, must, say, shown, target};

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    full: bool,
    /// A program that is already built.
    program: Option<PathBuf>,
    /// Where to write; docs/ where it is not said.
    out: Option<PathBuf>,
    /// Parts that are left out.
    without: Vec<String>,
    /// For the comparison with the neighbours, which is then all there is.
    rest: Option<Vec<String>>,
}

/// The program's own benches.
const BENCHES: &[&str] = &["seize", "runs", "surfaces", "agents", "files", "flows"];
/// Examples that measure a part by itself: a decision of the gate, a look at processes. The relay's, `relayed`, also tells the growth.
const EXAMPLES: &[&str] = &["relayed", "decision", "measure"];
/// The test of the page that prints how soon a session is painted.
const PAINT: &str = "a session with ten thousand lines above its screen is painted whole";

/// Builds and measures.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode> {
    let options = options(args)?;
    let has = |part: &str| !options.without.iter().any(|without| without == part);
    let program = match &options.program {
        Some(program) => std::path::absolute(program)?,
        None => {
            must(cargo(root).args(["build", "--release", "--locked", "--package", "holdfast"]))?;
            target(root).join("release/holdfast")
        }
    };
    if let Some(rest) = &options.rest {
        print!("{}", neighbours(root, &program, rest)?);
        return Ok(ExitCode::SUCCESS);
    }
    let docs = options.out.clone().map_or_else(|| Ok(root.join("docs")), std::path::absolute)?;
    fs::create_dir_all(docs.join("images"))?;
    let noise = page::Noise::before();
    let mut page = page::Page::new(&program, options.full);
    let mut failed = vec![];
    for (part, measure) in MEASURES.iter().filter(|(part, _)| has(part)) {
        // Hours of measuring are not lost because one part failed.
        if let Err(error) = measure(&mut page, &Bench { root, program: &program, docs: &docs, full: options.full }) {
            page.add(&format!("Not measured: {part}"), &format!("{error:#}"));
            failed.push(*part);
        }
    }
    let text = page.finish(&noise);
    print!("{text}");
    fs::write(docs.join("BENCHMARKS.md"), text)?;
    say(&format!("wrote {}", docs.join("BENCHMARKS.md").display()));
    if !failed.is_empty() {
        bail!("not measured: {}", failed.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

/// What is measured, and where it is written to.
struct Bench<'a> {
    root: &'a Path,
    program: &'a Path,
    docs: &'a Path,
    full: bool,
}

/// Measures a part and adds it to the page.
type Measure = fn(&mut page::Page, &Bench) -> Result<()>;

/// The parts, as `--without` names them.
const MEASURES: &[(&str, Measure)] = &[
    ("neighbours", |page, bench| {
        let size = if bench.full { "--full" } else { "--quick" };
        page.add("Beside other keepers", &neighbours(bench.root, bench.program, &[size.to_owned()])?);
        Ok(())
    }),
    ("ratios", our_ratios),
    ("growth", grow),
    ("benches", benches),
    ("page", |page, bench| {
        if bench.full {
            page.add("The page", &painted(bench.root, bench.program)?);
        }
        Ok(())
    }),
];

fn our_ratios(page: &mut page::Page, bench: &Bench) -> Result<()> {
    say("ratios of our own");
    let log = crate::soak::Log::default();
    let place = Place::new(bench.program, &plan(), Sdks::default(), &log)?;
    let rows = ratios::measure(&place, bench.full);
    place.end(&log);
    page.add("Ratios of our own", &ratios::markdown(&rows?));
    Ok(())
}

fn grow(page: &mut page::Page, bench: &Bench) -> Result<()> {
    let mut series = growth::measure(bench.program, bench.full)?;
    series.push(growth::relay(&example(bench.root, "relayed")?, bench.full)?);
    for one in &series {
        fs::write(bench.docs.join(format!("images/bench-{}.svg", one.id)), plot::svg(one))?;
    }
    page.add("How costs grow", &growth::markdown(&series));
    Ok(())
}

/// What takes long, and is only in the full size.
fn benches(page: &mut page::Page, bench: &Bench) -> Result<()> {
    let text = |text: &str| format!("```text\n{}\n```\n", text.trim_end());
    for name in BENCHES.iter().filter(|_| bench.full) {
        let said = told(cargo(bench.root).args(["bench", "--locked", "--workspace", "--bench", name]))?;
        page.add(&format!("`cargo bench --bench {name}`"), &text(&said));
    }
    for name in EXAMPLES.iter().filter(|_| bench.full) {
        let said = told(&mut Command::new(example(bench.root, name)?))?;
        page.add(&format!("The example `{name}`"), &text(&said));
    }
    Ok(())
}

/// Builds an example of one of the crates, with the features that the whole has.
fn example(root: &Path, name: &str) -> Result<PathBuf> {
    must(cargo(root).args(["build", "--release", "--locked", "--quiet", "--workspace", "--example", name]))?;
    Ok(target(root).join("release/examples").join(name))
}

/// How soon the page shows a session, in a real browser.
fn painted(root: &Path, program: &Path) -> Result<String> {
    crate::web::ready(root)?;
    let mut test = step::program("npm", &root.join("web"));
    test.args(["test", "--silent", "--", "tests/looks.test.ts", "--testNamePattern", PAINT]);
    let text = told(test.env("HOLDFAST_BIN", program).env("HOLDFAST_WEB", "host").env("NO_COLOR", "1"))?;
    let lines: Vec<_> = text.lines().filter(|line| line.trim_end().ends_with(" ms")).map(str::trim).collect();
    if lines.len() < 2 {
        bail!("the page's test says no times: {text}");
    }
    Ok(format!("```text\n{}\n```\n", lines.join("\n")))
}

/// A place without sessions, on the machine's own disk.
fn plan() -> Plan {
    let zero = Duration::ZERO;
    Plan { length: zero, seed: 1, sessions: 0, operators: 0, program: None, kill_every: zero, chaos: false }
}

/// tmux, dtach, screen and others, where they are installed.
fn neighbours(root: &Path, program: &Path, args: &[String]) -> Result<String> {
    let dir = target(root).join("bench");
    let manifest = root.join("bench/Cargo.toml");
    let mut build = cargo(root);
    build
        .args(["build", "--release", "--locked", "--quiet", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(&dir);
    must(&mut build)?;
    let mut bench = Command::new(dir.join("release/keepbench"));
    bench.arg("--tools-file").arg(root.join("bench/tools.conf")).args(args);
    bench.arg("--bin").arg(format!("holdfast={}", program.display()));
    let text = told(&mut bench)?;
    // Its headings are below ours.
    let lines = text.lines().map(|line| if line.starts_with('#') { format!("#{line}") } else { line.to_owned() });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// What a command prints; its errors are shown as they come.
fn told(command: &mut Command) -> Result<String> {
    let line = shown(command);
    say(&line);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed: {}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn options(args: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        let mut value = || args.next().cloned().with_context(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--quick" => options.full = false,
            "--full" => options.full = true,
            "--program" => options.program = Some(value()?.into()),
            "--out" => options.out = Some(value()?.into()),
            "--" => options.rest = Some(args.by_ref().cloned().collect()),
            "--without" => options.without = value()?.split(',').map(str::to_owned).collect(),
            _ => bail!("`bench` does not take {flag}"),
        }
    }
    let parts: Vec<_> = MEASURES.iter().map(|(part, _)| *part).collect();
    match options.without.iter().find(|part| !parts.contains(&part.as_str())) {
        Some(odd) => bail!("there is no part {odd}; there are {}", parts.join(", ")),
        None => Ok(options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_chooses_size_program_and_parts() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(options(&[]).unwrap(), Options::default());
        let chosen = options(&words("--full --program /bin/holdfast --without neighbours,benches")).unwrap();
        assert!(chosen.full && chosen.program == Some("/bin/holdfast".into()));
        assert_eq!(chosen.without, ["neighbours", "benches"]);
        let rest = options(&words("-- --full --tools tmux,holdfast")).unwrap().rest.unwrap();
        assert_eq!(rest, ["--full", "--tools", "tmux,holdfast"]);
        assert!(options(&words("--without everything")).is_err());
        assert!(options(&words("--slow")).is_err());
    }
}
