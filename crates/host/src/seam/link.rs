//! The host's side of a session's warden: what it tells is judged, and answered.
//!
//! Most programs are answered at once, on this thread. What needs a look at files, at the journal or at a human has a task of its own.
//! When the connection goes so do they: the warden tells the next host of all that was not answered.

use super::asked::ExecAct;
use super::doer::{Doer, Doers};
use super::judge::{Ground, Judged};
use super::talk::{Answer, Exec, HELLO_BYTES, HOST, Told, decode, encode};
use crate::notes::About;
use crate::session::Session;
use holdfast_abi::address::Address;
use holdfast_authority::{Ask, Input, Said};
use holdfast_gate::Outcome;
use holdfast_types::{Right, TurnNeed};
use holdfast_wire::gate::{ApprovalId, ApprovalState};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, JoinSet};

/// How soon a warden that is not there is looked for again.
const RETRY: Duration = Duration::from_millis(250);
/// How soon, where it hung up as soon as it was reached.
const RETRY_SOON: Duration = Duration::from_millis(20);
/// So often; then it is taken for dead.
const TRIES_MAX: u32 = 20;
/// Messages that are answered before other sessions get their turn.
const AT_ONCE: usize = 16;
/// Processes of one session that wait for humans. Fewer than a warden takes, so that it goes on asking for others.
const WAITING_MAX: usize = 256;

/// What the host knows of a session's seam.
#[derive(Debug)]
pub(crate) struct Seamed {
    socket: PathBuf,
    /// The life whose warden is listened to.
    followed: RefCell<Option<(u32, AbortHandle)>>,
    pub(super) doers: Doers,
    pub(super) ground: OnceCell<Ground>,
    /// One look at all processes at a time.
    pub(super) looking: tokio::sync::Mutex<()>,
    /// The connection to the warden, to hang up by.
    open: RefCell<Option<std::os::unix::net::UnixStream>>,
    /// Which processes wait for an approval.
    waiting: RefCell<HashMap<ApprovalId, BTreeSet<u64>>>,
    /// What the last one that was denied was told: a shell that looks through PATH tries the same words again, and says it once.
    denied: RefCell<Option<(u32, String)>>,
}

impl Seamed {
    pub fn new(socket: PathBuf) -> Seamed {
        Seamed {
            socket,
            followed: RefCell::default(),
            doers: Doers::default(),
            ground: OnceCell::new(),
            looking: tokio::sync::Mutex::new(()),
            open: RefCell::default(),
            waiting: RefCell::default(),
            denied: RefCell::default(),
        }
    }
}

impl Session {
    /// Judges what the processes of a session with a seam start, from now on.
    pub(crate) fn take_up_seam(&self) {
        let life = self.incarnation();
        let mut followed = self.seam.followed.borrow_mut();
        let is_followed = followed.as_ref().is_some_and(|(of, task)| *of == life && !task.is_finished());
        let Some(this) = self.this.upgrade().filter(|_| !is_followed && self.state.borrow().spec.gate.is_some()) else {
            return;
        };
        // What an earlier life left behind has a warden of its own, which knows another secret.
        if let Some((_, earlier)) = followed.take() {
            earlier.abort();
        }
        self.seam.waiting.borrow_mut().clear();
        let task = tokio::task::spawn_local(async move { follow(&this).await });
        *followed = Some((life, task.abort_handle()));
    }

