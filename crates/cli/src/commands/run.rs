//! `holdfast run`: a command with an end and a status, in a session's shell or in a session of its own.

use super::new;
use crate::args::{NewArgs, RunArgs, RunCommand, RunOutputArgs, RunStartArgs};
use crate::expect::{Expect, Expected, Outcome};
use crate::failure::{Failure, STATUS_TIMEOUT, STATUS_USAGE};
use crate::here::{Here, Link};
use crate::show::{columns, cut, print, print_json, say, span, table, visible};
use crate::values::Seconds;
use holdfast_authority::{Ask, recorded};
use holdfast_screen::{PlainText, SettledText};
use holdfast_types::terms_of;
use holdfast_wire::attention::Until;
use holdfast_wire::operations::op;
use holdfast_wire::params::{Gap, SessionView, WaitParams};
use holdfast_wire::runs::{
    OnExit, RunAnswer, RunCancelParams, RunEnd, RunId, RunListParams, RunOutputParams, RunParams, RunRef,
    RunStartParams, RunState, RunView,
};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a question waits at the host before it is asked again, and the host looks anew: should a word of the end ever be
/// missed, it costs no more than this.
const WAIT_MS: u64 = 20_000;
/// How long an interrupted run may take to end before we say that it goes on.
const CANCEL_WAIT_MS: u64 = 5_000;
/// Columns of a command in a list.
const COMMAND_COLUMNS: usize = 60;

/// `holdfast run`.
pub fn run(here: &Here, args: &RunArgs) -> Result<u8, Failure> {
    if args.about.is_some() && args.start.is_given() {
        let hint = "to run a command, put -- before it; put options of `run status` and similar after that word";
        return Err(Failure::new("usage", "cannot combine a command to run with a `run` subcommand")
            .hint(hint)
            .status(STATUS_USAGE));
    }
    match &args.about {
        None => start(here, &args.start),
        Some(RunCommand::Ls(args)) => list(here, args.session.clone()),
        Some(RunCommand::Status(args)) => status(here, &args.run),
        Some(RunCommand::Wait(args)) => {
            let mut link = here.link()?;
            let answer = wait(&mut link, &args.of.run, deadline(args.timeout))?;
            end_as(here, &mut link, &answer, &args.expect.expect, false)
        }
        Some(RunCommand::Output(args)) => output(here, args),
        Some(RunCommand::Cancel(args)) => cancel(here, &args.run),
    }
}

fn start(here: &Here, args: &RunStartArgs) -> Result<u8, Failure> {
    let until = deadline(args.timeout);
    let mut link = here.link()?;
    let answer = match &args.session {
        Some(session) => {
            let session = link.get(session)?;
            if args.separate_stderr {
                return Err(Failure::new("usage", "--separate-stderr needs --new: a shell has one terminal for both")
                    .hint("or redirect in the command: 2> FILE")
                    .status(STATUS_USAGE));
            }
            start_in(&mut link, &session, args, until)?
        }
        None => start_new(here, &mut link, args, until)?,
    };
    let existing = answer.existing;
    let answer = if answer.run.state.is_over() { answer } else { wait(&mut link, &answer.run.id.into(), until)? };
    let answer = RunAnswer { existing, ..answer };
    end_as(here, &mut link, &answer, &args.expect.expect, true)
}

