//! `holdfast move`: a portable session goes to another host. This program is connected to both, and carries it over.

use super::files::Progress;
use crate::args::MoveArgs;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{bytes, print, print_json, say, visible};
use holdfast_authority::Ask;
use holdfast_client::{CallError, Connection, Incoming, machine_name};
use holdfast_types::{SessionId, terms_of};
use holdfast_wire::moves::{
    ArriveAnswer, ArriveParams, ArriveStep, MoveAnswer, MoveHome, MoveParams, MoveParcel, MoveStep, MovedView,
    PIECE_BYTES_MAX,
};
use holdfast_wire::operations::op;
use holdfast_wire::params::SessionView;
use holdfast_wire::{Fault, Operation};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

/// Pieces that are asked for before the first of them is there.
const READS_MAX: usize = 4;
/// Pieces that are on their way to the other host.
const WRITES_MAX: usize = 8;

/// A move that is over.
#[derive(Debug, Serialize)]
struct Told<'a> {
    session: SessionId,
    name: &'a str,
    host: &'a str,
    incarnation: u32,
    /// How long it stood still; none where an earlier try had stopped it.
    still_ms: Option<u64>,
    sent_bytes: u64,
    cut: &'a [String],
}

/// What was carried over.
#[derive(Debug, Default)]
struct Carried {
    began: Option<Instant>,
    bytes: u64,
}

/// `holdfast move`.
pub fn move_session(here: &Here, args: &MoveArgs) -> Result<u8, Failure> {
    let there = here.at(&args.to)?;
    let mut link = here.link()?;
    let session = link.get(&args.of.session)?;
    let name = here.called(session.name.as_str());
    let called = if there.is_elsewhere() { args.to.clone() } else { machine_name() };
    if there.elsewhere().map(|host| &host.name) == here.elsewhere().map(|host| &host.name) {
        return Err(Failure::new("usage", format!("{} is on that host already", visible(&name))));
    }
    let step = |step| MoveParams { session: session.id.to_string(), step, proof: None };
    let offered = link.call::<op::Move>(&step(MoveStep::Offer))?;
    let mut carried = Carried::default();
    let key = match offered.moved {
        Some(moved) => {
            must_be_there(&moved, &called, &name)?;
            link.call::<op::Move>(&step(MoveStep::Commit))?.key
        }
        None => {
            let offer = offered.offer.ok_or_else(|| nonsense("an offer"))?;
            let check = ArriveStep::Check { offer: offer.clone() };
            let mut to = there.connect()?;
            let checked =
                to.call::<op::Arrive>(&ArriveParams { step: check }).map_err(|error| too_old(error, &called))?;
            if !checked.refused.is_empty() {
                return refused(here, &name, &called, &checked.refused);
            }
            if args.check {
                return can_be_moved(here, &name, &called, offer.processes, &offer.cut);
            }
            let from = Pipe::new(here.connect()?);
            let mover = Mover { here, from, to: Pipe::new(to), session: &session, called: &called, home: checked.home };
            match mover.carry(&mut carried)? {
                Ok(key) => Some(key),
                Err(list) => return refused(here, &name, &called, &list),
            }
        }
    };
    let key = key.ok_or_else(|| nonsense("a key"))?;
    if args.check {
        return can_be_moved(here, &name, &called, 0, &[]);
    }
    let finish = ArriveParams { step: ArriveStep::Finish { session: session.id, key } };
    let finished = there.link().and_then(|mut to| to.call::<op::Arrive>(&finish)).map_err(|failure| {
        let (name, to) = (visible(&name), visible(&args.to));
        failure.hint(format!(
            "its home is {to} now, and it does not run here again; to finish: holdfast move {name} {to}, or there: holdfast restore {}",
            session.name
        ))
    })?;
    let still_ms = carried.began.map(|began| began.elapsed().as_millis() as u64);
    // Where this host cannot be told, it keeps its images; nothing else comes of it.
    if let Err(failure) = link.call::<op::Move>(&step(MoveStep::Done)) {
        say(&format!("the old host keeps its copy: {}", failure.message()));
    }
    let view = finished.session.as_deref().ok_or_else(|| nonsense("a session"))?;
    tell(here, &there, view, &called, still_ms, carried.bytes, &finished.cut)
}

