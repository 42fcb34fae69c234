//! Every operation of the table is refused without one of the rights of its terms, and is in the journal where they say so.
//!
//! An operation that is new does not compile until [`params`] and [`kind`] name it, and [`calls`] is checked against the table.

use crate::asking::{calls_about_flows, calls_about_questions, calls_about_the_gate};
use crate::operators_calls::{calls_about_copies, calls_about_files, calls_about_relays, calls_about_runs, params};
use holdfast_authority::{Act, Outcome, Record};
use holdfast_client::Identity;
use holdfast_graph::Depth;
use holdfast_harness::{Operator, Raw, World, received};
use holdfast_types::{Actor, Right, SessionId, Signature, Size, Trace, TurnNeed, Who};
use holdfast_wire::attention::{Until, WatchParams};
use holdfast_wire::contracts::RecordParams;
use holdfast_wire::devices::PageGetParams;
use holdfast_wire::env::EnvParams;
use holdfast_wire::follow::*;
use holdfast_wire::graphs::*;
use holdfast_wire::hello::HelloParams;
use holdfast_wire::lives::RecoverParams;
use holdfast_wire::params::*;
use holdfast_wire::portable::RestoreParams;
use holdfast_wire::reaping::{CostParams, KeepParams};
use holdfast_wire::runs::*;
use holdfast_wire::tokens::{TokenNewParams, TokenParams};
use holdfast_wire::turns::*;
use holdfast_wire::{Call, Code, Fault, OPERATIONS, Row};
use serde_json::{Value, json};
use std::path::PathBuf;

/// What an operation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The host alone; anybody may ask.
    Door,
    /// The host alone; who has proven a key may ask.
    Host,
    /// The host alone; only who is known there may ask.
    Known,
    /// Looks at a session.
    Looks,
    /// About a terminal of one's own.
    Own,
    /// About a grant of one's own.
    Mine,
    /// Writes into the session's terminal or tree: needs the turn.
    Writes,
    /// About a run, a question or an approval, which is not there.
    Run,
    /// Takes the turn if it can.
    Takes,
    /// Changes the session.
    Changes,
    /// Reads or writes files of the session's working tree.
    Files,
}

