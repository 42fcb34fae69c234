//! The bot's one thread of decisions: updates in, acts at the host, replies out. Nothing here waits for a chat service.
//!
//! The order for each update is: act, note it together with its reply, and only then take the next. The service is told that an update was taken
//! after it was noted.

use crate::chat::{Body, Inbound, Post, Said, Service, Trouble};
use crate::code::Guesses;
use crate::config::Config;
use crate::desk::{Desk, Refused, now_ms};
use crate::serve::{Condition, Reporter};
use crate::state::{Card, Cursor, Live, Queued, Reply, State, User};
use crate::watch::Watcher;
use holdfast_types::{Home, TimeMs};
use holdfast_wire::attention::Event;
use holdfast_wire::runs::RunId;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Between two changes of a run's message: services take about one a second in a chat.
const BEAT: Duration = Duration::from_millis(1_500);
/// And of one that has gone on for a minute.
const BEAT_SLOW: Duration = Duration::from_secs(5);
/// After a failure of the service.
const AWAY_MIN: Duration = Duration::from_millis(500);
const AWAY_MAX: Duration = Duration::from_secs(60);
/// How exactly it is known when the service was last heard of.
const HEARD_MS: u64 = 5 * 60 * 1000;
/// With nothing to do, expired users are looked for.
const IDLE: Duration = Duration::from_secs(60);

/// What happens to a bot.
pub enum Input {
    /// Updates came.
    Batch(Batch),
    /// The way in works, or does not.
    Receiving(Result<(), Trouble>),
    /// Something was said, or not.
    Sent(Result<String, Trouble>),
    /// A user's connection to the host is up: what is open now was not heard of.
    Connected(String),
    /// Something happened in a session that the user's actor may observe.
    Event(String, Box<Event>),
    /// The user's actor was removed.
    Removed(String),
}

/// Updates, where to go on behind them, and who waits until they are noted.
pub struct Batch {
    /// In order.
    pub all: Vec<Inbound>,
    /// Where to go on.
    pub cursor: Cursor,
    /// Told when they are noted.
    pub done: Sender<()>,
}

/// What the posting thread does.
pub enum Job {
    /// Post or change a message.
    Post(Post),
    /// Acknowledge a press.
    Acknowledge(String),
    /// Remove a message.
    Remove(String, String),
}

/// What the posting thread is doing.
enum Doing {
    Queued { n: u64, run: Option<(RunId, bool)> },
    Changing { run: RunId, over: bool, seen: u64 },
    Passing,
}

/// When a run's message is looked at again.
struct Beat {
    at: Instant,
    since: Instant,
    seen: u64,
}

/// The bot.
pub struct Engine {
    pub home: Home,
    pub config: Config,
    pub state: State,
    pub desk: Desk,
    pub guesses: Guesses,
    /// Strangers that were told what to do, and when.
    pub hinted: HashMap<String, TimeMs>,
    /// What is not worth remembering.
    pub passing: VecDeque<Job>,
    jobs: Sender<Job>,
    tell: Sender<Input>,
    doing: Option<(Doing, String)>,
    held: HashMap<String, Instant>,
    held_all: Option<Instant>,
    away: Duration,
    beats: HashMap<RunId, Beat>,
    watchers: HashMap<String, Watcher>,
    reporter: Reporter,
    /// The service was away so long that presses are old.
    pub stale: bool,
}

impl Engine {
    /// From what was remembered.
    pub fn new(
        home: Home,
        program: PathBuf,
        config: Config,
        state: State,
        jobs: Sender<Job>,
        tell: Sender<Input>,
        reporter: Reporter,
    ) -> Engine {
        let desk = Desk::new(home.clone(), program, config.clone());
        Engine {
            home,
            config,
            state,
            desk,
            guesses: Guesses::default(),
            hinted: HashMap::new(),
            passing: VecDeque::new(),
            jobs,
            tell,
            doing: None,
            held: HashMap::new(),
            held_all: None,
            away: AWAY_MIN,
            beats: HashMap::new(),
            watchers: HashMap::new(),
            reporter,
            stale: false,
        }
    }

