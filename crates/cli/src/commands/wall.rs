//! `holdfast session wall`: puts up the wall around a session, and then becomes its command. A keeper starts it.

use crate::failure::Failure;
use holdfast_wire::wall::Wall;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use std::error::Error;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Everything that changes a file or a directory, as far as Linux 6.2 tells it.
const LATEST: ABI = ABI::V3;

/// Devices that programs write to without leaving anything there: terminals, and those that are no hardware. No disk is among them.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/console",
    "/dev/ptmx",
    "/dev/pts",
];
/// Memory that processes share.
const SHARED: &str = "/dev/shm";

/// `session wall JSON ARGV0 COMMAND…`. Returns only where it failed.
pub fn run() -> Result<u8, Failure> {
    let words: Vec<OsString> = std::env::args_os().skip(3).collect();
    let [wall, argv0, program, rest @ ..] = &words[..] else {
        return Err(Failure::new("usage", "this is for keepers: see holdfast new --wall"));
    };
    let wall: Wall = serde_json::from_slice(wall.as_bytes())
        .map_err(|error| Failure::new("usage", format!("cannot read the wall: {error}")))?;
    put_up(&wall).map_err(|error| Failure::new("cannot_start", format!("cannot put up the wall: {error}")))?;
    let mut command = Command::new(program);
    if !argv0.as_bytes().is_empty() {
        command.arg0(argv0);
    }
    Err(Failure::io(format!("cannot start {}", program.display()), command.args(rest).exec()))
}

/// Behind it nothing can be written but what it names; this process and all it starts stay there.
fn put_up(wall: &Wall) -> Result<(), Box<dyn Error>> {
    let writes = AccessFs::from_write(LATEST);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(ABI::V1))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writes)?
        .scope(Scope::from_all(ABI::V6))?;
    if wall.connect.is_some() {
        rules = rules.set_compatibility(CompatLevel::HardRequirement).handle_access(AccessNet::ConnectTcp)?;
    }
    let mut made = rules.create()?.set_compatibility(CompatLevel::BestEffort);
    for dir in &wall.write {
        made = made.add_rule(PathBeneath::new(PathFd::new(dir)?, writes))?;
    }
    let devices = DEVICES.map(|device| (device, AccessFs::WriteFile | AccessFs::Truncate));
    for (path, access) in devices.into_iter().chain([(SHARED, writes)]) {
        if let Ok(opened) = PathFd::new(path) {
            made = made.add_rule(PathBeneath::new(opened, access))?;
        }
    }
    for port in wall.connect.iter().flatten() {
        made = made.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    match made.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err("the kernel does not enforce it".into()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}
