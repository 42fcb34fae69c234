//! What operators do: look, type, run, take and release the turn, start and end sessions; by the command line, over HTTP, by the
//! tools of MCP, through the relay, and by the clients for Python and TypeScript.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::clients::{Language, Mcp, Sdk, http};
use super::dice::Dice;
use super::log::{Deed, Log, Outcome};
use super::place::{Kind, Place, Ran, Session};

/// How an operator reaches the host.
#[derive(Debug, Clone, Copy)]
enum Way {
    CommandLine,
    Http,
    Mcp,
    Relay,
    Client(Language),
}

const WAYS: &[Way] = &[
    Way::CommandLine,
    Way::Http,
    Way::Mcp,
    Way::Relay,
    Way::Client(Language::Python),
    Way::Client(Language::TypeScript),
];

/// Codes of refusals that say that nothing was typed.
const NOT_TYPED: &[&str] = &["turn_held", "frozen", "denied", "waiting_for_input"];

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Nothing where a line has reached the terminal; one that is queued may yet be dropped.
fn queued(typed: &Value) -> Option<String> {
    (typed["written"] != true).then(|| "queued".to_owned())
}

/// The code that a client's answer has where it was refused.
fn refused(answer: &Value) -> Option<String> {
    answer["error"]["code"].as_str().map(str::to_owned)
}

/// Nothing where a run has ended with 0, or why it has not.
fn unfinished(run: &Value) -> Option<String> {
    let why = run["error"]["code"].as_str().or(run["code"].as_str()).or(run["state"].as_str());
    (run["exit_code"] != 0).then(|| why.unwrap_or_default().to_owned())
}

struct Operator<'a> {
    actor: String,
    way: Way,
    place: &'a Place,
    log: &'a Log,
    dice: Dice,
    mcp: Option<Mcp>,
    sdk: Option<Sdk>,
    deeds: usize,
}

/// Acts until it is over.
pub fn operate(number: usize, place: &Place, log: &Log, dice: Dice, over: &AtomicBool) {
    let way = match WAYS[number % WAYS.len()] {
        Way::Client(language) if !place.sdks.has(language) => Way::CommandLine,
        way => way,
    };
    let actor = format!("agent:op{number}");
    let mut operator = Operator { actor, way, place, log, dice, mcp: None, sdk: None, deeds: 0 };
    while !over.load(Ordering::Relaxed) {
        match operator.act() {
            Ok(()) => {}
            // A command that ends nowhere is a fault; a connection that breaks is what kills are for.
            Err(error) if format!("{error:#}").contains("did not end within") => log.violation(format!("{error:#}")),
            Err(_) => {
                log.count("acts broken off");
                operator.hang_up();
            }
        }
        std::thread::sleep(Duration::from_millis(100 + operator.dice.below(800) as u64));
    }
}

