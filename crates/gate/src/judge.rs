//! The decision: deny before ask before allow.
//!
//! A rule that asks is a forbid with `@ask`. If all rules together allow, it is allowed. If not, the rules that do not ask decide
//! between deny and ask: so "no rule permits it" never becomes a question. Cedar skips a rule that fails while it is evaluated,
//! which would open what it forbids: for everybody but humans such a failure is never an allow.

use crate::facts::{Facts, Promised, Standing};
use crate::policy::Policy;
use cedar_policy::{
    Authorizer, Context, Decision, Entities, Entity, EntityId, EntityTypeName, EntityUid, PolicySet, Request as Query,
    Response, RestrictedExpression as Value, Schema,
};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::str::FromStr;
use std::sync::LazyLock;

/// The name of the floor under every policy: what cannot be known is not allowed to a program.
pub const OPAQUE_RULE: &str = "gate.opaque";
const ERROR_RULE: &str = "gate.error";
const UNLISTED_RULE: &str = "gate.unlisted";
/// Actors and sessions whose entities are kept.
const KEPT_MAX: usize = 256;

/// What came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It may happen.
    Allow,
    /// A human is asked first.
    Ask,
    /// It does not happen.
    Deny,
}

impl Outcome {
    /// Its word, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Allow => "allow",
            Outcome::Ask => "ask",
            Outcome::Deny => "deny",
        }
    }
}

/// A decision, and the rule it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What came out.
    pub outcome: Outcome,
    /// The rule that decided; of several the first by name.
    pub rule: String,
    /// What that rule says: why it denies, or what it asks. Empty for an allow.
    pub why: String,
    /// All rules that led to it.
    pub rules: Vec<String>,
}

/// Who acts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal {
    /// `agent:bot`.
    pub handle: String,
    /// `human`, `agent`, `service` or `device`.
    pub class: String,
    /// How its runs under contracts came out.
    pub record: Standing,
}

impl Principal {
    fn is_human(&self) -> bool {
        self.class == "human"
    }
}

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Runs a line.
    Run,
    /// Types a line at a prompt.
    Type,
    /// Starts a session.
    Start,
    /// Signals processes.
    Signal,
    /// Ends a session.
    End,
    /// Starts a program: a process of a session does.
    Exec,
    /// Writes a file of a session's working tree.
    Write,
}

impl Action {
    /// Its word in policies.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Action::Run => "run",
            Action::Type => "type",
            Action::Start => "start",
            Action::Signal => "signal",
            Action::End => "end",
            Action::Exec => "exec",
            Action::Write => "write",
        }
    }
}

/// To which session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resource {
    /// Its id; empty where it does not exist yet.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// What is to be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Who.
    pub principal: Principal,
    /// What.
    pub action: Action,
    /// Where.
    pub resource: Resource,
    /// What is known of it.
    pub facts: Facts,
}

/// Decides by a policy, and keeps what is the same from one decision to the next.
#[derive(Debug)]
pub struct Judge {
    policy: Policy,
    authorizer: Authorizer,
    entities: HashMap<(Principal, Resource), Entities>,
}

impl Judge {
    /// One that decides by this policy.
    #[must_use]
    pub fn new(policy: Policy) -> Judge {
        Judge { policy, authorizer: Authorizer::new(), entities: HashMap::new() }
    }

