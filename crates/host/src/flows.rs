//! Flows: a service beside the host has them. The host passes questions on and says who asks; the service believes it because it is
//! the process that answers at the host's socket.
//!
//! What waits there waits without a thread. One actor has a few questions open at once, so that the service's connections last for
//! everybody.

use crate::serve::{Answer, Server, plain};
use crate::shares::aside;
use holdfast_abi::address::Address;
use holdfast_types::{Actor, ActorId, Home, Right};
use holdfast_wire::flows::{FlowView, WAIT_MS_MAX};
use holdfast_wire::{Call, Code, Fault};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::Instant;

/// Questions of one actor that are open at the service, and of all: it takes 256 connections, and workers need some.
const OF_ONE_MAX: usize = 16;
const OF_ALL_MAX: usize = 64;
/// How long a service that was started may take until it answers: it reads every open flow first.
const READY: Duration = Duration::from_secs(15);
/// Longest answer: a history page of it.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The version of the service's protocol that is spoken here.
const VERSION: u64 = 1;

thread_local! {
    static OPEN: RefCell<HashMap<ActorId, usize>> = RefCell::default();
}

/// A place among the open questions, given back when it is dropped.
struct Place(ActorId);

impl Place {
    fn take(actor: &Actor) -> Result<Place, Fault> {
        OPEN.with_borrow_mut(|open| {
            let all: usize = open.values().sum();
            let own = open.entry(actor.id).or_default();
            if *own >= OF_ONE_MAX || all >= OF_ALL_MAX {
                let message = format!("{actor} has {own} questions about flows open, and all have {all}");
                return Err(Fault::new(Code::Busy, message).hint("wait for one of them"));
            }
            *own += 1;
            Ok(Place(actor.id))
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        OPEN.with_borrow_mut(|open| {
            if let Some(own) = open.get_mut(&self.0) {
                *own -= 1;
                if *own == 0 {
                    open.remove(&self.0);
                }
            }
        });
    }
}

impl Server {
    /// Asks the flow service in an actor's name.
    pub(crate) async fn answer_flows(&self, call: Call, actor: &Actor) -> Answer {
        if matches!(call, Call::FlowStart(_)) {
            self.registry.must_hold(actor, Right::Start, "start flows")?;
        }
        let home = &self.registry.shared.home;
        let is_start = matches!(call, Call::FlowStart(_));
        let is_list = matches!(call, Call::FlowList(_));
        // Without a database there are no flows, and who looks at none starts no service.
        if !is_start && !home.state.join("flows.db").exists() {
            let none = Fault::new(Code::NotFound, "this host has no flows").hint("start one: holdfast flow start FILE");
            if let Call::FlowList(params) = &call {
                tokio::time::sleep(Duration::from_millis(params.wait_ms.min(WAIT_MS_MAX))).await;
            }
            return if is_list { plain(Vec::<FlowView>::new()) } else { Err(none) };
        }
        let _place = Place::take(actor)?;
        let request = request(call)?;
        let answer = ask(home, actor, request).await?;
        // As the table has it, whatever else a newer service says.
        let bad =
            |error: serde_json::Error| Fault::new(Code::Internal, format!("unexpected answer about flows: {error}"));
        if is_list {
            return plain(serde_json::from_value::<Vec<FlowView>>(answer).map_err(bad)?);
        }
        plain(serde_json::from_value::<FlowView>(answer).map_err(bad)?)
    }
}

/// What the service is asked.
fn request(call: Call) -> Result<Value, Fault> {
    let mut asked = match call {
        Call::FlowStart(params) => {
            if params.definition.is_some() == params.name.is_some() {
                return Err(Fault::new(Code::BadRequest, "a flow has either a definition or a name"));
            }
            let input = params.input.clone().unwrap_or_default();
            json!({"do": "start", "definition": params.definition, "name": params.name, "flow": params.flow,
                "input": input, "cwd": params.cwd, "skip_timers": params.skip_timers})
        }
        Call::FlowList(params) if (params.after, params.wait_ms) == (0, 0) => json!({"do": "list", "all": params.all}),
        Call::FlowList(params) => json!({"do": "list", "all": params.all, "after": params.after,
            "wait_ms": params.wait_ms.min(WAIT_MS_MAX)}),
        Call::FlowGet(params) => json!({"do": "get", "flow": params.flow, "after": params.after,
            "wait_ms": params.wait_ms.min(WAIT_MS_MAX), "generation": params.generation}),
        Call::FlowSignal(params) => json!({"do": "signal", "flow": params.flow, "name": params.name,
            "value": params.value.unwrap_or_default(), "signal": params.id}),
        Call::FlowAnswer(params) => {
            let n = match params.step {
                Some(0) => return Err(Fault::new(Code::BadRequest, "steps are counted from 1")),
                step => step.map(|step| step - 1),
            };
            json!({"do": "answer", "flow": params.flow, "n": n, "text": params.text})
        }
        Call::FlowCancel(params) => json!({"do": "cancel", "flow": params.flow, "reason": params.reason}),
        Call::FlowRetry(params) => {
            let verdict = if params.verdict.is_empty() { "again" } else { params.verdict.as_str() };
            json!({"do": "retry", "flow": params.flow, "verdict": verdict, "value": params.value.unwrap_or_default()})
        }
        other => return Err(Fault::new(Code::Internal, format!("{} has no answer", other.row().name))),
    };
    asked["id"] = json!(1);
    Ok(asked)
}

async fn ask(home: &Home, actor: &Actor, request: Value) -> Result<Value, Fault> {
    let gone = |error: io::Error| {
        Fault::new(Code::Internal, format!("the flow service does not answer: {error}"))
            .hint("see flows.log in the state directory, and ask again")
    };
    let mut stream = BufReader::new(connect(home).await.map_err(gone)?);
    let hello = line(&mut stream).await.map_err(gone)?;
    if hello["flows"] != VERSION {
        let message = format!("the flow service speaks version {}, this host version {VERSION}", hello["flows"]);
        return Err(Fault::new(Code::Version, message).hint("to start this one's: holdfast flow stop"));
    }
    let text = format!("{}\n{request}\n", json!({"actor": actor, "vouched": true}));
    // A service that refuses us is gone by now, and what it said still waits to be read.
    let said = stream.get_mut().write_all(text.as_bytes()).await;
    let mut answer = line(&mut stream).await.map_err(|error| gone(said.err().unwrap_or(error)))?;
    match answer.get("error") {
        None => Ok(answer["ok"].take()),
        Some(error) => Err(fault(error)),
    }
}

async fn line(stream: &mut BufReader<UnixStream>) -> io::Result<Value> {
    let mut bytes = Vec::new();
    (&mut *stream).take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes).await?;
    if bytes.last() != Some(&b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&bytes)?)
}

