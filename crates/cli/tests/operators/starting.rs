//! Starting a session is a right of its own: whoever may start one runs commands as the host's user.

use holdfast_harness::{Raw, World, refused};
use holdfast_wire::Code;
use holdfast_wire::operations::op;
use holdfast_wire::params::NewParams;
use serde_json::json;

#[test]
fn humans_and_agents_start_sessions_services_and_devices_do_not() {
    let world = World::new();
    let pwned = world.path("pwned");
    let command = vec!["/bin/sh".to_owned(), "-c".into(), format!("touch {}; sleep 1000", pwned.display())];
    for (handle, may) in [("service:ci", false), ("device:phone", false), ("agent:bot", true), ("human:ann", true)] {
        let who = world.actor(handle);
        let mut link = world.connect(&who);
        let params = NewParams { command: command.clone(), cwd: Some("/".into()), ..NewParams::default() };
        let started = link.call::<op::New>(&params);
        let new = json!({"command": command, "cwd": "/"});
        let run = json!({"new": new, "wait_ms": 0});
        let ran =
            Raw::of(&world, &who).call("run.start", &run, &[]).map(drop).map_err(|fault| (fault.code, fault.details));
        if may {
            started.unwrap();
            assert_eq!(ran, Ok(()), "{handle}");
        } else {
            assert_eq!(refused(started), Code::Denied, "{handle}");
            let details = Some(Box::new(json!({"code": "denied", "right": "start", "rule": "envelope"})));
            assert_eq!(ran, Err((Code::Denied, details)), "{handle}");
            assert!(!pwned.exists());
        }
    }
}

#[test]
fn a_grant_in_a_session_starts_no_other_session() {
    let world = World::new();
    let session = world.session("quiet", "exec cat");
    let ci = world.actor("service:ci");
    let mut root = world.root(session);
    assert_eq!(refused(root.grant(ci.actor(), "observe,start", None)), Code::BadRequest, "it would give nothing");
    root.grant(ci.actor(), "observe,type,run,start,signal,seize,grant,approve,checkpoint,fork,end,configure", None)
        .unwrap();
    let params = NewParams { command: vec!["/bin/true".into()], cwd: Some("/".into()), ..NewParams::default() };
    assert_eq!(refused(world.connect(&ci).call::<op::New>(&params)), Code::Denied);
}
