//! Policies: read, named, validated, their examples tried. What is broken does not load.

use crate::facts::{Facts, Standing, Surroundings, look};
use crate::judge::{Action, Principal, Request, Resource, bare};
use crate::line::Line;
use crate::places::Lexical;
use cedar_policy::{Effect, Policy as Cedar, PolicyId, PolicySet, Schema, ValidationMode, Validator};
use miette::Diagnostic;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// What policies may say.
pub const SCHEMA: &str = include_str!("../../../spec/gate.cedarschema");

/// Longest file: a person writes less, and each rule costs time at every act.
const FILE_BYTES_MAX: usize = 256 * 1024;
/// Rules of all files: a decision stays within its time.
const RULES_MAX: usize = 200;
/// Annotations a rule may have. Another one is a misspelt one.
const ANNOTATIONS: [&str; 5] = ["id", "why", "ask", "example", "counterexample"];

/// Where a file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It comes with the program.
    Ready,
    /// A person wrote it.
    Own,
}

/// A file of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its name, for messages.
    pub file: String,
    /// What is in it.
    pub text: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// What is wrong in a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: String,
    /// From 1 on; 0: the file as a whole.
    pub line: usize,
    /// From 1 on.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it; may be empty.
    pub help: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}", self.message)?;
        if self.help.is_empty() { Ok(()) } else { write!(f, " ({})", self.help) }
    }
}

/// A rule, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub id: String,
    /// `permit`, `ask` or `forbid`.
    pub kind: &'static str,
    /// Why it denies, or what it asks.
    pub why: String,
    /// The file it is in.
    pub file: String,
    /// Where.
    pub line: usize,
    /// Its text in Cedar.
    pub text: String,
}

/// A set of rules that was found to be whole.
#[derive(Debug, Clone)]
pub struct Policy {
    /// All rules.
    pub(crate) all: PolicySet,
    /// Those that do not ask.
    pub(crate) hard: PolicySet,
    pub(crate) schema: Schema,
    rules: Vec<Rule>,
}

impl Policy {
    /// Reads files of rules. All problems of all files are told at once.
    pub fn load(sources: &[Source]) -> Result<Policy, Vec<Problem>> {
        let schema = schema();
        let (mut all, mut hard) = (PolicySet::new(), PolicySet::new());
        let (mut rules, mut problems) = (Vec::<Rule>::new(), Vec::new());
        for source in sources {
            let Some(parsed) = parse(source, &mut problems) else { continue };
            let mut named = PolicySet::new();
            for (at, policy) in parsed {
                match rule(source, at, &policy, &rules) {
                    Ok(rule) => {
                        let policy = policy.new_id(PolicyId::new(&rule.id));
                        // Ids are unique by now.
                        let _ = named.add(policy.clone());
                        let _ = all.add(policy.clone());
                        if rule.kind != "ask" {
                            let _ = hard.add(policy);
                        }
                        rules.push(rule);
                    }
                    Err((message, help)) => problems.push(problem(source, at, message, help)),
                }
            }
            validate(source, &named, &schema, &mut problems);
        }
        if rules.len() > RULES_MAX {
            let message = format!("{} rules; at most {RULES_MAX} fit", rules.len());
            problems.push(Problem { file: "policy".into(), line: 0, column: 0, message, help: String::new() });
        }
        let policy = Policy { all, hard, schema, rules };
        if problems.is_empty() {
            problems.extend(policy.try_examples());
        }
        if problems.is_empty() { Ok(policy) } else { Err(problems) }
    }

