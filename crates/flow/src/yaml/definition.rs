//! A definition: the flow's name and its steps, each checked when it is read.

use super::template::{Piece, names_in_command, pieces};
use super::tree::{Kind, Node, read};
use super::{Problem, STEPS_MAX, problem};
use crate::command::{OnLost, Run, WaitFor};
use crate::{NAME_BYTES_MAX, duration_ms};

/// The keys of a file, and of each kind of step: what the published schema has too.
pub const KEYS: &[(&str, &[&str])] = &[
    ("flow", &["flow", "description", "steps", "result", "flows"]),
    ("run", &["run", "command", "session", "retries", "backoff", "timeout", "undo", "on_lost"]),
    ("sleep", &["sleep", "name"]),
    ("ask", &["ask", "name", "options", "expires", "expect"]),
    ("signal", &["signal", "timeout", "expect"]),
    ("wait", &["wait", "for", "name", "timeout"]),
    ("child", &["child", "flow", "input"]),
    ("all", &["all"]),
    ("race", &["race"]),
];

/// A flow as a file defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// What kind of flow it is.
    pub name: String,
    /// One after the other.
    pub steps: Vec<Step>,
    /// What it gives; none: what the last step gave.
    pub result: Option<String>,
    /// Flows of the same file, which `child` steps start.
    pub flows: Vec<Definition>,
}

impl Definition {
    /// The flow of this name in the file.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Definition> {
        if self.name == name { Some(self) } else { self.flows.iter().find(|one| one.name == name) }
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A command; its texts are filled in when it is asked for.
    Run(Run),
    /// A pause.
    Sleep {
        /// What it is called.
        name: String,
        /// How long.
        ms: u64,
    },
    /// A question to the humans.
    Ask {
        /// What it is called.
        name: String,
        /// The question.
        text: String,
        /// What can be answered.
        options: Vec<String>,
        /// How long it stays open.
        expires_ms: Option<u64>,
        /// Any other answer fails the flow.
        expect: Option<String>,
    },
    /// A signal from outside.
    Signal {
        /// Its name.
        name: String,
        /// How long it is waited for.
        timeout_ms: Option<u64>,
        /// Any other value fails the flow.
        expect: Option<String>,
    },
    /// Something in a session.
    Wait {
        /// What it is called.
        name: String,
        /// The session.
        session: String,
        /// What is waited for.
        until: WaitFor,
        /// How long.
        timeout_ms: Option<u64>,
    },
    /// Another flow: one of the same file, or one whose code a worker has.
    Child {
        /// What it is called.
        name: String,
        /// What kind of flow it is.
        flow: String,
        /// What it is given; its names are filled in when it is asked for.
        input: Option<String>,
    },
    /// Several at once, until all are done.
    All(Vec<Step>),
    /// Several at once, until the first is done.
    Race(Vec<Step>),
}

impl Step {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Step::Run(run) => &run.name,
            Step::Sleep { name, .. }
            | Step::Ask { name, .. }
            | Step::Signal { name, .. }
            | Step::Wait { name, .. }
            | Step::Child { name, .. } => name,
            Step::All(_) => "all",
            Step::Race(_) => "race",
        }
    }
}

/// Reads a definition.
pub fn parse(text: &str) -> Result<Definition, Problem> {
    definition(&read(text)?, &mut 0, true)
}

fn definition(root: &Node, count: &mut usize, is_top: bool) -> Result<Definition, Problem> {
    let fields = Fields::of(root, "flow")?;
    let name = fields.text("flow")?;
    let Some((line, name)) = name else {
        return problem(root.line, "the flow has no name", "begin the file with `flow: NAME`");
    };
    if !crate::is_flow_name(&name) {
        return problem(line, format!("invalid name {name:?}"), "use letters, digits, `-`, `_` and `.`, 48 at most");
    }
    let Some(steps) = fields.get("steps") else {
        return problem(root.line, "the flow has no steps", "add `steps:` and a list of them");
    };
    let mut known = vec!["input".to_owned(), "flow".to_owned()];
    let steps = self::steps(steps, &mut known, count, true)?;
    let result = fields.text("result")?;
    if let Some((line, text)) = &result {
        let names = pieces(text, *line)?.into_iter().filter_map(|piece| match piece {
            Piece::Name(name) => Some(name),
            Piece::Text(_) => None,
        });
        must_know(&names.collect::<Vec<_>>(), &known, *line)?;
    }
    let flows = match fields.get("flows") {
        None => Vec::new(),
        Some(node) if is_top => flows(node, &name, count)?,
        Some(node) => return problem(node.line, "`flows` inside `flows`", "move it out"),
    };
    Ok(Definition { name, steps, result: result.map(|(_, text)| text), flows })
}

