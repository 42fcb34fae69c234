//! Nobody owns a session: who started it can lose everything and leave, and others go on.

use holdfast_harness::{Operator, World, received, refused, until};
use holdfast_wire::Code;
use holdfast_wire::operations::op;
use holdfast_wire::params::{Life, RenameParams, ResizeParams};
use holdfast_wire::turns::ActorParams;
use std::path::Path;

/// Everything a spawner could try is refused.
#[track_caller]
fn is_nobody(spawner: &mut Operator) {
    let (me, name) = (spawner.actor(), spawner.session.to_string());
    let resize = ResizeParams { session: name.clone(), size: "90x30".parse().unwrap(), proof: None };
    let rename = RenameParams { session: name, name: "mine".parse().unwrap(), proof: None };
    let codes = [
        refused(spawner.turn()),
        refused(spawner.view()),
        refused(spawner.grants()),
        refused(spawner.take()),
        refused(spawner.request()),
        refused(spawner.send(b"x")),
        refused(spawner.seize(false)),
        refused(spawner.grant(&me, "observe", None)),
        refused(spawner.attach()),
        refused(spawner.link.call::<op::Resize>(&resize)),
        refused(spawner.link.call::<op::Rename>(&rename)),
        refused(spawner.end()),
    ];
    assert!(codes.iter().all(|code| matches!(code, Code::Denied | Code::NotFound | Code::Unidentified)), "{codes:?}");
}

/// A session of an agent's, the file it writes, and two who may go on with it: a human, and a service the human let in.
fn started(world: &World) -> (Operator, std::path::PathBuf, Operator, Operator) {
    let file = world.path("received");
    let script = format!("stty raw -echo; : > {0}; echo ready; exec cat > {0}", file.display());
    let mut spawner = world.session_by(&world.actor("agent:maker"), "made", &script);
    world.shows(spawner.session, "ready");
    let mut ann = world.operator("human:ann", spawner.session);
    let ops = world.operator("service:ops", spawner.session);
    spawner.send(b"made ").unwrap();
    ann.grant(&ops.actor(), "observe,type,grant,end", None).unwrap();
    (spawner, file, ann, ops)
}

/// Others steer the session, pass rights on and end it.
#[track_caller]
fn others_go_on(world: &World, file: &Path, ann: &mut Operator, ops: &mut Operator) {
    ann.seize(false).unwrap();
    ann.send(b"ann ").unwrap();
    ann.give(&ops.actor()).unwrap();
    ops.send(b"ops ").unwrap();
    let mut later = world.operator("service:later", ops.session);
    ops.grant(&later.actor(), "observe,type", None).unwrap();
    ops.give(&later.actor()).unwrap();
    later.send(b"later.").unwrap();
    until("what they typed", || received(file).ends_with(b"ann ops later.").then_some(()));
    assert_eq!(refused(later.end()), Code::Denied);
    assert_eq!(ops.end().unwrap().life, Life::Ended);
}

#[test]
fn a_session_outlives_the_key_of_who_started_it() {
    let world = World::new();
    let (mut spawner, file, mut ann, mut ops) = started(&world);
    let handle = spawner.actor().handle;
    ann.link.call::<op::ActorRemove>(&ActorParams { handle }).unwrap();
    is_nobody(&mut spawner);
    // The key is known to it still; the host does not know the key.
    is_nobody(&mut world.as_operator(&spawner.who, spawner.session));
    drop(spawner);
    others_go_on(&world, &file, &mut ann, &mut ops);
}

#[test]
fn who_started_a_session_can_be_revoked_by_a_human_and_leave() {
    let world = World::new();
    let (mut spawner, file, mut ann, ops) = started(&world);
    let given = spawner.grant(&world.actor("agent:friend").actor().clone(), "end", None).unwrap().id;
    let fallen = ann.revoke_all_of(spawner.actor().id).unwrap().grants;
    assert!(
        fallen.contains(&1) && fallen.contains(&given),
        "the first grant and what was passed on from it: {fallen:?}"
    );
    is_nobody(&mut spawner);
    drop(spawner);
    world.kill_host();
    world.start_host();
    let session = ann.session;
    let (mut ann, mut ops) = (world.as_operator(&ann.who, session), world.as_operator(&ops.who, session));
    others_go_on(&world, &file, &mut ann, &mut ops);
}

/// Code without its comments and texts.
fn code(source: &str) -> String {
    let lines = source.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.flat_map(|line| line.split('"').step_by(2)).collect::<Vec<_>>().join("\n")
}

#[test]
fn no_field_and_no_check_knows_who_a_session_belongs_to() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut dirs: Vec<_> = ["types", "wire", "authority", "host"].map(|name| crates.join(name).join("src")).to_vec();
    let (mut read, mut found) = (0, Vec::new());
    while let Some(dir) = dirs.pop() {
        for path in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                dirs.push(path);
                continue;
            }
            let source = code(&std::fs::read_to_string(&path).unwrap());
            read += 1;
            let is_of_name = |name: &str| {
                let fields = [format!(".{name}"), format!("{name}:"), format!("{name}_id"), format!("is_{name}")];
                // The owner of a file is the one who may have written it: a key file is believed by that.
                !path.ends_with("host/src/actors.rs") && fields.iter().any(|field| source.contains(field.as_str()))
            };
            let names = ["owner", "owned_by", "creator", "created_by", "spawned_by", "started_by"];
            found.extend(
                names.iter().filter(|name| is_of_name(name)).map(|name| format!("{name} in {}", path.display())),
            );
        }
    }
    assert!(read > 40, "{read} files");
    assert!(found.is_empty(), "{found:?}");
    assert!(code("owner: u32, // x\n\"owner:\"").contains("owner:"));
}
