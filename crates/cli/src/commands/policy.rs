//! `holdfast policy`: what the gate goes by, and what it says.

use super::journal::Source as Journal;
use crate::args::{PolicyCheckArgs, PolicyCommand, PolicyMayArgs, PolicyShowArgs, PolicyTestArgs, PolicyWhyArgs};
use crate::failure::{Failure, STATUS_USAGE};
use crate::here::Here;
use crate::show::{print, print_json, visible};
use holdfast_authority::journal::Entry;
use holdfast_authority::{Act, Outcome, Refusal};
use holdfast_gate::{
    Action, Facts, Judge, Lexical, Line, Origin, Policy, Principal, Problem, Request, Resource, Source, Surroundings,
    look,
};
use holdfast_host::{Choice, POLICY_DIR};
use holdfast_types::ActorClass;
use holdfast_wire::contracts::{RecordParams, RecordView};
use holdfast_wire::gate::{ApprovalListParams, ApprovalState, ApprovalView, MayAnswer, MayParams};
use holdfast_wire::operations::op;
use holdfast_wire::params::Nothing;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Approvals of one kind from which on something is suggested.
const SUGGEST_MIN: usize = 3;

/// Runs of one command from which on an actor is trusted with it, if all were valid.
const TRUST_MIN: u64 = 20;

/// `holdfast policy`.
pub fn policy(here: &Here, command: &PolicyCommand) -> Result<u8, Failure> {
    match command {
        PolicyCommand::Show(args) => show(here, args),
        PolicyCommand::Check(args) => check(here, args),
        PolicyCommand::Test(args) => test(here, args),
        PolicyCommand::Explain(args) => explain(here, args),
        PolicyCommand::May(args) => may(here, args),
        PolicyCommand::Why(args) => why(here, args),
        PolicyCommand::Suggest => suggest(here),
    }
}

fn show(here: &Here, args: &PolicyShowArgs) -> Result<u8, Failure> {
    let view = here.link()?.call::<op::PolicyGet>(&Nothing {})?;
    if let Some(wanted) = &args.rule {
        let Some(rule) = view.rules.iter().find(|rule| rule.id == *wanted) else {
            return Err(
                Failure::new("not_found", format!("no rule {wanted:?}")).hint("list them: holdfast policy show")
            );
        };
        if here.json {
            print_json(rule)?;
        } else {
            print(format!("{}:{}\n{}\n", rule.file, rule.line, rule.text))?;
        }
        return Ok(0);
    }
    if here.json {
        print_json(&view)?;
        return Ok(0);
    }
    let mut text = format!("policy     {}\ndirectory  {}\n", view.policy, view.dir);
    view.files.iter().for_each(|file| text.push_str(&format!("file       {file}\n")));
    let per_hundred = (view.asked * 1000).checked_div(view.judged).unwrap_or(0);
    text.push_str(&format!(
        "judged     {} acts since the host started; {} asked a human ({}.{} per 100), {} denied\n",
        view.judged,
        view.asked,
        per_hundred / 10,
        per_hundred % 10,
        view.denied
    ));
    if !view.rules.is_empty() {
        text.push_str("\nRULE                    DOES    WHY\n");
    }
    for rule in &view.rules {
        text.push_str(&format!("{:<23} {:<7} {}\n", rule.id, rule.kind, rule.why));
    }
    for problem in &view.problems {
        text.push_str(&format!("\nnot loaded: {problem}\n"));
    }
    print(text)?;
    Ok(u8::from(!view.problems.is_empty()))
}

/// The policy that is configured, or the one that is named.
fn chosen(here: &Here, with: Option<&str>) -> Result<Choice, Failure> {
    match with {
        None => Ok(here.config()?.policy),
        Some(name) => name.parse().map_err(|why: String| Failure::new("usage", why).status(STATUS_USAGE)),
    }
}

/// The sources of a policy: the ready one, and files.
fn sources(choice: Choice, files: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let mut all: Vec<Source> = Source::ready(choice.word()).into_iter().collect();
    for file in files {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::io(format!("cannot read {}", file.display()), error))?;
        all.push(Source { file: file.display().to_string(), text, origin: Origin::Own });
    }
    Ok(all)
}

fn own_files(here: &Here) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(here.home.config.join(POLICY_DIR)).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "cedar"));
    files.sort();
    files
}

