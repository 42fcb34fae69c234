//! `holdfast mcp` with the clients of others: the official Python client, the MCP Inspector's command line, and the protocol's
//! conformance suite.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::step::{cargo, must, say, shown, works};
use crate::test::npm;
use crate::venv;

/// Where the clients are; its npm packages are installed with those of the other tests.
const DIR: &str = "tests/mcp";

/// Scenarios of the conformance suite that hold for any server. The others presuppose tools, prompts and resources of a sample
/// server, and `logging-set-level` a capability that the protocol has deprecated and we do not claim.
const SCENARIOS: &[&str] = &[
    "server-initialize",
    "ping",
    "completion-complete",
    "tools-list",
    "resources-list",
    "prompts-list",
    "server-sse-polling",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
];

/// Runs every client against this program, in a home of its own.
pub fn test(root: &Path, holdfast: &Path) -> Result<()> {
    let dir = root.join(DIR);
    npm(&dir, DIR)?;
    let python = venv::programs(root, "mcp", &dir.join("requirements.txt"), None)?.join("python");
    let server = server(root, holdfast)?;
    let world = World::new(holdfast)?;
    let (_serving, url) = world.serve(&server)?;

    must(world.run(&python).arg(dir.join("python_client.py")).arg(holdfast).arg(&url))?;
    let node = dir.join("node_modules/.bin/node");
    inspect(&world, &node, &dir)?;
    for scenario in SCENARIOS {
        let mut suite = world.run(&node);
        suite.arg(dir.join("node_modules/.bin/conformance"));
        must(suite.args(["server", "--url", &url, "--scenario", scenario]))?;
    }
    Ok(())
}

/// The Inspector checks schemas strictly, and answers against them.
fn inspect(world: &World, node: &Path, dir: &Path) -> Result<()> {
    let asks: [(&[&str], &str); 4] = [
        (&["--method", "tools/list", "--strict"], "\"ask_human\""),
        (&["--method", "tools/call", "--tool-name", "run", "--tool-arg", "command=echo inspected"], "inspected"),
        (&["--method", "resources/list"], "session://"),
        (&["--method", "resources/templates/list"], "session://{session}/screen"),
    ];
    for (ask, wanted) in asks {
        let mut inspector = world.run(node);
        inspector
            .arg(dir.join("node_modules/.bin/mcp-inspector"))
            .arg("--cli")
            .arg(&world.holdfast)
            .arg("mcp")
            .args(ask);
        say(&shown(&inspector));
        let output = inspector.stdin(Stdio::null()).output().context("cannot run the Inspector")?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success() && out.contains(wanted), "{ask:?} without {wanted}: {out}\n{err}");
        ensure!(!err.contains("Warning"), "{ask:?}: {err}");
    }
    Ok(())
}

/// The example that serves the tools over HTTP.
fn server(root: &Path, holdfast: &Path) -> Result<PathBuf> {
    must(cargo(root).args(["build", "--package", "holdfast-mcp", "--example", "http"]))?;
    Ok(holdfast.with_file_name("examples").join("http"))
}

/// A home that ends with its sessions and its host.
struct World {
    home: PathBuf,
    holdfast: PathBuf,
}

impl World {
    fn new(holdfast: &Path) -> Result<World> {
        let home = std::env::temp_dir().join(format!("hfmcp{}", std::process::id()));
        fs::create_dir(&home).with_context(|| format!("cannot make {}", home.display()))?;
        let world = World { home, holdfast: holdfast.to_owned() };
        must(world.run(holdfast).args(["host", "start"]))?;
        Ok(world)
    }

    /// A program in this home, and nobody else's.
    fn run(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("HOLDFAST_HOME", &self.home).env("HOME", &self.home).env("SHELL", "/bin/bash");
        command.env_remove("HOLDFAST_ACTOR").current_dir(&self.home);
        command
    }

    /// Serves over HTTP until what is given back is dropped.
    fn serve(&self, server: &Path) -> Result<(Serving, String)> {
        let mut serving = self.run(server);
        let mut child = serving.arg("0").stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot serve")?;
        let out = child.stdout.take();
        let serving = Serving(child);
        let mut url = String::new();
        BufReader::new(out.context("no output")?).read_line(&mut url)?;
        if url.trim().is_empty() {
            bail!("the server over HTTP said nothing");
        }
        Ok((serving, url.trim().to_owned()))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for args in [["end", "--all"], ["host", "stop"]] {
            works(self.run(&self.holdfast).args(args));
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// A server that ends when nobody needs it any more.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
