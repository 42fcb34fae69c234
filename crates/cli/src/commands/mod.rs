//! The commands, one file each; those that only ask and show share one. What runs where sessions do is Linux's; elsewhere the program is a client.

mod actor;
mod approvals;
#[cfg(target_os = "linux")]
mod as_user;
mod attach;
#[cfg(target_os = "linux")]
mod bot;
mod canvas;
mod checkpoint;
mod completions;
mod contract;
mod cost;
#[cfg(target_os = "linux")]
mod doctor;
mod end;
mod env;
mod export;
mod files;
#[cfg(target_os = "linux")]
mod flow;
mod fork;
#[cfg(target_os = "linux")]
mod gated;
mod grants;
mod graph;
mod handover;
#[cfg(target_os = "linux")]
mod host;
mod hosts;
mod invites;
mod journal;
mod list;
mod logs;
mod man;
mod mcp;
mod moves;
mod names;
mod new;
#[cfg(target_os = "linux")]
mod no_typing;
#[cfg(target_os = "linux")]
mod policy;
#[cfg(target_os = "linux")]
mod prove;
mod qr;
mod questions;
mod record;
mod recover;
#[cfg(target_os = "linux")]
mod relay;
mod run;
mod screen;
mod secret;
mod send;
mod skill;
mod state;
#[cfg(target_os = "linux")]
mod stderr;
mod steer;
mod token;
mod trace;
mod turn;
mod ui;
#[cfg(target_os = "linux")]
mod unit;
#[cfg(target_os = "linux")]
mod upgrade;
mod wait;
#[cfg(target_os = "linux")]
mod wall;
mod watch;
#[cfg(target_os = "linux")]
mod web;
mod whoami;

use crate::args::{Args, Command, Misplaced};
use crate::denied;
use crate::failure::{Failure, STATUS_USAGE};
use crate::here::Here;

/// Runs a command; none is the session `main`.
pub fn run(mut args: Args) -> Result<u8, Failure> {
    let host = args.take_host().map_err(misplaced)?;
    let find = || Here::find(args.home.as_deref(), args.json, args.who.clone(), host.as_deref());
    dispatch(args.command, args.json, &find).map_err(|failure| match find() {
        Ok(here) => denied::explain(failure, &here),
        Err(_) => failure,
    })
}

fn misplaced(why: Misplaced) -> Failure {
    let there = "run it over there: ssh MACHINE holdfast …";
    let (message, hint) = match why {
        Misplaced::Two(one, other) => (format!("two hosts in one command: {one} and {other}"), there),
        Misplaced::OnlyHere => ("this command works on this machine only".into(), there),
        Misplaced::Everywhere => ("--all-hosts asks every host, --host one of them".into(), "leave out one of the two"),
    };
    Failure::new("usage", message).hint(hint).status(STATUS_USAGE)
}

