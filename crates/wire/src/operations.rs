//! The one table of operations: name, parameters, answer, route and doc line.
//!
//! Everything that can be asked of a host is a row here; client calls, the host's dispatch and the written reference all
//! come from it. What an operation needs and costs are its [`Terms`], which stand beside the rights in `types`.

use crate::attention::*;
use crate::contracts::*;
use crate::devices::*;
use crate::env::{EnvAnswer, EnvParams};
use crate::fault::{Code, Fault};
use crate::files::*;
use crate::flows::*;
use crate::follow::*;
use crate::forks::*;
use crate::gate::*;
use crate::graphs::*;
use crate::handover::HandoverAnswer;
use crate::hello::*;
use crate::lives::*;
use crate::moves::*;
use crate::params::*;
use crate::portable::*;
use crate::questions::*;
use crate::reaping::*;
use crate::runs::*;
use crate::tokens::*;
use crate::turns::*;
use holdfast_types::{Terms, terms_of};
use schemars::{Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Its name on the wire.
    pub name: &'static str,
    /// Who may ask for it, with which right, and what it costs.
    pub terms: Terms,
    /// How it is asked over HTTP, below `/v1`.
    pub route: Route,
    /// Whether raw bytes go with it.
    pub bytes: Bytes,
    /// One sentence.
    pub doc: &'static str,
}

/// An HTTP method and a path, whose `{names}` are fields of the parameters. The other fields are in the query of a `Get` or a
/// `Delete`, and in the JSON body of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Looks.
    Get(&'static str),
    /// Acts.
    Post(&'static str),
    /// Sets.
    Put(&'static str),
    /// Ends.
    Delete(&'static str),
    /// Not by itself: it concerns a connection, of which HTTP has the one at `/v1/connect`.
    Connection,
}

impl Route {
    /// Its path, if it has one.
    #[must_use]
    pub fn path(self) -> Option<&'static str> {
        match self {
            Route::Get(path) | Route::Post(path) | Route::Put(path) | Route::Delete(path) => Some(path),
            Route::Connection => None,
        }
    }
}

/// A route beside a row's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Also {
    /// The row's name.
    pub name: &'static str,
    /// The route.
    pub route: Route,
    /// Which field the path's one name stands for.
    pub field: &'static str,
}

/// A keyed run is put under its key: it is made once however often it is asked for.
pub const ALSO: &[Also] = &[Also { name: "run.start", route: Route::Put("/runs/{run}"), field: "key" }];

/// Whether raw bytes go with an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bytes {
    /// Not with this one.
    None,
    /// With the question.
    Asked,
    /// With the answer.
    Answered,
}

/// An operation's types, for typed calls.
pub trait Operation {
    /// Its row.
    const ROW: Row;
    /// What is asked.
    type Params: Serialize + DeserializeOwned;
    /// What is answered.
    type Answer: Serialize + DeserializeOwned;
}

/// What a row says of its bytes, or else that there are none.
const fn first(said: &[Bytes]) -> Bytes {
    said[0]
}