    /// Somebody else is about to write here: nothing that was allowed the only one counts any more. At once: the warden sees this before
    /// it sees what that writer starts.
    pub(crate) fn seam_shared(&self) {
        if let Some(open) = self.seam.open.borrow_mut().take() {
            let _ = open.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Its life is over. What is left of its processes is judged as long as this host is there, and then starts nothing.
    pub(crate) fn leave_seam(&self) {
        if self.state.borrow().spec.gate.is_some() {
            let _ = std::fs::remove_file(&self.seam.socket);
        }
    }
}

async fn follow(session: &Rc<Session>) {
    let mut missed = 0;
    while session.is_live() {
        match connect(session).await {
            Ok(stream) => {
                missed = 0;
                let begun = tokio::time::Instant::now();
                session.state.borrow_mut().notes.wrote(About::Seam, "", &Ok::<(), String>(()));
                if let Err(error) = serve(session, stream).await {
                    tracing::warn!(session = %session.id, "the session's warden: {error}");
                }
                session.seam.open.borrow_mut().take();
                session.seam.waiting.borrow_mut().clear();
                // After a hang-up at once; one that never was a connection is not tried again and again.
                if begun.elapsed() < RETRY {
                    tokio::time::sleep(RETRY_SOON).await;
                }
                continue;
            }
            Err(_) if missed < TRIES_MAX => missed += 1,
            Err(error) => {
                let note = format!(
                    "its warden is gone ({error}): no program can be started in it; recover it after `holdfast end`"
                );
                tracing::error!(session = %session.id, "{note}");
                session.state.borrow_mut().notes.add(About::Seam, note);
                return;
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn connect(session: &Session) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(Address::of(&session.seam.socket)?.path()).await?;
    let secret = holdfast_types::hex_bytes(&session.state.borrow().spec.secret).unwrap_or_default();
    let mut hello = [0; HELLO_BYTES];
    hello[0] = HOST;
    let room = hello.len() - 1;
    hello[1..].iter_mut().zip(secret.iter().take(room)).for_each(|(to, from)| *to = *from);
    stream.write_all(&hello).await?;
    Ok(stream)
}

async fn serve(session: &Rc<Session>, stream: UnixStream) -> io::Result<()> {
    let own = rustix::io::fcntl_dupfd_cloexec(&stream, 3)?;
    *session.seam.open.borrow_mut() = Some(own.into());
    let (mut read, mut write) = stream.into_split();
    let (answers, mut answered) = unbounded_channel();
    let (mut tasks, mut by_id) = (JoinSet::new(), HashMap::<u64, AbortHandle>::new());
    let mut bytes = Vec::new();
    loop {
        tokio::select! {
            count = read.read_buf(&mut bytes) => {
                if count? == 0 {
                    return Ok(());
                }
            }
            Some(answer) = answered.recv() => {
                let mut out = encode(&answer);
                while let Ok(more) = answered.try_recv() {
                    out.extend(encode(&more));
                }
                write.write_all(&out).await?;
                continue;
            }
            Some(_) = tasks.join_next() => continue,
        }
        let mut taken = 0;
        let mut out = Vec::new();
        while let Some(told) = decode::<Told>(&mut bytes)? {
            match told {
                Told::Exec(exec) => match session.at_once(&exec) {
                    Some(answer) => out.extend(encode(&answer)),
                    None => {
                        let (session, answers, id) = (Rc::clone(session), answers.clone(), exec.id);
                        by_id.retain(|_, task| !task.is_finished());
                        by_id.insert(id, tasks.spawn_local(async move { session.settle(*exec, &answers).await }));
                    }
                },
                Told::Gone(id) => {
                    if let Some(task) = by_id.remove(&id) {
                        task.abort();
                    }
                    session.exec_gone(id);
                }
            }
            taken += 1;
            if taken % AT_ONCE == 0 {
                write.write_all(&std::mem::take(&mut out)).await?;
                tokio::task::yield_now().await;
            }
        }
        write.write_all(&out).await?;
    }
}

impl Session {
    /// What is allowed without a look at anything.
    fn at_once(&self, exec: &Exec) -> Option<Answer> {
        let allowed = Answer { id: exec.id, allow: true, again: false, line: None };
        if self.gate.is_off() {
            return Some(allowed);
        }
        let doer = self.doer_at_hand(exec.pid)?;
        let judged = self.judge_at_once(exec, &doer)?;
        // The rules know no more of it, and every process here is one actor's.
        let again = self.gate.judges_plainly() && self.state.borrow().place.alone().is_some();
        (judged.verdict.outcome == Outcome::Allow).then_some(Answer { again, ..allowed })
    }

    /// Decides about a program, and waits for a human where a rule asks.
    async fn settle(&self, exec: Exec, answers: &UnboundedSender<Answer>) {
        let answer = self.decided(&exec).await;
        holdfast_pause::task_point("exec.decided").await;
        let _ = answers.send(answer);
    }

    async fn decided(&self, exec: &Exec) -> Answer {
        let allowed = Answer { id: exec.id, allow: true, again: false, line: None };
        let doer = match self.doer_at_hand(exec.pid) {
            Some(doer) => doer,
            None => self.doer(exec.pid).await,
        };
        let judged = self.judge_there(exec, &doer).await;
        if judged.verdict.outcome == Outcome::Allow {
            return allowed;
        }
        let said = match self.asked(exec, doer.clone(), judged).await {
            Ok(said) => said,
            Err(why) => Said::Deny { rule: "gate.full".into(), why },
        };
        match said {
            Said::Allow(_) => allowed,
            Said::Deny { rule, why } => {
                self.note_exec(exec, &doer, Said::Deny { rule: rule.clone(), why: why.clone() });
                let line = plain(&format!("holdfast: denied: {} ({rule}: {why})", exec.shown()));
                let told = (exec.pid, line);
                let is_new = self.seam.denied.borrow().as_ref() != Some(&told);
                let line = is_new.then(|| told.1.clone());
                self.seam.denied.replace(Some(told));
                Answer { id: exec.id, allow: false, again: false, line }
            }
            Said::Hold { .. } => Answer { id: exec.id, allow: false, again: false, line: None },
        }
    }

    /// What a rule asks about is held until a human has answered, or nobody has in time.
    async fn asked(&self, exec: &Exec, doer: Doer, judged: Judged) -> Result<Said, String> {
        // By which act, too: one answer counts for all of a run.
        let doer = match doer.act {
            Some(_) => doer,
            None => Doer { act: self.doer(exec.pid).await.act, ..doer },
        };
        let of =
            self.state.borrow().core.runs.runs().find(|run| run.act.is_some() && run.act == doer.act).map(|run| run.id);
        let considered = self.considered(exec, &doer, judged).await;
        let act = ExecAct { exec: exec.id, incarnation: self.incarnation(), act: doer.act, of };
        let (said, held) = self.gate.settle_exec(considered, act).map_err(|fault| fault.message)?;
        self.gate.count(&said);
        let Said::Hold { rule, why, approval } = said else { return Ok(said) };
        let id: ApprovalId = approval.parse().map_err(|_| "an approval without an id".to_owned())?;
        if let Some(holding) = held {
            let said = Said::Hold { rule: rule.clone(), why: why.clone(), approval: approval.clone() };
            self.note_exec(exec, &doer, said);
            self.used();
            self.tell_held(&holding);
        }
        holdfast_pause::task_point("exec.asked").await;
        let full = self.seam.waiting.borrow().values().map(BTreeSet::len).sum::<usize>() >= WAITING_MAX;
        if full {
            return Err(format!("too many processes wait for approval, at most {WAITING_MAX}"));
        }
        self.seam.waiting.borrow_mut().entry(id).or_default().insert(exec.id);
        let state = self.gate.until_over(id).await;
        self.seam.waiting.borrow_mut().remove(&id);
        Ok(match state {
            // What was approved is what was read: its file may be another by now.
            Some(known) if known.is_of(exec.id) && known.hash != self.hash_of(exec, &doer).await => {
                Said::Deny { rule, why: "what it is about has changed since it was asked about".into() }
            }
            Some(known) if matches!(known.state, ApprovalState::Approved | ApprovalState::Done) => {
                Said::Allow(holdfast_authority::Gate { rule, approval: Some(approval), shaped: Vec::new() })
            }
            Some(known) => Said::Deny { rule, why: known.denial() },
            None => Said::Deny { rule, why: "its approval is forgotten".into() },
        })
    }

    /// On record, with who and by which rule: what did not start at once.
    fn note_exec(&self, exec: &Exec, doer: &Doer, said: Said) {
        let detail = format!("{} in {}", crate::session::beginning(&exec.shown()), exec.cwd);
        let ask =
            Ask::Operation { name: "session.exec".into(), right: Right::Observe, turn: TurnNeed::Ignores, detail };
        let _ = self.decide(Input::Judged { by: self.caller(&doer.actor, None), ask, proof: None, said });
    }

    /// A process that waited is gone: where nobody else waits for the same answer, nobody needs to give it.
    fn exec_gone(&self, exec: u64) {
        let mut waiting = self.seam.waiting.borrow_mut();
        for those in waiting.values_mut() {
            those.remove(&exec);
        }
        waiting.retain(|_, those| !those.is_empty());
        let asked = self.gate.asked_by(self.id, exec, self.incarnation());
        let Some(holding) = asked.filter(|holding| !waiting.contains_key(&holding.id)) else { return };
        drop(waiting);
        let error = Some("the process that waited is gone".to_owned());
        let over = crate::gate::Holding { state: ApprovalState::Expired, error, ..holding };
        if let Err(fault) = self.gate.keep(over.clone()) {
            tracing::error!("{}", fault.message);
        }
        self.tell_held(&over);
    }
}

/// One line that changes nothing on a terminal but what it says.
fn plain(text: &str) -> String {
    const CHARS_MAX: usize = 500;
    text.chars().take(CHARS_MAX).map(|c| if c.is_control() || is_invisible(c) { '�' } else { c }).collect()
}

/// Marks that turn the direction of what follows.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}
