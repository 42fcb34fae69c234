//! Clients: one request over HTTP, the tools of `holdfast mcp`, and the clients for Python and TypeScript.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::log::Log;
use super::place::Place;

const ANSWER_TIME: Duration = Duration::from_secs(60);

/// Asks the host over HTTP, on a connection of its own: its status, and its JSON.
pub fn http(place: &Place, method: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    let mut stream = TcpStream::connect(&place.address)?;
    stream.set_read_timeout(Some(ANSWER_TIME))?;
    stream.set_write_timeout(Some(ANSWER_TIME))?;
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n",
        place.token
    );
    let length = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all((head + &length).as_bytes())?;
    let mut reader = BufReader::new(stream);
    let (mut line, mut length, mut status) = (String::new(), 0, 0);
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            bail!("the connection ended before the answer");
        }
        match line.trim_end().split_once(": ") {
            Some((name, count)) if name.eq_ignore_ascii_case("content-length") => length = count.parse()?,
            Some(_) => {}
            None if line == "\r\n" => break,
            None => status = line.split_whitespace().nth(1).and_then(|code| code.parse().ok()).context("no status")?,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}

/// A program that is asked by lines of JSON, and answers so.
struct Speaker {
    child: Child,
    say: ChildStdin,
    answers: Receiver<Value>,
}

impl Speaker {
    fn start(mut command: Command) -> Result<Speaker> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (say, hear) = (child.stdin.take().context("piped")?, child.stdout.take().context("piped")?);
        let (tell, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(hear).lines().map_while(Result::ok) {
                let Ok(message) = serde_json::from_str(&line) else { break };
                if tell.send(message).is_err() {
                    break;
                }
            }
        });
        Ok(Speaker { child, say, answers })
    }

    fn tell(&mut self, message: &Value) -> Result<()> {
        Ok(writeln!(self.say, "{message}")?)
    }

    fn hear(&self, what: &str) -> Result<Value> {
        self.answers.recv_timeout(ANSWER_TIME).with_context(|| format!("no answer to {what}"))
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An agent's program.
pub struct Mcp {
    speaker: Speaker,
    id: u64,
}

impl Mcp {
    pub fn open(place: &Place, actor: &str) -> Result<Mcp> {
        let server = place.command(actor, &["mcp"]);
        // Whatever starts a server of tools is an agent's program, and so is all that it starts. We are to be taken for a human's.
        let mut agent = place.other(Path::new("sh"));
        agent.args(["-c", "\"$@\"; exit $?", "agent"]).arg(server.get_program()).args(server.get_args());
        let mut mcp = Mcp { speaker: Speaker::start(agent)?, id: 0 };
        let client = json!({ "name": "soak", "version": "1" });
        mcp.ask("initialize", &json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }))?;
        mcp.speaker.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(mcp)
    }

    /// Calls a tool: its answer, or what it refused with.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Result<Value, Value>> {
        let result = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        let content = &result["structuredContent"];
        Ok(if result["isError"] == true { Err(content["error"].clone()) } else { Ok(content.clone()) })
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.id += 1;
        self.speaker.tell(&json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params }))?;
        loop {
            let answer = self.speaker.hear(method)?;
            if answer["id"] == self.id && !answer["error"].is_null() {
                bail!("mcp: {method}: {}", answer["error"]);
            }
            if answer["id"] == self.id {
                return Ok(answer["result"].clone());
            }
        }
    }
}

/// The clients for other languages, as far as this machine has them.
#[derive(Debug, Default)]
pub struct Sdks {
    scripts: PathBuf,
    /// A Python that has the client.
    python: Option<PathBuf>,
    /// The client for TypeScript, built.
    built: Option<PathBuf>,
}

/// A language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Over the host's socket.
    Python,
    /// Over a WebSocket, as the page does it.
    TypeScript,
}

impl Sdks {
    /// Makes them ready; what cannot be is noted as not provided.
    pub fn ready(root: &Path, log: &Log) -> Sdks {
        let scripts = root.join("xtask/src/soak");
        let dir = root.join(crate::python::DIR);
        let python = crate::venv::programs(root, "sdk", &dir.join("requirements.lock"), Some(&dir));
        let built = crate::typescript::build(root);
        let note = |language: &str, error: &anyhow::Error| {
            log.note(format!("operators by the {language} client: not provided ({error:#})"));
        };
        Sdks {
            scripts,
            python: python.inspect_err(|error| note("Python", error)).ok().map(|bin| bin.join("python")),
            built: built
                .inspect_err(|error| note("TypeScript", error))
                .ok()
                .map(|()| root.join(crate::typescript::DIR).join("dist/node.js")),
        }
    }

    pub fn has(&self, language: Language) -> bool {
        match language {
            Language::Python => self.python.is_some(),
            Language::TypeScript => self.built.is_some(),
        }
    }
}

/// A program that uses one of them.
pub struct Sdk(Speaker);

impl Sdk {
    pub fn open(place: &Place, language: Language, actor: &str) -> Result<Sdk> {
        let sdks = &place.sdks;
        let mut command = match language {
            Language::Python => {
                let mut command = place.other(sdks.python.as_ref().context("no Python client")?);
                command.arg(sdks.scripts.join("by_python.py")).env("HOLDFAST_ACTOR", actor);
                command
            }
            Language::TypeScript => {
                let mut command = place.other(Path::new("node"));
                command.arg(sdks.scripts.join("by_websocket.mjs")).arg(sdks.built.as_ref().context("no built client")?);
                command.arg(format!("http://{}", place.address)).env("HOLDFAST_TOKEN", &place.token);
                command
            }
        };
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        Ok(Sdk(Speaker::start(command)?))
    }

    /// Asks for one thing.
    pub fn ask(&mut self, asked: &Value) -> Result<Value> {
        self.0.tell(asked)?;
        self.0.hear(&asked.to_string())
    }
}