macro_rules! operations {
    ($( #[doc = $doc:literal] $variant:ident = $name:literal ($params:ty) -> $answer:ty, $route:expr $(, $bytes:expr)?; )*) => {
        /// One type per operation, for typed calls.
        pub mod op {
            $( #[doc = $doc] #[derive(Debug, Clone, Copy)] pub struct $variant; )*
        }

        $( impl Operation for op::$variant {
            const ROW: Row = Row {
                name: $name,
                terms: *terms_of($name),
                route: $route,
                bytes: first(&[$( $bytes, )? Bytes::None]),
                doc: $doc,
            };
            type Params = $params;
            type Answer = $answer;
        } )*

        /// All rows, in the order of the reference.
        pub const OPERATIONS: &[Row] = &[ $( <op::$variant as Operation>::ROW, )* ];

        /// Each row with the schemas of its parameters and its answer.
        pub(crate) fn schemas(generator: &mut SchemaGenerator) -> Vec<(Row, Schema, Schema)> {
            vec![ $( (
                <op::$variant as Operation>::ROW,
                generator.subschema_for::<$params>(),
                generator.subschema_for::<$answer>(),
            ), )* ]
        }

        /// A request with its parameters read.
        #[derive(Debug, Clone)]
        pub enum Call { $( #[doc = $doc] $variant($params), )* }

        impl Call {
            /// Reads a request's parameters by its method.
            pub fn decode(method: &str, params: Value) -> Result<Call, Fault> {
                // A request without parameters is one with none of the optional ones.
                let params = if params.is_null() { Value::Object(Default::default()) } else { params };
                match method {
                    $( $name => serde_json::from_value(params)
                        .map(Call::$variant)
                        .map_err(|e| Fault::new(Code::BadRequest, format!("{}: {e}", $name))), )*
                    _ => Err(Fault::new(Code::UnknownOperation, format!("unknown operation {method:?}"))
                        .hint("this host may be older than the client; to start the new one: holdfast host restart")),
                }
            }

            /// The row of this call.
            #[must_use]
            pub fn row(&self) -> Row {
                match self { $( Call::$variant(_) => <op::$variant as Operation>::ROW, )* }
            }
        }
    };
}

operations! {
    #[doc = "Agree on a protocol version; the first message of every connection."]
    Hello = "hello" (HelloParams) -> HelloAnswer, Route::Connection;
    #[doc = "Prove which actor this connection belongs to."]
    Identify = "identify" (IdentifyParams) -> IdentifyAnswer, Route::Connection;
    #[doc = "Start a session."]
    New = "session.new" (NewParams) -> SessionView, Route::Post("/sessions");
    #[doc = "List sessions."]
    List = "session.list" (ListParams) -> Vec<SessionView>, Route::Get("/sessions");
    #[doc = "Show one session."]
    Get = "session.get" (SessionParams) -> SessionView, Route::Get("/sessions/{session}");
    #[doc = "Attach a terminal; the answer's bytes paint the session's state at an offset."]
    Attach = "session.attach" (AttachParams) -> AttachAnswer, Route::Connection, Bytes::Answered;
    #[doc = "Repaint an attached terminal, with or without history."]
    Paint = "session.paint" (PaintParams) -> Painted, Route::Connection, Bytes::Answered;
    #[doc = "Report changes of an attached terminal: its size, whether it answers queries."]
    Update = "session.update" (UpdateParams) -> UpdateAnswer, Route::Connection;
    #[doc = "Leave a session that this connection is attached to."]
    Leave = "session.leave" (LeaveParams) -> LeaveAnswer, Route::Connection;
    #[doc = "Get the screen as text."]
    Screen = "session.screen" (ScreenParams) -> ScreenAnswer, Route::Get("/sessions/{session}/screen");
    #[doc = "Read output bytes from an offset; can wait for more."]
    Read = "session.read" (ReadParams) -> ReadAnswer, Route::Get("/sessions/{session}/output"), Bytes::Answered;
    #[doc = "Have output pushed from an offset on, as far as bytes are granted."]
    Follow = "session.follow" (FollowParams) -> Nothing, Route::Connection;
    #[doc = "Grant more bytes to output that is followed."]
    Credit = "session.credit" (CreditParams) -> Nothing, Route::Connection;
    #[doc = "No longer follow output."]
    Unfollow = "session.unfollow" (UnfollowParams) -> Nothing, Route::Connection;
    #[doc = "Type the message's bytes into the session; exactly once per stream and seq."]
    Send = "session.send" (SendParams) -> SendAnswer, Route::Post("/sessions/{session}/input"), Bytes::Asked;
    #[doc = "Get what the session is doing: working, waiting for input, or at its prompt."]
    State = "session.state" (SessionParams) -> StateView, Route::Get("/sessions/{session}/state");
    #[doc = "Get events of a session, or of all sessions you may observe; can wait for them."]
    Watch = "session.watch" (WatchParams) -> WatchAnswer, Route::Get("/events");
    #[doc = "Get the names in the session's shell and who changed them: names and hashes, never values."]
    Env = "session.env" (EnvParams) -> EnvAnswer, Route::Get("/sessions/{session}/env");
    #[doc = "Get what others changed since you wrote in the session last: names, files, text at the prompt, jobs."]
    Handover = "session.handover" (SessionParams) -> HandoverAnswer, Route::Get("/sessions/{session}/handover");
    #[doc = "Wait until the session's command ends, or for another event."]
    Wait = "session.wait" (WaitParams) -> WaitAnswer, Route::Post("/sessions/{session}/wait");
    #[doc = "Resize the session's terminal."]
    Resize = "session.resize" (ResizeParams) -> Nothing, Route::Put("/sessions/{session}/size");
    #[doc = "Send a signal to the session's processes."]
    Signal = "session.signal" (SignalParams) -> Nothing, Route::Post("/sessions/{session}/signal");
    #[doc = "Rename the session."]
    Rename = "session.rename" (RenameParams) -> SessionView, Route::Put("/sessions/{session}/name");
    #[doc = "Keep a session from being reaped, for a time or until further notice; or no longer."]
    Keep = "session.keep" (KeepParams) -> SessionView, Route::Put("/sessions/{session}/keep");
    #[doc = "Detach clients from a session; the session keeps running."]
    Detach = "session.detach" (DetachParams) -> DetachAnswer, Route::Post("/sessions/{session}/detach");
    #[doc = "End a session and its whole process tree: SIGHUP, then SIGKILL after a grace period."]
    End = "session.end" (EndParams) -> SessionView, Route::Delete("/sessions/{session}");
    #[doc = "Give a lost session another life: the same identity, journal, history, directory and environment, new processes."]
    Recover = "session.recover" (RecoverParams) -> RecoverAnswer, Route::Post("/sessions/{session}/recover");
    #[doc = "Give a portable session that does not run its processes back, from a checkpoint: the same identity, the next life."]
    Restore = "session.restore" (RestoreParams) -> RestoreAnswer, Route::Post("/sessions/{session}/restore");
    #[doc = "Start copies of a portable session, each with its own identity, files and network; the session itself goes on."]
    Fork = "session.fork" (ForkParams) -> ForkAnswer, Route::Post("/sessions/{session}/fork");
    #[doc = "Move a portable session to another host, step by step, at the host that has it: needs the right `end` too."]
    Move = "session.move" (MoveParams) -> MoveAnswer, Route::Connection, Bytes::Answered;
    #[doc = "Take a session in that is moved here, step by step; only humans may, by a path that narrows nothing."]
    Arrive = "session.arrive" (ArriveParams) -> ArriveAnswer, Route::Connection, Bytes::Asked;
    #[doc = "List the files that differ between a branch and the files it was forked over, or between two branches; as a patch, with the right `fork`."]
    ForkDiff = "fork.diff" (ForkDiffParams) -> ForkDiffAnswer, Route::Get("/sessions/{session}/changes");
    #[doc = "Apply a branch's changed files to the real ones, or copy them elsewhere; only humans may. Nothing is applied while files conflict."]
    ForkKeep = "fork.keep" (ForkKeepParams) -> ForkKeepAnswer, Route::Post("/sessions/{session}/changes");
    #[doc = "End a branch and remove its files and checkpoints."]
    ForkDiscard = "fork.discard" (ForkDiscardParams) -> SessionView, Route::Delete("/sessions/{session}/changes");
    #[doc = "Get what a checkpoint of the session would refuse and cut now, by process and descriptor."]
    CheckpointCheck = "checkpoint.check" (SessionParams) -> CheckAnswer, Route::Get("/sessions/{session}/checkpoint");
    #[doc = "Keep a copy of a portable session's live processes; the session stops unless it is to keep running."]
    CheckpointMake = "checkpoint.make" (CheckpointParams) -> CheckpointView, Route::Post("/sessions/{session}/checkpoints");
    #[doc = "List checkpoints of a session, or of all sessions you may observe, oldest first."]
    CheckpointList = "checkpoint.list" (CheckpointListParams) -> Vec<CheckpointView>, Route::Get("/checkpoints");
    #[doc = "Remove a checkpoint."]
    CheckpointRemove = "checkpoint.remove" (CheckpointRemoveParams) -> Nothing, Route::Delete("/sessions/{session}/checkpoints/{checkpoint}");
    #[doc = "Read the session's journal, line by line as written."]
    Journal = "session.journal" (JournalParams) -> JournalAnswer, Route::Get("/sessions/{session}/journal"), Bytes::Answered;
    #[doc = "Get what a session, or each session, takes up: memory, processes, disk; and when somebody last used it."]
    Cost = "session.cost" (CostParams) -> Vec<CostView>, Route::Get("/costs");
    #[doc = "Get the session's processes, their files and sockets, and the act that started each."]
    Graph = "graph.get" (GraphParams) -> GraphAnswer, Route::Get("/sessions/{session}/graph");
    #[doc = "List listening ports of a session, or of all sessions."]
    Ports = "graph.ports" (PortsParams) -> Vec<PortView>, Route::Get("/ports");
    #[doc = "Get events of the session's processes; can wait for them."]
    WatchGraph = "graph.watch" (WatchGraphParams) -> WatchGraphAnswer, Route::Get("/sessions/{session}/graph/events");
    #[doc = "List a directory of the session's working tree, page by page."]
    FilesList = "files.list" (FilesListParams) -> FilesListAnswer, Route::Get("/sessions/{session}/files");
    #[doc = "Read a file of the session's working tree, from an offset on."]
    FilesRead = "files.read" (FilesReadParams) -> FilesReadAnswer, Route::Get("/sessions/{session}/file"), Bytes::Answered;
    #[doc = "Write a file of the session's working tree, whole and at once."]
    FilesWrite = "files.write" (FilesWriteParams) -> FileChange, Route::Put("/sessions/{session}/file"), Bytes::Asked;
    #[doc = "Replace a text in a file of the session's working tree; it must be there once."]
    FilesEdit = "files.edit" (FilesEditParams) -> FilesEditAnswer, Route::Post("/sessions/{session}/file/edit");
    #[doc = "Upload a file to the session's working tree in pieces, which can be resumed."]
    FilesUpload = "files.upload" (FilesUploadParams) -> FilesUploadAnswer, Route::Post("/sessions/{session}/file/upload"), Bytes::Asked;
    #[doc = "Undo your last write to a file, where the bytes before it are kept."]
    FilesUndo = "files.undo" (FilesUndoParams) -> FileChange, Route::Post("/sessions/{session}/file/undo");
    #[doc = "List the last writes to files through the host, newest first."]
    FilesChanges = "files.changes" (FilesChangesParams) -> Vec<FileChange>, Route::Get("/sessions/{session}/files/changes");
    #[doc = "Get what a write changed, as a diff, where the bytes are kept."]
    FilesDiff = "files.diff" (FilesDiffParams) -> FilesDiffAnswer, Route::Get("/sessions/{session}/files/changes/{change}");
    #[doc = "Run a command in a session's shell or in a new session; once per key."]
    RunStart = "run.start" (RunStartParams) -> RunAnswer, Route::Post("/runs");
    #[doc = "Get a run and its output; can wait for its end."]
    RunGet = "run.get" (RunParams) -> RunAnswer, Route::Get("/runs/{run}");
    #[doc = "A run's output bytes, from an offset on; waits for some if asked to."]
    RunOutput = "run.output" (RunOutputParams) -> RunOutputAnswer, Route::Get("/runs/{run}/output"), Bytes::Answered;
    #[doc = "List the runs of a session, or of all sessions you may observe."]
    RunList = "run.list" (RunListParams) -> Vec<RunView>, Route::Get("/runs");
    #[doc = "Interrupt a run."]
    RunCancel = "run.cancel" (RunCancelParams) -> RunAnswer, Route::Post("/runs/{run}/cancel");
    #[doc = "Get everything that is known of a run: its contract, decision, attempts, effects and outcome."]
    RunTrace = "run.trace" (TraceParams) -> TraceView, Route::Get("/runs/{run}/trace");
    #[doc = "Ask the humans of a session a question; can wait for the answer."]
    QuestionAsk = "question.ask" (QuestionAskParams) -> QuestionView, Route::Post("/questions");
    #[doc = "Get a question and its answer; can wait for it."]
    QuestionGet = "question.get" (QuestionParams) -> QuestionView, Route::Get("/questions/{question}");
    #[doc = "List the questions of a session, or of all sessions you may observe."]
    QuestionList = "question.list" (QuestionListParams) -> Vec<QuestionView>, Route::Get("/questions");
    #[doc = "Answer a question; only humans may."]
    QuestionAnswer = "question.answer" (QuestionAnswerParams) -> QuestionView, Route::Post("/questions/{question}/answer");
    #[doc = "Withdraw a question; only its asker or a human may."]
    QuestionWithdraw = "question.withdraw" (QuestionWithdrawParams) -> QuestionView, Route::Delete("/questions/{question}");
    #[doc = "Approve or deny a held act; only humans may, and never the actor that asked for it."]
    ApprovalAnswer = "approval.answer" (ApprovalAnswerParams) -> ApprovalView, Route::Post("/approvals/{approval}/answer");
    #[doc = "Get a held act; can wait until its state changes."]
    ApprovalGet = "approval.get" (ApprovalParams) -> ApprovalView, Route::Get("/approvals/{approval}");
    #[doc = "List acts that wait for a human: of a session, or of all sessions you may observe."]
    ApprovalList = "approval.list" (ApprovalListParams) -> Vec<ApprovalView>, Route::Get("/approvals");
    #[doc = "Get the policy in force: its rules, and what is wrong in files that are not."]
    PolicyGet = "policy.get" (Nothing) -> PolicyView, Route::Get("/policy");
    #[doc = "Ask what the policy says of a command, without running it."]
    PolicyMay = "policy.may" (MayParams) -> MayAnswer, Route::Post("/policy/may");
    #[doc = "Start a durable flow: a definition in YAML, or a flow whose code a worker has."]
    FlowStart = "flow.start" (FlowStartParams) -> FlowView, Route::Post("/flows");
    #[doc = "List flows, the newest first: your own, or all if you are a human."]
    FlowList = "flow.list" (FlowListParams) -> Vec<FlowView>, Route::Get("/flows");
    #[doc = "Get a flow, what it waits for and its history; can wait for more of it."]
    FlowGet = "flow.get" (FlowGetParams) -> FlowView, Route::Get("/flows/{flow}");
    #[doc = "Send a signal to a flow; once per id."]
    FlowSignal = "flow.signal" (FlowSignalParams) -> FlowView, Route::Post("/flows/{flow}/signal");
    #[doc = "Answer a flow's question; only humans may."]
    FlowAnswer = "flow.answer" (FlowAnswerParams) -> FlowView, Route::Post("/flows/{flow}/answer");
    #[doc = "Cancel a flow: stop what runs, then undo what was done."]
    FlowCancel = "flow.cancel" (FlowCancelParams) -> FlowView, Route::Post("/flows/{flow}/cancel");
    #[doc = "Let a blocked flow go on, or decide about a stuck step, which only humans may."]
    FlowRetry = "flow.retry" (FlowRetryParams) -> FlowView, Route::Post("/flows/{flow}/retry");
    #[doc = "Get who has the turn, and who waits for it."]
    Turn = "turn.get" (SessionParams) -> TurnView, Route::Get("/sessions/{session}/turn");
    #[doc = "Take the turn if it is free."]
    Take = "turn.take" (TurnParams) -> TurnAnswer, Route::Post("/sessions/{session}/turn/take");
    #[doc = "Request the turn; you get it when its holder releases it or is idle."]
    Request = "turn.request" (TurnParams) -> TurnAnswer, Route::Post("/sessions/{session}/turn/request");
    #[doc = "Withdraw a request for the turn."]
    Withdraw = "turn.withdraw" (TurnParams) -> TurnAnswer, Route::Post("/sessions/{session}/turn/withdraw");
    #[doc = "Give the turn to another actor."]
    Give = "turn.give" (GiveParams) -> TurnAnswer, Route::Post("/sessions/{session}/turn/give");
    #[doc = "Release the turn."]
    Release = "turn.release" (TurnParams) -> TurnAnswer, Route::Post("/sessions/{session}/turn/release");
    #[doc = "Seize the turn, whatever its holder does; can freeze the process tree."]
    Seize = "turn.seize" (SeizeParams) -> SeizeAnswer, Route::Post("/sessions/{session}/turn/seize");
    #[doc = "Resume a frozen process tree."]
    Thaw = "turn.thaw" (TurnParams) -> TurnAnswer, Route::Post("/sessions/{session}/turn/thaw");
    #[doc = "List the grants in a session."]
    Grants = "grant.list" (SessionParams) -> GrantsAnswer, Route::Get("/sessions/{session}/grants");
    #[doc = "Grant rights in a session to an actor."]
    Grant = "grant.add" (GrantParams) -> GrantView, Route::Post("/sessions/{session}/grants");
    #[doc = "Revoke rights, and all grants made from them."]
    Revoke = "grant.revoke" (RevokeParams) -> RevokeAnswer, Route::Post("/sessions/{session}/grants/revoke");
    #[doc = "Create a token for HTTP: it acts as one actor, with at most these rights."]
    TokenNew = "token.new" (TokenNewParams) -> TokenNewAnswer, Route::Post("/tokens");
    #[doc = "List valid tokens: your own, or all if you are a human."]
    TokenList = "token.list" (Nothing) -> Vec<TokenView>, Route::Get("/tokens");
    #[doc = "Revoke a token at once."]
    TokenRevoke = "token.revoke" (TokenParams) -> TokenView, Route::Delete("/tokens/{token}");
    #[doc = "Create a code that logs a browser in as you, once."]
    LoginNew = "login.new" (Nothing) -> LoginAnswer, Route::Post("/logins");
    #[doc = "Get which actor you are, and by which token."]
    Me = "actor.me" (Nothing) -> MeAnswer, Route::Get("/me");
    #[doc = "List the actors that the host knows."]
    Actors = "actor.list" (Nothing) -> Vec<ActorView>, Route::Get("/actors");
    #[doc = "Get an actor's track record: its runs under contracts, and how many kept them."]
    ActorRecord = "actor.record" (RecordParams) -> RecordView, Route::Get("/actors/{handle}/record");
    #[doc = "Remove an actor and revoke its key."]
    ActorRemove = "actor.remove" (ActorParams) -> Nothing, Route::Delete("/actors/{handle}");
    #[doc = "Wait at a relay, so that clients can reach this host through it."]
    RelayAdd = "relay.add" (RelayParams) -> RelaysAnswer, Route::Post("/relays");
    #[doc = "Listen for devices that reach this host without a relay, or stop."]
    RelayDirect = "relay.direct" (DirectParams) -> RelaysAnswer, Route::Post("/relays/direct");
    #[doc = "List the relays this host waits at, where it listens itself, and get the host's key."]
    RelayList = "relay.list" (Nothing) -> RelaysAnswer, Route::Get("/relays");
    #[doc = "Wait at a relay no longer."]
    RelayRemove = "relay.remove" (RelayParams) -> RelaysAnswer, Route::Post("/relays/remove");
    #[doc = "Create a link by which others get access to a session, or to the host, through a relay."]
    InviteNew = "invite.new" (InviteNewParams) -> InviteNewAnswer, Route::Post("/invites");
    #[doc = "List invites: your own, or all if you are a human."]
    InviteList = "invite.list" (Nothing) -> Vec<InviteView>, Route::Get("/invites");
    #[doc = "Revoke an invite; devices that accepted it stay."]
    InviteRevoke = "invite.revoke" (InviteParams) -> InviteView, Route::Delete("/invites/{invite}");
    #[doc = "Accept the invite by which this connection came: enrol an actor's key."]
    InviteAccept = "invite.accept" (InviteAcceptParams) -> InviteAcceptAnswer, Route::Connection;
    #[doc = "List the devices that may reach this host through a relay."]
    DeviceList = "device.list" (Nothing) -> Vec<DeviceView>, Route::Get("/devices");
    #[doc = "Revoke a device at once: its connections and its grants end."]
    DeviceRevoke = "device.revoke" (DeviceParams) -> DeviceView, Route::Delete("/devices/{device}");
    #[doc = "Get the page for a browser that comes through a relay, signed by the host; the answer's bytes are its files."]
    PageGet = "page.get" (PageGetParams) -> PageView, Route::Connection, Bytes::Answered;
    #[doc = "Get the host's metrics in the Prometheus text format."]
    Metrics = "host.metrics" (Nothing) -> MetricsAnswer, Route::Get("/host/metrics");
    #[doc = "Get the host's version and status."]
    Status = "host.status" (Nothing) -> HostStatus, Route::Get("/host");
    #[doc = "Stop the host; sessions keep running."]
    Stop = "host.stop" (Nothing) -> Nothing, Route::Post("/host/stop");
}

impl Call {
    /// It looks at the policy, or at acts that wait for a human.
    #[must_use]
    pub fn is_about_the_gate(&self) -> bool {
        matches!(self, Call::ApprovalGet(_) | Call::ApprovalList(_) | Call::PolicyMay(_) | Call::PolicyGet(_))
    }

    /// It is about flows, which a service beside the host has.
    #[must_use]
    pub fn is_about_flows(&self) -> bool {
        matches!(
            self,
            Call::FlowStart(_)
                | Call::FlowList(_)
                | Call::FlowGet(_)
                | Call::FlowSignal(_)
                | Call::FlowAnswer(_)
                | Call::FlowCancel(_)
                | Call::FlowRetry(_)
        )
    }

    /// The session and the attached client that somebody acts through: a client's number counts on its own connection alone.
    #[must_use]
    pub fn acts_through(&self) -> Option<(&str, u32)> {
        let (session, client) = match self {
            Call::Update(params) => (&params.session, Some(params.client)),
            Call::Leave(params) => (&params.session, Some(params.client)),
            Call::Send(params) => (&params.session, params.client),
            Call::Give(params) => (&params.session, params.client),
            Call::Seize(params) => (&params.session, params.client),
            Call::Take(params)
            | Call::Request(params)
            | Call::Withdraw(params)
            | Call::Release(params)
            | Call::Thaw(params) => (&params.session, params.client),
            // A test sees to it that no other has a client.
            _ => return None,
        };
        Some((session, client?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::Trace;

    #[test]
    fn every_operation_with_a_client_says_that_one_acts_through_it() {
        let schema = crate::schema::document();
        let mut through = Vec::new();
        for row in OPERATIONS {
            let named = schema["operations"][row.name]["params"]["$ref"].as_str().map(|path| path.replace('#', ""));
            let params = named.and_then(|path| schema.pointer(&path)).map(|params| &params["properties"]);
            if params.is_none_or(|params| params.get("client").is_none()) {
                continue;
            }
            through.push(row.name);
            let rest = serde_json::json!({"session": "s", "client": 7});
            let more = [
                serde_json::json!({}),
                serde_json::json!({"stream": 1, "seq": 1}),
                serde_json::json!({"reason": "r"}),
                serde_json::json!({"to": {"id": "00".repeat(32), "handle": "human:ann"}}),
            ];
            let call = more.into_iter().find_map(|more| {
                let mut params = rest.clone();
                params.as_object_mut()?.extend(more.as_object()?.clone());
                Call::decode(row.name, params).ok()
            });
            let call = call.unwrap_or_else(|| panic!("{} takes none of these", row.name));
            assert_eq!(call.acts_through(), Some(("s", 7)), "{}", row.name);
        }
        assert!(through.contains(&"session.update") && through.contains(&"turn.seize"), "{through:?}");
    }

    #[test]
    fn names_are_unique_and_every_row_has_a_doc_line() {
        for (i, row) in OPERATIONS.iter().enumerate() {
            assert!(row.doc.ends_with('.'), "{}", row.name);
            assert!(OPERATIONS[..i].iter().all(|other| other.name != row.name), "{}", row.name);
        }
    }

    #[test]
    fn the_tables_of_operations_and_of_terms_have_the_same_names() {
        let rows: Vec<_> = OPERATIONS.iter().map(|row| row.name).collect();
        let terms: Vec<_> = holdfast_types::TERMS.iter().map(|terms| terms.name).collect();
        assert_eq!(rows, terms);
    }

    #[test]
    fn what_is_got_only_looks() {
        for row in OPERATIONS.iter().filter(|row| matches!(row.route, Route::Get(_))) {
            assert_eq!(row.terms.trace, Trace::Looks, "{}", row.name);
        }
    }

    #[test]
    fn routes_are_unique() {
        let routes: Vec<_> = OPERATIONS
            .iter()
            .map(|row| row.route)
            .chain(ALSO.iter().map(|also| also.route))
            .filter(|route| *route != Route::Connection)
            .collect();
        for (i, route) in routes.iter().enumerate() {
            assert!(!routes[..i].contains(route), "{route:?}");
        }
    }

    #[test]
    fn a_wrong_field_is_refused_by_name_and_missing_params_are_empty_ones() {
        let fault = Call::decode("session.list", serde_json::json!({"al": true})).unwrap_err();
        assert!(fault.message.contains("al"), "{fault}");
        assert!(matches!(Call::decode("session.list", Value::Null), Ok(Call::List(_))));
        assert_eq!(Call::decode("session.fly", Value::Null).unwrap_err().code, Code::UnknownOperation);
    }
}