    /// What it decides by.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Decides.
    pub fn decide(&mut self, request: &Request) -> Verdict {
        let is_human = request.principal.is_human();
        let key = (request.principal.clone(), request.resource.clone());
        if self.entities.len() >= KEPT_MAX && !self.entities.contains_key(&key) {
            self.entities.clear();
        }
        let made = self.entities.entry(key);
        let entities: &Entities = made.or_insert_with(|| entities(&request.principal, &request.resource));
        let Some(query) = query(request, None) else {
            return failed(is_human, "the facts do not fit the schema");
        };
        let all = self.authorizer.is_authorized(&query, &self.policy.all, entities);
        if all.decision() == Decision::Allow && (is_human || first_error(&all).is_none()) {
            let rules = reasons(&all);
            return self
                .floor(request, Verdict { outcome: Outcome::Allow, rule: first(&rules), why: String::new(), rules });
        }
        let hard = self.authorizer.is_authorized(&query, &self.policy.hard, entities);
        if let Some(error) = first_error(&hard).filter(|_| !is_human) {
            return failed(is_human, &error);
        }
        if hard.decision() == Decision::Deny {
            let rules = reasons(&hard);
            if rules.is_empty() {
                let why = "no rule permits this".to_owned();
                return Verdict { outcome: Outcome::Deny, rule: UNLISTED_RULE.into(), why, rules };
            }
            let rule = first(&rules);
            return Verdict { outcome: Outcome::Deny, why: self.policy.why(&rule), rule, rules };
        }
        // What the rules that ask add is a question.
        let rules = reasons(&all);
        match (all.decision(), first_error(&all)) {
            (Decision::Deny, _) => {
                let rule = first(&rules);
                Verdict { outcome: Outcome::Ask, why: self.policy.why(&rule), rule, rules }
            }
            (Decision::Allow, Some(error)) => {
                let why = format!("a rule could not be evaluated: {error}");
                Verdict { outcome: Outcome::Ask, rule: ERROR_RULE.into(), why, rules }
            }
            (Decision::Allow, None) => {
                Verdict { outcome: Outcome::Allow, rule: first(&rules), why: String::new(), rules }
            }
        }
    }

    /// What cannot be known is never allowed to a program, whatever the rules say.
    fn floor(&self, request: &Request, verdict: Verdict) -> Verdict {
        if request.principal.is_human() || request.facts.seen.is_clear() {
            return verdict;
        }
        let why = "the gate cannot tell what this would run".to_owned();
        Verdict { outcome: Outcome::Ask, rule: OPAQUE_RULE.into(), why, rules: Vec::new() }
    }
}

fn failed(is_human: bool, error: &str) -> Verdict {
    let outcome = if is_human { Outcome::Ask } else { Outcome::Deny };
    let why = format!("a rule could not be evaluated: {error}");
    Verdict { outcome, rule: ERROR_RULE.into(), why, rules: Vec::new() }
}

/// The rules that one set alone is met by; none where it could not be asked.
pub(crate) fn bare(schema: &Schema, set: &PolicySet, request: &Request) -> Option<Vec<String>> {
    let entities = entities(&request.principal, &request.resource);
    let query = query(request, Some(schema))?;
    Some(reasons(&Authorizer::new().is_authorized(&query, set, &entities)))
}

fn first_error(response: &Response) -> Option<String> {
    response.diagnostics().errors().next().map(ToString::to_string)
}

fn reasons(response: &Response) -> Vec<String> {
    let mut all: Vec<String> = response.diagnostics().reason().map(ToString::to_string).collect();
    all.sort();
    all
}

fn first(rules: &[String]) -> String {
    rules.first().cloned().unwrap_or_default()
}

/// What has an identity. Reading such a name takes Cedar a parser, so each is read once.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Actor,
    Action,
    Session,
}

fn uid(kind: Kind, id: &str) -> EntityUid {
    static NAMES: LazyLock<[EntityTypeName; 3]> = LazyLock::new(|| {
        ["Actor", "Action", "Session"].map(|name| EntityTypeName::from_str(name).expect("names of our own schema"))
    });
    EntityUid::from_type_name_and_id(NAMES[kind as usize].clone(), EntityId::new(id))
}

fn text(text: &str) -> Value {
    Value::new_string(text.to_owned())
}

fn texts<'a>(all: impl Iterator<Item = &'a str>) -> Value {
    Value::new_set(all.map(text))
}

fn record(pairs: Vec<(&str, Value)>) -> Value {
    let pairs = pairs.into_iter().map(|(name, value)| (name.to_owned(), value));
    Value::new_record(pairs).expect("each name is there once")
}

fn long(number: u64) -> Value {
    Value::new_long(i64::try_from(number).unwrap_or(i64::MAX))
}

