//! The OpenAPI document against the host that serves it: generators make clients of it, which are used, and schemathesis asks
//! everything in every way it can think of.

use std::path::Path;

use anyhow::Result;

use crate::step::{must, program};
use crate::test::npm;
use crate::venv;
use crate::world::World;

/// Where the clients lie that generators make.
const CLIENTS: &str = "tests/openapi/clients";

/// Inputs per operation: a few seconds for all of them together, the same ones each time.
const EXAMPLES: &str = "15";

/// Operations that would end the test: they stop the host, or take away the token that asks.
const LEFT_OUT: [&str; 4] = ["host_stop", "actor_remove", "token_revoke", "relay_add"];

/// Checks that would depend on chance: a session that is not there, or has just ended, refuses what fits the document; and what
/// one request made another may have taken away again. And a session that was deleted has ended: its output stays for a day, as
/// the document says, which only some of the generated sequences come to ask for.
const BY_CHANCE: &str = "positive_data_acceptance,ensure_resource_availability,use_after_free";

/// Clients made from the document work, no answer is a fault of the host's, and each is as the document says.
pub fn test(root: &Path, holdfast: &Path) -> Result<()> {
    generated(root, holdfast)?;
    let bin = venv::programs(root, "openapi", &root.join("tests/openapi/requirements.lock"), None)?;
    let world = World::new(holdfast, "api")?;
    world.told(&["--as", "agent:tester", "new", "-d", "-n", "one", "--", "bash"])?;
    let mut tester = world.run(&bin.join("schemathesis"));
    tester.env("SCHEMATHESIS_HOOKS", root.join("tests/openapi/hooks.py"));
    tester.args(["run", &format!("{}/v1/openapi.json", world.url), "--url", &world.url]);
    tester.args(["-H", &format!("Authorization: Bearer {}", world.token)]);
    tester.args(["--max-examples", EXAMPLES, "--seed", "1", "--request-timeout", "10", "--no-color"]);
    tester.args(["--exclude-checks", BY_CHANCE]);
    for operation in LEFT_OUT {
        tester.args(["--exclude-operation-id", operation]);
    }
    must(&mut tester)
}

/// What openapi-python-client, openapi-typescript and hey-api make of the document has every operation, and speaks with the host.
fn generated(root: &Path, holdfast: &Path) -> Result<()> {
    let dir = root.join(CLIENTS);
    let bin = venv::programs(root, "openapi-clients", &dir.join("requirements.lock"), None)?;
    npm(&dir, CLIENTS)?;
    let world = World::new(holdfast, "gen")?;
    let node = program("node", root).get_program().to_owned();
    for (tool, script) in [(bin.join("python"), "use.py"), (node.into(), "use.mjs")] {
        let mut user = world.run(&tool);
        user.env("PYTHONDONTWRITEBYTECODE", "1");
        must(user.arg(dir.join(script)).args([&world.url, &world.token]).arg(&world.home))?;
    }
    Ok(())
}
