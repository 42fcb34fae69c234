//! `cargo xtask eval-agents`: what agents can do with the program, scored. A scripted model drives real clients through twenty tasks;
//! without a name, and in CI, the bare one, which needs no package and no network.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use crate::step::{cargo, must, program, say, target};
use crate::test::programs;
use crate::web;

/// Where tasks, model and clients are.
const DIR: &str = "tests/eval";

/// The client that is a loop of its own.
const BARE: &str = "bare";

/// What the tasks use besides the program.
const NEEDS: &[(&str, &str)] =
    &[("node", "nodejs"), ("git", "git"), ("less", "less"), ("vim", "vim"), ("python3", "python3")];

/// Every task with the bare client: what `clients` runs.
pub fn test(root: &Path, holdfast: &Path) -> Result<()> {
    score(root, holdfast, &[BARE.to_owned()], &[])
}

/// Builds the program and scores it: `args` are clients and, behind `--task`, tasks.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode> {
    let (clients, options) = args.split_at(args.iter().position(|arg| arg.starts_with("--")).unwrap_or(args.len()));
    web::build_if_stale(root)?;
    must(cargo(root).args(["build", "--locked", "--workspace", "--bin", "holdfast"]))?;
    let bare = [BARE.to_owned()];
    let clients = if clients.is_empty() { &bare[..] } else { clients };
    score(root, &target(root).join("debug/holdfast"), clients, options)?;
    Ok(ExitCode::SUCCESS)
}

fn score(root: &Path, holdfast: &Path, clients: &[String], options: &[String]) -> Result<()> {
    programs(root, NEEDS)?;
    let packages = target(root).join("eval-agents");
    for client in clients.iter().filter(|client| *client != BARE) {
        install(root, &packages.join(client), client)?;
    }
    let mut eval = program("node", root);
    eval.arg(root.join(DIR).join("run.mjs")).arg(holdfast).arg(&packages);
    must(eval.args(clients).args(options))
}

/// Installs a client's package, in the version that the table in `clients.mjs` names, unless it is there.
fn install(root: &Path, at: &PathBuf, client: &str) -> Result<()> {
    let table = format!(
        "import('{}/{DIR}/clients.mjs').then(m => console.log(m.PACKAGES[process.argv[1]] ?? ''))",
        root.display()
    );
    let told = program("node", root).args(["-e", &table, client]).output().context("cannot run node")?;
    let package = String::from_utf8_lossy(&told.stdout).trim().to_owned();
    if package.is_empty() {
        bail!("there is no client {client}; see PACKAGES in {DIR}/clients.mjs");
    }
    let mark = at.join("installed");
    if std::fs::read_to_string(&mark).is_ok_and(|there| there == package) {
        return Ok(());
    }
    std::fs::create_dir_all(at).with_context(|| format!("cannot make {}", at.display()))?;
    say(&format!("in {}:", at.display()));
    must(program("npm", at).args(["install", "--no-audit", "--no-fund", "--prefix", ".", &package]))?;
    ensure!(at.join("node_modules/.bin").join(client).exists(), "{package} has no program {client}");
    std::fs::write(&mark, package).with_context(|| format!("cannot write {}", mark.display()))
}
