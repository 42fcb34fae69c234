use super::*;
use holdfast_authority::Effect;
use holdfast_authority::{Authority, Caller, Input, Keys, Moment, Policy, Source, TURN_GRACE_MS, TURN_IDLE_MS, proof};
use holdfast_types::TurnNeed;
use holdfast_types::{Exit, Fence, Right, SessionId};

fn actor(handle: &str) -> Actor {
    let handle: Handle = handle.parse().unwrap();
    let mut secret = [0; 32];
    secret[..handle.name().len()].copy_from_slice(handle.name().as_bytes());
    Actor { id: proof::actor_id(&secret), handle }
}

/// A session whose records are told as they are made.
struct World {
    authority: Authority,
    teller: Teller,
    now: TimeMs,
    lines: Vec<String>,
}

/// A Thursday noon in UTC.
const NOON_MS: TimeMs = 1_709_208_000_000;

impl World {
    fn new() -> World {
        let mut policy = Policy::default();
        for handle in ["human:ann", "human:bob", "agent:claude"] {
            let actor = actor(handle);
            policy.vouched.insert(actor.id, actor.handle);
        }
        World { authority: Authority::new(policy), teller: Teller::new(TimeZone::UTC), now: NOON_MS, lines: vec![] }
    }

    fn handle(&mut self, input: Input) -> &mut World {
        let answer = self.authority.handle(input, Moment { time_ms: self.now, at: 7 });
        for effect in answer.effects {
            if let Effect::Record(record) = effect {
                let line = format!("{} {}", who(&record.by), self.teller.tell(&record));
                self.lines.push(line);
            }
        }
        self
    }

    fn ask(&mut self, by: &str, ask: Ask) -> &mut World {
        let by = Caller { actor: actor(by), operator: None, token: None };
        self.handle(Input::Asked { by, ask, proof: None })
    }

    fn typed(&mut self, by: &str, keys: Option<&[u8]>, len: u64) -> &mut World {
        let by = Caller { actor: actor(by), operator: None, token: None };
        let burst = Burst { from: 7, to: 7, len, keys: keys.map(|keys| Keys(keys.to_vec())) };
        self.handle(Input::Types { by, fence: None });
        let fence = self.authority.state().fence();
        self.handle(Input::Wrote { fence, burst, log: 0, from: Source::Host })
    }

    fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }
}

#[test]
fn turns_are_told_with_who_lost_them() {
    let mut world = World::new();
    world.handle(Input::Started { by: actor("human:ann") });
    world.ask("agent:claude", Ask::Take);
    world.ask("human:ann", Ask::Request);
    world.ask("human:ann", Ask::Withdraw);
    world.ask("human:ann", Ask::Seize { freeze: false, reason: "it \x1b[31mloops\n".into() });
    world.ask("human:ann", Ask::Seize { freeze: true, reason: String::new() });
    world.ask("human:ann", Ask::Thaw);
    world.ask("human:ann", Ask::Give { to: actor("agent:claude") });
    world.ask("agent:claude", Ask::Release);
    world.ask("human:ann", Ask::Request);
    let expected = [
        "human:ann started the session",
        "agent:claude took the turn",
        "human:ann requested the turn",
        "human:ann withdrew its request for the turn",
        "human:ann seized the turn from agent:claude: it \\u{1b}[31mloops\\n",
        "human:ann seized the turn and froze the session",
        "human:ann thawed the session",
        "human:ann gave the turn to agent:claude",
        "agent:claude released the turn",
        "human:ann requested the turn and got it",
    ];
    assert_eq!(world.told(), expected);
}

#[test]
fn typing_is_shown_key_by_key_and_never_obeyed() {
    let mut world = World::new();
    world.typed("human:ann", Some(b"ls -la\r"), 7);
    world.typed("human:ann", Some(b"\x03\x1b[A\t\x7f\n\"\xff\0\xc2\x9b2J"), 0);
    world.typed("human:ann", Some("漢".repeat(50).as_bytes()), 150);
    world.typed("human:ann", None, 12);
    world.typed("human:ann", None, 1);
    let expected = [
        "human:ann took the turn by typing",
        "human:ann typed \"ls -la⏎\"",
        "human:ann typed \"^C␛[A⇥⌫^J\\\"\\xff^@\\u{9b}2J\"",
        &format!("human:ann typed \"{}…\" (150 bytes)", "漢".repeat(29)),
        "human:ann typed 12 bytes that the screen did not show",
        "human:ann typed 1 byte that the screen did not show",
    ];
    assert_eq!(world.told(), expected);
}

#[test]
fn grants_are_told_with_their_end_and_revocations_with_what_fell() {
    let mut world = World::new();
    let rights = |text: &str| text.parse().unwrap();
    let grant = |to: &str, words: &str, until| Ask::Grant { to: actor(to), rights: rights(words), until };
    world.ask("human:ann", grant("agent:claude", "observe,run,grant", Some(NOON_MS + 2 * 3_600_000)));
    world.ask("agent:claude", grant("agent:kit", "observe", Some(NOON_MS + 3_600_000)));
    world.ask("human:ann", Ask::Revoke(Revoke::Grant(GrantId(1))));
    world.ask("human:ann", grant("agent:kit", "observe", Some(NOON_MS + 86_400_000)));
    world.ask("human:ann", Ask::Revoke(Revoke::Actor(actor("agent:kit").id)));
    world.ask("human:ann", grant("agent:kit", "observe,run", Some(NOON_MS + 1)));
    world.now += 1;
    world.handle(Input::Tick);
    let expected = [
        "human:ann granted observe,run,grant to agent:claude until 14:00",
        "agent:claude granted observe to agent:kit until 13:00",
        "human:ann revoked grant 1 (observe,run,grant to agent:claude), and with it grant 2 (observe to agent:kit)",
        "human:ann granted observe to agent:kit until 2024-03-01 12:00",
        "human:ann revoked everything agent:kit held",
        "human:ann granted observe,run to agent:kit until 12:00",
        "host grant 4 (observe,run to agent:kit) expired",
    ];
    assert_eq!(world.told(), expected);
}