fn loaded(here: &Here, with: Option<&str>, files: &[PathBuf]) -> Result<Result<Policy, Vec<Problem>>, Failure> {
    let files = if files.is_empty() { own_files(here) } else { files.to_vec() };
    Ok(Policy::load(&sources(chosen(here, with)?, &files)?))
}

fn check(here: &Here, args: &PolicyCheckArgs) -> Result<u8, Failure> {
    let problems = match loaded(here, args.with.as_deref(), &args.files)? {
        Ok(policy) => {
            if here.json {
                print_json(&serde_json::json!({ "rules": policy.rules().len(), "problems": [] }))?;
            } else {
                print(format!("{} rules, no problems\n", policy.rules().len()))?;
            }
            return Ok(0);
        }
        Err(problems) => problems,
    };
    if here.json {
        let all: Vec<_> = problems.iter().map(as_json).collect();
        print_json(&serde_json::json!({ "problems": all }))?;
    } else {
        print(problems.iter().map(|problem| format!("{problem}\n")).collect::<String>())?;
    }
    Ok(1)
}

fn as_json(problem: &Problem) -> serde_json::Value {
    let Problem { file, line, column, message, help } = problem;
    serde_json::json!({ "file": file, "line": line, "column": column, "message": message, "help": help })
}

/// Judges a list of commands by a policy, here: no host is asked, and no file looked at.
fn test(here: &Here, args: &PolicyTestArgs) -> Result<u8, Failure> {
    let policy = loaded(here, args.with.as_deref(), &[])?.map_err(|problems| {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        Failure::new("policy", first).hint("see all problems: holdfast policy check")
    })?;
    let mut judge = Judge::new(policy);
    let cases = std::fs::read_to_string(&args.file)
        .map_err(|error| Failure::io(format!("cannot read {}", args.file.display()), error))?;
    let (mut count, mut wrong) = (0, Vec::new());
    for (n, line) in cases.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')) {
        let at = format!("{}:{}", args.file.display(), n + 1);
        let mut words = line.splitn(3, char::is_whitespace);
        let (Some(expected @ ("allow" | "ask" | "deny")), Some(actor), Some(command)) =
            (words.next(), words.next(), words.next())
        else {
            return Err(Failure::new("usage", format!("{at}: expected allow, ask or deny, an actor, and a command"))
                .hint("for example: deny agent:bot rm -rf /")
                .status(STATUS_USAGE));
        };
        let verdict = judge.decide(&request(actor, command.trim()));
        count += 1;
        if verdict.outcome.word() != expected {
            wrong.push(format!(
                "{at}: {} by {}, expected {expected}: {}",
                verdict.outcome.word(),
                verdict.rule,
                command.trim()
            ));
        }
    }
    if here.json {
        print_json(&serde_json::json!({ "cases": count, "wrong": wrong }))?;
    } else {
        print(wrong.iter().map(|one| format!("{one}\n")).collect::<String>())?;
        print(format!("{count} cases, {} wrong\n", wrong.len()))?;
    }
    Ok(u8::from(!wrong.is_empty()))
}

/// A command of an actor in a project, in a file system of which nothing is known.
fn request(actor: &str, command: &str) -> Request {
    let own = vec!["/home/user/.local/state/holdfast".into(), "/home/user/.config/holdfast".into()];
    let around = Surroundings::new("/home/user/project", "/home/user", None, own);
    let class = actor.split(':').next().unwrap_or_default().to_owned();
    Request {
        principal: Principal { handle: actor.to_owned(), class, record: holdfast_gate::Standing::default() },
        action: Action::Run,
        resource: Resource { id: String::new(), name: "test".into() },
        facts: Facts {
            line: command.to_owned(),
            seen: look(&Line::read(command), &around, &Lexical),
            cwd: around.cwd,
            home: around.home,
            state: "idle".into(),
            hour: 12,
            ..Facts::default()
        },
    }
}

fn asked(here: &Here, args: &PolicyMayArgs) -> Result<MayAnswer, Failure> {
    let here_dir = || std::env::current_dir().ok().map(|dir| dir.to_string_lossy().into_owned());
    let params = MayParams {
        command: args.command.join(" "),
        session: args.session.clone(),
        cwd: if args.session.is_some() { None } else { here_dir() },
        actor: args.actor.clone(),
    };
    here.link()?.call::<op::PolicyMay>(&params)
}