fn tell(
    here: &Here,
    there: &Here,
    view: &SessionView,
    called: &str,
    still_ms: Option<u64>,
    sent_bytes: u64,
    cut: &[String],
) -> Result<u8, Failure> {
    if here.json {
        let (name, incarnation) = (view.name.as_str(), view.incarnation);
        print_json(&Told { session: view.id, name, host: called, incarnation, still_ms, sent_bytes, cut })?;
        return Ok(0);
    }
    let name = visible(&there.called(view.name.as_str()));
    let mut text =
        format!("{} is running on {} (life {})\n", visible(view.name.as_str()), visible(called), view.incarnation);
    if let Some(ms) = still_ms {
        text.push_str(&format!("  it stood still for {ms} ms; {} were sent\n", bytes(sent_bytes)));
    }
    text.extend(cut.iter().map(|cut| format!("  connection cut  {}\n", visible(cut))));
    print(text + &format!("  attach  holdfast attach {name}\n"))?;
    Ok(0)
}

fn nonsense(what: &str) -> Failure {
    Failure::new("hello", format!("the host answered without {what}"))
}

/// A host that does not know what is asked.
fn too_old(error: CallError, called: &str) -> Failure {
    match &error {
        CallError::Fault(fault) if fault.code == holdfast_wire::Code::UnknownOperation => {
            Failure::new("version", format!("holdfast on {} is too old to take sessions in", visible(called)))
                .hint("install this version there, then run there: holdfast host restart")
        }
        _ => error.into(),
    }
}

fn must_be_there(moved: &MovedView, called: &str, name: &str) -> Result<(), Failure> {
    let (host, name) = (visible(&moved.host), visible(name));
    if moved.host == called && !moved.arrived {
        return Ok(());
    }
    let bare = name.rsplit('/').next().unwrap_or(&name);
    Err(Failure::new("moved", format!("{name} was moved to {host}"))
        .hint(format!("move it from there: holdfast move {host}/{bare} HOST")))
}

fn refused(here: &Here, name: &str, called: &str, list: &[String]) -> Result<u8, Failure> {
    if here.json {
        print_json(&serde_json::json!({ "host": called, "refused": list }))?;
        return Ok(1);
    }
    let lines: String = list.iter().map(|why| format!("  refused  {}\n", visible(why))).collect();
    print(format!("{} cannot be moved to {}; it goes on where it is\n{lines}", visible(name), visible(called)))?;
    Ok(1)
}

fn can_be_moved(here: &Here, name: &str, called: &str, processes: u32, cut: &[String]) -> Result<u8, Failure> {
    if here.json {
        print_json(&serde_json::json!({ "host": called, "refused": [], "processes": processes, "cut": cut }))?;
        return Ok(0);
    }
    let lines: String = cut.iter().map(|cut| format!("  would be cut  {}\n", visible(cut))).collect();
    print(format!("{} can be moved to {}: {processes} processes\n{lines}", visible(name), visible(called)))?;
    Ok(0)
}

/// A connection on which several questions are open.
struct Pipe {
    connection: Connection,
    answers: HashMap<u64, (Result<serde_json::Value, Fault>, Vec<u8>)>,
}

impl Pipe {
    fn new(connection: Connection) -> Pipe {
        Pipe { connection, answers: HashMap::new() }
    }

    fn ask<O: Operation>(&mut self, params: &O::Params, bytes: &[u8]) -> Result<u64, CallError> {
        self.connection.ask::<O>(params, bytes)
    }

    fn answer<O: Operation>(&mut self, id: u64) -> Result<(O::Answer, Vec<u8>), CallError> {
        loop {
            if let Some((result, bytes)) = self.answers.remove(&id) {
                let answer = serde_json::from_value(result?).map_err(|error| CallError::Nonsense(error.to_string()))?;
                return Ok((answer, bytes));
            }
            if let Incoming::Answer { id, result, bytes } = self.connection.receive()? {
                self.answers.insert(id, (result, bytes));
            }
        }
    }

    fn call<O: Operation>(&mut self, params: &O::Params) -> Result<O::Answer, CallError> {
        let id = self.ask::<O>(params, &[])?;
        Ok(self.answer::<O>(id)?.0)
    }
}

/// The part of a move during which the session stands still. Where this process is gone, or either connection breaks, it goes on at its
/// old host.
struct Mover<'a> {
    here: &'a Here,
    from: Pipe,
    to: Pipe,
    session: &'a SessionView,
    called: &'a str,
    home: Option<MoveHome>,
}

