//! A record as people read it: who, and what in a few words.
//!
//! Some of it is not in the record but in what came before (from whom a turn was seized, whose grant fell), so a teller
//! follows the records in order. Nothing that an actor wrote reaches the terminal as a control character.

use crate::show::{cut, span, visible};
use crate::signals::SignalNumber;
use holdfast_authority::{
    Act, Ask, Burst, By, Change, DeedId, Ending, GrantId, Lapse, Leased, OperatorId, Outcome, Record, Revoke, State,
    Turn,
};
use holdfast_types::{Actor, ActorId, Handle, Hash, TimeMs, shapers_text};
use holdfast_wire::files::{HashKind, Written};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use std::collections::BTreeMap;

/// Columns of what was typed: a command and some of its arguments, and the line still fits a terminal.
const KEYS_COLUMNS_MAX: usize = 60;
/// Columns of any other text of an actor.
const TEXT_COLUMNS_MAX: usize = 200;

/// Tells records, one behind the other.
#[derive(Debug)]
pub struct Teller {
    state: State,
    /// Everybody met so far.
    handles: BTreeMap<ActorId, Handle>,
    zone: TimeZone,
}

/// Who did it, as the first word of a line.
pub fn who(by: &By) -> String {
    match by {
        By::Host => "host".to_owned(),
        By::Unknown => "UNKNOWN".to_owned(),
        By::Actor(actor) => actor.handle.to_string(),
    }
}

impl Teller {
    /// Before the first record.
    pub fn new(zone: TimeZone) -> Teller {
        Teller { state: State::default(), handles: BTreeMap::new(), zone }
    }

    /// A moment by the clock on the wall.
    pub fn local(&self, at: TimeMs) -> Zoned {
        let at = i64::try_from(at).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        at.unwrap_or(Timestamp::MAX).to_zoned(self.zone.clone())
    }

    /// The next record: what was done.
    pub fn tell(&mut self, record: &Record) -> String {
        if let Act::Header { state: Some(state), .. } = &record.act {
            state.operators().for_each(|(_, operator)| self.meet(&operator.actor));
            state.grants().for_each(|grant| self.meet(&grant.to));
            state.turn().hold().iter().for_each(|hold| self.meet(&hold.by));
        }
        record.by.actor().iter().for_each(|actor| self.meet(actor));
        let text = match (&record.outcome, &record.act) {
            (Outcome::Refused(refusal), Act::Asked(ask)) => {
                format!("was refused: {} ({})", self.wish(ask), text(&refusal.to_string()))
            }
            (Outcome::Refused(refusal), _) => format!("was refused ({})", text(&refusal.to_string())),
            (Outcome::Done, act) => self.done(record, act),
        };
        let text = match record.gate.as_ref().map(|gate| gate.shaped.as_slice()) {
            None | Some([]) => text,
            Some(shaped) => format!("{text} · shaped by {}", visible(&shapers_text(shaped))),
        };
        for change in &record.changes {
            match change {
                Change::Granted(grant) => self.meet(&grant.to),
                Change::Here(_, actor) => self.meet(actor),
                Change::Waits(waiting) => self.meet(&waiting.by),
                Change::Turn(Turn::Held(hold)) => self.meet(&hold.by),
                Change::Turn(Turn::Free) | Change::WaitsNoMore(_) | Change::Freeze(_) | Change::Away(_) => {}
                Change::Gone(_) | Change::Dropped(_) | Change::Barred(_) | Change::HumansOnly => {}
                Change::Incarnation(_) => {}
                Change::Link(_) | Change::Joined(..) | Change::Logged(_) | Change::Forwarded(_) => {}
                Change::Opened(_) | Change::Closed(_) => {}
            }
        }
        self.state.apply(record);
        text
    }

    /// Who had the turn when the last record that was read was made.
    pub fn holder(&self, record: &Record) -> Option<&Actor> {
        self.state.holder_of(record.fence)
    }

    fn meet(&mut self, actor: &Actor) {
        self.handles.insert(actor.id, actor.handle.clone());
    }

