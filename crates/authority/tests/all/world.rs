//! A session, its keeper and a handful of actors, driven by sentences.

use holdfast_authority::*;
use holdfast_types::{Actor, Defaults, Notice};
use holdfast_types::{Fence, Offset, TimeMs};
use std::collections::BTreeMap;

/// The time a world begins at.
pub const START_MS: TimeMs = 1_000_000;

/// Everybody tests know; the first letter of the class is never needed.
pub const PEOPLE: &[&str] = &["human:ann", "human:bob", "agent:bot", "agent:kit", "service:cron", "human:eve"];

/// An actor by its name. All are vouched for, but eve only says that she is human.
pub fn actor(name: &str) -> Actor {
    let handle = PEOPLE.iter().find(|handle| handle.ends_with(&format!(":{name}"))).expect("somebody known");
    Actor { id: proof::actor_id(&secret(name)), handle: handle.parse().unwrap() }
}

/// Everybody's key, made from the name.
pub fn secret(name: &str) -> [u8; 32] {
    let mut bytes = [name.len() as u8; 32];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

pub fn policy() -> Policy {
    let names = ["ann", "bob", "bot", "kit", "cron"];
    let vouched = names.map(actor).into_iter().map(|actor| (actor.id, actor.handle)).collect();
    Policy { defaults: Defaults::default(), vouched }
}

pub fn burst(at: Offset, text: &str) -> Burst {
    Burst { from: at, to: at, len: text.len() as u64, keys: Some(Keys(text.as_bytes().to_vec())) }
}

/// A session under test with everything it recorded.
pub struct World {
    pub authority: Authority,
    pub records: Vec<Record>,
    pub keeper: Keeper,
    pub now: TimeMs,
    /// The operator each actor is attached as.
    pub attached: BTreeMap<String, OperatorId>,
}

/// What a keeper makes of effects: the newest fence and its writer; it never takes an older one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keeper {
    pub fence: Fence,
    pub writer: Option<OperatorId>,
    pub frozen: bool,
}

impl Keeper {
    /// Performs effects and checks the order every host relies on.
    pub fn perform(&mut self, effects: &[Effect]) -> Result<(), String> {
        let mut recorded = false;
        for effect in effects {
            match effect {
                Effect::Record(_) => recorded = true,
                Effect::Fence { fence, writer } => {
                    if *fence <= self.fence {
                        return Err(format!("{fence:?} follows {:?}", self.fence));
                    }
                    (self.fence, self.writer) = (*fence, *writer);
                }
                Effect::FlushInput { fence } if *fence != self.fence => {
                    return Err(format!("{effect:?} under a fence that is not the newest, {:?}", self.fence));
                }
                Effect::FlushInput { .. } | Effect::Perform { .. } => {}
                Effect::Freeze => self.frozen = true,
                Effect::Thaw => self.frozen = false,
                Effect::Expel { .. } | Effect::Tell { .. } => {}
            }
            if !recorded {
                return Err(format!("{effect:?} before any record"));
            }
        }
        Ok(())
    }
}

impl World {
    /// Started by ann, who attached nowhere yet.
    pub fn new() -> World {
        let mut world = World {
            authority: Authority::new(policy()),
            records: vec![],
            keeper: Keeper::default(),
            now: START_MS,
            attached: BTreeMap::new(),
        };
        world.handle(Input::Started { by: actor("ann") });
        world
    }

    pub fn handle(&mut self, input: Input) -> Answer {
        let types = matches!(input, Input::Types { .. });
        let answer = self.authority.handle(input, Moment { time_ms: self.now, at: 0 });
        self.keeper.perform(&answer.effects).unwrap();
        if let (true, Ok(Reply::Turn { fence })) = (types, &answer.reply) {
            assert_eq!((*fence, false), (self.keeper.fence, self.keeper.frozen), "typing reaches the keeper as it is");
        }
        self.records.extend(answer.effects.iter().filter_map(|effect| match effect {
            Effect::Record(record) => Some((**record).clone()),
            _ => None,
        }));
        let replayed = Authority::replay(self.authority.policy().clone(), &self.records);
        assert_eq!(replayed, self.authority, "the records are the state");
        answer
    }

