//! Who may look may not write: by no side way of attaching, whatever it says of its terminal.

use holdfast_harness::{Operator, World, received, refused, until};
use holdfast_types::{SessionId, Size};
use holdfast_wire::Code;
use holdfast_wire::operations::op;
use holdfast_wire::params::{Answers, AttachParams, UpdateParams};
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
        sizes: false,
        draws: false,
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

#[test]
fn an_answer_to_a_terminal_query_is_typed_for_no_client_that_may_not_type() {
    let world = World::new();
    let (go, file) = (world.path("go"), world.path("received"));
    let script = format!(
        "stty raw -echo; : > {1}; mkfifo {0}; echo ready; read x < {0}; printf '\\033[c'; echo asked; exec cat > {1}",
        go.display(),
        file.display()
    );
    let session = world.session("asker", &script);
    world.shows(session, "ready");
    let mut ann = world.operator("human:ann", session);
    let watcher = AttachParams { read_only: true, ..attach_params(session, &[]) };
    let mut watching = world.as_operator(&ann.who.clone(), session);
    watching.client = Some(watching.link.call::<op::Attach>(&watcher).unwrap().client);
    let mut eye = observer(&world, "service:eye", session);
    eye.attach().unwrap();
    let mut bot = world.operator("agent:bot", session);
    bot.attach().unwrap();
    let says = |by: &mut Operator, on, left, from| {
        let client = by.client.unwrap();
        let answers = Some(Answers { on, left, from });
        let params = UpdateParams { session: session.to_string(), client, size: None, answers };
        by.link.call::<op::Update>(&params)
    };
    assert_eq!(refused(says(&mut eye, true, 0, 0)), Code::Denied);
    assert_eq!(refused(says(&mut watching, true, 0, 0)), Code::Denied);
    // It may type, but has not the turn: nothing comes of it.
    let _ = says(&mut bot, true, 0, 0);
    std::fs::write(&go, "go\n").unwrap();
    until("the host's own answer", || (!received(&file).is_empty()).then_some(()));
    let answer = received(&file);
    assert!(answer.starts_with(b"\x1b[?") && answer.ends_with(b"c"), "{answer:?}");
    for by in [&mut eye, &mut watching, &mut bot] {
        let _ = says(by, true, 0, u64::MAX);
        let _ = says(by, false, 0, 0);
    }
    // Typed behind whatever came of that.
    ann.send(b"end").unwrap();
    until("what was typed last", || received(&file).ends_with(b"end").then_some(()));
    assert_eq!(received(&file), [answer.as_slice(), b"end"].concat(), "one answer, and nothing later");
}
