//! What developers and CI run: `cargo xtask test`, `ci`, `tidy`, `lint`, `web-build`, `bench`, `fuzz-smoke`, `mutants`,
//! `eval-agents`, `soak`, `package`, `release-notes`, `tour`.
//!
//! Every step is one line of output before it starts. Nothing asks a question, nothing needs a terminal.

mod bench;
mod ci;
mod clients;
mod eval;
mod examples;
mod fuzz;
mod lint;
mod mcp;
mod mutants;
mod openapi;
mod package;
mod python;
mod soak;
#[path = "../../crates/http/build/stamp.rs"]
mod stamp;
mod step;
mod test;
mod tidy;
mod tour;
mod typescript;
mod venv;
mod web;
mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

/// The texts of `--help`, by subcommand; the empty name is the overview.
const HELP: &[(&str, &str)] = &[
    (
        "",
        "\
usage: cargo xtask COMMAND

  test [FILTER…]     install what the tests need, then run all of them
  clients [NAME…]    the program with clients in other languages, which `test` runs too
  ci                 what CI runs: fmt, clippy, rustdoc, tidy, lint, test, packages, soak, fuzz-smoke
  web-build          build the page from web/src into web/dist, which is committed
  lint               Ruff over our Python, ESLint over our TypeScript and JavaScript
  tidy [--shrink]    the rules about this tree that no compiler checks
  fuzz-smoke [S]     every fuzz target: the same 100,000 inputs, or S seconds of new ones
  mutants [CRATE…]   change the code of pure crates in one place at a time: the tests must notice
  soak […]           many sessions and operators, everything killed again and again, and what must hold
  package […]        a .deb, a tarball, an npm package, a wheel, recipes, a bill of materials
  release-notes [V]  what changed, from CHANGELOG.md, with checksums of the packages
  tour               play a terminal and draw it: docs/images/tour.svg
  eval-agents […]    twenty tasks of agents through real clients, with a scripted model, scored
  bench […]          build for release, measure, compare with the neighbours: docs/BENCHMARKS.md

`cargo xtask COMMAND --help` says more.
",
    ),
    (
        "test",
        "\
usage: cargo xtask test [FILTER…]

Runs every test of the workspace with cargo-nextest, then the doc tests, then the clients (`cargo xtask clients`).
FILTERs are parts of test names; with one of them the clients are left out.

Before that it installs what is missing: Debian packages (as root, on Debian), npm packages of the tests written in
JavaScript, and cargo-nextest. Where it may not install, it says what is missing and the command to get it, and stops.
The exit code is that of the tests.
",
    ),
    (
        "clients",
        "\
usage: cargo xtask clients [NAME…]

Tests the program that was just built with clients in other languages: `python` and `typescript` are ours, in sdk/; `openapi`
is clients made from the document the host serves, and schemathesis against it; `mcp` is the official Python client, the Inspector's command line and the
conformance suite of the Model Context Protocol; `eval` is `eval-agents` with the bare client; `examples` are those of sdk/examples,
with frameworks of others; `web` is the page in Debian's chromium, built first where it is old. All where none is named. Installs
what they need: environments of Python in the target directory, npm packages beside the tests.
",
    ),
    (
        "web-build",
        "\
usage: cargo xtask web-build

Builds the page with npm and Vite into web/build, packs that as Brotli and gzip into web/dist, and writes a hash of its sources
beside it. Commit web/dist: `cargo build` puts it into the program as it is, so that nobody needs Node for that. `tidy` fails
while the sources are others than the hash says. Where web/dist has a conflict, take either side and build anew.
",
    ),
    (
        "ci",
        "\
usage: cargo xtask ci

Runs, in this order and whatever the earlier ones said: cargo fmt --check, clippy and rustdoc with warnings as errors,
tidy, lint, test, package --check, two minutes of soak, fuzz-smoke. Prints the end of what failed again, the time of each step and the total; fails if one of them
failed.
",
    ),
    (
        "tidy",
        "\
usage: cargo xtask tidy [--shrink]

Checks what no compiler checks:
  purity      pure crates and the keeper depend on nothing but what their list allows; their clippy.toml bans IO
  portable    what clients of other operating systems need names none
  reasons     every dependency line of every Cargo.toml ends with `# what it is for`
  long        files over 600 lines and functions of Rust over 80 are in xtask/long.txt, and no longer than it says
  frames      frame numbers in the code are those of their written spec
  words       no machine paths, registry hosts, todo!(), ignored tests, sleeping tests (exceptions: xtask/allow.txt)
  documents   decisions are numbered and listed; ARCHITECTURE.md is at most 300 lines; docs/security.md names tests that exist
  page        web/dist was built from today's sources
  npm         every package-lock.json is one that `cargo xtask test` installs

--shrink lowers the numbers in xtask/long.txt to today's and drops what is short enough. It never raises one.
",
    ),
    (
        "lint",
        "\
usage: cargo xtask lint

Runs Ruff over all Python (rules: ruff.toml) and ESLint over all TypeScript and JavaScript (rules: tests/lint/eslint.config.js);
fails where one of them finds anything. Installs both where they are missing: an environment of Python in the target
directory, npm packages in tests/lint.
",
    ),
    (
        "fuzz-smoke",
        "\
usage: cargo xtask fuzz-smoke [SECONDS]

Builds and runs every target of fuzz/ with cargo-fuzz, which is installed if missing: 100,000 inputs that are the same each
time, or new ones for SECONDS each. With the
address sanitizer where a nightly toolchain is installed, without it otherwise. Nothing to do where there is no fuzz/.
",
    ),
    (
        "eval-agents",
        "\
usage: cargo xtask eval-agents [CLIENT…] [--task NAME]… [--json FILE]

Drives agents through twenty tasks (a long build, a port, a prompt, a password, a flood, a migration that fails, lost memory, two
agents, a pager, an editor, a killed host, …) with a scripted model on loopback, and scores each: success, calls, bytes that the
model reads, wrong steps, interruptions of a person. CLIENT is claude, codex, gemini or opencode, installed from npm into the target
directory in a pinned version (100 to 400 MB each), or bare: a loop without packages, which is taken where none is named and which
`test` runs too. Fails where a task fails.
",
    ),
    (
        "soak",
        "\
usage: cargo xtask soak [--minutes N] [--seed S] [--sessions N] [--operators N] [--kill-every SECONDS] [--program FILE]

Runs sessions with real programs (counters, shells, cat, vim, top: 200) and random operators (the command line, HTTP, MCP, a second
home behind a relay: 50) for N minutes (2), while the host is killed every 30 s, the relay too, keepers are stopped for a
while, sessions are frozen, and the disk is filled and freed (root only: a small disk of its own). Checks throughout and at the end:
no session lost, no byte lost within the ring, each acknowledged line and run there once and each refused one not at all, journals
verify, no leak of memory, files or processes. Prints the seed; fails on anything that does not hold. What the machine does not
offer is named as not provided. CI runs two minutes of a small one.
",
    ),
    (
        "package",
        "\
usage: cargo xtask package [--static] [--only deb,tar,npm,wheel] [--target TRIPLE] [--profile NAME] [--program FILE] [--out DIR] [--url BASE]
       cargo xtask package --verify […]
       cargo xtask package --check [--program FILE]
       cargo xtask package --elsewhere [--target TRIPLE]
       cargo xtask package --previous FILE [--program FILE]

Builds the program for release and writes packages into target/package: a .deb, a
tarball, an npm package, a wheel, recipes for Homebrew and AUR that fetch the tarball from BASE, a Containerfile of a relay, a bill of
materials (CycloneDX) and SHA256SUMS. --program takes a program that is built. Completions, the manual page and systemd units are in
all of them. What the program needs of glibc is read from it and stated in each package; for a target of musl it is
static. --static makes the .deb and a tarball as before, and tarballs, npm packages and wheels with a static program for x86-64 and arm64.
--target builds for that one alone. Other targets than this machine's are built with zig (fetched into target/venv) and, where rustup
has no standard library for them, with Debian's Rust (unpacked into target/elsewhere, never installed). Times of files are SOURCE_DATE_EPOCH, or the last commit's.

--verify builds everything once more in a copy of the tree elsewhere and fails unless all bytes are the same.

--check makes packages of the program that the tests use (or FILE), installs the .deb, the wheel and the npm package in a fresh Debian
(debootstrap, kept in the target directory; needs root), works in each as a user, kills the host, and removes them; runs the units under `systemd --user`, and a FILE that is static in an empty root. CI runs it.

--elsewhere checks that the client compiles for macOS (aarch64-apple-darwin) and Windows with Cygwin (x86_64-pc-cygwin), or for one of
them. It is not linked and not run.

--previous runs sessions with a program of an earlier version (FILE) and the one that the tests use, or --program: each as client of the other's
host, and each one's host with the other's keepers.
",
    ),
    (
        "release-notes",
        "\
usage: cargo xtask release-notes [VERSION]

Prints the part of CHANGELOG.md about VERSION, or what is unreleased as the next one, and the checksums of target/package where
packages of it were made.
",
    ),
    (
        "tour",
        "\
usage: cargo xtask tour

Plays a person at a terminal (a tmux of its own, in a fresh home, with the program that is built for it): a build, a killed
client, an agent, the journal. Draws what the terminal shows as docs/images/tour.svg, which moves by itself, and writes
docs/images/tour.cast for players of asciicasts. Commit both.
",
    ),
    (
        "mutants",
        "\
usage: cargo xtask mutants [--shard K/N] [--minutes M] [CRATE…]

Changes the code of a crate in one place at a time, in a copy of the tree, and runs the crate's tests. A change that no test
notices is a survivor. CRATE is types, wire, authority, screen, abi or session; all of them where none is named.

Run it by hand: it takes seconds for each change, and there are hundreds. --shard tries one part of N, --minutes stops after
that long. Installs cargo-mutants, in the version this tree is checked with, if it is missing. Known survivors are in
xtask/mutants.txt, each with a reason. The task fails on a survivor that is not listed, and on a line that is no longer true.
",
    ),
    (
        "bench",
        "\
usage: cargo xtask bench [--quick|--full] [--program FILE] [--out DIR] [--without PART,…]
       cargo xtask bench [--program FILE] -- ARGS…

Builds the release program and measures it: beside tmux, dtach, screen and a raw terminal, where they are installed (bench/);
our own ratios (runs over HTTP and MCP, the relay, flows, a seizure, a graph beside lsof); and how costs grow with sessions,
clients, journals, process trees and sleeping flows. Prints Markdown and writes docs/BENCHMARKS.md with date, machine and noise, and
drawings into docs/images. --full takes about half an hour on a quiet machine and adds the program's own benches (cargo bench);
--quick, the default, is for a look. --out writes elsewhere, --program takes a program that is built, and --without leaves out parts:
neighbours, ratios, growth, benches. With `--`, only the comparison with the neighbours is run, with ARGS (bench/README.md), and nothing is
written.
",
    ),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<ExitCode> {
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("", args),
    };
    let command = if matches!(command, "-h" | "--help" | "help") { "" } else { command };
    let wants_help = rest.iter().take_while(|arg| *arg != "--").any(|arg| arg == "-h" || arg == "--help");
    let Some((_, help)) = HELP.iter().find(|(name, _)| *name == command) else {
        eprintln!("xtask: there is no command {command}\n\n{}", HELP[0].1);
        return Ok(ExitCode::from(2));
    };
    if command.is_empty() || wants_help {
        print!("{help}");
        return Ok(ExitCode::SUCCESS);
    }
    let root = root();
    match (command, rest) {
        ("test", filters) => test::run(&root, filters),
        ("clients", names) => clients::run(&root, names),
        ("web-build", []) => web::build(&root),
        ("lint", []) => lint::run(&root),
        ("ci", []) => ci::run(&root),
        ("tidy", []) => tidy::run(&root),
        ("tidy", [flag]) if flag == "--shrink" => tidy::shrink(&root),
        ("fuzz-smoke", []) => fuzz::run(&root, None),
        ("fuzz-smoke", [seconds]) if seconds.parse::<u32>().is_ok() => fuzz::run(&root, Some(seconds.parse()?)),
        ("soak", args) => soak::run(&root, args),
        ("package", args) => package::run(&root, args),
        ("release-notes", []) => package::notes::run(&root, None),
        ("release-notes", [version]) => package::notes::run(&root, Some(version)),
        ("tour", []) => tour::run(&root),
        ("mutants", args) => mutants::run(&root, args),
        ("eval-agents", args) => eval::run(&root, args),
        ("bench", args) => bench::run(&root, args),
        _ => bail!("`{command}` does not take {:?}\n\n{help}", rest.join(" ")),
    }
}

/// The repository: the directory above this crate's.
fn root() -> PathBuf {
    let manifest =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    manifest.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn every_command_has_a_help_text_and_the_overview_names_it() {
        for (name, help) in HELP {
            assert!(HELP[0].1.contains(name), "{name} is not in the overview");
            assert!(help.starts_with("usage: cargo xtask"), "{name}");
        }
    }

    #[test]
    fn a_wrong_command_or_argument_is_not_taken() {
        assert_eq!(format!("{:?}", run(&words("tidyy")).unwrap()), format!("{:?}", ExitCode::from(2)));
        assert!(run(&words("ci now")).is_err());
        assert!(run(&words("fuzz-smoke soon")).is_err());
        assert!(run(&words("bench --slow")).is_err());
    }
}