    pub fn caller(&self, name: &str) -> Caller {
        Caller { actor: actor(name), operator: self.attached.get(name).copied(), token: None }
    }

    pub fn ask(&mut self, name: &str, ask: Ask) -> Answer {
        let by = self.caller(name);
        self.handle(Input::Asked { by, ask, proof: None })
    }

    /// One step: `ann types ls`.
    fn step(&mut self, who: &str, verb: &str, rest: &str) -> Answer {
        let operator = self.attached.get(who).copied();
        let input = match (verb, operator) {
            ("attaches", _) => {
                let operator = self.authority.next_operator();
                self.attached.insert(who.into(), operator);
                Input::Attached { by: actor(who), operator }
            }
            ("resumes", Some(operator)) => Input::Resumed { by: actor(who), operator },
            ("leaves", Some(operator)) => {
                self.attached.remove(who);
                Input::Left { operator }
            }
            ("vanishes", Some(operator)) => Input::CutOff { operator },
            ("types", _) => {
                let (fence, text) = match rest.strip_prefix("under ").and_then(|rest| rest.split_once(' ')) {
                    Some((fence, text)) => (Some(Fence(fence.parse().unwrap())), text),
                    None => (None, rest),
                };
                let mut answer = self.handle(Input::Types { by: self.caller(who), fence });
                if let Ok(Reply::Turn { fence }) = answer.reply {
                    let wrote = Input::Wrote { fence, burst: burst(0, text), log: 0, from: Source::Host };
                    answer.effects.extend(self.handle(wrote).effects);
                }
                return answer;
            }
            ("isawaited", _) => Input::Awaited { by: self.caller(who) },
            ("isdone", _) => Input::Unawaited,
            ("passes", _) => Input::Tick,
            ("restarts", _) => {
                self.authority = Authority::replay(self.authority.policy().clone(), &self.records);
                Input::Restarted { keeper_fence: self.keeper.fence, connection: 1 }
            }
            (_, _) => Input::Asked { by: self.caller(who), ask: self.ask_of(verb, rest), proof: None },
        };
        self.handle(input)
    }

    fn ask_of(&self, verb: &str, rest: &str) -> Ask {
        let mut words = rest.split(' ');
        let mut word = || words.next().filter(|word| !word.is_empty());
        match verb {
            "takes" => Ask::Take,
            "requests" => Ask::Request,
            "withdraws" => Ask::Withdraw,
            "gives" => Ask::Give { to: actor(rest) },
            "releases" => Ask::Release,
            "seizes" => Ask::Seize { freeze: false, reason: rest.into() },
            "freezes" => Ask::Seize { freeze: true, reason: rest.into() },
            "thaws" => Ask::Thaw,
            "grants" => {
                let (to, rights) = (actor(word().unwrap()), word().unwrap().parse().unwrap());
                let until = word().map(|_for| self.now + seconds(word().unwrap()));
                Ask::Grant { to, rights, until }
            }
            "revokes" => match rest.parse() {
                Ok(id) => Ask::Revoke(Revoke::Grant(GrantId(id))),
                Err(_) => Ask::Revoke(Revoke::Actor(actor(rest).id)),
            },
            "runs" => Ask::Run { key: "k".into(), command: rest.into() },
            "resizes" => Ask::Resize { size: rest.parse().unwrap() },
            "signals" => Ask::Signal { number: rest.parse().unwrap(), target: 0 },
            "renames" => Ask::Rename { name: rest.parse().unwrap() },
            "detaches" => Ask::Detach { operators: vec![self.attached[rest]] },
            "ends" => Ask::End { grace_ms: 0 },
            _ => panic!("{verb} is no verb"),
        }
    }
}

