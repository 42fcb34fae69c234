//! A relay between machines that cannot reach each other: three network namespaces, of which client and host see only the relay.

use holdfast_harness::{DETACH, Home, Terminal, until};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The relay's address, which both sides have a route to.
const RELAY: &str = "10.9.0.1";
const PORT: u16 = 7400;
/// A host comes back at once to a relay that lived for ten seconds.
const LIVES: Duration = Duration::from_secs(11);
/// How often the relay is killed: by hand more.
const KILLS: &str = "HOLDFAST_RELAY_KILLS";

/// Namespaces of the client, the relay and the host.
struct Net {
    names: [String; 3],
}

impl Net {
    /// None where this user or this machine cannot make them.
    fn new() -> Option<Net> {
        let names = ["client", "relay", "host"].map(|what| format!("hf{}-{what}", std::process::id()));
        let net = Net { names };
        let [client, relay, host] = &net.names;
        for name in &net.names {
            if !ip(&["netns", "add", name]) || !ip(&["-n", name, "link", "set", "lo", "up"]) {
                return None;
            }
        }
        for (far, number) in [(client, 1), (host, 2)] {
            let (end, gate) = (format!("10.9.{number}.2"), format!("10.9.{number}.1"));
            let wire = format!("to{number}");
            let steps: [&[&str]; 7] = [
                &["link", "add", "up0", "netns", far, "type", "veth", "peer", "name", &wire, "netns", relay],
                &["-n", far, "addr", "add", &format!("{end}/24"), "dev", "up0"],
                &["-n", far, "link", "set", "up0", "up"],
                &["-n", relay, "addr", "add", &format!("{gate}/24"), "dev", &wire],
                &["-n", relay, "link", "set", &wire, "up"],
                &["-n", far, "route", "add", RELAY, "via", &gate],
                &["-n", relay, "addr", "replace", &format!("{RELAY}/32"), "dev", "lo"],
            ];
            for step in steps {
                assert!(ip(step), "ip {step:?}");
            }
        }
        Some(net)
    }

    fn client(&self, command: Command) -> Command {
        inside(&self.names[0], command)
    }

    fn relay(&self, command: Command) -> Command {
        inside(&self.names[1], command)
    }

    fn host(&self, command: Command) -> Command {
        inside(&self.names[2], command)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&["netns", "del", name]);
        }
    }
}

fn ip(args: &[&str]) -> bool {
    let ran = Command::new("ip").args(args).stderr(Stdio::null()).stdout(Stdio::null()).status();
    ran.is_ok_and(|status| status.success())
}

/// The same command in a network namespace.
fn inside(name: &str, command: Command) -> Command {
    let mut entered = Command::new("nsenter");
    entered.arg(format!("--net=/run/netns/{name}")).arg("--").arg(command.get_program()).args(command.get_args());
    entered.env_clear().envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    entered.current_dir(command.get_current_dir().unwrap()).stdin(Stdio::null());
    entered
}

/// Two machines and the relay between them.
struct Apart {
    near: Home,
    far: Home,
    relay: Option<Child>,
    certificate: [PathBuf; 2],
    net: Net,
    _dir: tempfile::TempDir,
}

impl Apart {
    fn new() -> Option<Apart> {
        if !rustix::process::getuid().is_root() {
            eprintln!("needs root: network namespaces stand for machines");
            return None;
        }
        let Some(net) = Net::new() else {
            eprintln!("needs `ip` of iproute2 and a kernel with network namespaces");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec![RELAY.to_owned()]).unwrap();
        let certificate = ["cert.pem", "key.pem"].map(|name| dir.path().join(name));
        std::fs::write(&certificate[0], made.cert.pem()).unwrap();
        std::fs::write(&certificate[1], made.signing_key.serialize_pem()).unwrap();
        let mut apart = Apart { near: Home::new(), far: Home::new(), relay: None, certificate, net, _dir: dir };
        apart.start_relay();
        Some(apart)
    }

