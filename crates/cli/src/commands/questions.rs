//! `holdfast ask`, `holdfast questions`, `holdfast answer`: an operator asks the humans, and one of them answers.

use crate::args::{AnswerArgs, AskArgs, QuestionsArgs};
use crate::everywhere::{self, called};
use crate::failure::{Failure, STATUS_TIMEOUT, STATUS_USAGE};
use crate::here::{Here, Link};
use crate::show::{cut, now_ms, on_terminal, print, print_json, say, span, visible};
use crate::values::Seconds;
use holdfast_authority::Ask;
use holdfast_types::terms_of;
use holdfast_wire::Code;
use holdfast_wire::operations::op;
use holdfast_wire::questions::{
    QuestionAnswerParams, QuestionAskParams, QuestionId, QuestionListParams, QuestionParams, QuestionState,
    QuestionView, QuestionWithdrawParams, chosen, detail, meant,
};
use rustix::termios::isatty;
use std::time::{Duration, Instant};

/// How long a question waits at the host before it is asked for again.
const WAIT_MS: u64 = 20_000;
/// Shortest beginning of an id that is looked for: less is a slip of the finger.
const ID_BEGINNING_MIN: usize = 4;
/// Columns of a question's id.
const ID_COLUMNS: usize = 30;
/// Columns of a question in a list.
const TEXT_COLUMNS: usize = 100;

/// `holdfast ask`.
pub fn ask(here: &Here, args: &AskArgs) -> Result<u8, Failure> {
    let until = args.timeout.and_then(|Seconds { ms }| Instant::now().checked_add(Duration::from_millis(ms)));
    let mut link = here.link()?;
    if let Some(question) = &args.withdraw {
        return withdraw(here, &mut link, question);
    }
    let mut question = match &args.wait {
        Some(question) => find(&mut link, question)?,
        None => begin(here, &mut link, args, until)?,
    };
    while question.state == QuestionState::Open && until.is_none_or(|at| Instant::now() < at) {
        question = link.call::<op::QuestionGet>(&QuestionParams { question: question.id, wait_ms: wait_ms(until) })?;
    }
    end_as(here, &question)
}

fn begin(here: &Here, link: &mut Link<'_>, args: &AskArgs, until: Option<Instant>) -> Result<QuestionView, Failure> {
    let Some(session) = args.session.clone().or_else(crate::who::inside) else {
        return Err(Failure::new("usage", "which session is the question about?")
            .hint("name it: holdfast ask -t NAME TEXT")
            .status(STATUS_USAGE));
    };
    let session = link.get(&session)?;
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|e| Failure::new("io", format!("cannot get random bytes: {e}")))?;
    // Prints the id before it waits: a person who interrupts it still has the id.
    let params = QuestionAskParams {
        session: session.id.to_string(),
        text: args.text.join(" "),
        options: args.options.clone(),
        wait_ms: 0,
        key: Some(holdfast_types::hex_text(&bits)),
        expires_ms: args.expires.map(|expires| expires.ms),
    };
    let view = link.call::<op::QuestionAsk>(&params)?;
    if !here.json && until.is_none_or(|at| Instant::now() < at) {
        say(&format!("asked in {}: {}", session.name, view.id));
    }
    Ok(view)
}

fn wait_ms(until: Option<Instant>) -> u64 {
    until.map_or(WAIT_MS, |at| (at.saturating_duration_since(Instant::now()).as_millis() as u64).min(WAIT_MS))
}

/// Shows the answer, or says why there is none.
fn end_as(here: &Here, question: &QuestionView) -> Result<u8, Failure> {
    let id = question.id;
    let called = here.called(&id.to_string());
    let (code, message, hint, status) = match (question.state, &question.answer) {
        (QuestionState::Open, _) => (
            "timeout",
            format!("no answer to {id} yet"),
            format!("keep waiting: holdfast ask --wait {called}\nor withdraw it: holdfast ask --withdraw {called}"),
            STATUS_TIMEOUT,
        ),
        (QuestionState::Answered, Some(answer)) => {
            if here.json {
                print_json(question)?;
            } else {
                print(format!("{}\n", shown(&answer.text)))?;
            }
            return Ok(0);
        }
        (QuestionState::Withdrawn, _) => {
            let by = question.withdrawn_by.as_ref().map_or("somebody".into(), ToString::to_string);
            ("withdrawn", format!("{by} withdrew {id}"), String::new(), 1)
        }
        (QuestionState::Answered | QuestionState::Expired, _) => {
            ("expired", format!("{id} expired without an answer"), String::new(), 1)
        }
    };
    if here.json {
        print_json(question)?;
        return Ok(status);
    }
    Err(Failure::new(code, message).hint(hint).status(status))
}

