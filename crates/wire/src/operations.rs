//! The one table of operations: name, parameters, answer, route and doc line.
//!
//! Everything that can be asked of a host is a row here; client calls, the host's dispatch and the written reference all
//! come from it. What an operation needs and costs are its [`Terms`], which stand beside the rights in `types`.

use crate::attention::*;
use crate::env::{EnvAnswer, EnvParams};
use crate::fault::{Code, Fault};
use crate::follow::*;
use crate::graphs::*;
use crate::params::*;
use crate::questions::*;
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
                    _ => Err(Fault::new(Code::UnknownOperation, format!("there is no operation {method:?}"))
                        .hint("this host may be older than the client: `holdfast host restart` starts the new one")),
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
    #[doc = "Prove by whose key this connection speaks."]
    Identify = "identify" (IdentifyParams) -> IdentifyAnswer, Route::Connection;
    #[doc = "Start a session."]
    New = "session.new" (NewParams) -> SessionView, Route::Post("/sessions");
    #[doc = "List sessions."]
    List = "session.list" (ListParams) -> Vec<SessionView>, Route::Get("/sessions");
    #[doc = "Show one session."]
    Get = "session.get" (SessionParams) -> SessionView, Route::Get("/sessions/{session}");
    #[doc = "Attach a terminal: the answer's bytes bring it into the session's state at an offset."]
    Attach = "session.attach" (AttachParams) -> AttachAnswer, Route::Connection, Bytes::Answered;
    #[doc = "Paint again, with or without history, for a terminal that is attached."]
    Paint = "session.paint" (PaintParams) -> Painted, Route::Connection, Bytes::Answered;
    #[doc = "Tell what changed at an attached terminal: its size, whether it answers queries."]
    Update = "session.update" (UpdateParams) -> UpdateAnswer, Route::Connection;
    #[doc = "Let go of a session one is attached to."]
    Leave = "session.leave" (LeaveParams) -> Nothing, Route::Connection;
    #[doc = "The screen as text."]
    Screen = "session.screen" (ScreenParams) -> ScreenAnswer, Route::Get("/sessions/{session}/screen");
    #[doc = "Output bytes from an offset on; waits for some if asked to."]
    Read = "session.read" (ReadParams) -> ReadAnswer, Route::Get("/sessions/{session}/output"), Bytes::Answered;
    #[doc = "Have output pushed from an offset on, as far as bytes are granted."]
    Follow = "session.follow" (FollowParams) -> Nothing, Route::Connection;
    #[doc = "Grant more bytes to output that is followed."]
    Credit = "session.credit" (CreditParams) -> Nothing, Route::Connection;
    #[doc = "No longer follow output."]
    Unfollow = "session.unfollow" (UnfollowParams) -> Nothing, Route::Connection;
    #[doc = "Type the message's bytes into the session; exactly once per stream and seq."]
    Send = "session.send" (SendParams) -> SendAnswer, Route::Post("/sessions/{session}/input"), Bytes::Asked;
    #[doc = "What the session is doing: whether it works, waits for input, or is at its prompt."]
    State = "session.state" (SessionParams) -> StateView, Route::Get("/sessions/{session}/state");
    #[doc = "What happens in a session, or in all one may observe; waits for it if asked to."]
    Watch = "session.watch" (WatchParams) -> WatchAnswer, Route::Get("/events");
    #[doc = "What the session's shell is made of, and who changed it: names and hashes, never values."]
    Env = "session.env" (EnvParams) -> EnvAnswer, Route::Get("/sessions/{session}/env");
    #[doc = "Wait until the session's command has ended, or something else has come."]
    Wait = "session.wait" (WaitParams) -> WaitAnswer, Route::Post("/sessions/{session}/wait");
    #[doc = "Give the session's terminal another size."]
    Resize = "session.resize" (ResizeParams) -> Nothing, Route::Put("/sessions/{session}/size");
    #[doc = "Send a signal into the session."]
    Signal = "session.signal" (SignalParams) -> Nothing, Route::Post("/sessions/{session}/signal");
    #[doc = "Give the session another name."]
    Rename = "session.rename" (RenameParams) -> SessionView, Route::Put("/sessions/{session}/name");
    #[doc = "Detach clients from a session; it goes on."]
    Detach = "session.detach" (DetachParams) -> DetachAnswer, Route::Post("/sessions/{session}/detach");
    #[doc = "End a session's whole process tree: HUP, then KILL after the grace."]
    End = "session.end" (EndParams) -> SessionView, Route::Delete("/sessions/{session}");
    #[doc = "The session's journal, line by line as it was written."]
    Journal = "session.journal" (JournalParams) -> JournalAnswer, Route::Get("/sessions/{session}/journal"), Bytes::Answered;
    #[doc = "The session's processes, what they hold, and whose act started each."]
    Graph = "graph.get" (GraphParams) -> GraphAnswer, Route::Get("/sessions/{session}/graph");
    #[doc = "Who listens where, in one session or in all."]
    Ports = "graph.ports" (PortsParams) -> Vec<PortView>, Route::Get("/ports");
    #[doc = "What happens to the session's processes; waits for something if asked to."]
    WatchGraph = "graph.watch" (WatchGraphParams) -> WatchGraphAnswer, Route::Get("/sessions/{session}/graph/events");
    #[doc = "Run a command in a session's shell, or in a session of its own; once per key."]
    RunStart = "run.start" (RunStartParams) -> RunAnswer, Route::Post("/runs");
    #[doc = "A run and its output; waits for its end if asked to."]
    RunGet = "run.get" (RunParams) -> RunAnswer, Route::Get("/runs/{run}");
    #[doc = "A run's output bytes, from an offset on; waits for some if asked to."]
    RunOutput = "run.output" (RunOutputParams) -> RunOutputAnswer, Route::Get("/runs/{run}/output"), Bytes::Answered;
    #[doc = "The runs of a session, or of all one may observe."]
    RunList = "run.list" (RunListParams) -> Vec<RunView>, Route::Get("/runs");
    #[doc = "Interrupt a run."]
    RunCancel = "run.cancel" (RunCancelParams) -> RunAnswer, Route::Post("/runs/{run}/cancel");
    #[doc = "Ask the humans of a session something; waits for the answer if asked to."]
    QuestionAsk = "question.ask" (QuestionAskParams) -> QuestionView, Route::Post("/questions");
    #[doc = "A question and its answer; waits for it if asked to."]
    QuestionGet = "question.get" (QuestionParams) -> QuestionView, Route::Get("/questions/{question}");
    #[doc = "The questions of a session, or of all one may observe."]
    QuestionList = "question.list" (QuestionListParams) -> Vec<QuestionView>, Route::Get("/questions");
    #[doc = "Answer a question; only a human does."]
    QuestionAnswer = "question.answer" (QuestionAnswerParams) -> QuestionView, Route::Post("/questions/{question}/answer");
    #[doc = "Take a question back: its asker, or a human."]
    QuestionWithdraw = "question.withdraw" (QuestionWithdrawParams) -> QuestionView, Route::Delete("/questions/{question}");
    #[doc = "Who has the turn, and who waits for it."]
    Turn = "turn.get" (SessionParams) -> TurnView, Route::Get("/sessions/{session}/turn");
    #[doc = "Take the turn if it is free."]
    Take = "turn.take" (TurnParams) -> TurnAnswer, Route::Post("/sessions/{session}/turn/take");
    #[doc = "Ask for the turn: it comes when its holder lets go or is idle."]
    Request = "turn.request" (TurnParams) -> TurnAnswer, Route::Post("/sessions/{session}/turn/request");
    #[doc = "No longer wait for the turn."]
    Withdraw = "turn.withdraw" (TurnParams) -> TurnAnswer, Route::Post("/sessions/{session}/turn/withdraw");
    #[doc = "Hand the turn over."]
    Give = "turn.give" (GiveParams) -> TurnAnswer, Route::Post("/sessions/{session}/turn/give");
    #[doc = "Let go of the turn."]
    Release = "turn.release" (TurnParams) -> TurnAnswer, Route::Post("/sessions/{session}/turn/release");
    #[doc = "Take the turn whatever its holder does, and stop the tree if asked to."]
    Seize = "turn.seize" (SeizeParams) -> SeizeAnswer, Route::Post("/sessions/{session}/turn/seize");
    #[doc = "Let a frozen tree go on."]
    Thaw = "turn.thaw" (TurnParams) -> TurnAnswer, Route::Post("/sessions/{session}/turn/thaw");
    #[doc = "What was granted in a session."]
    Grants = "grant.list" (SessionParams) -> GrantsAnswer, Route::Get("/sessions/{session}/grants");
    #[doc = "Pass rights on."]
    Grant = "grant.add" (GrantParams) -> GrantView, Route::Post("/sessions/{session}/grants");
    #[doc = "Take rights back, and what was passed on from them."]
    Revoke = "grant.revoke" (RevokeParams) -> RevokeAnswer, Route::Post("/sessions/{session}/grants/revoke");
    #[doc = "Make a token: who shows it over HTTP is that actor, with no more than these rights."]
    TokenNew = "token.new" (TokenNewParams) -> TokenNewAnswer, Route::Post("/tokens");
    #[doc = "Tokens that are good now: one's own, or all where a human asks."]
    TokenList = "token.list" (Nothing) -> Vec<TokenView>, Route::Get("/tokens");
    #[doc = "Make a token worthless, at once."]
    TokenRevoke = "token.revoke" (TokenParams) -> TokenView, Route::Delete("/tokens/{token}");
    #[doc = "Make a code by which a browser logs in as who asks, once."]
    LoginNew = "login.new" (Nothing) -> LoginAnswer, Route::Post("/logins");
    #[doc = "Who asks, and by which token."]
    Me = "actor.me" (Nothing) -> MeAnswer, Route::Get("/me");
    #[doc = "Actors the host knows."]
    Actors = "actor.list" (Nothing) -> Vec<ActorView>, Route::Get("/actors");
    #[doc = "Forget an actor: its key opens nothing any more."]
    ActorRemove = "actor.remove" (ActorParams) -> Nothing, Route::Delete("/actors/{handle}");
    #[doc = "The host's counters in the Prometheus text format."]
    Metrics = "host.metrics" (Nothing) -> MetricsAnswer, Route::Get("/host/metrics");
    #[doc = "What the host is and how it does."]
    Status = "host.status" (Nothing) -> HostStatus, Route::Get("/host");
    #[doc = "Stop the host; sessions go on."]
    Stop = "host.stop" (Nothing) -> Nothing, Route::Post("/host/stop");
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::Trace;

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
