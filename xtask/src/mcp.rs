//! `holdfast mcp` with the clients of others: the official Python client, the MCP Inspector's command line, and the protocol's
//! conformance suite. Python and the suite also use what the host serves at `/mcp`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context, Result, ensure};

use crate::step::{must, say, shown};
use crate::test::npm;
use crate::venv;
use crate::world::World;

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
    let world = World::new(holdfast, "mcp")?;
    let url = format!("{}/mcp", world.url);

    must(world.run(&python).arg(dir.join("python_client.py")).arg(holdfast).args([&url, &world.token]))?;
    let node = dir.join("node_modules/.bin/node");
    inspect(&world, &node, &dir)?;
    let (_proxy, url) = with_token(&world, &url, &node, &dir)?;
    for scenario in SCENARIOS {
        let mut suite = world.run(&node);
        suite.arg(dir.join("node_modules/.bin/conformance"));
        must(suite.args(["server", "--url", &url, "--scenario", scenario]))?;
    }
    Ok(())
}

/// The Inspector checks schemas strictly, and answers against them.
fn inspect(world: &World, node: &Path, dir: &Path) -> Result<()> {
    let asks: [(&[&str], &str); 5] = [
        (&["--method", "tools/list", "--strict"], "\"ask_human\""),
        (
            &["--method", "tools/call", "--tool-name", "run_command", "--tool-arg", "command=echo inspected"],
            "inspected",
        ),
        (&["--method", "resources/list"], "session://"),
        (&["--method", "resources/templates/list"], "session://{session}/screen"),
        // Its session is its own, and nobody else's to end.
        (&["--method", "tools/call", "--tool-name", "send_input", "--tool-arg", "text=exit\n"], "ended"),
    ];
    for (ask, wanted) in asks {
        let mut inspector = world.run(node);
        inspector.arg(dir.join("node_modules/.bin/mcp-inspector")).arg("--cli");
        // It passes few variables on, and the home's is not among them.
        inspector.arg("-e").arg(format!("HOLDFAST_HOME={}", world.home.display()));
        inspector.arg(&world.holdfast).arg("mcp").args(ask);
        say(&shown(&inspector));
        let output = inspector.stdin(Stdio::null()).output().context("cannot run the Inspector")?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success() && out.contains(wanted), "{ask:?} without {wanted}: {out}\n{err}");
        ensure!(!err.contains("Warning"), "{ask:?}: {err}");
    }
    Ok(())
}

/// The address for a client that cannot show a token, until what is given back is dropped.
fn with_token(world: &World, url: &str, node: &Path, dir: &Path) -> Result<(Proxy, String)> {
    let mut proxy = world.run(node);
    proxy.arg(dir.join("with_token.mjs")).args([url, &world.token]);
    let mut child = proxy.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot run node")?;
    let out = child.stdout.take();
    let proxy = Proxy(child);
    let mut url = String::new();
    BufReader::new(out.context("no output")?).read_line(&mut url)?;
    ensure!(!url.trim().is_empty(), "the proxy said nothing");
    Ok((proxy, url.trim().to_owned()))
}

/// A program that ends when nobody needs it any more.
struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