/// As it is for programs; harmless, line by line, at a terminal.
fn shown(text: &str) -> String {
    if !isatty(rustix::stdio::stdout()) {
        return text.to_owned();
    }
    text.lines().map(visible).collect::<Vec<_>>().join("\n")
}

fn withdraw(here: &Here, link: &mut Link<'_>, question: &str) -> Result<u8, Failure> {
    let question = find(link, question)?.id;
    let view = match link.call::<op::QuestionWithdraw>(&QuestionWithdrawParams { question }) {
        // It is over, as was wanted: perhaps by the same word to a host that went away.
        Err(failure) if failure.is("question_closed") => {
            let view = get(link, question)?;
            if view.state == QuestionState::Answered {
                return Err(failure);
            }
            view
        }
        other => other?,
    };
    if here.json {
        print_json(&view)?;
    }
    Ok(0)
}

/// `holdfast questions`.
pub fn questions(here: &Here, args: &QuestionsArgs) -> Result<u8, Failure> {
    let params = QuestionListParams { session: args.session.clone(), all: args.all };
    if args.all_hosts {
        return questions_everywhere(here, params);
    }
    let questions = here.link()?.call::<op::QuestionList>(&params)?;
    // A flow's question belongs to no session.
    let flows = if args.session.is_none() && !here.is_elsewhere() { of_flows(here) } else { Vec::new() };
    if here.json {
        let of_flows = flows.iter().map(serde_json::to_value);
        let all: Result<Vec<_>, _> = questions.iter().map(serde_json::to_value).chain(of_flows).collect();
        print_json(&all.map_err(|e| Failure::new("internal", e.to_string()))?)?;
        return Ok(0);
    }
    if !questions.is_empty() || flows.is_empty() {
        print(listed(&questions.iter().map(|question| (None, question)).collect::<Vec<_>>()))?;
    }
    print(flows.iter().map(asked_by_flow).collect::<String>())?;
    Ok(0)
}

/// A question of a flow.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))] // flows run where sessions do
pub struct FlowQuestion {
    /// The flow.
    pub flow: String,
    /// Its step, from 1.
    pub step: u32,
    /// Who started the flow.
    pub by: String,
    pub text: String,
    pub options: Vec<String>,
    pub asked_ms: u64,
}

/// What flows of this machine ask.
#[cfg(target_os = "linux")]
fn of_flows(here: &Here) -> Vec<FlowQuestion> {
    super::flow::questions(here)
}

#[cfg(not(target_os = "linux"))]
fn of_flows(_: &Here) -> Vec<FlowQuestion> {
    Vec::new()
}

/// A flow's question, and how it is answered.
fn asked_by_flow(question: &FlowQuestion) -> String {
    let FlowQuestion { flow, step, by, text, options, asked_ms } = question;
    let age = span(now_ms().saturating_sub(*asked_ms));
    let answers = if options.is_empty() { "TEXT".to_owned() } else { visible(&options.join("|")) };
    let asks = cut(&visible(text), TEXT_COLUMNS);
    format!("flow {flow}, {age} ago, by {by}, asks: {asks}\n  holdfast flow answer {flow} --step {step} {answers}\n")
}

/// The questions of every host. A host that does not answer is told beside the list.
fn questions_everywhere(here: &Here, params: QuestionListParams) -> Result<u8, Failure> {
    let answers = everywhere::ask(here, move |connection| connection.call::<op::QuestionList>(&params))?;
    if here.json {
        print_json(&everywhere::json(&answers, "questions"))?;
        return Ok(everywhere::status(&answers));
    }
    let mut all = Vec::new();
    for one in &answers {
        all.extend(one.answer.iter().flatten().map(|question| (one.host.as_deref(), question)));
    }
    print(listed(&all))?;
    Ok(everywhere::report(&answers))
}

/// Questions, each with its host where that is not the one that was asked.
fn listed(all: &[(Option<&str>, &QuestionView)]) -> String {
    if all.is_empty() {
        return "no open questions\n".into();
    }
    let host_columns = all.iter().filter_map(|(host, _)| *host).map(|host| host.len() + 1).max().unwrap_or(0);
    let columns = ID_COLUMNS + host_columns;
    let names = all.iter().map(|(host, question)| called(*host, question.name.as_str()).len());
    let columns = (columns, names.chain(["SESSION".len()]).max().unwrap_or(0));
    let (ids, sessions) = columns;
    let head = format!("{:<ids$}  {:<9} {:>4}  {:<sessions$}  QUESTION\n", "ID", "STATE", "AGE", "SESSION");
    std::iter::once(head).chain(all.iter().map(|(host, question)| listed_one(*host, question, columns))).collect()
}