fn kind(call: &Call) -> Kind {
    match call {
        Call::Hello(_) | Call::Identify(_) | Call::Status(_) => Kind::Door,
        Call::List(_) | Call::Me(_) | Call::PageGet(_) => Kind::Host,
        Call::LoginNew(_) | Call::TokenNew(_) | Call::TokenList(_) | Call::TokenRevoke(_) => Kind::Known,
        Call::RelayAdd(_) | Call::RelayDirect(_) | Call::RelayList(_) | Call::RelayRemove(_) => Kind::Known,
        Call::DeviceList(_) | Call::DeviceRevoke(_) => Kind::Known,
        Call::InviteNew(_) | Call::InviteList(_) | Call::InviteRevoke(_) => Kind::Known,
        Call::InviteAccept(_) => Kind::Door,
        Call::New(_) | Call::Actors(_) | Call::ActorRemove(_) | Call::Metrics(_) | Call::Stop(_) => Kind::Known,
        Call::ActorRecord(_) => Kind::Known,
        Call::Get(_)
        | Call::Attach(_)
        | Call::Paint(_)
        | Call::Screen(_)
        | Call::Read(_)
        | Call::Follow(_)
        | Call::Wait(_) => Kind::Looks,
        Call::Journal(_) | Call::Turn(_) | Call::Grants(_) | Call::State(_) | Call::Watch(_) => Kind::Looks,
        Call::Graph(_) | Call::Ports(_) | Call::WatchGraph(_) | Call::Env(_) | Call::Cost(_) => Kind::Looks,
        Call::Update(_) | Call::Leave(_) | Call::Credit(_) | Call::Unfollow(_) => Kind::Own,
        Call::Revoke(_) => Kind::Mine,
        Call::Send(_) | Call::Resize(_) | Call::Signal(_) | Call::RunStart(_) => Kind::Writes,
        Call::RunList(_) | Call::Handover(_) => Kind::Looks,
        Call::RunGet(_) | Call::RunOutput(_) | Call::RunCancel(_) | Call::RunTrace(_) => Kind::Run,
        // Who may look may ask.
        Call::QuestionAsk(_) | Call::QuestionList(_) | Call::ApprovalList(_) => Kind::Looks,
        Call::ApprovalGet(_) | Call::ApprovalAnswer(_) => Kind::Run,
        Call::PolicyGet(_) | Call::PolicyMay(_) => Kind::Known,
        Call::FlowStart(_) | Call::FlowList(_) | Call::FlowGet(_) => Kind::Known,
        Call::FlowSignal(_) | Call::FlowAnswer(_) | Call::FlowCancel(_) | Call::FlowRetry(_) => Kind::Known,
        Call::QuestionGet(_) | Call::QuestionAnswer(_) | Call::QuestionWithdraw(_) => Kind::Run,
        Call::Take(_) => Kind::Takes,
        Call::Withdraw(_) | Call::Give(_) | Call::Release(_) => Kind::Changes,
        Call::Request(_) | Call::Rename(_) | Call::Detach(_) | Call::End(_) => Kind::Changes,
        Call::Seize(_) | Call::Thaw(_) | Call::Grant(_) | Call::Recover(_) | Call::Keep(_) => Kind::Changes,
        Call::Fork(_) | Call::ForkKeep(_) | Call::ForkDiscard(_) => Kind::Changes,
        Call::ForkDiff(_) => Kind::Looks,
        Call::Move(_) => Kind::Changes,
        Call::Arrive(_) => Kind::Known,
        Call::Restore(_) | Call::CheckpointMake(_) | Call::CheckpointRemove(_) => Kind::Changes,
        Call::CheckpointCheck(_) | Call::CheckpointList(_) => Kind::Looks,
        Call::FilesList(_) | Call::FilesRead(_) | Call::FilesChanges(_) | Call::FilesDiff(_) => Kind::Files,
        Call::FilesWrite(_) | Call::FilesEdit(_) | Call::FilesUpload(_) | Call::FilesUndo(_) => Kind::Files,
    }
}

/// One valid call of each operation, about a session where `human` is attached as `client`.
fn calls(id: SessionId, client: u32, human: &Actor) -> Vec<Call> {
    let session = id.to_string();
    let one = || SessionParams { session: session.clone() };
    let turn = || TurnParams { session: session.clone(), client: None, proof: None };
    let run = RunId::from_random_bits(1);
    let mut all = calls_at_a_terminal(&session, client, human);
    all.extend([
        Call::Wait(WaitParams { session: session.clone(), timeout_ms: Some(1), until: Until::Exit }),
        Call::Resize(ResizeParams { session: session.clone(), size: other(), proof: None }),
        Call::Signal(SignalParams { session: session.clone(), number: 15, target: 2, proof: None }),
        Call::Rename(RenameParams { session: session.clone(), name: "other".parse().unwrap(), proof: None }),
        Call::Keep(KeepParams { session: session.clone(), for_ms: None, off: false, proof: None }),
        Call::Detach(DetachParams { session: session.clone(), clients: vec![client], proof: None }),
        Call::End(EndParams { session: session.clone(), grace_ms: 0, proof: None }),
        Call::Recover(RecoverParams { session: session.clone(), ..RecoverParams::default() }),
        Call::Restore(RestoreParams { session: session.clone(), ..RestoreParams::default() }),
    ]);
    all.extend(calls_about_copies(&session));
    all.extend([
        Call::Journal(JournalParams { session: session.clone(), after: 0, last: None, wait_ms: 0 }),
        Call::Cost(CostParams { session: Some(session.clone()) }),
        Call::Graph(GraphParams { session: session.clone(), depth: Depth::Full }),
        Call::Ports(PortsParams { session: Some(session.clone()) }),
        Call::WatchGraph(WatchGraphParams { session: session.clone(), after: None, wait_ms: 0 }),
    ]);
    all.extend(calls_about_files(&session));
    all.extend(calls_about_runs(&session, run));
    all.extend(calls_about_questions(&session));
    all.extend(calls_about_the_gate(&session));
    all.extend(calls_about_flows());
    all.extend([
        Call::Turn(one()),
        Call::Take(turn()),
        Call::Request(turn()),
        Call::Withdraw(turn()),
        Call::Give(GiveParams { session: session.clone(), client: None, to: human.clone(), proof: None }),
        Call::Release(turn()),
        Call::Seize(SeizeParams {
            session: session.clone(),
            client: None,
            freeze: true,
            reason: "a test".into(),
            proof: None,
        }),
        Call::Thaw(turn()),
        Call::Grants(one()),
        Call::Grant(GrantParams {
            session: session.clone(),
            to: human.clone(),
            rights: Right::Observe.into(),
            until_ms: None,
            proof: None,
        }),
        Call::Revoke(RevokeParams { session, grant: Some(1), actor: None, proof: None }),
        Call::TokenNew(TokenNewParams { actor: human.handle.clone(), can: None, for_ms: None, note: String::new() }),
        Call::TokenList(Nothing {}),
        Call::TokenRevoke(TokenParams { token: "tok_0".into() }),
        Call::LoginNew(Nothing {}),
        Call::Me(Nothing {}),
        Call::Actors(Nothing {}),
        Call::ActorRecord(RecordParams { handle: human.handle.clone(), action: None }),
        Call::ActorRemove(ActorParams { handle: human.handle.clone() }),
    ]);
    all.extend(calls_about_relays(id.to_string(), human));
    all.push(Call::PageGet(PageGetParams::default()));
    all.extend([Call::Metrics(Nothing {}), Call::Status(Nothing {}), Call::Stop(Nothing {})]);
    let names: Vec<_> = all.iter().map(|call| call.row().name).collect();
    assert_eq!(names, OPERATIONS.iter().map(|row| row.name).collect::<Vec<_>>(), "every operation is tried");
    all
}