    fn start_relay(&mut self) {
        let listen = format!("{RELAY}:{PORT}");
        let mut command = self.near.command(&["relay", "--listen", &listen, "--tls-cert"]);
        command.arg(&self.certificate[0]).arg("--tls-key").arg(&self.certificate[1]);
        let mut child = self.net.relay(command).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains(RELAY), "{line:?}");
        self.relay = Some(child);
    }

    fn kill_relay(&mut self) {
        let mut child = self.relay.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// A command on the client's machine.
    fn at_client<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = self.near.command(args);
        command.env("HOLDFAST_RELAY_CA", &self.certificate[0]);
        self.net.client(command)
    }

    /// A command on the host's machine.
    fn at_host<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = self.far.command(args);
        command.env("HOLDFAST_RELAY_CA", &self.certificate[0]);
        self.net.host(command)
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if self.relay.is_some() {
            self.kill_relay();
        }
    }
}

#[track_caller]
fn ok(mut command: Command) -> String {
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn a_relay_that_is_killed_again_and_again_loses_and_doubles_no_byte_typed_or_shown() {
    let kills: usize = std::env::var(KILLS).ok().and_then(|count| count.parse().ok()).unwrap_or(2);
    let Some(mut apart) = Apart::new() else { return };
    // Each side sees the relay and not the other.
    for (name, other) in [(&apart.net.names[0], "10.9.2.2"), (&apart.net.names[2], "10.9.1.2")] {
        assert!(ip(&["-n", name, "route", "get", RELAY]) && !ip(&["-n", name, "route", "get", other]), "{name}");
    }
    ok(apart.at_host(&["host", "start"]));
    ok(apart.at_host(&["relay", "add", &format!("https://{RELAY}:{PORT}")]));
    let link = ok(apart.at_host(&["invite", "--host-wide"]));
    ok(apart.at_client(&["accept", "--name", "gpu", link.trim()]));
    let flood = "i=0; while [ ! -e stop ]; do seq $((i * 100 + 1)) $((i * 100 + 100)); i=$((i + 1)); sleep 0.01; done";
    apart.far.session("flood", flood);
    apart
        .far
        .session("work", "stty -echo; while read line; do echo \"$line\" >> log; seq 1 400; echo \"had $line\"; done");
    let shown = apart.near.join("shown");
    let mut follow = apart.at_client(&["logs", "gpu/flood", "--follow"]);
    let mut follow = follow.stdout(std::fs::File::create(&shown).unwrap()).stderr(Stdio::null()).spawn().unwrap();
    let terminal = Terminal::new("80x24");
    let mut client = terminal.start(apart.at_client(&["attach", "gpu/work"]));
    until("the client", || apart.far.clients("work") == 1);
    let mut typed = Vec::new();
    let mut lived = Instant::now();
    for kill in 0..kills {
        // Under typing and output, for as long as a good relay lives.
        for n in 0.. {
            let line = format!("k{kill}n{n}");
            terminal.types(format!("{line}\r"));
            terminal.wait_for("the line's output", |seen| seen.shows(&format!("had {line}")));
            typed.push(line);
            if lived.elapsed() > LIVES {
                break;
            }
        }
        let lines = [format!("k{kill}before"), format!("k{kill}during")];
        terminal.types(format!("{}\r", lines[0]));
        apart.kill_relay();
        terminal.types(format!("{}\r", lines[1]));
        let killed = Instant::now();
        apart.start_relay();
        lived = Instant::now();
        terminal.wait_for("what was typed meanwhile", |seen| seen.shows(&format!("had {}", lines[1])));
        eprintln!("kill {}: went on after {:?}", kill + 1, killed.elapsed());
        typed.extend(lines);
    }
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
    let log = std::fs::read_to_string(apart.far.join("log")).unwrap();
    assert_eq!(log.lines().collect::<Vec<_>>(), typed, "every line is typed once and in order");
    std::fs::write(apart.far.join("stop"), "").unwrap();
    assert!(follow.wait().unwrap().success());
    let shown = std::fs::read_to_string(shown).unwrap();
    let numbers: Vec<usize> = shown.lines().map(|line| line.trim_end().parse().unwrap()).collect();
    assert!(numbers.len() > 1000, "{}", numbers.len());
    let wrong = numbers.iter().enumerate().find(|(at, number)| **number != at + 1);
    assert_eq!(wrong, None, "every line is shown once and in order, of {}", numbers.len());
    eprintln!("{} lines typed, {} lines shown, {kills} kills", typed.len(), numbers.len());
}