fn listed_one(host: Option<&str>, question: &QuestionView, (ids, sessions): (usize, usize)) -> String {
    let QuestionView { id, name, by, state, .. } = question;
    let (id, name) = (called(host, &id.to_string()), called(host, name.as_str()));
    let age = span(now_ms().saturating_sub(question.asked_ms));
    let asks = cut(&visible(&question.text), TEXT_COLUMNS);
    let mut text = format!("{id:<ids$}  {:<9} {age:>4}  {name:<sessions$}  {by} asks: {asks}\n", state.word());
    text.push_str(&options_of(question));
    if let Some(answer) = &question.answer {
        text.push_str(&format!("  {} answered: {}\n", answer.by, cut(&visible(&answer.text), TEXT_COLUMNS)));
    }
    text
}

/// `holdfast answer`.
pub fn answer(here: &Here, args: &AnswerArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let question = match &args.question {
        Some(question) => find(&mut link, question)?,
        None => only_open(&mut link)?,
    };
    let (text, _) = match args.option {
        Some(number) => chosen(&question.options, None, Some(number - 1))?,
        None if !args.text.is_empty() => chosen(&question.options, Some(&args.text.join(" ")), None)?,
        None => read_answer(here, &question)?,
    };
    let session = link.get(&question.session.to_string())?;
    let act = Ask::other(const { terms_of("question.answer") }, detail(question.id, &text, &question.text));
    let params = |proof| QuestionAnswerParams {
        question: question.id,
        seen: question.hash,
        text: Some(text.clone()),
        option: None,
        proof,
    };
    let view = match link.act::<op::QuestionAnswer>(&session, &act, params) {
        // The host that went away may have taken our answer; or somebody else's meanwhile.
        Err(not_done) if not_done.was_done(Code::QuestionClosed) => {
            let view = get(&mut link, question.id)?;
            let me = link.who()?.actor().id;
            if view.answer.as_ref().is_none_or(|answer| answer.by.id != me || answer.text != text) {
                return Err(not_done.into());
            }
            view
        }
        other => other?,
    };
    if here.json {
        print_json(&view)?;
    } else {
        print(format!("answered {} in {}: {}\n", view.by, view.name, visible(&text)))?;
    }
    Ok(0)
}

/// The only open question. It is shown before it is answered: it may be another one than the person has in mind.
fn only_open(link: &mut Link<'_>) -> Result<QuestionView, Failure> {
    let mut open = link.call::<op::QuestionList>(&QuestionListParams::default())?;
    match (open.pop(), open.len() + 1) {
        (None, _) => Err(Failure::new("no_such_question", "no open questions")),
        (Some(one), 1) => Ok(one),
        (Some(_), count) => Err(Failure::new("ambiguous", format!("{count} questions are open"))
            .hint("choose one: holdfast answer QUESTION (see `holdfast questions`)")),
    }
}

/// Shows a question whole, and reads the answer from the terminal.
fn read_answer(here: &Here, question: &QuestionView) -> Result<(String, Option<u32>), Failure> {
    if here.json || !on_terminal() {
        return Err(Failure::new("usage", "what is the answer?")
            .hint("add it: holdfast answer QUESTION TEXT, or --option N")
            .status(STATUS_USAGE));
    }
    let mut text = format!("{} asks in {}:\n", question.by, question.name);
    for line in question.text.lines() {
        text.push_str(&format!("  {}\n", visible(line)));
    }
    text.push_str(&options_of(question));
    print(format!("{text}answer: "))?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|e| Failure::io("cannot read from the terminal", e))?;
    Ok(meant(&question.options, line.trim())?)
}

fn options_of(question: &QuestionView) -> String {
    let line = |(n, option): (usize, &String)| format!("  {}: {}\n", n + 1, visible(option));
    question.options.iter().enumerate().map(line).collect()
}

fn get(link: &mut Link<'_>, question: QuestionId) -> Result<QuestionView, Failure> {
    link.call::<op::QuestionGet>(&QuestionParams { question, wait_ms: 0 })
}

/// The question that is meant, by its id or the beginning of it.
fn find(link: &mut Link<'_>, wanted: &str) -> Result<QuestionView, Failure> {
    if let Ok(id) = wanted.parse() {
        return get(link, id);
    }
    let beginning = wanted.strip_prefix("que_").unwrap_or(wanted);
    let all = link.call::<op::QuestionList>(&QuestionListParams { session: None, all: true })?;
    let is_meant = |view: &QuestionView| view.id.to_string()["que_".len()..].starts_with(beginning);
    let mut fit = all.into_iter().filter(|view| beginning.len() >= ID_BEGINNING_MIN && is_meant(view));
    match (fit.next(), fit.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => {
            Err(Failure::new("no_such_question", format!("no question {wanted:?}"))
                .hint("see `holdfast questions --all`"))
        }
        (Some(_), Some(_)) => {
            Err(Failure::new("ambiguous", format!("{wanted:?} matches several questions")).hint("use a longer prefix"))
        }
    }
}