fn calls_at_a_terminal(session: &str, client: u32, human: &Actor) -> Vec<Call> {
    let one = || SessionParams { session: session.to_owned() };
    let nobody = IdentifyParams { actor: human.clone(), signature: Signature([0; 64]), confirm: false };
    vec![
        Call::Hello(HelloParams { versions: vec![1], program: String::new() }),
        Call::Identify(nobody),
        Call::New(NewParams { command: vec!["/bin/true".into()], cwd: Some("/".into()), ..NewParams::default() }),
        Call::List(ListParams { all: true }),
        Call::Get(one()),
        Call::Attach(AttachParams {
            session: session.to_owned(),
            size: Size::default(),
            read_only: true,
            tty: String::new(),
            pid: 0,
            env: vec![],
            resume: None,
            remote: false,
            sizes: false,
            draws: false,
        }),
        Call::Paint(PaintParams {
            session: session.to_owned(),
            size: other(),
            history: true,
            behind: Some(HistoryPlace { count: 1, lines: u64::MAX }),
            ..PaintParams::default()
        }),
        Call::Update(UpdateParams { session: session.to_owned(), client, size: Some(other()), answers: None }),
        Call::Leave(LeaveParams { session: session.to_owned(), client, shown: Some(0) }),
        Call::Screen(ScreenParams { session: session.to_owned(), ansi: false, history: 0 }),
        Call::Read(ReadParams { session: session.to_owned(), from: None, max: None, wait_ms: 0 }),
        Call::Follow(FollowParams { session: session.to_owned(), follow: 1, from: None, credit: 0 }),
        Call::Credit(CreditParams { follow: 2, bytes: 1 }),
        Call::Unfollow(UnfollowParams { follow: 2 }),
        Call::Send(SendParams {
            session: session.to_owned(),
            stream: 77,
            seq: 1,
            client: None,
            fence: None,
            secret: false,
            force: false,
            in_order: false,
        }),
        Call::State(one()),
        Call::Watch(WatchParams { session: Some(session.to_owned()), after: None, wait_ms: 0 }),
        Call::Env(EnvParams { session: session.to_owned(), all: true }),
        Call::Handover(one()),
    ]
}

fn other() -> Size {
    "90x30".parse().unwrap()
}