/// The flows that the steps of this file start.
fn flows(node: &Node, own: &str, count: &mut usize) -> Result<Vec<Definition>, Problem> {
    let Kind::List(list) = &node.kind else {
        return problem(
            node.line,
            format!("expected a list of flows, found {}", node.word()),
            "begin each with `- flow:`",
        );
    };
    let mut flows: Vec<Definition> = Vec::new();
    for one in list {
        let read = definition(one, count, false)?;
        if read.name == own || flows.iter().any(|other| other.name == read.name) {
            let hint = "give each flow a name of its own";
            return problem(one.line, format!("a flow {:?} is there already", read.name), hint);
        }
        flows.push(read);
    }
    Ok(flows)
}

fn steps(node: &Node, known: &mut Vec<String>, count: &mut usize, is_top: bool) -> Result<Vec<Step>, Problem> {
    let Kind::List(list) = &node.kind else {
        return problem(
            node.line,
            format!("expected a list of steps, found {}", node.word()),
            "begin each step with `- `",
        );
    };
    if list.is_empty() {
        return problem(
            node.line,
            "the list of steps is empty",
            "add one, for example `- run: Hello` and `command: echo hello`",
        );
    }
    let mut steps = Vec::new();
    let mut names = Vec::new();
    for one in list {
        *count += 1;
        if *count > STEPS_MAX {
            return problem(one.line, format!("more than {STEPS_MAX} steps"), "split them into several flows");
        }
        // Steps that run at once do not know of each other.
        let step = step(one, known, count, is_top)?;
        let new: Vec<String> = match &step {
            Step::All(steps) | Step::Race(steps) => steps.iter().map(|step| step.name().to_owned()).collect(),
            Step::Sleep { .. } => Vec::new(),
            step => vec![step.name().to_owned()],
        };
        if let Some(twice) = new.iter().find(|name| known.contains(name) || names.contains(*name)) {
            return problem(
                one.line,
                format!("a step or word {twice:?} is there already"),
                "give each step a name of its own",
            );
        }
        if is_top {
            known.extend(new)
        } else {
            names.extend(new)
        }
        steps.push(step);
    }
    Ok(steps)
}