#[cfg_attr(not(target_os = "linux"), allow(unused_variables))] // `json` is for a command of Linux
fn dispatch(command: Option<Command>, json: bool, find: &dyn Fn() -> Result<Here, Failure>) -> Result<u8, Failure> {
    let here = || find()?.if_ours();
    match command {
        None => attach::main_session(&here()?),
        Some(Command::New(args)) => new::new(&here()?, &args),
        Some(Command::Attach(args)) => attach::attach(&here()?, &args),
        Some(Command::Ls(args)) => list::list(&here()?, &args),
        Some(Command::Info(args)) => list::info(&here()?, &args.session),
        Some(Command::Graph(args)) => graph::graph(&here()?, &args),
        Some(Command::Ps(args)) => graph::ps(&here()?, &args),
        Some(Command::Ports(args)) => graph::ports(&here()?, &args),
        Some(Command::Screen(args)) => screen::screen(&here()?, &args),
        Some(Command::Logs(args)) => logs::logs(&here()?, &args),
        Some(Command::Journal(args)) => journal::journal(&here()?, &args),
        Some(Command::Export(args)) => export::export(&here()?, &args),
        Some(Command::Files(command)) => files::files(&here()?, &command),
        Some(Command::Run(args)) => run::run(&here()?, &args),
        Some(Command::Send(args)) => send::send(&here()?, &args),
        Some(Command::State(args)) => state::state(&here()?, &args.session),
        Some(Command::Trace(args)) => trace::trace(&here()?, &args),
        Some(Command::Record(args)) => record::record(&here()?, &args),
        Some(Command::Env(args)) => env::env(&here()?, &args),
        Some(Command::Handover(args)) => handover::handover(&here()?, &args),
        Some(Command::Watch(args)) => watch::watch(&here()?, &args),
        Some(Command::Ask(args)) => questions::ask(&here()?, &args),
        Some(Command::Questions(args)) => questions::questions(&here()?, &args),
        Some(Command::Answer(args)) => questions::answer(&here()?, &args),
        Some(Command::Approvals(command)) => approvals::approvals(&here()?, &command),
        Some(Command::Wait(args)) => wait::wait(&here()?, &args),
        Some(Command::Ui) => attach::ui(&here()?),
        Some(Command::Resize(args)) => steer::resize(&here()?, &args),
        Some(Command::Rename(args)) => steer::rename(&here()?, &args),
        Some(Command::Keep(args)) => cost::keep(&here()?, &args),
        Some(Command::Detach(args)) => steer::detach(&here()?, &args),
        Some(Command::Signal(args)) => steer::signal(&here()?, &args),
        Some(Command::Recover(args)) => recover::recover(&here()?, &args),
        Some(Command::Checkpoint(args)) => checkpoint::checkpoint(&here()?, &args),
        Some(Command::Checkpoints(command)) => checkpoint::checkpoints(&here()?, &command),
        Some(Command::Fork(args)) => fork::fork(&here()?, &args),
        Some(Command::Move(args)) => moves::move_session(&here()?, &args),
        Some(Command::Restore(args)) => checkpoint::restore(&here()?, &args),
        Some(Command::Turn(args)) => turn::turn(&here()?, &args),
        Some(Command::Take(args)) => turn::take(&here()?, &args),
        Some(Command::Request(args)) => turn::request(&here()?, &args),
        Some(Command::Withdraw(args)) => turn::withdraw(&here()?, &args),
        Some(Command::Give(args)) => turn::give(&here()?, &args),
        Some(Command::Release(args)) => turn::release(&here()?, &args),
        Some(Command::Seize(args)) => turn::seize(&here()?, &args),
        Some(Command::Thaw(args)) => turn::thaw(&here()?, &args),
        Some(Command::Grant(args)) => grants::grant(&here()?, &args),
        Some(Command::Revoke(args)) => grants::revoke(&here()?, &args),
        Some(Command::Grants(args)) => grants::grants(&here()?, &args),
        Some(Command::Whoami) => whoami::whoami(&here()?),
        Some(Command::Actor(command)) => actor::actor(&here()?, &command),
        Some(Command::Token(command)) => token::token(&here()?, &command),
        Some(Command::End(args)) => end::end(&here()?, &args),
        Some(Command::Hosts(command)) => hosts::hosts(&here()?, &command),
        Some(Command::Connect(args)) => hosts::connect(&here()?, &args),
        Some(Command::Invite(args)) => invites::invite(&here()?, &args),
        Some(Command::Invites(command)) => invites::invites(&here()?, &command),
        Some(Command::Accept(args)) => invites::accept(&here()?, &args),
        Some(Command::Devices(command)) => invites::devices(&here()?, &command),
        Some(Command::Mcp(args)) => mcp::mcp(&here()?, &args),
        // These need no home, or make their own.
        Some(Command::Skill) => skill::skill(),
        Some(Command::Completions(args)) => completions::completions(args.shell),
        Some(Command::Man) => man::man(),
        Some(Command::Schema) => crate::show::print_json(&holdfast_wire::schema::document()).map(|()| 0),
        #[cfg(target_os = "linux")]
        Some(Command::Flow(command)) => flow::flow(&here()?, &command),
        #[cfg(target_os = "linux")]
        Some(Command::Bot(command)) => bot::bot(&here()?, &command),
        #[cfg(target_os = "linux")]
        Some(Command::Policy(command)) => policy::policy(&here()?, &command),
        #[cfg(target_os = "linux")]
        Some(command) => of_hosts(command, json, find),
    }
}