impl Operator<'_> {
    fn act(&mut self) -> Result<()> {
        match self.dice.below(10) {
            0..=2 => self.looks(),
            3..=5 => self.types(),
            6..=8 => self.runs(),
            _ => self.other(),
        }
    }

    fn session(&mut self, kind: impl Fn(Kind) -> bool) -> Option<Session> {
        let fitting = self.place.of_kind(kind);
        self.dice.one(&fitting).map(|session| (*session).clone())
    }

    /// A word that nobody else uses.
    fn token(&mut self) -> String {
        self.deeds += 1;
        format!("{}-{}", self.actor.trim_start_matches("agent:"), self.deeds)
    }

    fn program(&self, session: &str, before: &[&str], after: &[&str]) -> Result<Ran> {
        match self.way {
            Way::Relay => {
                let there = format!("{}/{session}", self.place.far_name);
                self.place.far(&[&["--json"], before, &[there.as_str()], after].concat())
            }
            Way::CommandLine | Way::Http | Way::Mcp | Way::Client(_) => {
                self.place.run(&self.actor, &[&["--json"], before, &[session], after].concat())
            }
        }
    }

    fn tool(&mut self, name: &str, arguments: &Value) -> Result<Result<Value, Value>> {
        let mut mcp = match self.mcp.take() {
            Some(mcp) => mcp,
            None => Mcp::open(self.place, &self.actor)?,
        };
        let answer = mcp.call(name, arguments)?;
        self.mcp = Some(mcp);
        Ok(answer)
    }

    /// Asks for one thing by one of the clients for other languages.
    fn client(&mut self, language: Language, asked: &Value) -> Result<Value> {
        let mut sdk = match self.sdk.take() {
            Some(sdk) => sdk,
            None => Sdk::open(self.place, language, &self.actor)?,
        };
        let answer = sdk.ask(asked)?;
        self.sdk = Some(sdk);
        Ok(answer)
    }

    /// The next question is asked on a new connection.
    fn hang_up(&mut self) {
        (self.mcp, self.sdk) = (None, None);
    }

    fn looks(&mut self) -> Result<()> {
        let Some(session) = self.session(|_| true) else { return Ok(()) };
        let name = session.name.as_str();
        let fine = match (self.way, self.dice.below(4)) {
            (Way::Http, 0) => http(self.place, "GET", "/v1/sessions", &Value::Null)?.0 == 200,
            (Way::Http, 1) => http(self.place, "GET", &format!("/v1/sessions/{name}"), &Value::Null)?.0 == 200,
            (Way::Http, _) => {
                http(self.place, "GET", &format!("/v1/sessions/{name}/output?from=0"), &Value::Null)?.0 == 200
            }
            (Way::Mcp, 0) => self.tool("overview", &json!({}))?.is_ok(),
            (Way::Mcp, 1) => self.tool("session_state", &json!({ "session": name }))?.is_ok(),
            (Way::Mcp, _) => self.tool("read_output", &json!({ "session": name }))?.is_ok(),
            (Way::Client(language), _) => {
                self.client(language, &json!({ "do": "look", "session": name }))?["error"].is_null()
            }
            (Way::CommandLine | Way::Relay, 0) => self.program(name, &["screen"], &[])?.status == 0,
            (Way::CommandLine | Way::Relay, 1) => self.program(name, &["state"], &[])?.status == 0,
            (Way::CommandLine | Way::Relay, 2) => self.program(name, &["graph"], &[])?.status == 0,
            (Way::CommandLine | Way::Relay, _) => self.program(name, &["info"], &[])?.status == 0,
        };
        self.log.count(if fine { "looks" } else { "looks refused" });
        Ok(())
    }

    /// Types a line where each line comes back once.
    fn types(&mut self) -> Result<()> {
        let Some(session) = self.session(|kind| kind == Kind::Repeats) else { return Ok(()) };
        let token = self.token();
        let began = Instant::now();
        let answer = match self.way {
            Way::Mcp => {
                let arguments = json!({ "session": session.name, "text": token, "keys": ["Enter"], "yield_ms": 300 });
                let answer = self.tool("send_input", &arguments);
                answer.map(|answer| answer.map_or_else(|refused| Some(text(&refused["code"])), |typed| queued(&typed)))
            }
            Way::Client(language) => {
                let asked = json!({ "do": "type", "session": session.name, "text": token });
                self.client(language, &asked).map(|typed| refused(&typed).or_else(|| queued(&typed)))
            }
            Way::CommandLine | Way::Relay | Way::Http => {
                let ran = self.program(&session.name, &["send"], &["--enter", &token]);
                let said = |ran: &Ran| serde_json::from_str(&ran.out).unwrap_or_default();
                ran.map(|ran| if ran.status == 0 { queued(&said(&ran)) } else { Some(ran.code()) })
            }
        };
        let outcome = match &answer {
            Ok(None) => Outcome::Done,
            Ok(Some(code)) if NOT_TYPED.contains(&code.as_str()) => Outcome::Refused,
            Ok(Some(_)) | Err(_) => Outcome::Unknown,
        };
        if let Ok(Some(code)) = &answer {
            self.log.count(&format!("typing: {code}"));
        }
        self.log.count(match outcome {
            Outcome::Done => "lines typed",
            Outcome::Refused => "lines refused",
            Outcome::Unknown | Outcome::Seized => "lines nobody answered for",
        });
        self.log.typed(Deed { session: session.name.clone(), token, outcome, during: began..=Instant::now() });
        self.maybe_releases(&session.name, outcome)?;
        answer.map(drop)
    }

    /// Runs a command under a key, and again with the same key where no answer came, as a careful program does.
    fn runs(&mut self) -> Result<()> {
        let Some(session) = self.session(|kind| kind == Kind::Shell) else { return Ok(()) };
        let token = self.token();
        let command = format!("echo {token} >> {}.ledger", session.name);
        let began = Instant::now();
        let mut outcome = Outcome::Unknown;
        for _ in 0..3 {
            let code = match self.way {
                Way::Http => {
                    let body = json!({ "session": session.name, "command": command, "key": token, "wait_ms": 20_000 });
                    http(self.place, "POST", "/v1/runs", &body).map(|(_, answer)| unfinished(&answer))
                }
                Way::Mcp => {
                    let body = json!({ "session": session.name, "command": command, "key": token, "yield_ms": 20_000 });
                    let answer = self.tool("run_command", &body);
                    answer.map(|answer| {
                        answer.map_or_else(|refused| Some(text(&refused["code"])), |run| unfinished(&run))
                    })
                }
                Way::Client(language) => {
                    let asked = json!({ "do": "run", "session": session.name, "command": command, "key": token });
                    self.client(language, &asked).map(|run| unfinished(&run))
                }
                Way::CommandLine | Way::Relay => {
                    let words = ["--key", &token, "--timeout", "20", "--", &command];
                    self.program(&session.name, &["run"], &words).map(|ran| (ran.status != 0).then(|| ran.code()))
                }
            };
            match &code {
                Ok(None) => outcome = Outcome::Done,
                Ok(Some(code)) => self.log.count(&format!("runs: {code}")),
                // Asked again with the same key, on a new connection.
                Err(_) => self.hang_up(),
            }
            if outcome == Outcome::Done {
                break;
            }
        }
        self.log.count(if outcome == Outcome::Done { "runs ended" } else { "runs refused or unknown" });
        self.log.ran(Deed { session: session.name.clone(), token, outcome, during: began..=Instant::now() });
        self.maybe_releases(&session.name, outcome)
    }

    /// Lets others type: half of the time at once, otherwise when the turn runs out.
    fn maybe_releases(&mut self, session: &str, outcome: Outcome) -> Result<()> {
        if outcome == Outcome::Done && self.dice.below(2) == 0 {
            self.program(session, &["release"], &[])?;
        }
        Ok(())
    }

    fn other(&mut self) -> Result<()> {
        let Some(session) = self.session(|kind| matches!(kind, Kind::Repeats | Kind::Edits)) else { return Ok(()) };
        let name = session.name.clone();
        match self.dice.below(5) {
            0 => {
                self.program(&name, &["take"], &[])?;
                self.program(&name, &["release"], &[])?;
                self.log.count("turns taken and released");
            }
            1 => {
                self.program(&name, &["request"], &[])?;
                self.program(&name, &["withdraw"], &[])?;
                self.log.count("turns requested");
            }
            2 => {
                let size = format!("{}x{}", 60 + self.dice.below(80), 20 + self.dice.below(30));
                self.program(&name, &["resize"], &[&size])?;
                self.log.count("sizes changed");
            }
            3 => {
                self.place.run(&self.actor, &["run", "--new", "--", "true"])?;
                self.log.count("sessions begun and ended");
            }
            _ => {
                // Somebody follows the output, and is killed while doing so.
                let mut follower = self.place.command(&self.actor, &["logs", &name, "--follow"]);
                let mut follower =
                    follower.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn()?;
                std::thread::sleep(Duration::from_millis(300));
                follower.kill()?;
                follower.wait()?;
                self.log.count("readers killed");
            }
        }
        Ok(())
    }
}
