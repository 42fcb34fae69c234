//! A program of the same user that speaks to the keeper past the host, with the secret that it can read.

use holdfast_authority::{Act, By};
use holdfast_harness::{Direct, World, received, until};
use holdfast_types::{Fence, hex_bytes};
use rustix::process::Signal;
use std::path::Path;

#[test]
fn what_is_typed_past_the_host_is_on_record_as_nobodys_and_the_session_says_so() {
    let world = World::new();
    let (session, file) = world.recorder("kept");
    let mut ann = world.operator("human:ann", session);
    let attached = ann.attach().unwrap();
    let mut direct = Direct::of(&attached);
    ann.take().unwrap();
    let fence = ann.turn().unwrap().fence;
    let mine = until("the keeper to know who writes", || direct.types(fence, b"mine\n").ok());
    assert_eq!(ann.view().unwrap().stranger_ms, None);
    let spec = std::fs::read_to_string(world.path("sessions").join(session.to_string()).join("spec")).unwrap();
    let json: serde_json::Value = serde_json::from_str(spec.split_once('\n').unwrap().1).unwrap();
    let secret = hex_bytes(json["secret"].as_str().unwrap()).unwrap().try_into().unwrap();
    // The host would take its place back at once.
    world.signal_host(Signal::STOP);
    let mut thief = Direct::as_host(Path::new(&attached.keeper), secret);
    let fence = Fence(thief.welcome.fence);
    thief.types(fence, b"theirs\n").unwrap();
    world.signal_host(Signal::CONT);
    until("both lines", || received(&file).ends_with(b"mine\ntheirs\n").then_some(()));
    let typed = until("both on record", || {
        let typed = world.journal(session).into_iter().filter_map(|entry| match entry.record.act {
            Act::Typed(burst) => Some((entry.record.by, burst.len)),
            _ => None,
        });
        Some(typed.collect::<Vec<_>>()).filter(|typed| typed.len() == 2)
    });
    assert_eq!(typed, [(By::Actor(ann.actor()), 5), (By::Unknown, 7)]);
    let view = until("the session to say so", || ann.view().ok().filter(|view| view.stranger_ms.is_some()));
    assert!(view.note.unwrap().contains("past the host"), "typed at {mine}");
}