/// Runs it in a session's shell, once: where the answer is lost, the same id is asked for again.
fn start_in(
    link: &mut Link<'_>,
    session: &SessionView,
    args: &RunStartArgs,
    until: Option<Instant>,
) -> Result<RunAnswer, Failure> {
    let command = match args.command.as_slice() {
        [text] => text.clone(),
        words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    };
    let (on_exit, contract) = (on_exit(args)?, super::contract::given(args)?);
    let key = args.key.clone().unwrap_or_default();
    let ask = Ask::Run { key, command: recorded(&command).into_owned() };
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|e| Failure::new("io", format!("cannot get random bytes: {e}")))?;
    let run = RunId::from_random_bits(u128::from_le_bytes(bits));
    let params = |proof| RunStartParams {
        session: Some(session.id.to_string()),
        new: None,
        keep: false,
        separate_stderr: false,
        key: args.key.clone(),
        shared: args.shared,
        run: Some(run),
        command: command.clone(),
        wait_ms: wait_ms(until),
        approval_wait_ms: args.wait_approval.map_or(0, |wait| wait.ms),
        intent: args.intent.clone(),
        contract: contract.clone(),
        detect: args.detect.clone(),
        on_exit: on_exit.clone(),
        proof,
    };
    let answer = loop {
        match link.act::<op::RunStart>(session, &ask, &params) {
            // Its shell still reads its own files.
            Err(refused) if refused.is_starting() && until.is_none_or(|at| Instant::now() < at) => {}
            answer => break answer?,
        }
        let (session, timeout_ms) = (session.id.to_string(), Some(wait_ms(until)));
        link.call::<op::Wait>(&WaitParams { session, timeout_ms, until: Until::Idle })?;
    };
    // Asked again after a host was killed it is there already, and ours all the same.
    let existing = answer.existing && args.key.is_some() && answer.run.id != run;
    Ok(RunAnswer { existing, ..answer })
}

/// Where to post its end.
fn on_exit(args: &RunStartArgs) -> Result<Option<OnExit>, Failure> {
    let Some(url) = args.on_exit.clone() else { return Ok(None) };
    let line = |file: &PathBuf| match std::fs::read_to_string(file) {
        Ok(text) => Ok(text.lines().next().unwrap_or_default().to_owned()),
        Err(error) => Err(Failure::io(format!("cannot read the secret in {}", file.display()), error)),
    };
    let secret = args.on_exit_secret.as_ref().map(line).transpose()?;
    Ok(Some(OnExit { url, secret }))
}

/// Runs it in a session of its own.
fn start_new(
    here: &Here,
    link: &mut Link<'_>,
    args: &RunStartArgs,
    until: Option<Instant>,
) -> Result<RunAnswer, Failure> {
    let (name, command, user) = (args.name.clone(), args.command.clone(), args.user.clone());
    let wanted = NewArgs { name, detach: true, command, user, ..NewArgs::default() };
    let new = new::params(here, &wanted)?;
    let params = RunStartParams {
        session: None,
        // The words are the command: the host calls the run by them.
        command: String::new(),
        new: Some(Box::new(new)),
        keep: args.keep,
        separate_stderr: args.separate_stderr,
        key: args.key.clone(),
        shared: args.shared,
        run: None,
        wait_ms: wait_ms(until),
        approval_wait_ms: args.wait_approval.map_or(0, |wait| wait.ms),
        intent: args.intent.clone(),
        contract: super::contract::given(args)?,
        detect: None,
        on_exit: on_exit(args)?,
        proof: None,
    };
    if args.key.is_some() {
        return link.call::<op::RunStart>(&params);
    }
    Ok(link.once::<op::RunStart>(&params, &[])?.0)
}