/// A recorder session with a human attached to it, and one call of each operation.
pub struct Stage {
    pub world: World,
    session: SessionId,
    file: PathBuf,
    pub ann: Operator,
    pub calls: Vec<Call>,
}

impl Stage {
    pub fn new() -> Stage {
        let world = World::new();
        let (session, file) = world.recorder("table");
        let mut ann = world.operator("human:ann", session);
        let client = ann.attach().unwrap().client;
        let calls = calls(session, client, &ann.actor());
        Stage { world, session, file, ann, calls }
    }

    /// What must not change: all that can be seen of the session but who watches.
    fn seen(&mut self) -> Value {
        let view = self.ann.view().unwrap();
        let attached = view.clients.iter().any(|client| Some(client.id) == self.ann.client);
        json!([view.head, view.name, view.size, view.turn, view.pid, attached, self.ann.grants().unwrap().grants])
    }

    /// What comes of each call on this connection.
    fn try_all(&self, raw: &mut Raw, wanted: impl Fn(&Call) -> bool) -> Vec<(&Call, Result<Value, Fault>)> {
        let bytes = |call: &Call| if matches!(call, Call::Send(_)) { &b"rm"[..] } else { &[] };
        let tried = self.calls.iter().filter(|call| wanted(call));
        tried.map(|call| (call, raw.call(call.row().name, &params(call), bytes(call)))).collect()
    }

    /// Nothing was done in this actor's name, whatever was asked.
    fn did_nothing(&self, actor: &Actor) {
        let is_act = |act: &Act| matches!(act, Act::Asked(_) | Act::Typed(_));
        for entry in self.world.journal(self.session) {
            let record = entry.record;
            let did = record.by.actor() == Some(actor) && is_act(&record.act) && record.outcome == Outcome::Done;
            assert!(!did, "{record:?}");
        }
        assert_eq!(received(&self.file), b"", "nothing reached the terminal");
    }
}

#[test]
fn the_terms_of_an_operation_are_those_of_its_kind() {
    let ann = Identity::new("human:ann".parse().unwrap(), [1; 32]);
    for call in calls(SessionId::from_random_bits(1), 1, ann.actor()) {
        let terms = call.row().terms;
        let (name, observes) = (terms.name, terms.rights == Right::Observe.into());
        match kind(&call) {
            Kind::Door => assert_eq!(terms.who, Who::Anybody, "{name}"),
            Kind::Host => assert_eq!(terms.who, Who::Proven, "{name}"),
            Kind::Known => assert_eq!(terms.who, Who::Known, "{name}"),
            Kind::Looks => assert!(terms.who == Who::Holder && observes, "{name}"),
            // What a connection follows is its own, and names no session.
            Kind::Own => assert!(matches!(terms.who, Who::Holder | Who::Proven) && observes, "{name}"),
            Kind::Mine => assert!(terms.who == Who::Owner && !observes, "{name}"),
            Kind::Run => assert_eq!(terms.who, Who::Holder, "{name}"),
            Kind::Writes => assert!(matches!(terms.turn, TurnNeed::Takes | TurnNeed::Respects), "{name}"),
            Kind::Takes => assert_eq!(terms.turn, TurnNeed::Asks, "{name}"),
            Kind::Changes => assert!(!terms.who.is_hosts() && !observes, "{name}"),
            Kind::Files => {
                let right = if terms.trace == Trace::Looks { Right::FilesRead } else { Right::FilesWrite };
                assert_eq!((terms.who, terms.rights), (Who::Holder, right.into()), "{name}");
            }
        }
    }
}

/// Whether it was refused because the actor lacks a right; another rule, or another reason, is something else.
fn is_missing_right(result: &Result<Value, Fault>) -> bool {
    let rule = |fault: &Fault| fault.details.as_ref()?.get("rule").cloned();
    result.as_ref().is_err_and(|fault| fault.code == Code::Denied && rule(fault) == Some(json!("envelope")))
}

