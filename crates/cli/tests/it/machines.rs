//! Several machines in one: each has a home of its own, and what stands for ssh starts programs in them.

use holdfast_harness::{Home, Ran, program};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Notes how it was called, then does what the file of that machine says: be away, say nothing, or run the command in that home.
const SSH: &str = r#"#!/bin/sh
echo "$*" >> "DIR/calls"
while [ "$1" != -- ]; do
    [ "$1" = -O ] && exit 0
    shift
done
far=$(cat "DIR/$2")
case "$far" in
away) echo "ssh: connect to host $2 port 22: Connection refused" >&2; exit 255 ;;
silent) exec cat > /dev/null ;;
*) cd "$far" && exec env -i HOLDFAST_HOME="$far" HOME="$far" PATH=/usr/local/bin:/usr/bin:/bin SHELL=/bin/bash sh -c "$3" ;;
esac
"#;

/// The machine that the person is at, and those elsewhere.
pub struct Machines {
    pub near: Home,
    far: Vec<(&'static str, Home)>,
    /// The script and its files; in no home, because what names one belongs to it.
    dir: tempfile::TempDir,
}

impl Machines {
    /// Machines of these names, each added as a host.
    pub fn new(names: &[&'static str]) -> Machines {
        let far = names.iter().map(|name| (*name, Home::new())).collect();
        let machines = Machines { near: Home::new(), far, dir: tempfile::tempdir().unwrap() };
        let dir = machines.dir.path().display().to_string();
        std::fs::write(machines.ssh(), SSH.replace("DIR", &dir)).unwrap();
        std::fs::set_permissions(machines.ssh(), std::fs::Permissions::from_mode(0o755)).unwrap();
        for name in names {
            machines.back(name);
            machines.ok(&["hosts", "add", name, "--ssh", name, "--program", program().to_str().unwrap()]);
        }
        machines
    }

    fn ssh(&self) -> PathBuf {
        self.dir.path().join("ssh")
    }

    /// The home of another machine.
    pub fn far(&self, name: &str) -> &Home {
        &self.far.iter().find(|(known, _)| *known == name).unwrap().1
    }

    /// From now on ssh does this for a machine: `away`, `silent`, or run commands in this home.
    pub fn becomes(&self, name: &str, what: &str) {
        std::fs::write(self.dir.path().join(name), what).unwrap();
    }

    /// From now on ssh reaches it.
    pub fn back(&self, name: &str) {
        self.becomes(name, self.far(name).path().to_str().unwrap());
    }

    /// How ssh was called since this was asked last.
    pub fn calls(&self) -> Vec<String> {
        let file = self.dir.path().join("calls");
        let calls = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(file);
        calls.lines().map(str::to_owned).collect()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.near.command(args);
        command.env("HOLDFAST_SSH", self.ssh());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap().into()
    }

    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!((ran.status, &ran.err[..]), (0, ""), "holdfast {args:?}: {ran}");
        ran.out
    }

    /// The answer to a command with `--json`, which is added, and its status.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> (i32, Value) {
        let ran = self.run(&[&["--json"], args].concat());
        (ran.status, serde_json::from_str(&ran.out).unwrap_or_else(|why| panic!("{why}: {ran}")))
    }
}