/// A word as every shell of ours takes it for what it is.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    // Neither a quote nor a backslash stands inside quotes: fish reads both differently there.
    let mut out = String::from("'");
    for c in word.chars() {
        match c {
            '\'' => out.push_str(r"'\''"),
            '\\' => out.push_str(r"'\\'"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

fn deadline(timeout: Option<Seconds>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(Duration::from_millis(timeout.ms)))
}

fn wait_ms(until: Option<Instant>) -> u64 {
    until.map_or(WAIT_MS, |at| (at.saturating_duration_since(Instant::now()).as_millis() as u64).min(WAIT_MS))
}

fn wait(link: &mut Link<'_>, run: &RunRef, until: Option<Instant>) -> Result<RunAnswer, Failure> {
    loop {
        let answer = link.call::<op::RunGet>(&RunParams { run: run.clone(), wait_ms: wait_ms(until) })?;
        if answer.run.state.is_over() || until.is_some_and(|at| at <= Instant::now()) {
            return Ok(answer);
        }
    }
}

/// A run in JSON, and whether it came out as expected.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    answer: &'a RunAnswer,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<&'a Expected>,
}

/// Shows a run's output and ends as it did, or as it came out against what was expected.
fn end_as(
    here: &Here,
    link: &mut Link<'_>,
    answer: &RunAnswer,
    expects: &[Expect],
    with_output: bool,
) -> Result<u8, Failure> {
    let run = &answer.run;
    let expected = expected_of(link, answer, expects)?;
    if here.json {
        print_json(&Shown { answer, expected: expected.as_ref() })?;
    } else if with_output {
        match answer.truncated {
            false => print(&answer.output)?,
            true => match print_output(link, &run.id.into(), true) {
                // Only its key knew it still.
                Err(failure) if failure.is("no_such_run") => say("its output is no longer available"),
                printed => printed?,
            },
        }
        if let Some(text) = &answer.stderr {
            // Whoever reads it may have gone.
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
    }
    let fail = |code: &str, message: String, status: u8| {
        if here.json { Ok(status) } else { Err(Failure::new(code, message).status(status)) }
    };
    match (run.state, run.exit_code) {
        (RunState::Starting | RunState::Running, _) => {
            let hint = format!(
                "wait for it: holdfast run wait {}; or see what it is doing: holdfast state {}",
                run.id, run.name
            );
            match fail("timeout", format!("{} is still running in {}", run.id, run.name), STATUS_TIMEOUT) {
                Err(failure) => Err(failure.hint(hint)),
                status => status,
            }
        }
        (RunState::Lost, _) if run.end == Some(RunEnd::NotStarted) => {
            let failed = fail("lost", format!("{} is lost: the host stopped before the command was typed", run.id), 1);
            failed.map_err(|failure| failure.hint("nothing was run; run it again, with another key if it had one"))
        }
        (RunState::Lost, _) => {
            let failed =
                fail("lost", format!("{} is lost: the command may have run; its status is unknown", run.id), 1);
            failed.map_err(|failure| failure.hint("check what it did before you run it again"))
        }
        (RunState::Ended | RunState::Cancelled, code) if run.end == Some(RunEnd::NotStarted) => {
            let status = code.map(status_of).filter(|status| *status != 0).unwrap_or(STATUS_USAGE);
            fail("not_started", format!("the shell of {} did not accept it as a command", run.name), status)
        }
        (RunState::Ended | RunState::Cancelled, code) => match (expected, code) {
            // What it did beyond its contract comes before how it ended.
            (expected, code) if broken(run).is_some() => {
                let unmet = expected.filter(|expected| !expected.met).is_some();
                let status = code.map(status_of).filter(|status| *status != 0 && unmet).unwrap_or(1);
                let hint = format!("see all of it: holdfast trace {}", run.id);
                let failed = fail("contract_broken", broken(run).unwrap_or_default(), status);
                failed.map_err(|failure| failure.hint(hint))
            }
            (Some(Expected { met: true, .. }), _) => Ok(0),
            (Some(Expected { unmet, .. }), code) => {
                let status = code.map(status_of).filter(|status| *status != 0).unwrap_or(1);
                fail("unexpected", format!("expectation failed: {}", unmet.join("; ")), status)
            }
            (None, Some(code)) => Ok(status_of(code)),
            (None, None) if run.end == Some(RunEnd::Inferred) => Ok(0),
            (None, None) => fail("unknown_end", format!("{} has ended, but its exit status is unknown", run.id), 1),
        },
    }
}

/// What a run did beyond its contract, in a sentence.
fn broken(run: &RunView) -> Option<String> {
    let outcome = run.outcome.as_ref().filter(|outcome| outcome.unexpected_count > 0)?;
    let named = outcome.unexpected.iter().take(3).map(|one| format!("{} {}", one.kind, visible(&one.what)));
    let named = named.collect::<Vec<_>>().join("; ");
    let more = outcome.unexpected_count.saturating_sub(3);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("effects beyond the contract: {named}{more}"))
}

fn status_of(exit_code: i32) -> u8 {
    exit_code.rem_euclid(256) as u8
}

/// Holds a run that is over against what was expected of it. A run with an unknown status meets no expectation.
fn expected_of(link: &mut Link<'_>, answer: &RunAnswer, expects: &[Expect]) -> Result<Option<Expected>, Failure> {
    let run = &answer.run;
    if expects.is_empty() || !run.state.is_over() {
        return Ok(None);
    }
    if run.state == RunState::Lost || !matches!(run.end, Some(RunEnd::Exact | RunEnd::Inferred)) {
        let unmet = expects.iter().map(|expect| expect.given().to_owned()).collect();
        return Ok(Some(Expected { met: false, unmet }));
    }
    let mut text = answer.output.clone().into_bytes();
    let mut whole = !answer.truncated;
    if answer.truncated && expects.iter().any(Expect::is_of_text) {
        (text, whole) = match whole_text(link, &run.id.into()) {
            Err(failure) if failure.is("no_such_run") => (Vec::new(), false),
            read => read?,
        };
    }
    Ok(Some(Expected::of(expects, Outcome { exit_code: run.exit_code, text: &text, whole })))
}

/// A run's output as text, and whether all of it is still kept.
fn whole_text(link: &mut Link<'_>, run: &RunRef) -> Result<(Vec<u8>, bool), Failure> {
    let (mut text, mut whole) = (Vec::new(), true);
    let mut plain = PlainText::new();
    each_piece(link, run, |gap, bytes| {
        whole &= gap.is_none();
        plain.feed(bytes, &mut text);
        Ok(())
    })?;
    Ok((text, whole))
}

fn status(here: &Here, run: &RunRef) -> Result<u8, Failure> {
    let answer = here.link()?.call::<op::RunGet>(&RunParams { run: run.clone(), wait_ms: 0 })?;
    if here.json {
        print_json(&answer)?;
        return Ok(0);
    }
    let RunAnswer { run, truncated, .. } = &answer;
    let mut text = format!("{}  {}\n", run.id, outcome(run));
    text.push_str(&format!("  command   {}\n", cut(&visible(&run.command), COMMAND_COLUMNS * 2)));
    text.push_str(&format!("  session   {}\n", run.name));
    text.push_str(&format!("  by        {}\n", run.actor.handle));
    text.push_str(&format!("  took      {} ms\n", run.duration_ms));
    text.push_str(&format!("  output    {} to {}{}\n", run.from, run.to, if *truncated { ", long" } else { "" }));
    if let Some(outcome) = &run.outcome {
        let count = outcome.unexpected_count;
        let beyond = if count > 0 { format!(", {count} effects beyond it") } else { String::new() };
        text.push_str(&format!("  contract  {}{beyond}\n", outcome.validity.word()));
    }
    if let Some(cwd) = &run.cwd {
        text.push_str(&format!("  directory {}\n", visible(cwd)));
    }
    print(text)?;
    Ok(0)
}

/// Where it stands, and its status.
fn outcome(run: &RunView) -> String {
    let how = match run.end {
        Some(RunEnd::Unknown) if run.state == RunState::Lost => " (may have run)",
        Some(RunEnd::Inferred) => " (inferred from the terminal)",
        Some(RunEnd::NotStarted) => " (not started)",
        Some(RunEnd::Unknown) => " (status unknown)",
        Some(RunEnd::Exact) | None => "",
    };
    match run.exit_code {
        Some(code) => format!("{} {code}{how}", run.state.word()),
        None => format!("{}{how}", run.state.word()),
    }
}

fn list_of(link: &mut Link<'_>, session: Option<String>) -> Result<Vec<RunView>, Failure> {
    link.call::<op::RunList>(&RunListParams { session })
}

/// The ids of all runs, one a line; completes nothing where no host runs.
pub fn ids(here: &Here) -> Result<u8, Failure> {
    // Pressing Tab must not create a key.
    let Some(who) = here.who_if_there() else { return Ok(0) };
    let Ok(mut connection) = holdfast_client::connect(&here.home, &who) else { return Ok(0) };
    let runs = connection.call::<op::RunList>(&RunListParams { session: None })?;
    print(runs.iter().map(|run| format!("{}\n", run.id)).collect::<String>())?;
    Ok(0)
}

fn list(here: &Here, session: Option<String>) -> Result<u8, Failure> {
    let runs = list_of(&mut here.link()?, session)?;
    if here.json {
        print_json(&runs)?;
        return Ok(0);
    }
    let head = ["RUN", "STATE", "TOOK", "SESSION", "COMMAND"].map(str::to_owned).to_vec();
    let row = |run: &RunView| {
        let (took, command) = (span(run.duration_ms), cut(&visible(&run.command), COMMAND_COLUMNS));
        vec![run.id.to_string(), outcome(run), took, run.name.to_string(), command]
    };
    let rows: Vec<_> = std::iter::once(head).chain(runs.iter().map(row)).collect();
    let lines = if runs.is_empty() { vec!["no runs".to_owned()] } else { table(&rows, columns()) };
    print(lines.join("\n") + "\n")?;
    Ok(0)
}

fn output(here: &Here, args: &RunOutputArgs) -> Result<u8, Failure> {
    print_output(&mut here.link()?, &args.of.run, args.plain)?;
    Ok(0)
}

fn print_output(link: &mut Link<'_>, run: &RunRef, plain: bool) -> Result<(), Failure> {
    // How wide its terminal is does not matter: no shell draws here.
    let mut text = SettledText::new(0);
    each_piece(link, run, |gap, bytes| {
        if let Some(gap) = gap {
            say(&format!("output from byte {} to {} is no longer kept", gap.from, gap.to));
        }
        if !plain {
            return print(bytes);
        }
        let mut shown = Vec::new();
        text.feed(bytes, &mut shown);
        print(shown)
    })?;
    let mut rest = Vec::new();
    text.finish(&mut rest);
    print(rest)
}

/// Reads a run's output piece by piece, with what is no longer kept before each.
fn each_piece(
    link: &mut Link<'_>,
    run: &RunRef,
    mut take: impl FnMut(Option<Gap>, &[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut from = None;
    loop {
        let params = RunOutputParams { run: run.clone(), from, max: None, wait_ms: 0 };
        let (answer, bytes) = link.call_with_bytes::<op::RunOutput>(&params, &[])?;
        take(answer.gap, &bytes)?;
        if answer.end || bytes.is_empty() {
            return Ok(());
        }
        from = Some(answer.to);
    }
}

fn cancel(here: &Here, run: &RunRef) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let found = link.call::<op::RunGet>(&RunParams { run: run.clone(), wait_ms: 0 })?;
    if found.run.state.is_over() {
        return cancelled(here, &found);
    }
    // What is signed names the run by its id.
    let run = found.run.id;
    let session = link.get(&found.run.session.to_string())?;
    let ask = Ask::other(const { terms_of("run.cancel") }, run.to_string());
    let params = |proof| RunCancelParams { run: run.into(), wait_ms: CANCEL_WAIT_MS, proof };
    cancelled(here, &link.act::<op::RunCancel>(&session, &ask, params)?)
}

fn cancelled(here: &Here, answer: &RunAnswer) -> Result<u8, Failure> {
    if here.json {
        print_json(answer)?;
    } else {
        print(format!("{}  {}\n", answer.run.id, outcome(&answer.run)))?;
    }
    Ok(if answer.run.state.is_over() { 0 } else { STATUS_TIMEOUT })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_so_that_bash_zsh_and_fish_take_them_alike() {
        for (word, text) in [
            ("ls", "ls"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            (r"a\b", r"'a'\\'b'"),
            ("$HOME", "'$HOME'"),
            ("a\nb", "'a\nb'"),
        ] {
            assert_eq!(quoted(word), text);
        }
    }
}