    /// Its rules, in the order of their files.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// A rule by its name.
    #[must_use]
    pub fn rule(&self, id: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id == id)
    }

    /// The text a rule gives: what it asks, or why it denies.
    pub(crate) fn why(&self, id: &str) -> String {
        self.rule(id).map(|rule| rule.why.clone()).unwrap_or_default()
    }

    /// Each rule's examples must be met by that rule, and its counterexamples must not.
    fn try_examples(&self) -> Vec<Problem> {
        let around = example_surroundings();
        let mut problems = Vec::new();
        for rule in &self.rules {
            let Some(policy) = self.all.policy(&PolicyId::new(&rule.id)) else { continue };
            for (key, must) in [("example", true), ("counterexample", false)] {
                let lines = policy.annotation(key).unwrap_or_default().lines().filter(|line| !line.trim().is_empty());
                for line in lines {
                    if self.meets(policy, line, &around) == must {
                        continue;
                    }
                    let message = match must {
                        true => format!("`{}` is not met by its @example `{line}`", rule.id),
                        false => format!("`{}` is met by its @counterexample `{line}`", rule.id),
                    };
                    let seen = look(&Line::read(line), &around, &Lexical);
                    let risks: Vec<&str> = seen.risks.iter().map(|risk| risk.word()).collect();
                    let names: Vec<&str> = seen.names.iter().map(String::as_str).collect();
                    let help = format!("its names are [{}], its risks [{}]", names.join(", "), risks.join(", "));
                    problems.push(Problem { file: rule.file.clone(), line: rule.line, column: 1, message, help });
                }
            }
        }
        problems
    }

    fn meets(&self, policy: &Cedar, line: &str, around: &Surroundings) -> bool {
        let mut alone = PolicySet::new();
        let _ = alone.add(policy.clone());
        let request = example(line, around);
        bare(&self.schema, &alone, &request).is_some_and(|met| !met.is_empty())
    }
}

/// Where examples are tried: an agent in a project below a home, of which the file system knows nothing.
#[must_use]
pub(crate) fn example_surroundings() -> Surroundings {
    let own = vec!["/home/user/.local/state/holdfast".into(), "/home/user/.config/holdfast".into()];
    Surroundings::new("/home/user/project", "/home/user", None, own)
}

pub(crate) fn example(line: &str, around: &Surroundings) -> Request {
    let seen = look(&Line::read(line), around, &Lexical);
    Request {
        principal: Principal { handle: "agent:example".into(), class: "agent".into(), record: Standing::default() },
        action: Action::Run,
        resource: Resource { id: String::new(), name: "example".into() },
        facts: Facts {
            line: line.to_owned(),
            seen,
            cwd: around.cwd.clone(),
            home: around.home.clone(),
            state: "idle".into(),
            hour: 12,
            ..Facts::default()
        },
    }
}

fn schema() -> Schema {
    let (schema, _) = Schema::from_cedarschema_str(SCHEMA).expect("our own schema; a test reads it");
    schema
}

/// A place in a text: line and column from 1 on.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    (line, before.chars().rev().take_while(|c| *c != '\n').count() + 1)
}

fn problem(source: &Source, at: usize, message: String, help: String) -> Problem {
    let (line, column) = place(&source.text, at);
    Problem { file: source.file.clone(), line, column, message, help }
}

fn of_diagnostic(source: &Source, error: &(impl Diagnostic + fmt::Display)) -> Problem {
    let at = error.labels().and_then(|mut labels| labels.next()).map_or(0, |label| label.offset());
    // Cedar names a policy by its number; ours have names, and a place in the file.
    let message = error.to_string();
    let message =
        message.strip_prefix("for policy `").and_then(|m| m.split_once("`, ")).map_or(message.as_str(), |(_, m)| m);
    problem(source, at, message.to_owned(), error.help().map(|help| help.to_string()).unwrap_or_default())
}

