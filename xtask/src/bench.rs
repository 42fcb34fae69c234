//! `cargo xtask bench`: the release program beside its neighbours, our own costs, and how they grow with size.
//!
//! Three parts, each of which can stand alone: `bench/` measures terminal-session keepers side by side (ratios within one run); [`growth`]
//! measures what a cost does as sessions, clients, journals, process trees and sleeping flows grow, and draws it; with `--full` the
//! benches of the program (`cargo bench`) add seizures, runs and surfaces. [`page`] writes it all into docs/BENCHMARKS.md with the
//! date, the machine and the noise.

mod growth;
mod page;
mod plot;
mod ratios;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::soak::{Place, Plan, Sdks};
use crate::step::{cargo, must, say, shown, target};

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

/// The parts, as `--without` names them.
const PARTS: &[&str] = &["neighbours", "ratios", "growth", "benches"];
/// The program's own benches.
const BENCHES: &[&str] = &["seize", "runs", "surfaces"];

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
    let size = if options.full { "--full" } else { "--quick" };
    let mut page = page::Page::new(&program, options.full);
    if has("neighbours") {
        page.add("Beside other keepers", &neighbours(root, &program, &[size.to_owned()])?);
    }
    if has("ratios") {
        say("ratios of our own");
        let log = crate::soak::Log::default();
        let place = Place::new(&program, &plan(), Sdks::default(), &log)?;
        let told = ratios::measure(&place, options.full);
        place.end(&log);
        page.add("Ratios of our own", &ratios::markdown(&told?));
    }
    if has("growth") {
        let series = growth::measure(&program, options.full)?;
        for one in &series {
            fs::write(docs.join(format!("images/bench-{}.svg", one.id)), plot::svg(one))?;
        }
        page.add("How costs grow", &growth::markdown(&series));
    }
    if has("benches") && options.full {
        for bench in BENCHES {
            let text = told(cargo(root).args(["bench", "--locked", "--package", "holdfast", "--bench", bench]))?;
            page.add(&format!("`cargo bench --bench {bench}`"), &format!("```text\n{}\n```\n", text.trim_end()));
        }
    }
    let text = page.finish(&noise);
    print!("{text}");
    fs::write(docs.join("BENCHMARKS.md"), text)?;
    say(&format!("wrote {}", docs.join("BENCHMARKS.md").display()));
    Ok(ExitCode::SUCCESS)
}

/// A place without sessions, on the machine's own disk.
fn plan() -> Plan {
    let zero = Duration::ZERO;
    Plan { length: zero, seed: 1, sessions: 0, operators: 0, program: None, kill_every: zero, small_disk: false }
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
    match options.without.iter().find(|part| !PARTS.contains(&part.as_str())) {
        Some(odd) => bail!("there is no part {odd}; there are {}", PARTS.join(", ")),
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
