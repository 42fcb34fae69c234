//! Clients without packages: one request over HTTP, and the tools of `holdfast mcp`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

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

/// An agent's program.
pub struct Mcp {
    child: Child,
    say: ChildStdin,
    answers: Receiver<Value>,
    id: u64,
}

impl Mcp {
    pub fn open(place: &Place, actor: &str) -> Result<Mcp> {
        let mut command = place.command(actor, &["mcp"]);
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
        let mut mcp = Mcp { child, say, answers, id: 0 };
        let client = json!({ "name": "soak", "version": "1" });
        mcp.ask("initialize", &json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }))?;
        writeln!(mcp.say, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
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
        writeln!(self.say, "{}", json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params }))?;
        loop {
            let answer =
                self.answers.recv_timeout(ANSWER_TIME).with_context(|| format!("mcp: no answer to {method}"))?;
            if answer["id"] == self.id && !answer["error"].is_null() {
                bail!("mcp: {method}: {}", answer["error"]);
            }
            if answer["id"] == self.id {
                return Ok(answer["result"].clone());
            }
        }
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