#[test]
fn refusals_are_told_with_what_was_asked_and_the_rule() {
    let mut world = World::new();
    world.ask("agent:claude", Ask::End { grace_ms: 0 });
    world.ask("human:ann", Ask::Take);
    world.ask("agent:claude", Ask::Run { key: "k".into(), command: "make\x07".into() });
    world.ask("agent:claude", Ask::Seize { freeze: false, reason: "mine".into() });
    world.ask("agent:claude", Ask::Revoke(Revoke::Actor(actor("human:ann").id)));
    world.ask("human:ann", Ask::Revoke(Revoke::Grant(GrantId(9))));
    let expected = [
        "agent:claude was refused: end (this needs the right `end`)",
        "human:ann took the turn",
        "agent:claude was refused: run \"make^G\" (human:ann has the turn)",
        "agent:claude was refused: seize: mine (this needs the right `seize`)",
        "agent:claude was refused: revoke all of human:ann (this needs the right `grant`)",
        "human:ann was refused: revoke grant 9 (no grant 9)",
    ];
    assert_eq!(world.told(), expected);
}

#[test]
fn everything_else_an_actor_does_is_told() {
    let mut world = World::new();
    world.ask("human:ann", Ask::Run { key: "k".into(), command: "make test".into() });
    world.ask("human:ann", Ask::Resize { size: "120x40".parse().unwrap() });
    world.ask("human:ann", Ask::Signal { number: 2, target: 0 });
    world.ask("human:ann", Ask::Signal { number: 40, target: 2 });
    world.ask("human:ann", Ask::Rename { name: "other".parse().unwrap() });
    let other = |detail: &str| Ask::Operation {
        name: "session.fly".into(),
        right: Right::Configure,
        turn: TurnNeed::Ignores,
        detail: detail.into(),
    };
    world.ask("human:ann", other(""));
    world.ask("human:ann", other("high\r"));
    world.ask("human:ann", Ask::End { grace_ms: 5000 });
    let expected = [
        "human:ann ran \"make test\", which took the turn",
        "human:ann resized the terminal to 120x40",
        "human:ann sent SIGINT to the foreground",
        "human:ann sent signal 40 to the whole tree",
        "human:ann renamed the session to other",
        "human:ann did session.fly",
        "human:ann did session.fly: high\\r",
        "human:ann ended the session (SIGHUP, SIGKILL after 5s)",
    ];
    assert_eq!(world.told(), expected);
}

#[test]
fn coming_going_and_what_passes_by_itself_is_told() {
    let mut world = World::new();
    world.handle(Input::Attached { by: actor("human:ann"), operator: OperatorId(1) });
    let ann = Caller { actor: actor("human:ann"), operator: Some(OperatorId(1)), token: None };
    world.handle(Input::Asked { by: ann, ask: Ask::Take, proof: None });
    world.ask("agent:claude", Ask::Request);
    world.now += TURN_IDLE_MS;
    world.handle(Input::Tick);
    world.now += TURN_GRACE_MS;
    world.handle(Input::Tick);
    world.handle(Input::CutOff { operator: OperatorId(1) });
    world.handle(Input::Resumed { by: actor("human:ann"), operator: OperatorId(1) });
    world.handle(Input::Attached { by: actor("human:bob"), operator: OperatorId(2) });
    world.ask("human:ann", Ask::Detach { operators: vec![OperatorId(2)] });
    world.handle(Input::Left { operator: OperatorId(2) });
    world.handle(Input::Restarted { keeper_fence: Fence(0), connection: 3 });
    world.handle(Input::Linked { connection: 4, log: 0 });
    world.now += TURN_GRACE_MS;
    world.handle(Input::Tick);
    world.handle(Input::Began { incarnation: 2 });
    world.handle(Input::Ended { exit: Exit::Code(3) });
    let expected = [
        "human:ann attached as client 1",
        "human:ann took the turn",
        "agent:claude requested the turn",
        "host the turn went to agent:claude (idle holder human:ann)",
        "host the turn is free again (agent:claude was idle)",
        "human:ann lost its connection (client 1)",
        "human:ann reconnected as client 1",
        "human:bob attached as client 2",
        "human:ann detached client 2 (human:bob)",
        "human:bob left (client 2)",
        "host a host took over",
        "host the host has a new connection to the keeper",
        "host dropped client 1 (human:ann) (disconnected for too long)",
        "host the session started again (life 2)",
        "host the session ended (exited 3)",
    ];
    assert_eq!(world.told(), expected);
}

#[test]
fn a_teller_that_begins_in_the_middle_knows_what_the_header_knows() {
    let mut world = World::new();
    world.ask("agent:claude", Ask::Take);
    let session = SessionId::from_random_bits(1);
    let link = holdfast_authority::journal::Link { seq: 1, hash: holdfast_authority::journal::NO_HASH };
    let header = world.authority.rotate(session, Some(link), Moment { time_ms: world.now, at: 7 });
    world.teller = Teller::new(TimeZone::UTC);
    assert_eq!(world.teller.tell(&header), "the journal continues in a new segment");
    world.told();
    world.ask("human:ann", Ask::Seize { freeze: false, reason: String::new() });
    assert_eq!(world.told(), ["human:ann seized the turn from agent:claude"]);
}