    fn done(&self, record: &Record, act: &Act) -> String {
        match act {
            Act::Header { previous: None, .. } => "the journal begins".into(),
            Act::Header { previous: Some(_), .. } => "the journal continues in a new segment".into(),
            Act::Started => "started the session".into(),
            Act::Began => format!("the session started again{}", life(record)),
            Act::Forked(of) => {
                let record = format!("record {} ({})", of.record.seq, &of.record.hash.to_string()[..12]);
                format!("forked it from {} ({}, {record}){}", text(of.name.as_str()), of.parent, and_cut(&of.cut))
            }
            Act::Restored(from) => {
                let hook = from.hook.as_ref().map_or_else(String::new, |hook| format!("; runs {}", text(hook)));
                let moved =
                    from.came_from.as_ref().map_or_else(String::new, |machine| format!(" of {}", text(machine)));
                format!("the processes came from {}{moved}{}{hook}", text(&from.checkpoint), and_cut(&from.cut))
            }
            Act::Leased(leased) => of_lease(leased),
            Act::Restarted => "a host took over".into(),
            Act::Damaged { what } => {
                format!("found the journal damaged: {}; only humans act until one grants anew", text(what))
            }
            Act::Linked => "the host has a new connection to the keeper".into(),
            Act::Ended(exit) => format!("the session ended ({exit})"),
            Act::Forgotten(actor) => format!("forgot {}", self.name(*actor)),
            Act::Attached(operator) => format!("attached as client {}", operator.0),
            Act::Joined(operator) => format!("types directly as client {}", operator.0),
            Act::Resumed(operator) => format!("reconnected as client {}", operator.0),
            Act::Left(operator) => format!("left (client {})", operator.0),
            Act::CutOff(operator) => format!("lost its connection (client {})", operator.0),
            Act::Took => self.took().into(),
            Act::Typed(burst) if record.by == By::Unknown => {
                format!("reached the keeper past the host, and {}", typed(burst))
            }
            Act::Typed(burst) => typed(burst),
            Act::Asked(ask) => self.asked(record, ask),
            Act::Did { deed, what, ending } => self.did(*deed, what, ending),
            Act::Lapsed(lapse) => self.lapsed(record, *lapse),
            Act::RefusedMore { count: 1 } => "was refused once more".into(),
            Act::RefusedMore { count } => format!("was refused {count} times more"),
        }
    }

    fn did(&self, deed: DeedId, what: &str, ending: &Ending) -> String {
        let open = self.state.open().find(|(id, _)| *id == deed).map(|(_, open)| &open.by);
        let whose = open.map_or(String::new(), |by| format!(" of {by}"));
        let what = text(what);
        match ending {
            Ending::Done => format!("did {what}{whose}"),
            Ending::Failed { why } => format!("could not do {what}{whose}: {}", text(why)),
            Ending::Lost => format!("lost {what}{whose}: the host was killed in between; look whether it was done"),
        }
    }