#[test]
fn whoever_holds_one_right_is_refused_what_needs_another_and_nothing_else() {
    // To start sessions is no right in a session.
    for right in Right::EACH.iter().filter(|right| **right != Right::Start) {
        let mut stage = Stage::new();
        let bob = stage.world.actor("human:bob");
        let ask = stage.calls.iter().find(|call| matches!(call, Call::QuestionAsk(_))).unwrap();
        let question = Raw::of(&stage.world, &stage.ann.who).call(ask.row().name, &params(ask), &[]).unwrap();
        stage.ann.revoke_all_of(bob.actor().id).unwrap();
        stage.ann.grant(bob.actor(), right.word(), None).unwrap();
        let mut raw = Raw::of(&stage.world, &bob);
        // What ends the session comes last, and what is about a run or an approval is about one that is not there.
        let (end, others): (Vec<_>, Vec<_>) = stage.calls.iter().partition(|call| matches!(call, Call::End(_)));
        let is_there = |name: &str| !name.starts_with("run.") && !matches!(name, "approval.get" | "approval.answer");
        let is_of_a_session = |call: &&Call| !call.row().terms.who.is_hosts() && is_there(call.row().name);
        let mut refused = 0;
        for call in others.into_iter().chain(end).filter(is_of_a_session) {
            let terms = call.row().terms;
            let bytes = if matches!(call, Call::Send(_)) { &b"x"[..] } else { &[] };
            let mut params = params(call);
            about(&mut params, &question);
            if let Call::Signal(_) = call {
                // SIGWINCH: the session lives on for the calls behind it.
                params["number"] = json!(28);
            }
            let result = raw.call(terms.name, &params, bytes);
            assert_eq!(is_missing_right(&result), !terms.rights.has(*right), "{} with {right}: {result:?}", terms.name);
            refused += usize::from(!terms.rights.has(*right));
        }
        assert!(refused > 10, "{right}: {refused}");
    }
}

/// Makes a call be about a question that was asked, where it is about one.
fn about(params: &mut Value, question: &Value) {
    if params.get("question").is_some() && !question.is_null() {
        params["question"] = question["id"].clone();
    }
    if params.get("seen").is_some() && !question.is_null() {
        params["seen"] = question["hash"].clone();
    }
}

/// What the journal has, in an order in which each finds what it needs: the turn, a waiting request, an open question.
const RECORDED: [&str; 21] = [
    "question.answer",
    "session.attach",
    "session.send",
    "session.update",
    "session.leave",
    "session.resize",
    "session.signal",
    "session.rename",
    "session.keep",
    "turn.take",
    "turn.give",
    "turn.request",
    "turn.withdraw",
    "turn.seize",
    "turn.thaw",
    "turn.release",
    "grant.add",
    "grant.revoke",
    "actor.remove",
    "session.detach",
    "session.end",
];
/// A run needs a shell, a write a file, a recovery a lost session, a checkpoint a portable one, an approval an act that waits, and a new session has a journal of its own: tests of their own
/// look at these.
const RECORDED_ELSEWHERE: [&str; 16] = [
    "session.new",
    "session.recover",
    "session.restore",
    "session.fork",
    "session.move",
    "fork.keep",
    "fork.discard",
    "checkpoint.make",
    "checkpoint.remove",
    "files.write",
    "files.edit",
    "files.upload",
    "files.undo",
    "run.start",
    "run.cancel",
    "approval.answer",
];