/// Connects, and starts the service where none runs.
async fn connect(home: &Home) -> io::Result<UnixStream> {
    let path = home.run.join("flows.sock");
    let (deadline, mut is_started) = (Instant::now() + READY, false);
    loop {
        let address = Address::of(&path)?;
        match UnixStream::connect(address.path()).await {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {}
            Err(error) => return Err(error),
        }
        if !is_started {
            is_started = true;
            aside(start).await?;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// As `holdfast flow` does it: the process that is started leaves at once.
fn start() -> io::Result<()> {
    let mut command = Command::new(crate::program()?);
    command.args(["flow", "spawn"]).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("`flow spawn` ended with {status}"))) }
}

/// The service's word in the host's codes.
fn fault(error: &Value) -> Fault {
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    let code = match error["code"].as_str().unwrap_or_default() {
        "no_such_flow" | "no_question" | "no_step" => Code::NotFound,
        "id_taken" => Code::NameTaken,
        "ended" => Code::Ended,
        "ambiguous" => Code::Ambiguous,
        "denied" => Code::Denied,
        "unidentified" => Code::Unidentified,
        "unconfirmed" => Code::Unconfirmed,
        "too_many" => Code::TooMany,
        "damaged" => Code::Damaged,
        "unrecorded" => Code::Unrecorded,
        "bad_request" | "invalid_definition" | "not_stuck" => Code::BadRequest,
        _ => Code::Internal,
    };
    Fault::new(code, text("message")).hint(text("hint"))
}