fn step(node: &Node, known: &mut Vec<String>, count: &mut usize, is_top: bool) -> Result<Step, Problem> {
    let kinds: Vec<&str> = KEYS[1..].iter().map(|(kind, _)| *kind).collect();
    let Kind::Map(map) = &node.kind else {
        return problem(node.line, format!("a step is a map, not {}", node.word()), "for example `- sleep: 5s`");
    };
    let said: Vec<&str> = map.iter().map(|(key, _)| key.as_str()).filter(|key| kinds.contains(key)).collect();
    let [kind] = said.as_slice() else {
        let (what, hint) = match said.as_slice() {
            [] => {
                ("the step does not say what to do".to_owned(), format!("begin it with one of: {}", kinds.join(", ")))
            }
            many => (format!("the step says both `{}`", many.join("` and `")), "make two steps of it".to_owned()),
        };
        return problem(node.line, what, hint);
    };
    let fields = Fields::of(node, kind)?;
    let line = node.line;
    match *kind {
        "run" => run(&fields, known, line).map(Step::Run),
        "sleep" => {
            let ms = fields.duration("sleep")?.ok_or_else(|| missing(line, "sleep", "for example `sleep: 5s`"))?;
            let name = fields.name("name")?.unwrap_or_else(|| "Timer".to_owned());
            Ok(Step::Sleep { name, ms })
        }
        "ask" => {
            let (at, text) = fields.text("ask")?.ok_or_else(|| missing(line, "ask", "write the question behind it"))?;
            plain_names(&text, known, at)?;
            let options = fields.list("options")?;
            let expect = fields.text("expect")?;
            if let Some((at, expect)) = expect.as_ref().filter(|(_, one)| !options.is_empty() && !options.contains(one))
            {
                return problem(
                    *at,
                    format!("{expect:?} is not one of the options"),
                    format!("options: {}", options.join(", ")),
                );
            }
            let name = fields.name("name")?.unwrap_or_else(|| "Ask".to_owned());
            Ok(Step::Ask {
                name,
                text,
                options,
                expires_ms: fields.duration("expires")?,
                expect: expect.map(|one| one.1),
            })
        }
        "signal" => {
            let name =
                fields.name("signal")?.ok_or_else(|| missing(line, "signal", "write the signal's name behind it"))?;
            let expect = fields.text("expect")?.map(|(_, text)| text);
            Ok(Step::Signal { name, timeout_ms: fields.duration("timeout")?, expect })
        }
        "wait" => wait(&fields, line),
        "child" => child(&fields, known, line),
        kind @ ("all" | "race") => {
            if !is_top {
                return problem(line, format!("`{kind}` inside `all` or `race`"), "move it out");
            }
            let inner = fields
                .get(kind)
                .map_or_else(|| problem(line, "no steps", ""), |list| steps(list, known, count, false))?;
            Ok(if kind == "all" { Step::All(inner) } else { Step::Race(inner) })
        }
        other => problem(line, format!("unknown step `{other}`"), ""),
    }
}

fn run(fields: &Fields<'_>, known: &[String], line: usize) -> Result<Run, Problem> {
    let name = fields.name("run")?.ok_or_else(|| missing(line, "run", "write the step's name behind it"))?;
    let hint = "add what the shell is to execute: `command: …`";
    let (at, command) = fields.text("command")?.ok_or_else(|| missing(line, "command", hint))?;
    must_know(&names_in_command(&command, at)?, known, at)?;
    let undo = match fields.text("undo")? {
        None => None,
        Some((at, undo)) => {
            let mut known = known.to_vec();
            known.push("output".into());
            must_know(&names_in_command(&undo, at)?, &known, at)?;
            Some(undo)
        }
    };
    let retries = match fields.text("retries")? {
        None => 0,
        Some((at, text)) => match text.parse::<u32>() {
            Ok(number) if number <= 1_000 => number,
            _ => return problem(at, format!("invalid number {text:?} for `retries`"), "use 0 to 1000"),
        },
    };
    let on_lost = match fields.text("on_lost")? {
        None => OnLost::Ask,
        Some((at, text)) => match text.as_str() {
            "ask" => OnLost::Ask,
            "again" => OnLost::Again,
            "fail" => OnLost::Fail,
            _ => return problem(at, format!("invalid value {text:?} for `on_lost`"), "use ask, again or fail"),
        },
    };
    let (backoff_ms, timeout_ms) = (fields.duration("backoff")?.unwrap_or(0), fields.duration("timeout")?);
    let session = fields.text("session")?.map(|(_, text)| text);
    Ok(Run { name, command, session, retries, backoff_ms, timeout_ms, undo, on_lost, undoes: None })
}

fn wait(fields: &Fields<'_>, line: usize) -> Result<Step, Problem> {
    let (_, session) = fields.text("wait")?.ok_or_else(|| missing(line, "wait", "write the session behind it"))?;
    let (at, what) = fields.text("for")?.unwrap_or_else(|| (line, "exit".to_owned()));
    let until = match what.as_str() {
        "exit" => WaitFor::Exit,
        "idle" => WaitFor::Idle,
        "waiting" => WaitFor::Waiting,
        other => match other.strip_prefix("port:").and_then(|port| port.parse().ok()) {
            Some(port) => WaitFor::Port(port),
            None => {
                return problem(at, format!("invalid value {what:?} for `for`"), "use exit, idle, waiting or port:N");
            }
        },
    };
    let name = fields.name("name")?.unwrap_or_else(|| "Wait".to_owned());
    Ok(Step::Wait { name, session, until, timeout_ms: fields.duration("timeout")? })
}