#[test]
fn an_operation_is_in_the_journal_where_its_terms_say_so_and_nowhere_else() {
    let mut stage = Stage::new();
    let (ann, bot) = (stage.ann.actor(), stage.world.actor("agent:bot"));
    stage.ann.take().unwrap();
    let mut raw = Raw::of(&stage.world, &stage.ann.who);
    let recorded = |stage: &Stage| {
        let is_anns = |record: &Record| record.by.actor() == Some(&ann) || matches!(record.act, Act::Forgotten(_));
        stage.world.journal(stage.session).iter().filter(|entry| is_anns(&entry.record)).count()
    };
    let says = |row: &&Row| row.terms.trace == Trace::Journal && !RECORDED_ELSEWHERE.contains(&row.name);
    let mut said: Vec<&str> = OPERATIONS.iter().filter(says).map(|row| row.name).collect();
    let mut tried = RECORDED;
    said.sort_unstable();
    tried.sort_unstable();
    assert_eq!(said, tried);
    let mut before = recorded(&stage);
    let mut question = Value::Null;
    let mut ask = |call: &Call, client: &Value| {
        let mut params = params(call);
        about(&mut params, &question);
        match call {
            Call::Attach(_) => params["read_only"] = json!(false),
            Call::Leave(_) | Call::Send(_) => params["client"] = client.clone(),
            Call::Update(_) => (params["client"], params["size"]) = (client.clone(), json!("70x20")),
            Call::Signal(_) => params["number"] = json!(28),
            Call::Give(_) => params["to"] = json!(bot.actor()),
            Call::ActorRemove(_) => params["handle"] = json!("agent:bot"),
            _ => {}
        }
        let bytes = if matches!(call, Call::Send(_)) { &b"x"[..] } else { &[] };
        let answer = raw.call(call.row().name, &params, bytes);
        if let (Call::QuestionAsk(_), Ok(asked)) = (call, &answer) {
            question = asked.clone();
        }
        answer
    };
    // Whoever proves nothing, or stops the host, asks no more.
    let is_quiet = |call: &&Call| {
        let name = call.row().name;
        !RECORDED.contains(&name) && !RECORDED_ELSEWHERE.contains(&name) && !matches!(name, "identify" | "host.stop")
    };
    for call in stage.calls.iter().filter(is_quiet).filter(|call| call.row().name != "question.withdraw") {
        let _ = ask(call, &Value::Null);
        assert_eq!(recorded(&stage), before, "{} is recorded", call.row().name);
    }
    let mut client = Value::Null;
    for name in RECORDED {
        let call = stage.calls.iter().find(|call| call.row().name == name).unwrap();
        let answer = ask(call, &client);
        if name == "session.attach" {
            client = answer.as_ref().unwrap()["client"].clone();
        }
        let after = recorded(&stage);
        assert!(after > before, "{name} is not recorded: {answer:?}");
        before = after;
    }
}

#[test]
fn a_connection_that_proved_nothing_is_answered_nothing() {
    let mut stage = Stage::new();
    let before = stage.seen();
    let mut raw = Raw::open(&stage.world);
    for (call, result) in stage.try_all(&mut raw, |_| true) {
        match (kind(call), result.map_err(|fault| fault.code)) {
            (Kind::Door, Ok(_)) | (_, Err(Code::Unidentified)) => {}
            (_, other) => panic!("{}: {other:?}", call.row().name),
        }
    }
    assert_eq!(stage.seen(), before);
    stage.did_nothing(&stage.ann.actor());
}

#[test]
fn a_key_the_host_does_not_know_finds_no_session_and_starts_and_stops_nothing() {
    let mut stage = Stage::new();
    let before = stage.seen();
    let stranger = stage.world.stranger("human:eve", 5);
    let mut raw = Raw::of(&stage.world, &stranger);
    for (call, result) in stage.try_all(&mut raw, |call| !matches!(call, Call::Identify(_))) {
        match (kind(call), result.map_err(|fault| fault.code)) {
            // An invite is accepted where one was shown.
            (Kind::Door, Ok(_)) | (Kind::Door, Err(Code::Unidentified)) => {}
            (Kind::Host, Ok(answer)) => {
                assert!(call.row().name != "session.list" || answer == json!([]), "{answer}");
            }
            (Kind::Known, Err(Code::Denied)) => {}
            (Kind::Run, Err(Code::NoSuchRun | Code::NoSuchQuestion | Code::NoSuchApproval)) => {}
            (Kind::Own, Err(Code::NotFound)) => {}
            (_, Err(Code::NotFound)) if !call.row().terms.who.is_hosts() => {}
            (_, other) => panic!("{}: {other:?}", call.row().name),
        }
    }
    assert_eq!(stage.seen(), before);
    stage.did_nothing(stranger.actor());
}

#[test]
fn a_known_actor_that_holds_nothing_is_refused_everything() {
    let mut stage = Stage::new();
    let before = stage.seen();
    let ops = stage.world.actor("service:ops");
    let mut raw = Raw::of(&stage.world, &ops);
    let allowed: Vec<_> = stage
        .try_all(&mut raw, |call| !call.row().terms.who.is_hosts())
        .into_iter()
        .filter_map(|(call, result)| result.is_ok().then_some(call.row().name))
        .collect();
    assert_eq!(allowed, [""; 0]);
    assert_eq!(stage.seen(), before);
    stage.did_nothing(ops.actor());
}