fn standing(counts: &Standing) -> Value {
    let Standing { runs, valid, succeeded, unexpected, unknown } = *counts;
    let all =
        [("runs", runs), ("valid", valid), ("succeeded", succeeded), ("unexpected", unexpected), ("unknown", unknown)];
    record(all.into_iter().map(|(name, count)| (name, long(count))).collect())
}

fn promised(contract: &Promised) -> Value {
    let mut pairs = vec![
        ("promises", texts(contract.promises.iter().map(String::as_str))),
        ("exit", Value::new_set(contract.exit.iter().map(|code| Value::new_long(i64::from(*code))))),
        ("may_change", texts(contract.may_change.iter().map(String::as_str))),
        ("ports", Value::new_set(contract.ports.iter().map(|port| Value::new_long(i64::from(*port))))),
        ("network", texts(contract.network.iter().map(String::as_str))),
        ("idempotent", Value::new_bool(contract.idempotent)),
        ("retries", Value::new_long(i64::from(contract.retries))),
    ];
    pairs.extend(contract.processes.map(|most| ("processes", Value::new_long(i64::from(most)))));
    record(pairs)
}

fn entities(principal: &Principal, resource: &Resource) -> Entities {
    let actor = HashMap::from([
        ("class".to_owned(), text(&principal.class)),
        ("handle".to_owned(), text(&principal.handle)),
        ("record".to_owned(), standing(&principal.record)),
    ]);
    let session = HashMap::from([("id".to_owned(), text(&resource.id)), ("name".to_owned(), text(&resource.name))]);
    let all = [
        Entity::new(uid(Kind::Actor, &principal.handle), actor, HashSet::new()),
        Entity::new(uid(Kind::Session, &resource.id), session, HashSet::new()),
    ];
    let all = all.into_iter().filter_map(Result::ok);
    Entities::from_entities(all, None).unwrap_or_else(|_| Entities::empty())
}

fn query(request: &Request, schema: Option<&Schema>) -> Option<Query> {
    let Request { principal, action, resource, facts } = request;
    let seen = &facts.seen;
    let mut pairs = vec![
        ("line", text(&facts.line)),
        ("parsed", Value::new_bool(seen.parsed)),
        ("opaque", texts(seen.opaque.iter().map(String::as_str))),
        ("names", texts(seen.names.iter().map(String::as_str))),
        ("sets", texts(seen.sets.iter().map(String::as_str))),
        ("risks", texts(seen.risks.iter().map(|risk| risk.word()))),
        ("writes", texts(seen.writes.iter().map(String::as_str))),
        ("deletes", texts(seen.deletes.iter().map(String::as_str))),
        ("shapers", texts(facts.shapers.iter().map(String::as_str))),
        ("shaped", texts(facts.shaped.iter().map(String::as_str))),
        ("cwd", text(&facts.cwd)),
        ("home", text(&facts.home)),
        ("state", text(&facts.state)),
        ("humans", Value::new_long(i64::from(facts.humans))),
        ("human_attached", Value::new_bool(facts.humans > 0)),
        ("hour", Value::new_long(i64::from(facts.hour))),
        ("weekday", Value::new_long(i64::from(facts.weekday))),
    ];
    pairs.push(("record", standing(&facts.record)));
    pairs.extend(facts.contract.as_ref().map(|contract| ("contract", promised(contract))));
    pairs.extend(facts.signal.map(|number| ("signal", Value::new_long(i64::from(number)))));
    pairs.extend(facts.program.as_deref().map(|program| ("program", text(program))));
    pairs.extend(facts.intent.as_deref().map(|intent| ("intent", text(intent))));
    let context = Context::from_pairs(pairs.into_iter().map(|(name, value)| (name.to_owned(), value))).ok()?;
    let (who, what) = (uid(Kind::Actor, &principal.handle), uid(Kind::Action, action.word()));
    Query::new(who, what, uid(Kind::Session, &resource.id), context, schema).ok()
}