fn seconds(text: &str) -> TimeMs {
    text.strip_suffix('s').and_then(|n| n.parse::<TimeMs>().ok()).expect("seconds, like 30s") * 1000
}

/// Plays sentences (`SECONDS WHO VERB REST`, parted by `|`) and gives one line for each: what was answered and done.
pub fn play(script: &str) -> String {
    let mut world = World::new();
    let mut trace = String::new();
    for sentence in script.split('|').map(str::trim) {
        let mut words = sentence.splitn(4, ' ');
        let mut word = || words.next().unwrap_or_default();
        let (time, who, verb, rest) = (word(), word(), word(), word());
        world.now = START_MS + seconds(time);
        let answer = world.step(who, verb, rest);
        trace.push_str(&format!("{sentence}: {}\n", tell(&answer)));
    }
    trace
}

/// The same, compared.
#[track_caller]
pub fn expect(script: &str, expected: &str) {
    let trim = |text: &str| text.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("\n");
    let (played, expected) = (trim(&play(script)), trim(expected));
    assert!(played == expected, "played:\n{played}\n\nexpected:\n{expected}");
}

/// An answer in a line: what was answered, then effects but for records of what was asked and news for everybody.
fn tell(answer: &Answer) -> String {
    let mut parts = vec![match &answer.reply {
        Ok(Reply::Done) => "done".to_owned(),
        Ok(Reply::Turn { fence }) => format!("turn {}", fence.0),
        Ok(Reply::Waiting { before }) => format!("waits behind {before}"),
        Ok(Reply::Granted(id)) => format!("grant {id}"),
        Ok(Reply::Revoked(ids)) => {
            format!("revoked {}", ids.iter().map(GrantId::to_string).collect::<Vec<_>>().join(" "))
        }
        Err(refusal) => format!("no, {refusal}"),
    }];
    parts.extend(answer.effects.iter().filter_map(|effect| match effect {
        Effect::Record(record) => match &record.act {
            Act::Lapsed(lapse) => Some(format!("lapse {}", format!("{lapse:?}").to_lowercase())),
            _ => None,
        },
        Effect::Fence { fence, writer } => Some(match writer {
            Some(writer) => format!("fence {} for {}", fence.0, writer.0),
            None => format!("fence {} for nobody", fence.0),
        }),
        Effect::FlushInput { .. } => Some("flush".into()),
        Effect::Freeze => Some("freeze".into()),
        Effect::Thaw => Some("thaw".into()),
        Effect::Perform { id, deed } => Some(format!("do {} {}", id.0, deed.word())),
        Effect::Expel { operator } => Some(format!("expel {}", operator.0)),
        Effect::Tell { to: Audience::One(one), notice } => Some(format!("tell {}: {}", one.0, news(notice))),
        Effect::Tell { to: Audience::All, notice: Notice::Turn { .. } } => None,
        Effect::Tell { to: Audience::All, notice } => Some(format!("tell all: {}", news(notice))),
    }));
    parts.join("; ")
}

fn news(notice: &Notice) -> String {
    match notice {
        Notice::Turn { holder } => format!("turn {holder:?}"),
        Notice::Requested { by } => format!("{by} asks"),
        Notice::Seized { by, from: Some(from), reason } => format!("{by} seized from {from} ({reason})"),
        Notice::Seized { by, from: None, reason } => format!("{by} seized ({reason})"),
        Notice::Frozen { by } => format!("{by} froze"),
        Notice::Thawed { by } => format!("{by} thawed"),
        Notice::Asked { by, .. } => format!("asked by {by}"),
        Notice::Held { by, command, .. } => format!("{by} needs approval: {command}"),
        Notice::Handover { to, text } => format!("{to} takes over: {text}"),
        Notice::Rights { rights } => format!("may {rights}"),
    }
}