fn may(here: &Here, args: &PolicyMayArgs) -> Result<u8, Failure> {
    let answer = asked(here, args)?;
    if here.json {
        print_json(&answer)?;
    } else {
        let why = if answer.why.is_empty() { String::new() } else { format!(": {}", visible(&answer.why)) };
        let mut text = format!("{} by {}{why}\n", answer.outcome, answer.rule);
        answer.instead.iter().for_each(|one| text.push_str(&format!("  instead: {one}\n")));
        print(text)?;
    }
    Ok(match answer.outcome.as_str() {
        "allow" => 0,
        "ask" => 3,
        _ => 4,
    })
}

fn explain(here: &Here, args: &PolicyMayArgs) -> Result<u8, Failure> {
    let answer = asked(here, args)?;
    if here.json {
        print_json(&answer)?;
        return Ok(0);
    }
    let mut text = String::new();
    let mut row = |name: &str, all: &[String]| {
        let shown: Vec<String> = all.iter().map(|one| visible(one)).collect();
        text.push_str(&format!("{name:<10} {}\n", if shown.is_empty() { "-".to_owned() } else { shown.join(", ") }));
    };
    row("directory", std::slice::from_ref(&answer.cwd));
    row("parsed", &[if answer.parsed { "yes" } else { "no" }.to_owned()]);
    row("opaque", &answer.opaque);
    row("commands", &answer.names);
    row("writes", &answer.writes);
    row("deletes", &answer.deletes);
    row("risks", &answer.risks);
    let why = if answer.why.is_empty() { String::new() } else { format!(": {}", answer.why) };
    row("decision", &[format!("{} by {}{why}", answer.outcome, answer.rule)]);
    print(text)?;
    Ok(0)
}

/// What the journal says of an act.
fn why(here: &Here, args: &PolicyWhyArgs) -> Result<u8, Failure> {
    let mut journal = Journal::of_session(here.link()?, &args.session)?;
    let mut found: Option<Entry> = None;
    while let Some(batch) = journal.next(false)? {
        let entries = batch.iter().filter_map(|line| holdfast_authority::journal::entry(&line.bytes).ok());
        found = found.or_else(|| entries.into_iter().find(|entry| entry.seq == args.act));
        if found.is_some() {
            break;
        }
    }
    let Some(entry) = found else {
        return Err(Failure::new("not_found", format!("{} has no act {} that is kept", args.session, args.act))
            .hint(format!("see its acts: holdfast journal {}", args.session)));
    };
    let record = &entry.record;
    let (outcome, rule, text) = match (&record.outcome, &record.gate) {
        (Outcome::Refused(Refusal::Forbidden { rule, why }), _) => ("denied", rule.clone(), why.clone()),
        (Outcome::Refused(Refusal::ApprovalNeeded { rule, why, approval }), _) => {
            ("held", rule.clone(), format!("{why} ({approval})"))
        }
        (Outcome::Refused(refusal), _) => ("refused", refusal.code().to_owned(), refusal.to_string()),
        (Outcome::Done, Some(gate)) => (
            "allowed",
            gate.rule.clone(),
            gate.approval.as_ref().map_or_else(String::new, |id| format!("approved: {id}")),
        ),
        (Outcome::Done, None) => ("allowed", "-".to_owned(), "no policy judged it".to_owned()),
    };
    let by = record.by.actor().map_or_else(|| "the host".to_owned(), ToString::to_string);
    let what = match &record.act {
        Act::Asked(ask) => ask.word().to_owned(),
        _ => "no act of an actor".to_owned(),
    };
    if here.json {
        let shaped = record.gate.as_ref().map(|gate| gate.shaped.clone()).unwrap_or_default();
        let act = serde_json::json!({ "act": entry.seq, "by": by, "what": what, "outcome": outcome, "rule": rule, "why": text, "shaped": shaped });
        print_json(&act)?;
    } else {
        let text = if text.is_empty() { text } else { format!(": {}", visible(&text)) };
        let shaped = match record.gate.as_ref().map(|gate| gate.shaped.as_slice()) {
            None | Some([]) => String::new(),
            Some(shaped) => format!("shaped by {}\n", visible(&holdfast_types::shapers_text(shaped))),
        };
        print(format!("{what} by {by} was {outcome} by {rule}{text}\n{shaped}"))?;
    }
    Ok(0)
}

