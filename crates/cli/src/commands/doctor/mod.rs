//! `holdfast doctor`: what this machine offers, what follows from it, and what to do about the rest. Starts nothing and
//! changes nothing, but for `--fix`, which fetches CRIU.

mod checkpoints;
mod kernel;
mod place;
mod service;

use crate::args::DoctorArgs;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{print, print_json, table, visible};
use serde::Serialize;
use std::path::Path;

/// How well something is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Grade {
    Ok,
    /// It works with less.
    Limited,
    /// It is not there.
    Missing,
}

/// One thing looked at.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    grade: Grade,
    /// Without it no session can be kept.
    needed: bool,
    says: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    remedy: String,
}

impl Finding {
    fn ok(what: &'static str, says: impl Into<String>) -> Finding {
        Finding { what, grade: Grade::Ok, needed: false, says: says.into(), remedy: String::new() }
    }

    fn limited(what: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { what, grade: Grade::Limited, needed: false, says: says.into(), remedy: remedy.into() }
    }

    fn missing(what: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { what, grade: Grade::Missing, needed: false, says: says.into(), remedy: remedy.into() }
    }

    fn needed(mut self) -> Finding {
        self.needed = true;
        self
    }
}

/// `holdfast doctor`.
pub fn doctor(here: &Here, args: DoctorArgs) -> Result<u8, Failure> {
    if args.fix {
        checkpoints::fetch(&here.home.state)?;
    }
    let (host, host_findings) = service::host(here);
    let mut findings = vec![kernel::version(), kernel::user()];
    findings.extend(kernel::terminals());
    findings.push(kernel::open_files());
    findings.push(place::owner(&here.home));
    findings.push(place::state(&here.home.state));
    findings.push(place::sockets(&here.home));
    findings.push(place::configuration(here));
    findings.extend(host_findings);
    findings.push(service::systemd(host.as_ref().map(|host| host.pid)));
    findings.push(service::boot());
    findings.push(kernel::freezer());
    findings.push(checkpoints::checkpoints(&here.home.state));
    if here.json {
        print_json(&findings)?;
    } else {
        print(text(&findings))?;
    }
    let broken = findings.iter().any(|f| f.needed && f.grade == Grade::Missing);
    Ok(u8::from(broken))
}

fn text(findings: &[Finding]) -> String {
    let row = |finding: &Finding| {
        let grade = match finding.grade {
            Grade::Ok => "ok",
            Grade::Limited => "limited",
            Grade::Missing => "missing",
        };
        let remedy = if finding.remedy.is_empty() { String::new() } else { format!(" (remedy: {})", finding.remedy) };
        vec![grade.to_owned(), finding.what.to_owned(), visible(&format!("{}{remedy}", finding.says))]
    };
    let rows: Vec<_> = findings.iter().map(row).collect();
    table(&rows, None).into_iter().map(|line| line + "\n").collect()
}

/// A small file of the kernel's, trimmed.
fn read(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
