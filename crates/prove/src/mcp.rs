//! An AI operator: the Model Context Protocol over the standard input and output of `holdfast mcp`.

use crate::place::Place;
use crate::trial::{Stop, broken};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long an answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// A connected agent.
pub struct Agent {
    server: Child,
    /// None once it was closed, which ends the server.
    to: Option<ChildStdin>,
    answers: Receiver<Value>,
    next: u64,
}

impl Agent {
    /// Starts the server as an agent's program does, and says hello.
    pub fn start(place: &Place, actor: &str) -> Result<Agent, Stop> {
        // The process above the server counts as the agent's program, and what it starts as the agent's: so it is a shell of its own.
        let served = place.command(&["mcp", "--as", actor]);
        let mut agent = Command::new("sh");
        agent.args(["-c", "\"$@\"; exit $?", "agent"]).arg(served.get_program()).args(served.get_args());
        for (name, value) in served.get_envs() {
            match value {
                Some(value) => agent.env(name, value),
                None => agent.env_remove(name),
            };
        }
        let mut server = agent
            .env_remove("HOLDFAST_ACTOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| broken("holdfast mcp", error))?;
        let (Some(to), Some(from)) = (server.stdin.take(), server.stdout.take()) else {
            return Err(broken("holdfast mcp", "no pipes"));
        };
        let (tell, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                let Ok(message) = serde_json::from_str(&line) else { break };
                if tell.send(message).is_err() {
                    break;
                }
            }
        });
        let mut agent = Agent { server, to: Some(to), answers, next: 0 };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "prove", "version": "1" } });
        agent.ask("initialize", &hello)?;
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(agent)
    }

    /// Calls a tool; its structured answer, or what it refused with.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Result<Value, String>, Stop> {
        let result = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        if result["isError"] == true {
            return Ok(Err(result["content"][0]["text"].as_str().unwrap_or_default().to_owned()));
        }
        Ok(Ok(result["structuredContent"].clone()))
    }

    /// Calls a tool that must succeed.
    pub fn ok(&mut self, tool: &str, arguments: &Value) -> Result<Value, Stop> {
        self.call(tool, arguments)?.map_err(|why| broken(&format!("the tool {tool}"), why))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Stop> {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let message = self.answers.recv_timeout(ANSWER_TIME).map_err(|error| broken(method, error))?;
            if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(broken(method, error)),
                    None => Ok(message["result"].clone()),
                };
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<(), Stop> {
        let to = self.to.as_mut().ok_or_else(|| broken("holdfast mcp", "its input is closed"))?;
        to.write_all(format!("{message}\n").as_bytes())
            .and_then(|()| to.flush())
            .map_err(|error| broken("holdfast mcp", error))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.to.take());
        let _ = self.server.wait();
    }
}