/// The policies of a file, each with where it begins.
fn parse(source: &Source, problems: &mut Vec<Problem>) -> Option<Vec<(usize, Cedar)>> {
    if source.text.len() > FILE_BYTES_MAX {
        let message = format!("the file has more than {FILE_BYTES_MAX} bytes");
        problems.push(Problem { file: source.file.clone(), line: 0, column: 0, message, help: String::new() });
        return None;
    }
    let set = match PolicySet::from_str(&source.text) {
        Ok(set) => set,
        Err(errors) => {
            problems.extend(errors.iter().map(|error| of_diagnostic(source, error)));
            return None;
        }
    };
    if set.templates().next().is_some() {
        let message = "a rule is a template, which has no use here".to_owned();
        problems.push(problem(source, 0, message, "write the principal and resource out".into()));
    }
    // Cedar numbers them in the order of the file; it gives them out in any.
    let numbered: BTreeMap<usize, Cedar> = set
        .policies()
        .filter_map(|policy| {
            let number = policy.id().to_string().strip_prefix("policy")?.parse().ok()?;
            Some((number, policy.clone()))
        })
        .collect();
    let mut from = 0;
    let mut all = Vec::new();
    for policy in numbered.into_values() {
        let text = policy.to_cedar().unwrap_or_default();
        let at = source.text[from..].find(text.trim()).map_or(from, |n| from + n);
        from = (at + text.trim().len()).min(source.text.len());
        all.push((at, policy));
    }
    Some(all)
}

fn rule(source: &Source, at: usize, policy: &Cedar, known: &[Rule]) -> Result<Rule, (String, String)> {
    let wrong = |message: String, help: &str| Err((message, help.to_owned()));
    if let Some((name, _)) = policy.annotations().find(|(name, _)| !ANNOTATIONS.contains(name)) {
        return wrong(
            format!("unknown annotation @{name}"),
            "a rule may have @id, @why, @ask, @example and @counterexample",
        );
    }
    let Some(id) = policy.annotation("id").filter(|id| !id.is_empty()) else {
        return wrong("this rule has no name".into(), "put @id(\"a-name\") before it");
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if id.len() > 64 || !id.chars().all(plain) || id.starts_with("gate.") {
        return wrong(
            format!("invalid name {id:?}"),
            "letters, digits, `-`, `_` and `.`, at most 64; `gate.` is taken",
        );
    }
    if source.origin == Origin::Own && crate::READY.iter().any(|(name, _)| id.starts_with(&format!("{name}."))) {
        return wrong(
            format!("the name {id:?} belongs to a policy that comes with the program"),
            "choose another prefix",
        );
    }
    if let Some(other) = known.iter().find(|rule| rule.id == id) {
        return wrong(
            format!("two rules have the name {id:?}"),
            &format!("the other is at {}:{}", other.file, other.line),
        );
    }
    let (ask, why) = (policy.annotation("ask"), policy.annotation("why"));
    let kind = match (policy.effect(), ask) {
        (Effect::Permit, Some(_)) => return wrong(format!("{id:?} permits and asks"), "@ask belongs to a forbid"),
        (Effect::Permit, None) => "permit",
        (Effect::Forbid, Some("")) => {
            return wrong(format!("{id:?} asks nothing"), "write the sentence a person is asked: @ask(\"…\")");
        }
        (Effect::Forbid, Some(_)) => "ask",
        (Effect::Forbid, None) => "forbid",
    };
    if kind == "forbid" && why.is_none_or(str::is_empty) {
        return wrong(format!("{id:?} denies without a reason"), "say why, in a sentence: @why(\"…\")");
    }
    let text = policy.to_cedar().unwrap_or_default();
    let why = ask.or(why).unwrap_or_default().to_owned();
    Ok(Rule { id: id.to_owned(), kind, why, file: source.file.clone(), line: place(&source.text, at).0, text })
}

/// Errors come once for each action: told once.
fn validate(source: &Source, named: &PolicySet, schema: &Schema, problems: &mut Vec<Problem>) {
    let result = Validator::new(schema.clone()).validate(named, ValidationMode::Strict);
    let errors = result.validation_errors().map(|error| of_diagnostic(source, error));
    // What can never apply is a mistake too.
    let warnings = result.validation_warnings().map(|warning| of_diagnostic(source, warning));
    for problem in errors.chain(warnings) {
        let is_same =
            |known: &Problem| (&known.file, known.line, known.column) == (&problem.file, problem.line, problem.column);
        if !problems.iter().any(is_same) {
            problems.push(problem);
        }
    }
}
