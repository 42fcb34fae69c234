//! Does what a page says.

use super::matching::{line_matches, matches};
use super::page::{How, Step, Told};
use holdfast_harness::{Client, Home, Terminal, poll, program, settle};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Who reads the guide.
const READER: &str = "human:ann";
/// Who sits at the machine of that name.
const COLLEAGUE: &str = "bob";
/// Where the pages' relay is.
const RELAY_SHOWN: &str = "https://relay.example";
/// Where the pages' host listens for HTTP.
const HTTP_SHOWN: &str = "127.0.0.1:7433";
/// Where the pages' home is.
const HOME_SHOWN: &str = "/home/ann";

/// What may be asked again until it answers as the page says: nothing changes by it.
const LOOKS: &[&str] = &[
    "ls",
    "info",
    "state",
    "screen",
    "logs",
    "journal",
    "turn",
    "grants",
    "questions",
    "approvals ls",
    "approvals show",
    "run ls",
    "run status",
    "run output",
    "flow ls",
    "flow show",
    "flow history",
    "graph",
    "ps",
    "ports",
    "env",
    "whoami",
    "host status",
    "policy may",
    "policy explain",
    "hosts ls",
    "relay ls",
    "devices ls",
    "invites ls",
];

/// Makes each command line ask for help instead, in the place where the command's own arguments end.
const ASKS_FOR_HELP: &str = r#"holdfast() {
  local words=() asked=
  for word in "$@"; do
    if [[ $word = -- && -z $asked ]]; then words+=(--help); asked=1; fi
    words+=("$word")
  done
  [[ -n $asked ]] || words+=(--help)
  "$PROGRAM" "${words[@]}"
}
"#;

/// A refusal over HTTP is a failure.
const CURL: &str = "curl() { command curl -sS --fail-with-body --max-time 60 \"$@\"; }";

/// What ids begin with that a page names as `apr_…`: the last one that was printed is meant.
const IDS: &[&str] = &["apr_", "que_", "run_", "dev_", "ckp_", "hf_", "https://relay.example/i#"];

/// Takes a page's steps.
pub struct Player {
    /// By machine; this one has no name.
    homes: BTreeMap<String, Home>,
    relay: Option<(Child, String)>,
    /// Where the host listens in place of the address that the pages show.
    http: Option<String>,
    status: i32,
    beside: Vec<(String, String, Child)>,
    ids: BTreeMap<&'static str, String>,
    /// How many commands were run.
    pub commands: usize,
}

impl Player {
    pub fn new() -> Player {
        Player {
            homes: BTreeMap::new(),
            relay: None,
            http: None,
            status: 0,
            beside: vec![],
            ids: BTreeMap::new(),
            commands: 0,
        }
    }

    pub fn take(&mut self, step: &Step) {
        match step {
            Step::NewHome => {
                self.end();
                self.status = 0;
            }
            Step::Relay => self.starts_relay(),
            Step::Http => {
                let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
                self.http = Some(free.to_string());
            }
            Step::Setup { machine, line, at } => {
                let (status, printed) = self.runs(machine, line);
                assert_eq!(status, 0, "{at}: {line}\n{printed}");
                self.remember(&printed);
            }
            Step::File { name, text } => std::fs::write(self.home("").join(name), text).unwrap(),
            Step::Block { how, commands, at } => {
                for (index, told) in commands.iter().enumerate() {
                    let asked = commands.get(index + 1).is_some_and(|next| next.line == "echo $?");
                    match how {
                        How::Plainly => self.compare(told, asked, at),
                        How::AtTerminal => self.at_terminal(told, at),
                        How::Meanwhile => self.starts_beside(told, at),
                        How::ParseOnly => self.parses(&told.line, at),
                    }
                }
            }
        }
    }