fn child(fields: &Fields<'_>, known: &[String], line: usize) -> Result<Step, Problem> {
    let name = fields.name("child")?.ok_or_else(|| missing(line, "child", "write the step's name behind it"))?;
    let (at, flow) = fields.text("flow")?.unwrap_or_else(|| (line, name.clone()));
    if !crate::is_flow_name(&flow) {
        let hint =
            "use letters, digits, `-`, `_` and `.`, 48 at most; `flow: NAME` names it where the step has another name";
        return problem(at, format!("invalid flow name {flow:?}"), hint);
    }
    let input = fields.text("input")?;
    if let Some((at, text)) = &input {
        plain_names(text, known, *at)?;
    }
    Ok(Step::Child { name, flow, input: input.map(|(_, text)| text) })
}

fn plain_names(text: &str, known: &[String], line: usize) -> Result<(), Problem> {
    let names = pieces(text, line)?.into_iter().filter_map(|piece| match piece {
        Piece::Name(name) => Some(name),
        Piece::Text(_) => None,
    });
    must_know(&names.collect::<Vec<_>>(), known, line)
}

fn must_know(names: &[String], known: &[String], line: usize) -> Result<(), Problem> {
    let first = |name: &String| name.split('.').next().unwrap_or_default().to_owned();
    match names.iter().find(|name| !known.contains(&first(name))) {
        None => Ok(()),
        Some(name) => {
            let hint = format!("known here: {}", known.join(", "));
            problem(line, format!("{{{{ {name} }}}} stands for nothing"), hint)
        }
    }
}

fn missing(line: usize, key: &str, hint: &str) -> Problem {
    Problem { line, message: format!("`{key}` is missing or empty"), hint: hint.to_owned() }
}

/// The fields of a map, of which every key is known.
struct Fields<'a>(&'a [(String, Node)]);

impl<'a> Fields<'a> {
    fn of(node: &'a Node, what: &str) -> Result<Fields<'a>, Problem> {
        let Kind::Map(map) = &node.kind else {
            return problem(
                node.line,
                format!("expected a map, found {}", node.word()),
                "begin the file with `flow: NAME`",
            );
        };
        let keys = KEYS.iter().find(|(kind, _)| *kind == what).map_or(&[][..], |(_, keys)| keys);
        match map.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
            None => Ok(Fields(map)),
            Some((key, node)) => {
                problem(node.line, format!("unknown key `{key}`"), format!("known here: {}", keys.join(", ")))
            }
        }
    }