/// What the answers of the past, and actors' records, say about the policy.
fn suggest(here: &Here) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let all = link.call::<op::ApprovalList>(&ApprovalListParams { session: None, all: true })?;
    let policy = link.call::<op::PolicyGet>(&Nothing {})?.policy;
    let mut suggestions = suggestions(&all);
    for known in link.call::<op::Actors>(&Nothing {})? {
        let handle = known.actor.handle;
        if handle.class() != ActorClass::Human {
            let record = link.call::<op::ActorRecord>(&RecordParams { handle, action: None })?;
            suggestions.extend(suggested(&record, &policy));
        }
    }
    if here.json {
        print_json(&suggestions)?;
    } else if suggestions.is_empty() {
        print("nothing to suggest: no command was approved, denied or run under a contract often enough\n")?;
    } else {
        print(suggestions.join("\n"))?;
    }
    Ok(0)
}

/// What an actor's record says: where it may be trusted with more, and where with less.
fn suggested(record: &RecordView, policy: &str) -> Vec<String> {
    let who = &record.actor.handle;
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let plain = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let mut out = Vec::new();
    for one in &record.actions {
        let (counts, action) = (&one.counts, quoted(&one.action));
        let id = format!("{}-{}", plain(&who.to_string()), plain(&one.action));
        let line = format!("context.names.contains(\"{action}\")");
        let evidence = format!(
            "{who} ran {} {} times under contracts: {} valid, {} succeeded, {} with unexpected effects, {} unknown",
            one.action, counts.runs, counts.valid, counts.succeeded, counts.unexpected, counts.unknown
        );
        let acts = "action in [Action::\"run\", Action::\"start\"]";
        if counts.unexpected > 0 {
            let last = one.last_unexpected.as_ref();
            let last =
                last.map_or_else(String::new, |last| format!("\n// The last: {} ({})", visible(&last.what), last.run));
            out.push(format!(
                "// Narrow: {evidence}.{last}\n@id(\"own.watch-{id}\")\n@ask(\"its last runs did more than they promised\")\n\
                 forbid (principal == Actor::\"{who}\", {acts}, resource)\nwhen {{ {line} && context.record.unexpected > 0 }};\n"
            ));
        } else if counts.valid == counts.runs && counts.runs >= TRUST_MIN {
            let trusted = format!("context.record.runs >= {TRUST_MIN} && context.record.valid == context.record.runs");
            out.push(match policy {
                "locked" => format!(
                    "// Widen: {evidence}.\n@id(\"own.trust-{id}\")\npermit (principal == Actor::\"{who}\", {acts}, resource)\n\
                     when {{ {line} && context has contract && {trusted} }};\n"
                ),
                _ => format!(
                    "// Widen: {evidence}.\n// To a rule of yours that asks about it, add:\n//   unless {{ context has contract && {trusted} }};\n"
                ),
            });
        }
    }
    out
}

fn suggestions(all: &[ApprovalView]) -> Vec<String> {
    let mut counts: BTreeMap<(String, String, String), (usize, usize)> = BTreeMap::new();
    for one in all.iter().filter(|one| !one.command.is_empty()) {
        let key = (one.by.handle.to_string(), one.command.clone(), one.rule.clone());
        let (yes, no) = counts.entry(key).or_default();
        match one.state {
            ApprovalState::Done | ApprovalState::Approved | ApprovalState::Failed => *yes += 1,
            ApprovalState::Denied => *no += 1,
            ApprovalState::Open | ApprovalState::Expired => {}
        }
    }
    let mut out = Vec::new();
    for ((who, command, rule), (yes, no)) in counts {
        let quoted = command.replace('\\', "\\\\").replace('"', "\\\"");
        if no == 0 && yes >= SUGGEST_MIN {
            out.push(format!(
                "# {who} asked {yes} times under {rule} and was approved each time.\n# Approve it for longer: holdfast approvals approve ID --for 480\n"
            ));
        } else if yes == 0 && no >= SUGGEST_MIN {
            out.push(format!(
                "# {who} asked {no} times under {rule} and was denied each time. To deny it without asking:\n@id(\"own.deny-{}\")\n@why(\"humans denied this {no} times\")\nforbid (principal == Actor::\"{who}\", action in [Action::\"run\", Action::\"start\"], resource)\nwhen {{ context.line == \"{quoted}\" }};\n",
                out.len() + 1
            ));
        }
    }
    out
}