    /// Serves until there is nobody left to hear it.
    pub fn run(mut self, inputs: &Receiver<Input>) {
        self.watch_users();
        loop {
            self.pump();
            match inputs.recv_timeout(self.pause()) {
                Ok(input) => self.take(input),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Batch(batch) => self.batch(batch),
            Input::Receiving(Ok(())) => self.reporter.report(Condition::Running),
            Input::Receiving(Err(trouble)) => self.reporter.report(Condition::of(&trouble)),
            Input::Sent(result) => self.sent(result),
            Input::Connected(user) => self.catch_up(&user),
            Input::Event(user, event) => self.happened(&user, &event),
            Input::Removed(user) => self.forget(&user),
        }
    }

    fn batch(&mut self, batch: Batch) {
        self.reporter.report(Condition::Running);
        let now = now_ms();
        self.stale =
            self.state.heard_ms > 0 && now.saturating_sub(self.state.heard_ms) > HEARD_MS + crate::act::STALE_MS;
        for inbound in &batch.all {
            if self.state.seen.contains(&inbound.id) {
                continue;
            }
            holdfast_pause::point("bot.taken");
            self.obey(inbound);
            self.state.note(&inbound.id);
            if let (Service::Discord, Said::Text { message, .. }) = (self.config.service, &inbound.said)
                && self.state.users.get(&inbound.user).is_some_and(|user| user.chat == inbound.chat)
            {
                self.state.channels.insert(inbound.chat.clone(), message.clone());
            }
            holdfast_pause::point("bot.acted");
            self.save();
            holdfast_pause::point("bot.noted");
        }
        let old = now.saturating_sub(self.state.heard_ms) > HEARD_MS;
        if !batch.all.is_empty() || old || self.state.cursor.as_ref().is_none_or(|cursor| *cursor != batch.cursor) {
            self.state.cursor = Some(batch.cursor);
            self.state.heard_ms = now;
            self.save();
        }
        let _ = batch.done.send(());
    }

    /// Writes what is to be remembered. Without that nothing is safe to go on with: the next bot tries again.
    pub fn save(&mut self) {
        if let Err(error) = self.state.save(&self.home, self.config.service) {
            self.reporter.report(Condition::Failing(format!("cannot write the bot's state: {error}")));
            eprintln!("cannot write the bot's state: {error}");
            std::process::exit(1);
        }
    }

    /// Forgets a user whose actor is gone.
    pub fn forget(&mut self, user: &str) {
        if let Some(gone) = self.state.users.get(user) {
            eprintln!("{} was removed", gone.handle);
        }
        self.state.forget(user);
        self.watchers.remove(user);
        self.save();
    }

    /// A watcher for each user.
    pub fn watch_users(&mut self) {
        let gone: Vec<String> =
            self.watchers.keys().filter(|user| !self.state.users.contains_key(*user)).cloned().collect();
        for user in gone {
            self.watchers.remove(&user);
        }
        for (id, user) in &self.state.users {
            if !self.watchers.contains_key(id)
                && let Ok(watcher) =
                    Watcher::start(self.home.clone(), user.handle.clone(), id.clone(), self.tell.clone())
            {
                self.watchers.insert(id.clone(), watcher);
            }
        }
    }

    /// How long nothing has to be done.
    fn pause(&self) -> Duration {
        if self.doing.is_some() {
            return IDLE;
        }
        let due = |live: &Live| {
            let beat = self.beats.get(&live.run).map(|beat| beat.at);
            beat.max(self.held.get(&live.chat).copied())
        };
        let next = match self.held_all {
            Some(until) => Some(until),
            None => self.held.values().copied().chain(self.state.live.iter().filter_map(due)).min(),
        };
        next.map_or(IDLE, |at| at.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)))
    }

    /// Gives the posting thread its next thing to do.
    fn pump(&mut self) {
        let now = Instant::now();
        self.held.retain(|_, until| *until > now);
        self.held_all = self.held_all.filter(|until| *until > now);
        for live in &self.state.live {
            self.beats.entry(live.run).or_insert(Beat { at: now, since: now, seen: 0 });
        }
        while self.doing.is_none() && self.held_all.is_none() {
            if let Some(job) = self.passing.pop_front() {
                self.hand(Doing::Passing, String::new(), job);
            } else if let Some(item) = self.state.outbox.iter().find(|one| !self.held.contains_key(&one.chat)).cloned()
            {
                self.post(&item);
            } else if let Some(at) = self.due(now) {
                self.show(&self.state.live[at].clone());
            } else {
                return;
            }
        }
    }

    fn hand(&mut self, doing: Doing, chat: String, job: Job) {
        self.doing = Some((doing, chat));
        // Without a posting thread the process ends anyway.
        let _ = self.jobs.send(job);
    }

    fn post(&mut self, item: &Queued) {
        let (body, buttons, run) = match self.rendered(item) {
            Ok(made) => made,
            Err(Refused::Removed) => {
                self.state.outbox.retain(|one| one.n != item.n);
                if let Some(user) = &item.user {
                    self.forget(user);
                }
                return;
            }
            Err(refused) => (Body::Text { head: refused.to_string(), block: None }, Vec::new(), None),
        };
        let post = Post { chat: item.chat.clone(), body, buttons, edit: item.edit.clone(), nonce: item.n };
        self.hand(Doing::Queued { n: item.n, run }, item.chat.clone(), Job::Post(post));
    }

    /// The run whose message is to be looked at.
    fn due(&self, now: Instant) -> Option<usize> {
        self.state.live.iter().position(|live| {
            !self.held.contains_key(&live.chat) && self.beats.get(&live.run).is_some_and(|beat| beat.at <= now)
        })
    }

    /// Changes a run's message where there is something new.
    fn show(&mut self, live: &Live) {
        let Some(user) = self.state.users.get(&live.user).cloned() else { return self.no_longer(live.run) };
        let card = match self.run_card(&user, live.run, live.session, 0) {
            Ok(card) => card,
            Err(Refused::Away(_)) => {
                // The host comes back, or somebody starts it.
                self.beat(live.run, None);
                return;
            }
            Err(_) => return self.no_longer(live.run),
        };
        let seen = self.beats.get(&live.run).map_or(0, |beat| beat.seen);
        if card.seen == seen && !card.over {
            self.beat(live.run, None);
            return;
        }
        let post = Post {
            chat: live.chat.clone(),
            body: card.body,
            buttons: card.buttons,
            edit: Some(live.message.clone()),
            nonce: 0,
        };
        let doing = Doing::Changing { run: live.run, over: card.over, seen: card.seen };
        self.hand(doing, live.chat.clone(), Job::Post(post));
    }

    fn beat(&mut self, run: RunId, seen: Option<u64>) {
        if let Some(beat) = self.beats.get_mut(&run) {
            let pause = if beat.since.elapsed() > Duration::from_secs(60) { BEAT_SLOW } else { BEAT };
            beat.at = Instant::now() + pause;
            beat.seen = seen.unwrap_or(beat.seen);
        }
    }

    fn no_longer(&mut self, run: RunId) {
        self.state.live.retain(|live| live.run != run);
        self.beats.remove(&run);
        self.save();
    }

    fn sent(&mut self, result: Result<String, Trouble>) {
        let Some((doing, chat)) = self.doing.take() else { return };
        let now = Instant::now();
        match &result {
            Ok(_) => self.away = AWAY_MIN,
            Err(Trouble::Slow { after, everywhere: true }) => self.held_all = now.checked_add(*after),
            Err(Trouble::Slow { after, everywhere: false }) if !chat.is_empty() => {
                self.held.insert(chat, now + *after);
            }
            Err(Trouble::Slow { .. } | Trouble::Refused(_)) => {}
            Err(trouble @ (Trouble::Away(_) | Trouble::Revoked | Trouble::Conflict(_))) => {
                self.reporter.report(Condition::of(trouble));
                self.held_all = now.checked_add(self.away);
                self.away = (self.away * 2).min(AWAY_MAX);
            }
        }
        let over = matches!(result, Ok(_) | Err(Trouble::Refused(_)));
        if let Err(Trouble::Refused(why)) = &result {
            eprintln!("the service refused a message: {why}");
        }
        match doing {
            Doing::Passing => {}
            // A message of another kind cannot be changed into this one: a new one, then.
            Doing::Queued { n, .. } if result.is_err() && over && self.unedit(n) => {}
            Doing::Queued { n, run } if over => self.said(n, run, result.ok()),
            Doing::Changing { run, over: true, .. } if over => self.no_longer(run),
            Doing::Changing { run, seen, .. } if result.is_ok() => self.beat(run, Some(seen)),
            Doing::Changing { run, .. } if over => self.no_longer(run),
            // Again later: its chat, or everything, is held.
            Doing::Changing { run, .. } => self.beat(run, None),
            Doing::Queued { .. } => {}
        }
    }

    /// Has a message posted anew that could not be changed; whether there is one.
    fn unedit(&mut self, n: u64) -> bool {
        let item = self.state.outbox.iter_mut().find(|one| one.n == n && one.edit.is_some() && one.tag.is_none());
        let new = item.filter(|item| !matches!(item.what, Reply::Text { .. }));
        new.is_some_and(|item| item.edit.take().is_some())
    }

    /// Something was said: it is not said again.
    fn said(&mut self, n: u64, run: Option<(RunId, bool)>, message: Option<String>) {
        holdfast_pause::point("bot.sent");
        let Some(at) = self.state.outbox.iter().position(|one| one.n == n) else { return };
        let Some(item) = self.state.outbox.remove(at) else { return };
        if let (Some(message), Some(user)) = (message, item.user) {
            if let (Reply::Run(_, session), Some((run, false))) = (&item.what, run) {
                let (session, chat) = (*session, item.chat.clone());
                self.state.live.push(Live { run, session, user: user.clone(), chat, message: message.clone() });
            }
            if let (Some(tag), Reply::Text { head, .. }) = (item.tag, item.what) {
                self.state.remember(Card { tag, user, chat: item.chat, message, text: head });
            }
        }
        self.save();
    }

    /// The user of that number, if there is one.
    pub fn user(&self, id: &str) -> Option<User> {
        self.state.users.get(id).cloned()
    }
}
