//! The decider of YAML flows: the commands that a definition asks for, given what is recorded.

use super::definition::{Definition, Step};
use super::template::filled;
use crate::command::{Command, Run};
use crate::event::{Event, Outcome, Recorded};
use crate::shell::text_of;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Every command that the flow has asked for so far or asks for now, from number 0 on. With more history the list is longer, and
/// begins the same.
#[must_use]
pub fn decide(definition: &Definition, id: &str, history: &[Recorded]) -> Vec<Command> {
    let mut input = Value::Null;
    let (mut done, mut order) = (HashMap::new(), BTreeMap::new());
    for (at, recorded) in history.iter().enumerate() {
        match &recorded.event {
            Event::Started { input: given, .. } => input = given.clone(),
            Event::Done { n, ok, value } => {
                done.insert(*n, (*ok, value));
                order.insert(at, *n);
            }
            _ => {}
        }
    }
    let mut deciding = Deciding { id, input, done, order, values: HashMap::new(), commands: Vec::new() };
    let end = deciding.all_steps(definition);
    deciding.commands.extend(end);
    deciding.commands
}

/// The name of a text that is nothing else: what it stands for is passed as it is.
fn whole(text: &str) -> Option<&str> {
    let name = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    (!name.contains("{{")).then(|| name.trim())
}

struct Deciding<'a> {
    id: &'a str,
    input: Value,
    done: HashMap<u32, (bool, &'a Value)>,
    /// Numbers of commands by the place of their end in the history: of a race the first counts.
    order: BTreeMap<usize, u32>,
    values: HashMap<String, Value>,
    commands: Vec<Command>,
}

impl<'a> Deciding<'a> {
    /// Asks for what can be asked for now; the end, once there is one.
    fn all_steps(&mut self, definition: &Definition) -> Option<Command> {
        let mut last = Value::Null;
        for step in &definition.steps {
            let (inner, is_race) = match step {
                Step::All(steps) => (steps.as_slice(), false),
                Step::Race(steps) => (steps.as_slice(), true),
                one => (std::slice::from_ref(one), false),
            };
            let first = self.commands.len() as u32;
            for one in inner {
                let command = self.command(one);
                self.commands.push(command);
            }
            let numbers = first..first + inner.len() as u32;
            let over: Vec<(u32, &Step)> = if is_race {
                let winner = self.order.values().find(|n| numbers.contains(n)).copied()?;
                vec![(winner, &inner[(winner - first) as usize])]
            } else {
                numbers.zip(inner).collect()
            };
            // A failure counts as soon as it is known: the rest of `all` is stopped.
            let failed = over.iter().find_map(|(n, one)| self.failure(*n, one));
            if let Some(why) = failed {
                return Some(Command::End { ok: false, value: why.into() });
            }
            for (n, one) in over {
                let (_, value) = self.done.get(&n)?;
                if !matches!(one, Step::Sleep { .. }) {
                    last = Value::String(text_of(value));
                    self.values.insert(one.name().to_owned(), (*value).clone());
                }
            }
        }
        let value = match &definition.result {
            Some(text) => Value::String(filled(text, false, |name| self.value(name))),
            None => last,
        };
        Some(Command::End { ok: true, value })
    }

    /// Why a step fails the flow, if it does.
    fn failure(&self, n: u32, step: &Step) -> Option<String> {
        let (ok, value) = self.done.get(&n)?;
        let name = step.name();
        match (step, ok) {
            (Step::Ask { expect: Some(expect), .. } | Step::Signal { expect: Some(expect), .. }, true) => {
                let said = text_of(value);
                (said != *expect).then(|| format!("{name}: {said}"))
            }
            (_, true) => None,
            (Step::Child { .. }, false) => {
                let why = value["why"].as_str().unwrap_or("it failed");
                Some(format!("{name}: {why}"))
            }
            (Step::Wait { .. }, false) => {
                let why = value["why"].as_str().unwrap_or("it did not come in time");
                Some(format!("{name}: {why}"))
            }
            (Step::Ask { .. } | Step::Signal { .. }, false) => Some(format!("{name}: nobody answered in time")),
            (_, false) => {
                let outcome: Result<Outcome, _> = serde_json::from_value((*value).clone());
                Some(
                    outcome.map_or_else(|_| format!("{name} failed"), |outcome| format!("{name}: {}", outcome.words())),
                )
            }
        }
    }

    /// What `{{ NAME }}` or `{{ NAME.FIELD }}` stands for.
    fn value(&self, name: &str) -> Option<Value> {
        let mut parts = name.split('.');
        let mut value = match parts.next()? {
            "input" => self.input.clone(),
            "flow" => Value::String(self.id.to_owned()),
            step => self.values.get(step)?.clone(),
        };
        for part in parts {
            value = value.get(part)?.clone();
        }
        Some(value)
    }

    fn command(&self, step: &Step) -> Command {
        let fill = |text: &String, for_shell| filled(text, for_shell, |name| self.value(name));
        match step {
            Step::Run(run) => Command::Run(Run {
                command: fill(&run.command, true),
                undo: run.undo.as_ref().map(|undo| fill(undo, true)),
                ..run.clone()
            }),
            Step::Sleep { name, ms } => Command::Sleep { name: name.clone(), ms: *ms },
            Step::Ask { name, text, options, expires_ms, .. } => Command::Ask {
                name: name.clone(),
                text: fill(text, false),
                options: options.clone(),
                expires_ms: *expires_ms,
            },
            Step::Wait { name, session, until, timeout_ms } => {
                let (name, session) = (name.clone(), session.clone());
                Command::Wait { name, session, until: *until, timeout_ms: *timeout_ms }
            }
            Step::Signal { name, timeout_ms, .. } => Command::Signal { name: name.clone(), timeout_ms: *timeout_ms },
            Step::Child { name, flow, input } => {
                let input = input.as_ref().map_or(Value::Null, |text| match whole(text) {
                    Some(name) => self.value(name).unwrap_or_default(),
                    None => Value::String(fill(text, false)),
                });
                Command::Child { name: name.clone(), flow: flow.clone(), input }
            }
            // A definition has none inside each other.
            Step::All(_) | Step::Race(_) => Command::End { ok: false, value: "steps inside steps".into() },
        }
    }
}
