//! Who may look may not write: by no side way of attaching, whatever it says of its terminal.

use holdfast_harness::{Operator, World};
use holdfast_types::{SessionId, Size};
use holdfast_wire::operations::op;
use holdfast_wire::params::AttachParams;
use std::path::PathBuf;

/// Attaches with these variables, as a terminal of the usual size.
fn attach_params(session: SessionId, env: &[&str]) -> AttachParams {
    AttachParams {
        session: session.to_string(),
        size: Size::default(),
        read_only: false,
        tty: String::new(),
        pid: 0,
        env: env.iter().map(|pair| (*pair).to_owned()).collect(),
        resume: None,
        remote: false,
    }
}

/// What a session follows of its clients: the file to source, and where its agent link points.
fn followed(world: &World, session: SessionId) -> (String, Option<PathBuf>) {
    let file = std::fs::read_to_string(world.home().session(session).join("env")).unwrap_or_default();
    (file, std::fs::read_link(world.home().agent_link(session)).ok())
}

/// An actor that may only look.
fn observer(world: &World, handle: &str, session: SessionId) -> Operator {
    let operator = world.operator(handle, session);
    world.root(session).grant(&operator.actor(), "observe", None).unwrap();
    operator
}

#[test]
fn only_a_local_human_who_may_type_refreshes_the_sessions_variables_and_only_those_the_host_names() {
    let world = World::new();
    let session = world.session("quiet", "exec cat");
    let planted = ["PROMPT_COMMAND=touch pwned", "SSH_AUTH_SOCK=/tmp/fake-agent", "DISPLAY=:66", "BASH_ENV=/tmp/evil"];
    let before = followed(&world, session);
    let mut eye = observer(&world, "service:eye", session);
    let mut bot = world.operator("agent:bot", session);
    let mut ann = world.operator("human:ann", session);
    let mut bob = world.operator("human:bob", session);
    ann.revoke_all_of(bob.actor().id).unwrap();
    ann.grant(&bob.actor(), "observe", None).unwrap();
    let params = |read_only, remote| AttachParams { read_only, remote, ..attach_params(session, &planted) };
    eye.link.call::<op::Attach>(&params(false, false)).unwrap();
    assert_eq!(followed(&world, session), before, "an observer");
    bot.link.call::<op::Attach>(&params(false, false)).unwrap();
    assert_eq!(followed(&world, session), before, "an agent that may type");
    bob.link.call::<op::Attach>(&params(false, false)).unwrap();
    assert_eq!(followed(&world, session), before, "a human who may not type");
    ann.link.call::<op::Attach>(&params(true, false)).unwrap();
    assert_eq!(followed(&world, session), before, "a human who only watches");
    ann.link.call::<op::Attach>(&params(false, true)).unwrap();
    assert_eq!(followed(&world, session), before, "a human at a remote terminal");

    let own = ["PROMPT_COMMAND=touch pwned", "DISPLAY=:1", "LANG=C\nPATH=/tmp/evil", "SSH_AUTH_SOCK=/run/agent"];
    ann.link.call::<op::Attach>(&attach_params(session, &own)).unwrap();
    let (file, agent) = followed(&world, session);
    assert_eq!(agent, Some(PathBuf::from("/run/agent")));
    let exported: Vec<&str> = file.lines().filter(|line| !line.starts_with('#')).collect();
    let link = format!("export SSH_AUTH_SOCK='{}'", world.home().agent_link(session).display());
    assert_eq!(exported, ["export DISPLAY=':1'", link.as_str()]);
}
