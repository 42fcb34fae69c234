//! The host, and what the service manager may do to it and to the keepers.

use super::{Finding, read};
use crate::commands::host::running_for;
use crate::failure::Failure;
use crate::here::Here;
use crate::who;
use holdfast_client::Connection;
use holdfast_host::user;
use holdfast_wire::operations::op;
use holdfast_wire::params::{HostStatus, Life, ListParams};
use std::path::Path;

/// Units of ours, by `host install-unit` and from packages: a stop of them leaves keepers alone.
const OURS: [&str; 2] = ["holdfast.service", "holdfast-host.service"];

/// As the actor whose key exists already: looking creates none.
fn running(here: &Here) -> Result<Option<(Connection, HostStatus)>, Failure> {
    match here.who_if_there() {
        Some(who) => running_for(here, &who),
        None => running_for(here, &who::stranger()?),
    }
}

pub(super) fn host(here: &Here) -> (Option<HostStatus>, Vec<Finding>) {
    let (mut connection, status) = match running(here) {
        Ok(Some(found)) => found,
        Ok(None) => return (None, vec![Finding::ok("host", "not running; any command starts it")]),
        Err(failure) => {
            let remedy = "kill that process, then run any command";
            return (None, vec![Finding::missing("host", failure.message(), remedy).needed()]);
        }
    };
    let ours = env!("CARGO_PKG_VERSION");
    let mut findings = vec![if status.version == ours {
        Finding::ok("host", format!("process {}, version {ours}, {} sessions", status.pid, status.running))
    } else {
        let says = format!("process {} is version {}, this program is {ours}", status.pid, status.version);
        Finding::limited("host", says, "holdfast host restart (sessions keep running)")
    }];
    let sessions = connection.call::<op::List>(&ListParams { all: true }).unwrap_or_default();
    let count = |life: Life| sessions.iter().filter(|session| session.life == life).count();
    let (unknown, damaged) = (count(Life::Unknown), count(Life::Damaged));
    findings.push(match (unknown, damaged) {
        (0, 0) => Finding::ok("keepers", "this host supports the version of every keeper"),
        (0, _) => Finding::limited("keepers", format!("{damaged} sessions have damaged files"), "see holdfast ls"),
        _ => Finding::limited(
            "keepers",
            format!("{unknown} have a version that this host does not support; they keep running"),
            "use the version of holdfast that started them",
        ),
    });
    (Some(status), findings)
}

/// systemd ends what is left in a service's or a login's cgroup, keepers included.
pub(super) fn systemd(host: Option<u32>) -> Finding {
    let what = "logout";
    if !Path::new("/run/systemd/system").exists() {
        return Finding::ok(what, "no systemd: nothing stops the keepers when you log out");
    }
    let process = host.map_or("self".to_owned(), |pid| pid.to_string());
    let cgroups = read(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let user = user::find().map(|user| user.name);
    let lingers = user.as_ref().is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user).exists());
    judge(&cgroups, lingers, user.as_deref().unwrap_or("USER"))
}

/// Whether the host comes up with the machine, so that sessions that recover by themselves do.
pub(super) fn boot() -> Finding {
    let what = "boot";
    if !Path::new("/run/systemd/system").exists() {
        return Finding::ok(what, "no systemd: lost sessions are recovered once a command starts the host");
    }
    let user = user::find().map_or_else(|| "USER".to_owned(), |user| user.name);
    let lingers = Path::new("/var/lib/systemd/linger").join(&user).exists();
    at_boot(is_installed(), lingers, &user)
}

fn is_installed() -> bool {
    let set = |key: &str| std::env::var_os(key).map(std::path::PathBuf::from);
    let config = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
    let units = config.map(|config| config.join("systemd/user/default.target.wants"));
    units.is_some_and(|wants| OURS.iter().any(|unit| wants.join(unit).exists()))
}

fn at_boot(installed: bool, lingers: bool, user: &str) -> Finding {
    let what = "boot";
    match (installed, lingers) {
        (true, true) => Finding::ok(what, "the host starts with the machine (lingering is on)"),
        (true, false) => Finding::limited(
            what,
            "the host starts at your first login: lingering is off",
            format!("loginctl enable-linger {user}"),
        ),
        (false, _) => {
            Finding::ok(what, "the host starts with your first command; at boot with: holdfast host install-unit")
        }
    }
}

fn judge(cgroups: &str, lingers: bool, user: &str) -> Finding {
    let what = "logout";
    // The unified line where there is one, else systemd's own hierarchy.
    let line = cgroups.lines().find(|l| l.starts_with("0::/") && l.len() > 4);
    let line = line.or_else(|| cgroups.lines().find(|l| l.contains(":name=systemd:"))).unwrap_or_default();
    let unit = line.rsplit('/').find(|part| part.ends_with(".service") || part.ends_with(".scope")).unwrap_or_default();
    let of_user = line.contains("/user@");
    let enable = format!("loginctl enable-linger {user}");
    match unit {
        u if u.ends_with(".service") && !u.starts_with("user@") && !OURS.contains(&u) => Finding::limited(
            what,
            format!("the keepers run in {u}: stopping it ends every session (KillMode=control-group is the default)"),
            "set KillMode=process in the unit, or start the host in its own scope",
        ),
        _ if of_user && !lingers => {
            Finding::limited(what, "your service manager stops at your last logout, and ends the keepers", enable)
        }
        u if u.starts_with("session-") => Finding::limited(
            what,
            format!("the keepers run in {u}: with KillUserProcesses=yes they end when you log out"),
            format!("{enable}, and start the host with: systemd-run --user --scope holdfast host start"),
        ),
        "" => Finding::ok(what, "the keepers run in no unit that systemd stops"),
        u => Finding::ok(what, format!("the keepers run in {u}, which outlives your login")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_of_a_keeper_is_judged() {
        let places = [
            ("0::/system.slice/ci.service", true),
            ("0::/user.slice/user-1000.slice/session-3.scope", false),
            ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-7.scope", false),
            ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-7.scope", true),
            ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/holdfast-host.service", false),
            ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/holdfast-host.service", true),
            ("0::/", false),
            ("1:name=systemd:/user.slice/user-0.slice/session-1.scope\n0::/", false),
        ];
        let judged: String = places
            .iter()
            .map(|(cgroup, lingers)| {
                let finding = judge(cgroup, *lingers, "ann");
                format!("{:?} {} | {}\n", finding.grade, finding.says, finding.remedy)
            })
            .collect();
        insta::assert_snapshot!(judged);
    }
}
