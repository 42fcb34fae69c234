//! `holdfast upgrade`: the host of the program that is installed now, in the place of the one that runs. Keepers outlive it, and are
//! listed where they are of an earlier build.

use super::{flow, host};
use crate::args::UpgradeArgs;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{print, print_json, say, table};
use holdfast_host::{KeeperBuild, keeper_of, own_keeper};
use holdfast_wire::operations::op;
use holdfast_wire::params::{HostStatus, Life, ListParams};
use serde::Serialize;

/// A session's keeper.
#[derive(Debug, Serialize)]
struct Kept {
    /// The session's name.
    session: String,
    id: String,
    pid: u32,
    /// The version of the program it came with; none: an early one, which did not say.
    version: Option<String>,
    /// The hash of its bytes; none: its process cannot be looked at.
    build: Option<String>,
    /// It is the one that this program starts.
    current: bool,
    /// The host speaks its protocol, and serves the session.
    served: bool,
}

/// A host.
#[derive(Debug, Serialize)]
struct One {
    pid: u32,
    version: String,
}

impl From<&HostStatus> for One {
    fn from(status: &HostStatus) -> One {
        One { pid: status.pid, version: status.version.clone() }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    /// The host that ran before.
    before: Option<One>,
    /// The host that runs now; none: `--check`, and none did.
    host: Option<One>,
    /// This program.
    program: String,
    version: &'static str,
    /// The flow service was restarted too.
    flows: bool,
    /// Attached clients, which run the program they were started with.
    clients: usize,
    keepers: Vec<Kept>,
}

/// `holdfast upgrade`.
pub fn upgrade(here: &Here, args: UpgradeArgs) -> Result<u8, Failure> {
    let (before, after, flows) = if args.check {
        (None, host::running_for(here, here.who()?)?.map(|(_, status)| status), false)
    } else {
        // It comes back with the host where there are flows.
        let flows = flow::put_down(here)?.is_some();
        let (before, after) = host::replace(here)?;
        (before, Some(after), flows)
    };
    let (mut keepers, mut clients) = (Vec::new(), 0);
    if after.is_some() {
        let own = own_keeper();
        for session in here.link()?.call::<op::List>(&ListParams { all: true })? {
            clients += session.clients.len();
            if session.keeper_pid == 0 || !matches!(session.life, Life::Running | Life::Unknown) {
                continue;
            }
            let build = keeper_of(session.keeper_pid);
            let current = build.as_ref() == Some(&own);
            let (version, build) = build.map_or((None, None), |KeeperBuild { version, hash }| (version, Some(hash)));
            let served = session.life == Life::Running;
            let (session, id, pid) = (session.name.to_string(), session.id.to_string(), session.keeper_pid);
            keepers.push(Kept { session, id, pid, version, build, current, served });
        }
    }
    let report = Report {
        before: before.as_ref().map(One::from),
        host: after.as_ref().map(One::from),
        program: here.program.to_string_lossy().into_owned(),
        version: env!("CARGO_PKG_VERSION"),
        flows,
        clients,
        keepers,
    };
    if here.json {
        print_json(&report)?;
    } else {
        print(text(&report, args.check, after.as_ref().map_or(0, |host| host.running)))?;
    }
    match &report.host {
        Some(host) if host.version != report.version && !args.check => {
            say(&format!(
                "the host that answers is version {}: another program starts it (see ExecStart= in the unit holdfast-host.service)",
                host.version
            ));
            Ok(1)
        }
        Some(_) | None => Ok(0),
    }
}

fn text(report: &Report, check: bool, running: u32) -> String {
    let mut out = match (&report.host, &report.before) {
        (None, _) => "the host is not running; the next command starts it with this program\n".to_owned(),
        (Some(host), _) if check => {
            format!("host: version {}, process {}; this program: version {}\n", host.version, host.pid, report.version)
        }
        (Some(host), Some(before)) => format!(
            "host upgraded: version {}, process {} (was version {}, process {}); {}\n",
            host.version,
            host.pid,
            before.version,
            before.pid,
            host::went_on(running)
        ),
        (Some(host), None) => format!("host started: version {}, process {}\n", host.version, host.pid),
    };
    if report.flows {
        out += "the flow service was restarted too\n";
    }
    let old: Vec<&Kept> = report.keepers.iter().filter(|kept| !kept.current).collect();
    if old.is_empty() {
        out += if report.keepers.is_empty() { "" } else { "every keeper is of this build\n" };
    } else {
        out += "these sessions keep the keeper they were started with until they end:\n";
        let mut rows = vec![["NAME", "KEEPER", "BUILD", "PROCESS", ""].map(str::to_owned).to_vec()];
        for kept in old {
            let version = kept.version.clone().unwrap_or_else(|| "earlier".into());
            let build = kept.build.clone().unwrap_or_else(|| "unknown".into());
            let note = if kept.served { "" } else { "not supported by this host: use the version that started it" };
            rows.push(vec![kept.session.clone(), version, build, kept.pid.to_string(), note.into()]);
        }
        out.extend(table(&rows, None).into_iter().map(|line| line.trim_end().to_owned() + "\n"));
    }
    if report.clients > 0 {
        out += &format!(
            "attached clients: {}; each runs the program it was started with until it attaches again\n",
            report.clients
        );
    }
    out
}
