//! `holdfast-keeper <session id>`: see the library. The id is for people who read `ps`; everything else comes by
//! the start block on standard input.

use std::process::ExitCode;

fn main() -> ExitCode {
    match holdfast_keeper::setup::start() {
        Some(keeper) => {
            keeper.run();
            ExitCode::SUCCESS
        }
        None => ExitCode::FAILURE,
    }
}