    fn asked(&self, record: &Record, ask: &Ask) -> String {
        match ask {
            Ask::Take => "took the turn".into(),
            Ask::Request if new_holder(record).is_some() => "requested the turn and got it".into(),
            Ask::Request => "requested the turn".into(),
            Ask::Withdraw => "withdrew its request for the turn".into(),
            Ask::Give { to } => format!("gave the turn to {to}"),
            Ask::Release => "released the turn".into(),
            Ask::Seize { freeze, reason } => {
                let is_other = |actor: &&Actor| record.by.actor().is_none_or(|by| by.id != actor.id);
                let from = self.state.turn().hold().map(|hold| &hold.by).filter(is_other);
                let from = from.map_or(String::new(), |from| format!(" from {from}"));
                let freeze = if *freeze { " and froze the session" } else { "" };
                let reason = if reason.is_empty() { String::new() } else { format!(": {}", text(reason)) };
                format!("seized the turn{from}{freeze}{reason}")
            }
            Ask::Thaw => "thawed the session".into(),
            Ask::Grant { to, rights, until } => {
                let until = until.map_or(String::new(), |until| format!(" until {}", self.clock(until, record)));
                format!("granted {rights} to {to}{until}")
            }
            Ask::Revoke(what) => self.revoked(record, *what),
            Ask::Run { command, .. } => format!("ran {}{}", quoted(command.as_bytes()), self.took_by_writing(record)),
            Ask::Resize { size } => format!("resized the terminal to {size}"),
            Ask::Signal { number, target } => format!("sent {} to {}", SignalNumber(*number), target_text(*target)),
            Ask::Rename { name } => format!("renamed the session to {name}"),
            Ask::Detach { operators } => format!("detached {}", self.clients(operators)),
            Ask::End { grace_ms } => {
                format!("ended the session (SIGHUP, SIGKILL after {})", span(u64::from(*grace_ms)))
            }
            Ask::Recover { run: true } => "recovered the session and ran its command again".into(),
            Ask::Recover { run: false } => "recovered the session".into(),
            Ask::Operation { name, detail, .. } if name == "question.answer" => format!("answered {}", text(detail)),
            Ask::Operation { name, detail, .. } if name == "session.line" => format!("entered {}", text(detail)),
            Ask::Operation { name, detail, .. } if name == "session.keep" => kept(detail),
            Ask::Operation { name, detail, .. } if name == "checkpoint.make" => match detail.as_str() {
                "keep running" => "made a checkpoint".into(),
                _ => "made a checkpoint and stopped the session".into(),
            },
            Ask::Operation { name, detail, .. } if name == "checkpoint.remove" => {
                format!("removed checkpoint {}", text(detail))
            }
            Ask::Operation { name, detail, .. } if name == "session.restore" => match detail.as_str() {
                "newest" => "restored the session from its newest checkpoint".into(),
                id => format!("restored the session from checkpoint {}", text(id)),
            },
            Ask::Operation { name, detail, .. } if name.starts_with("files.") => wrote(name, detail),
            Ask::Operation { name, detail, .. } if name == "session.move" => {
                format!("moved the session {}", text(detail))
            }
            Ask::Operation { name, detail, .. } if name == "session.fork" => {
                format!("forked the session: {}", text(detail))
            }
            Ask::Operation { name, detail, .. } if name == "fork.keep" => {
                format!("applied this branch's files: {}", text(detail))
            }
            Ask::Operation { name, .. } if name == "fork.discard" => "discarded this branch and its files".into(),
            Ask::Operation { name, detail, .. } if name == "approval.answer" => format!("answered {}", text(detail)),
            Ask::Operation { name, detail, .. } if detail.is_empty() => format!("did {}", text(name)),
            Ask::Operation { name, detail, .. } => format!("did {}: {}", text(name), text(detail)),
        }
    }

    /// What was asked for in vain.
    fn wish(&self, ask: &Ask) -> String {
        match ask {
            Ask::Give { to } => format!("give to {to}"),
            Ask::Grant { to, rights, .. } => format!("grant {rights} to {to}"),
            Ask::Revoke(Revoke::Grant(id)) => format!("revoke grant {id}"),
            Ask::Revoke(Revoke::Actor(id)) => format!("revoke all of {}", self.name(*id)),
            Ask::Run { command, .. } => format!("run {}", quoted(command.as_bytes())),
            Ask::Resize { size } => format!("resize to {size}"),
            Ask::Signal { number, target } => format!("{} to {}", SignalNumber(*number), target_text(*target)),
            Ask::Rename { name } => format!("rename to {name}"),
            Ask::Detach { operators } => format!("detach {}", self.clients(operators)),
            Ask::Seize { reason, .. } if !reason.is_empty() => format!("seize: {}", text(reason)),
            Ask::Take | Ask::Request | Ask::Withdraw | Ask::Release | Ask::Seize { .. } | Ask::Thaw => {
                ask.word().into()
            }
            Ask::End { .. } | Ask::Recover { .. } => ask.word().into(),
            Ask::Operation { name, detail, .. } if name == "session.exec" => {
                format!("start {}", quoted(detail.as_bytes()))
            }
            Ask::Operation { name, .. } => text(name),
        }
    }

    fn revoked(&self, record: &Record, what: Revoke) -> String {
        let named = match what {
            Revoke::Grant(id) => format!("revoked {}", self.grant(id)),
            Revoke::Actor(id) => format!("revoked everything {} held", self.name(id)),
        };
        let is_meant = |id: &GrantId| match what {
            Revoke::Grant(named) => *id == named,
            Revoke::Actor(actor) => self.state.grants().any(|grant| grant.id == *id && grant.to.id == actor),
        };
        let fallen: Vec<String> = dropped(record).filter(|id| !is_meant(id)).map(|id| self.grant(id)).collect();
        if fallen.is_empty() { named } else { format!("{named}, and with it {}", fallen.join(", ")) }
    }