    fn get(&self, key: &str) -> Option<&'a Node> {
        self.0.iter().find(|(one, _)| one == key).map(|(_, node)| node)
    }

    fn text(&self, key: &str) -> Result<Option<(usize, String)>, Problem> {
        match self.get(key) {
            None => Ok(None),
            Some(Node { line, kind: Kind::Text(text) }) if !text.trim().is_empty() => Ok(Some((*line, text.clone()))),
            Some(node) => problem(node.line, format!("`{key}` must be text, not {}", node.word()), "put it in quotes"),
        }
    }

    fn name(&self, key: &str) -> Result<Option<String>, Problem> {
        let Some((line, name)) = self.text(key)? else { return Ok(None) };
        let fits = |c: char| c.is_alphanumeric() || "_- ".contains(c);
        if name.len() > NAME_BYTES_MAX || !name.chars().all(fits) {
            let hint = format!("use letters, digits, `-`, `_` and spaces, {NAME_BYTES_MAX} bytes at most");
            return problem(line, format!("invalid name {name:?}"), hint);
        }
        Ok(Some(name))
    }

    fn duration(&self, key: &str) -> Result<Option<u64>, Problem> {
        let Some((line, text)) = self.text(key)? else { return Ok(None) };
        match duration_ms(&text) {
            Ok(ms) => Ok(Some(ms)),
            Err(_) => problem(
                line,
                format!("invalid duration {text:?} for `{key}`"),
                "use a number and ms, s, m, h, d or w, for example 30s",
            ),
        }
    }

    fn list(&self, key: &str) -> Result<Vec<String>, Problem> {
        let Some(node) = self.get(key) else { return Ok(Vec::new()) };
        let Kind::List(list) = &node.kind else {
            return problem(node.line, format!("`{key}` must be a list, not {}", node.word()), "for example [yes, no]");
        };
        let text = |node: &Node| match &node.kind {
            Kind::Text(text) => Ok(text.clone()),
            _ => problem(node.line, format!("`{key}` must be a list of texts"), "put them in quotes"),
        };
        list.iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        parse(text).map_or_else(|problem| problem.to_string(), |_| "fine".into())
    }

    #[test]
    fn a_problem_names_its_line_and_its_remedy() {
        let head = "flow: Pizza\nsteps:\n";
        for (text, says) in [
            ("", "line 1: the file is empty"),
            ("flow: a b\nsteps: []", "line 1: invalid name \"a b\"; use letters"),
            ("steps:\n- sleep: 5s", "line 1: the flow has no name; begin the file with `flow: NAME`"),
            (
                &format!("{head}- slep: 5s"),
                "line 3: the step does not say what to do; begin it with one of: run, sleep",
            ),
            (&format!("{head}- sleep: 5"), "line 3: invalid duration \"5\" for `sleep`; use a number and ms"),
            (&format!("{head}- run: A\n  comand: x"), "line 4: unknown key `comand`; known here: run, command"),
            (&format!("{head}- run: A"), "line 3: `command` is missing or empty; add what the shell"),
            (
                &format!("{head}- run: A\n  command: echo {{{{ B }}}}"),
                "line 4: {{ B }} stands for nothing; known here: input, flow",
            ),
            (
                &format!("{head}- run: A\n  command: echo '{{{{ input }}}}'"),
                "line 4: {{ input }} is inside quotes; write",
            ),
            (
                &format!("{head}- run: A\n  command: a\n- run: A\n  command: b"),
                "line 5: a step or word \"A\" is there already",
            ),
            (
                &format!("{head}- ask: x?\n  options: [a, b]\n  expect: c"),
                "line 5: \"c\" is not one of the options; options: a, b",
            ),
            (&format!("{head}- run: A\n  sleep: 5s"), "line 3: the step says both `run` and `sleep`"),
            (&format!("{head}- all:\n  - all:\n    - sleep: 1s"), "line 4: `all` inside `all` or `race`"),
            (
                &format!("{head}- wait: web\n  for: port"),
                "line 4: invalid value \"port\" for `for`; use exit, idle, waiting or port:N",
            ),
            (&format!("{head}- child: A b"), "line 3: invalid flow name \"A b\"; use letters"),
            (&format!("{head}- child: A\n  input: '{{{{ B }}}}'"), "line 4: {{ B }} stands for nothing"),
            (
                &format!("{head}- sleep: 1s\nflows:\n- flow: Pizza\n  steps:\n  - sleep: 1s"),
                "line 5: a flow \"Pizza\" is there already",
            ),
            (&format!("{head}- run: A\n  command: [a]"), "line 4: `command` must be text, not a list"),
            ("flow: [", "this is not YAML"),
        ] {
            let told = told(text);
            assert!(told.contains(says), "{text:?}\n  told {told}\n  want {says}");
        }
    }

    #[test]
    fn what_grows_when_it_is_read_is_refused() {
        assert!(told("a: &x [1]\nb: *x").contains("anchors are not supported"));
        assert!(told("flow: !!str x").contains("tags are not supported"));
        assert!(told(&format!("flow: {}{}", "[".repeat(9), "]".repeat(9))).contains("deep"));
        assert_ne!(told(&format!("flow: {}{}", "[".repeat(10_000), "]".repeat(10_000))), "fine");
        assert!(told(&"x".repeat(super::super::YAML_BYTES_MAX + 1)).contains("longer than"));
        let many = format!("flow: A\nsteps:\n{}", "- sleep: 1s\n".repeat(STEPS_MAX + 1));
        assert!(told(&many).contains("more than 1000 steps"));
        assert!(told("flow: A\nsteps:\n- sleep: 1s\n---\nx: 1").contains("second document"));
    }
}