/// The rest of what only machines with a host have.
#[cfg(target_os = "linux")]
fn of_hosts(command: Command, json: bool, find: &dyn Fn() -> Result<Here, Failure>) -> Result<u8, Failure> {
    let here = || find()?.if_ours();
    match command {
        Command::Web(args) => web::web(&here()?, &args),
        Command::Relay(args) => relay::relay(&here()?, &args),
        Command::Host(command) => host::host(&here()?, command),
        Command::Upgrade(args) => upgrade::upgrade(&here()?, args),
        // It says what is wrong with a home, whatever that is.
        Command::Doctor(args) => doctor::doctor(&find()?, args),
        Command::Prove(args) => prove::prove(&args, json),
        other => Err(Failure::new("internal", format!("{other:?} is not done here"))),
    }
}

/// What only programs call: `host spawn`, by the client library, `host tend`, by that, `host hold`, by hosts, `session as`, by
/// keepers, `flow spawn`, `flow tend` and `flow serve` likewise, and `__names`, `__hosts`, `__runs`, `__flows` and `__actors`, by completions. The
/// parser does not know them, so neither help nor completions show them.
pub fn run_unlisted(words: &[&str]) -> Option<Result<u8, Failure>> {
    let here = || Here::find(None, false, None, None)?.if_ours();
    #[cfg(target_os = "linux")]
    if let Some(ran) = run_of_hosts(words, &here) {
        return Some(ran);
    }
    match words {
        ["__names"] => Some(here().and_then(|here| names::sessions(&here, "")).or(Ok(0))),
        ["__names", begun] => Some(here().and_then(|here| names::sessions(&here, begun)).or(Ok(0))),
        ["__hosts"] => Some(here().and_then(|here| names::hosts(&here)).or(Ok(0))),
        ["__runs"] => Some(here().and_then(|here| run::ids(&here))),
        ["__actors"] => Some(here().and_then(|here| actor::handles(&here))),
        _ => None,
    }
}

#[cfg(target_os = "linux")]
fn run_of_hosts(words: &[&str], here: &dyn Fn() -> Result<Here, Failure>) -> Option<Result<u8, Failure>> {
    match words {
        ["host", "spawn"] => Some(here().and_then(|here| host::spawn(&here))),
        ["host", "tend"] => Some(here().and_then(|here| host::tend(&here))),
        ["host", "hold"] => Some(here().and_then(|here| host::hold(&here))),
        ["bot", "spawn", service] => Some(here().and_then(|here| bot::spawn(&here, service))),
        ["bot", "tend", service] => Some(here().and_then(|here| bot::tend(&here, service))),
        ["bot", "serve", service] => Some(here().and_then(|here| bot::serve(&here, service))),
        ["flow", "spawn"] => Some(here().and_then(|here| flow::spawn(&here))),
        ["flow", "tend"] => Some(here().and_then(|here| flow::tend(&here))),
        ["flow", "serve"] => Some(here().and_then(|here| flow::serve(&here))),
        ["__flows"] => Some(here().and_then(|here| flow::ids(&here))),
        ["session", "as", ..] => Some(as_user::run()),
        ["session", "wall", ..] => Some(wall::run()),
        ["session", "stderr", ..] => Some(stderr::run()),
        ["session", "copy-stderr", rest @ ..] => Some(stderr::copy(!rest.is_empty())),
        ["session", "gate", ..] => Some(gated::run()),
        ["session", "warden", ..] => Some(gated::warden()),
        _ => None,
    }
}