    fn lapsed(&self, record: &Record, lapse: Lapse) -> String {
        let before = self.state.turn().hold().map_or_else(|| "nobody".to_owned(), |hold| hold.by.to_string());
        let gone = || {
            let ids = record.changes.iter().filter_map(|c| if let Change::Gone(id) = c { Some(*id) } else { None });
            self.clients(&ids.collect::<Vec<_>>())
        };
        let is_turn = record.changes.iter().any(|change| matches!(change, Change::Turn(_)));
        let next = new_holder(record).map_or_else(|| "nobody".to_owned(), |actor| actor.to_string());
        match lapse {
            Lapse::Grace if is_turn => format!("the turn is free again ({before} was idle)"),
            Lapse::Grace => format!("dropped {} (disconnected for too long)", gone()),
            Lapse::Idle => format!("the turn went to {next} (idle holder {before})"),
            Lapse::Next => format!("the turn went to {next} (next in the queue)"),
            Lapse::Lent => format!("the turn of {before} was lent to {next} (the session waits for a person)"),
            Lapse::Grants => {
                let over: Vec<String> = dropped(record).map(|id| self.grant(id)).collect();
                format!("{} expired", over.join(", "))
            }
            Lapse::Tokens => {
                let over: Vec<String> = dropped(record).map(|id| self.grant(id)).collect();
                format!("{} ended with the token", over.join(", "))
            }
            Lapse::Rights => format!("the turn is free again ({before} may no longer type)"),
            Lapse::Observers => format!("dropped {} (may no longer observe)", gone()),
            Lapse::Requests => {
                let waits = |c: &Change| if let Change::WaitsNoMore(id) = c { Some(self.name(*id)) } else { None };
                let who: Vec<String> = record.changes.iter().filter_map(waits).collect();
                format!("no longer waiting for the turn: {}", who.join(", "))
            }
        }
    }

    /// Typing while the turn is free takes it.
    fn took(&self) -> &'static str {
        match self.state.turn() {
            Turn::Free => "took the turn by typing",
            Turn::Held(_) => "typed at another terminal and took the turn there",
        }
    }

    fn took_by_writing(&self, record: &Record) -> &'static str {
        match (self.state.turn(), new_holder(record)) {
            (Turn::Free, Some(_)) => ", which took the turn",
            (Turn::Free | Turn::Held(_), _) => "",
        }
    }

    fn name(&self, id: ActorId) -> String {
        self.handles.get(&id).map_or_else(|| format!("key {:.8}…", id), Handle::to_string)
    }

    fn grant(&self, id: GrantId) -> String {
        match self.state.grants().find(|grant| grant.id == id) {
            Some(grant) => format!("grant {id} ({} to {})", grant.rights, grant.to),
            None => format!("grant {id}"),
        }
    }

    fn clients(&self, ids: &[OperatorId]) -> String {
        let one = |id: &OperatorId| match self.state.operators().find(|(other, _)| other == id) {
            Some((_, operator)) => format!("client {} ({})", id.0, operator.actor),
            None => format!("client {}", id.0),
        };
        ids.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn clock(&self, at: TimeMs, record: &Record) -> String {
        let (at, now) = (self.local(at), self.local(record.time_ms));
        let form = if at.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
        at.strftime(form).to_string()
    }
}

/// Who has the turn by this record, where it changes that.
fn new_holder(record: &Record) -> Option<&Actor> {
    record.changes.iter().find_map(|change| match change {
        Change::Turn(turn) => turn.hold().map(|hold| &hold.by),
        _ => None,
    })
}

/// Which life begins: the record itself still belongs to the one before.
fn life(record: &Record) -> String {
    let number =
        record.changes.iter().find_map(|c| if let Change::Incarnation(number) = c { Some(number) } else { None });
    number.map_or(String::new(), |number| format!(" (life {number})"))
}