    /// What went on beside is over, and printed what its page says; nothing is left of any home.
    pub fn end(&mut self) {
        for (at, wanted, child) in std::mem::take(&mut self.beside) {
            let output = child.wait_with_output().unwrap();
            let printed = self.shown("", &output.stdout);
            assert!(matches(&wanted, &printed), "{at} printed:\n{printed}\nthe page says:\n{wanted}");
        }
        // It belongs to a home, which leaves nothing.
        if let Some((mut relay, _)) = self.relay.take() {
            relay.kill().unwrap();
            relay.wait().unwrap();
        }
        self.homes.clear();
        self.http = None;
    }

    fn home(&mut self, machine: &str) -> &Home {
        self.homes.entry(machine.to_owned()).or_insert_with(|| fresh(&person(machine)))
    }

    fn starts_relay(&mut self) {
        let mut command = self.home("").command(&["relay", "--listen", "127.0.0.1:0"]);
        let mut relay = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(relay.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit("http://").next().unwrap().to_owned();
        self.relay = Some((relay, format!("http://{address}")));
    }

    fn shell(&mut self, machine: &str, script: &str) -> Command {
        let mut bash = Command::new("bash");
        let home = self.home(machine);
        bash.env_clear().current_dir(home.path()).stdin(Stdio::null());
        for (name, value) in home.command::<&str>(&[]).get_envs() {
            bash.env(name, value.unwrap_or_default());
        }
        bash.env("HOLDFAST_ACTOR", person(machine)).env("SHELL", "/bin/bash").env("PROGRAM", program());
        bash.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", home.join("tools").display()));
        bash.args(["-c", script]);
        bash
    }

    /// A command with the relay and the ids that there are.
    fn meant(&self, line: &str) -> String {
        let line = IDS.iter().fold(line.to_owned(), |line, prefix| {
            line.replace(&format!("{prefix}…"), self.ids.get(prefix).map_or("", String::as_str))
        });
        let line = line.replace(RELAY_SHOWN, self.relay.as_ref().map_or(RELAY_SHOWN, |(_, url)| url));
        let Some(http) = &self.http else { return line };
        // The address that is meant where none is said.
        let told = line.replace("host start --http ", &format!("host start --http {HTTP_SHOWN} "));
        told.replace(&format!("{HTTP_SHOWN} {HTTP_SHOWN}"), HTTP_SHOWN).replace(HTTP_SHOWN, http)
    }

    /// What was printed, with home and relay where the pages have them.
    fn shown(&mut self, machine: &str, printed: &[u8]) -> String {
        let home = self.home(machine).path().display().to_string();
        let text = String::from_utf8_lossy(printed).replace(&home, HOME_SHOWN);
        let text = text.replace(self.relay.as_ref().map_or(RELAY_SHOWN, |(_, url)| url), RELAY_SHOWN);
        self.http.as_ref().map_or_else(|| text.clone(), |http| text.replace(http, HTTP_SHOWN))
    }

    /// Its status and all that it prints.
    fn runs(&mut self, machine: &str, line: &str) -> (i32, String) {
        let script = format!("exec 2>&1; {CURL}\n(exit {}); {}", self.status, self.meant(line));
        let output = self.shell(machine, &script).output().unwrap();
        (output.status.code().unwrap_or(-1), self.shown(machine, &output.stdout))
    }

    fn compare(&mut self, told: &Told, may_fail: bool, at: &str) {
        let Told { machine, line, below } = told;
        let looks = LOOKS.iter().any(|verb| line.starts_with(&format!("holdfast {verb}")));
        let told_as_error = below.lines().any(|line| line.starts_with("error: ") || line.starts_with("holdfast: "));
        let mut last = (0, String::new());
        let mut fits = || {
            last = self.runs(machine, line);
            (last.0 == 0 || may_fail || told_as_error) && (matches(below, &last.1) || below.is_empty())
        };
        let fitted = if looks { poll(&mut fits).is_some() } else { fits() };
        let (status, printed) = last;
        assert!(fitted, "{at}: {line}\nended with {status} and printed:\n{printed}\nthe page says:\n{below}");
        self.remember(&printed);
        self.status = status;
        self.commands += 1;
    }

    fn remember(&mut self, printed: &str) {
        for prefix in IDS {
            let starts = |word: &&str| word.starts_with(prefix);
            if let Some(id) = printed.split(|c: char| c.is_whitespace() || "(),;\"".contains(c)).rfind(starts) {
                self.ids.insert(prefix, id.to_owned());
            }
        }
    }

    fn starts_beside(&mut self, told: &Told, at: &str) {
        let line = &told.line;
        let child = self.shell(&told.machine, &format!("exec 2>&1; {line}")).stdout(Stdio::piped()).spawn().unwrap();
        self.beside.push((format!("{at}: {line}"), told.below.clone(), child));
        self.commands += 1;
    }

    /// Plays a person at a terminal: sees what stands there, types what stands behind a session's prompt, presses chords.
    fn at_terminal(&mut self, told: &Told, at: &str) {
        let terminal = Terminal::new("100x30");
        let line = self.meant(&told.line);
        let client: &mut Client = &mut terminal.start(self.shell(&told.machine, &line));
        for line in told.below.lines().filter(|line| !line.trim().is_empty()) {
            if let Some((_, keys)) = line.split_once("Ctrl-\\ ") {
                terminal.types([b"\x1c", &keys.as_bytes()[..1]].concat());
            } else if let Some((prompt, typed)) = line.split_once("$ ") {
                let prompt = format!("{prompt}$");
                terminal.wait_for(&format!("{at}: the prompt {prompt}"), |seen| {
                    seen.lines().iter().rfind(|line| !line.trim().is_empty()).is_some_and(|line| line.trim() == prompt)
                });
                terminal.types(format!("{}\r", typed.split("  #").next().unwrap_or(typed).trim()));
            } else {
                let wanted = format!("{at}: {line:?}");
                terminal.wait_for(&wanted, |seen| seen.lines().iter().any(|shown| line_matches(line, shown)));
            }
        }
        assert_eq!(client.wait(), 0, "{at}: {}", told.line);
        self.commands += 1;
    }

    /// The program takes this command line.
    pub fn parses(&mut self, line: &str, at: &str) {
        let refused = self.refuses(line);
        assert!(refused.is_none(), "{at}: {line}\n{}", refused.unwrap_or_default());
    }

    /// What the program says to a command line that it does not take.
    pub fn refuses(&mut self, line: &str) -> Option<String> {
        let simple = line.split(" | ").next().unwrap_or(line).split(" #").next().unwrap_or(line);
        // `--version` asks for no help, and a name in capitals is no command.
        let is_general = simple.split(' ').nth(1).is_some_and(|word| word.chars().all(|c| c.is_ascii_uppercase()));
        if !simple.starts_with("holdfast ") || simple.ends_with(" --version") || is_general {
            return None;
        }
        let simple = simple.replace("<Tab>", "").replace(['[', ']', '…'], "");
        let script = format!("exec 2>&1; {ASKS_FOR_HELP}{simple}");
        let output = self.shell("", &script).output().unwrap();
        let printed = self.shown("", &output.stdout);
        self.commands += 1;
        // HANDLE or NAME stands for something that has a form: that alone may be wrong with it.
        let value = printed.split_once("invalid value '").and_then(|(_, rest)| rest.split('\'').next());
        let is_placeholder = value.is_some_and(|value| value.chars().all(|c| c.is_ascii_uppercase()));
        let is_taken = output.status.success() && printed.contains("Usage: ");
        (!is_taken && !is_placeholder).then_some(printed)
    }
}

/// Who acts at a machine.
fn person(machine: &str) -> String {
    if machine == COLLEAGUE { format!("human:{COLLEAGUE}") } else { READER.to_owned() }
}

/// A home with the program in its PATH and a prompt that names the session.
fn fresh(person: &str) -> Home {
    let home = Home::new();
    settle(home.path(), person);
    std::fs::create_dir(home.join("tools")).unwrap();
    std::os::unix::fs::symlink(program(), home.join("tools/holdfast")).unwrap();
    std::fs::write(home.join(".bashrc"), "PS1='$HOLDFAST_SESSION_NAME$ '\n").unwrap();
    home
}
