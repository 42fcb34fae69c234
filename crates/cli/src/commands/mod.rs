//! The commands, one file each; those that only ask and show share one.

mod attach;
pub mod completions;
mod doctor;
mod end;
mod host;
mod list;
mod logs;
pub mod man;
mod new;
mod screen;
mod send;
mod steer;
mod wait;

use crate::args::Command;
use crate::failure::Failure;
use crate::here::Here;

/// Runs a command; none is the session `main`.
pub fn run(here: &Here, command: Option<Command>) -> Result<u8, Failure> {
    match command {
        None => attach::main_session(here),
        Some(Command::New(args)) => new::new(here, &args),
        Some(Command::Attach(args)) => attach::attach(here, &args),
        Some(Command::Ls(args)) => list::list(here, args.all),
        Some(Command::Info(args)) => list::info(here, &args.session),
        Some(Command::Screen(args)) => screen::screen(here, &args),
        Some(Command::Logs(args)) => logs::logs(here, &args),
        Some(Command::Send(args)) => send::send(here, &args),
        Some(Command::Wait(args)) => wait::wait(here, &args),
        Some(Command::Resize(args)) => steer::resize(here, &args),
        Some(Command::Rename(args)) => steer::rename(here, &args),
        Some(Command::Detach(args)) => steer::detach(here, &args),
        Some(Command::End(args)) => end::end(here, &args),
        Some(Command::Host(command)) => host::host(here, command),
        Some(Command::Doctor) => doctor::doctor(here),
        Some(Command::Completions(args)) => completions::completions(args.shell),
        Some(Command::Man) => man::man(),
        Some(Command::Names) => list::names(here),
    }
}
