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

/// As whoever has a key already: looking makes none.
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
            let remedy = "stop it by its process number and run any command";
            return (None, vec![Finding::missing("host", failure.message(), remedy).needed()]);
        }
    };
    let ours = env!("CARGO_PKG_VERSION");
    let mut findings = vec![if status.version == ours {
        Finding::ok("host", format!("process {}, version {ours}, {} sessions", status.pid, status.running))
    } else {
        let says = format!("process {} is version {}, this program is {ours}", status.pid, status.version);
        Finding::limited("host", says, "holdfast host restart (sessions go on)")
    }];
    let sessions = connection.call::<op::List>(&ListParams { all: true }).unwrap_or_default();
    let count = |life: Life| sessions.iter().filter(|session| session.life == life).count();
    let (unknown, damaged) = (count(Life::Unknown), count(Life::Damaged));
    findings.push(match (unknown, damaged) {
        (0, 0) => Finding::ok("keepers", "this host knows them all"),
        (0, _) => {
            Finding::limited("keepers", format!("the files of {damaged} sessions are damaged"), "see holdfast ls")
        }
        _ => Finding::limited(
            "keepers",
            format!("{unknown} speak a version this host does not know; they are left alive"),
            "use the holdfast that started them",
        ),
    });
    (Some(status), findings)
}

/// systemd ends what is left in a service's or a login's cgroup, keepers included.
pub(super) fn systemd(host: Option<u32>) -> Finding {
    let what = "logout";
    if !Path::new("/run/systemd/system").exists() {
        return Finding::ok(what, "no systemd here: nothing ends keepers behind our back");
    }
    let process = host.map_or("self".to_owned(), |pid| pid.to_string());
    let cgroups = read(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let user = user::find().map(|user| user.name);
    let lingers = user.as_ref().is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user).exists());
    judge(&cgroups, lingers, user.as_deref().unwrap_or("USER"))
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
        u if u.ends_with(".service") && !u.starts_with("user@") => Finding::limited(
            what,
            format!("{u} holds the keepers: stopping it ends every session, as KillMode=control-group is the default"),
            "KillMode=process in the unit, or start the host in a scope of its own",
        ),
        _ if of_user && !lingers => {
            Finding::limited(what, "your service manager goes with your last login, and the keepers with it", enable)
        }
        u if u.starts_with("session-") => Finding::limited(
            what,
            format!("the keepers are in {u}: with KillUserProcesses=yes they end when you log out"),
            format!("{enable}, and start the host with: systemd-run --user --scope holdfast host start"),
        ),
        "" => Finding::ok(what, "the keepers are in no unit that systemd would stop"),
        u => Finding::ok(what, format!("the keepers are in {u}, which outlives your login")),
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