#[test]
fn an_agent_that_may_only_observe_sees_and_changes_nothing() {
    let mut stage = Stage::new();
    let bot = stage.world.actor("agent:bot");
    stage.ann.revoke_all_of(bot.actor().id).unwrap();
    stage.ann.grant(bot.actor(), "observe", None).unwrap();
    let before = stage.seen();
    let mut raw = Raw::of(&stage.world, &bot);
    for (call, result) in stage.try_all(&mut raw, |call| !call.row().terms.who.is_hosts()) {
        let name = call.row().name;
        match (kind(call), result.map_err(|fault| fault.code)) {
            (Kind::Looks, Ok(_)) => {}
            // It is no branch of another session.
            (Kind::Looks, Err(Code::BadRequest)) if name == "fork.diff" => {}
            (Kind::Own, Err(Code::NotAttached | Code::NotFound)) => {}
            (Kind::Run, Err(Code::NoSuchRun | Code::NoSuchQuestion | Code::NoSuchApproval)) => {}
            (Kind::Mine, Err(Code::Denied)) | (Kind::Files, Err(Code::Denied)) => {}
            (Kind::Writes | Kind::Takes | Kind::Changes, Err(Code::Denied)) => {}
            (_, other) => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(stage.seen(), before);
    stage.did_nothing(bot.actor());
}

#[test]
fn an_observers_terminal_sets_no_size_and_answers_nothing() {
    let world = World::new();
    let (session, file) = world.recorder("table");
    let (mut ann, bot) = (world.operator("human:ann", session), world.actor("agent:bot"));
    ann.revoke_all_of(bot.actor().id).unwrap();
    ann.grant(bot.actor(), "observe", None).unwrap();
    let before = ann.view().unwrap();
    let mut raw = Raw::of(&world, &bot);
    let attached = raw.call("session.attach", &json!({"session": session, "size": "90x30"}), &[]).unwrap();
    assert_eq!((&attached["writes"], &attached["answers"]), (&json!(false), &json!(false)));
    let client = &attached["client"];
    let update = json!({"session": session, "client": client, "size": "100x40"});
    raw.call("session.update", &update, &[]).unwrap();
    for (method, code) in [("turn.take", Code::Denied), ("turn.request", Code::Denied), ("turn.release", Code::Denied)]
    {
        let fault = raw.call(method, &json!({"session": session, "client": client}), &[]).unwrap_err();
        assert_eq!(fault.code, code, "{method}");
    }
    let send = json!({"session": session, "stream": 5, "seq": 1, "client": client});
    assert_eq!(raw.call("session.send", &send, b"rm").unwrap_err().code, Code::Denied);
    let after = ann.view().unwrap();
    assert_eq!((after.size, after.turn, after.head), (before.size, before.turn, before.head));
    assert_eq!(received(&file), b"");
}

#[test]
fn whatever_writes_is_refused_while_a_human_has_the_turn() {
    let mut stage = Stage::new();
    let bot = stage.world.actor("agent:bot");
    stage.ann.grant(bot.actor(), "observe,type,run,signal", None).unwrap();
    stage.ann.take().unwrap();
    let before = stage.seen();
    let mut raw = Raw::of(&stage.world, &bot);
    let mut tried = 0;
    for (call, result) in stage.try_all(&mut raw, |call| matches!(kind(call), Kind::Writes | Kind::Takes)) {
        let fault = result.expect_err(call.row().name);
        assert_eq!(fault.code, Code::TurnHeld, "{}: {fault}", call.row().name);
        assert_eq!(holdfast_harness::detail(&fault, "/by/handle").as_deref(), Some("human:ann"));
        tried += 1;
    }
    assert_eq!(tried, 5, "run, send, resize, signal, take");
    assert_eq!(stage.seen(), before);
    stage.did_nothing(bot.actor());
}