/// Connections that were cut, at the end of a line.
fn of_lease(leased: &Leased) -> String {
    match leased {
        Leased::Stopped { late_ms, left, renewed_at } => {
            let left = if *left == 0 { String::new() } else { format!("; {left} processes could not be stopped") };
            format!("its lease was over: stopped {late_ms} ms later{left}; last renewed at offset {renewed_at}")
        }
        Leased::WentOn { fence } => format!("its lease was renewed (fence {fence}): it goes on"),
        Leased::Claimed { by, fence, ours, renewed_at, at } => format!(
            "{} claimed it (fence {fence}, ours was {ours}): this life ended; output since the last renewal: {renewed_at} to {at}",
            if by.is_empty() { "another host".into() } else { text(by) }
        ),
    }
}

fn and_cut(list: &[String]) -> String {
    match list {
        [] => String::new(),
        [one] => format!("; connection cut: {}", text(one)),
        [one, rest @ ..] => format!("; connections cut: {} and {} more", text(one), rest.len()),
    }
}

fn dropped(record: &Record) -> impl Iterator<Item = GrantId> {
    record.changes.iter().filter_map(|change| if let Change::Dropped(id) = change { Some(*id) } else { None })
}

fn typed(burst: &Burst) -> String {
    match &burst.keys {
        None if burst.len == 1 => "typed 1 byte that the screen did not show".into(),
        None => format!("typed {} bytes that the screen did not show", burst.len),
        Some(keys) => format!("typed {}", quoted(&keys.0)),
    }
}

/// Typed bytes in quotes; where they are cut, with how many they were.
fn quoted(bytes: &[u8]) -> String {
    let keys = keys(bytes);
    let short = cut(&keys, KEYS_COLUMNS_MAX);
    if short == keys { format!("\"{keys}\"") } else { format!("\"{short}\" ({} bytes)", bytes.len()) }
}

/// Typed bytes with every key visible.
fn keys(bytes: &[u8]) -> String {
    let mut out = String::new();
    for part in bytes.utf8_chunks() {
        for c in part.valid().chars() {
            match c {
                '\r' => out.push('⏎'),
                '\t' => out.push('⇥'),
                '\x1b' => out.push('␛'),
                '\x7f' => out.push('⌫'),
                '"' => out.push_str("\\\""),
                '\0'..='\x1f' => out.extend(['^', char::from(c as u8 ^ 0x40)]),
                c => out.push_str(&visible(c.encode_utf8(&mut [0; 4]))),
            }
        }
        part.invalid().iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    }
    out
}

/// An actor's own words.
fn text(words: &str) -> String {
    cut(&visible(words), TEXT_COLUMNS_MAX)
}

fn target_text(target: u8) -> &'static str {
    match target {
        0 => "the foreground",
        1 => "the command",
        _ => "the whole tree",
    }
}

#[cfg(test)]
#[path = "tell_tests.rs"]
mod tests;

/// A write to a file: what it was, what it is.
fn wrote(name: &str, detail: &str) -> String {
    let Some(written) = Written::read(detail) else { return format!("did {}: {}", text(name), text(detail)) };
    let hash = |hash: Option<Hash>, kind: HashKind| match hash {
        None => "nothing".to_owned(),
        Some(hash) => format!("{} {}", kind.name(), &hash.to_string()[..12]),
    };
    let word = match (name, written.after) {
        ("files.undo", _) => "undid a write to",
        (_, None) => "removed",
        (_, Some(_)) => "wrote",
    };
    let before = hash(written.before, written.before_kind);
    // Of the same kind, where it is not said again.
    let after_kind = written.after_kind;
    let after = match written.after {
        Some(after) if written.before.is_some() && written.before_kind == after_kind => {
            after.to_string()[..12].to_owned()
        }
        after => hash(after, after_kind),
    };
    format!("{word} {} ({} bytes, {before} to {after})", text(&written.path), written.size)
}

/// Who keeps a session, as the record has it.
fn kept(detail: &str) -> String {
    let for_ms = detail.strip_prefix("for ").and_then(|rest| rest.strip_suffix(" ms")?.parse().ok());
    match (detail, for_ms) {
        ("off", _) => "keeps the session no longer".into(),
        (_, Some(ms)) => format!("keeps the session for {}", span(ms)),
        (other, None) => format!("keeps the session {}", text(other)),
    }
}