impl Mover<'_> {
    /// The key that the old host gives out once the other one is the session's home; or what the other one lacks.
    fn carry(mut self, carried: &mut Carried) -> Result<Result<String, Vec<String>>, Failure> {
        let ask = Ask::other(const { terms_of("session.move") }, MoveParams::detail(self.called));
        let proof = Some(self.here.who()?.prove(self.session.id, &ask));
        let home = self.home.take();
        let hold = MoveParams { proof, ..self.step(MoveStep::Hold { to: self.called.to_owned(), home }) };
        carried.began = Some(Instant::now());
        let held = self.from.call::<op::Move>(&hold).map_err(|error| self.failed(error))?;
        let parcel = held.parcel.ok_or_else(|| nonsense("a list of files"))?;
        let shipped = self.ship(&parcel, carried);
        match shipped {
            Ok(refused) if refused.is_empty() => {}
            other => {
                self.give_up();
                return other.map(Err).map_err(|error| self.failed(error));
            }
        }
        let committed = self.from.call::<op::Move>(&self.step(MoveStep::Commit));
        let committed = match committed {
            // It may be committed or not: the host knows, or the next one.
            Err(CallError::Broken(_)) => self.committed_after_all()?,
            other => other.map_err(|error| self.failed(error))?,
        };
        Ok(Ok(committed.key.ok_or_else(|| nonsense("a key"))?))
    }

    fn step(&self, step: MoveStep) -> MoveParams {
        MoveParams { session: self.session.id.to_string(), step, proof: None }
    }

    fn committed_after_all(&self) -> Result<MoveAnswer, Failure> {
        let mut link = self.here.link()?;
        let name = self.here.called(self.session.name.as_str());
        match link.call::<op::Move>(&self.step(MoveStep::Offer))?.moved {
            Some(_) => link.call::<op::Move>(&self.step(MoveStep::Commit)),
            None => Err(Failure::new("busy", format!("{} was not moved: its host went away", visible(&name)))
                .hint("it goes on where it is; try again")),
        }
    }

    fn failed(&self, error: CallError) -> Failure {
        let name = self.here.called(self.session.name.as_str());
        Failure::from(error).of_session(&name)
    }

    fn give_up(&mut self) {
        // Whoever cannot be told finds out by itself.
        let _ = self.from.call::<op::Move>(&self.step(MoveStep::GiveUp));
        let drop = ArriveStep::GiveUp { session: self.session.id };
        let _ = self.to.call::<op::Arrive>(&ArriveParams { step: drop });
    }

    /// Sends everything; what the other host lacks.
    fn ship(&mut self, parcel: &MoveParcel, carried: &mut Carried) -> Result<Vec<String>, CallError> {
        let begin = ArriveParams { step: ArriveStep::Begin { parcel: Box::new(parcel.clone()) } };
        let begun = self.to.call::<op::Arrive>(&begin)?;
        if !begun.refused.is_empty() {
            return Ok(begun.refused);
        }
        let total = parcel.files.iter().map(|file| file.bytes).sum();
        let mut progress = Progress::new(self.session.name.as_str(), total, 0, self.here.json);
        let mut pieces = pieces(parcel);
        let (mut reads, mut writes) = (VecDeque::new(), VecDeque::new());
        loop {
            while reads.len() < READS_MAX
                && let Some((file, from)) = pieces.next()
            {
                let read = self.step(MoveStep::Read { file, from });
                reads.push_back((self.from.ask::<op::Move>(&read, &[])?, file, from));
            }
            let Some((id, file, from)) = reads.pop_front() else { break };
            let (_, bytes) = self.from.answer::<op::Move>(id)?;
            // Pieces of one file arrive one after the other.
            while writes.len() >= WRITES_MAX || writes.iter().any(|(_, other)| *other == file) {
                self.written(&mut writes)?;
            }
            let write = ArriveStep::Write { session: self.session.id, file, from };
            writes.push_back((self.to.ask::<op::Arrive>(&ArriveParams { step: write }, &bytes)?, file));
            carried.bytes += bytes.len() as u64;
            progress.at(carried.bytes);
        }
        while !writes.is_empty() {
            self.written(&mut writes)?;
        }
        let whole = ArriveStep::Whole { session: self.session.id };
        let ArriveAnswer { refused, .. } = self.to.call::<op::Arrive>(&ArriveParams { step: whole })?;
        Ok(refused)
    }

    fn written(&mut self, writes: &mut VecDeque<(u64, u32)>) -> Result<(), CallError> {
        match writes.pop_front() {
            Some((id, _)) => self.to.answer::<op::Arrive>(id).map(drop),
            None => Ok(()),
        }
    }
}

/// Where each piece of what is sent begins.
fn pieces(parcel: &MoveParcel) -> impl Iterator<Item = (u32, u64)> {
    parcel.files.iter().enumerate().flat_map(|(file, sent)| {
        let count = sent.bytes.div_ceil(PIECE_BYTES_MAX);
        (0..count).map(move |piece| (file as u32, piece * PIECE_BYTES_MAX))
    })
}
