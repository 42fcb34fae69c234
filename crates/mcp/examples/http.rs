//! Serves the tools over streamable HTTP for who wants to try a client: `http PORT`, by the host of `HOLDFAST_HOME`, as
//! `agent:http`. Prints its address when it listens.
//!
//! Without tokens, and at a port of this machine alone: every program of this machine may use it.

use holdfast_client::{Identity, connect};
use holdfast_mcp::rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use holdfast_mcp::{Host, Wanted, http};
use holdfast_types::Home;
use holdfast_wire::frame::{FRAME_BYTES_MAX, Frame};
use holdfast_wire::{Body, Code, Fault, Message};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::sync::Arc;

/// Asks by a connection of its own each time: simple, and blocking.
#[derive(Clone)]
struct Plain(Arc<(Home, Identity)>);

impl Plain {
    fn ask(&self, method: String, params: Value, bytes: Vec<u8>) -> Result<(Value, Vec<u8>), Fault> {
        let failed = |error: &dyn std::error::Error| Fault::new(Code::Internal, error.to_string());
        let (home, who) = &*self.0;
        let (mut stream, mut received, asked) = connect(home, who).map_err(|e| failed(&e))?.into_parts();
        let mut out = Vec::new();
        Message { body: Body::Request { id: asked, method, params }, bytes }.encode(&mut out);
        stream.write_all(&out).map_err(|e| failed(&e))?;
        loop {
            while let Some((frame, taken)) = Frame::decode(&received, FRAME_BYTES_MAX).map_err(|e| failed(&e))? {
                let message = Message::decode(frame)?;
                received.drain(..taken);
                match message.body {
                    Body::Answer { id, result } if id == asked => return Ok((result?, message.bytes)),
                    _ => {}
                }
            }
            let mut more = [0; 4096];
            match stream.read(&mut more).map_err(|e| failed(&e))? {
                0 => return Err(Fault::new(Code::Internal, "the host went away")),
                count => received.extend_from_slice(&more[..count]),
            }
        }
    }
}

impl Host for Plain {
    async fn call(&self, method: &str, params: Value, bytes: Vec<u8>) -> Result<(Value, Vec<u8>), Fault> {
        let (host, method) = (self.clone(), method.to_owned());
        let asked = tokio::task::spawn_blocking(move || host.ask(method, params, bytes)).await;
        asked.map_err(|error| Fault::new(Code::Internal, error.to_string()))?
    }

    async fn settle(&self, wanted: Wanted) -> Result<Value, Fault> {
        let command = if wanted.command.is_empty() { vec!["/bin/bash".to_owned()] } else { wanted.command };
        let variables = std::env::vars().filter(|(key, _)| !key.starts_with("HOLDFAST_"));
        let mut env: Vec<String> = variables.map(|(key, value)| format!("{key}={value}")).collect();
        env.extend(wanted.env_add);
        let cwd = wanted.cwd.unwrap_or_else(|| "/".into());
        Ok(json!({ "name": wanted.name, "command": command, "cwd": cwd, "env": env }))
    }

    fn own_name(&self) -> String {
        "http".into()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args().nth(1).ok_or("usage: http PORT")?.parse()?;
    let home = Home::from_env(|key| std::env::var_os(key))?;
    let who = Identity::load_or_make(&home, &"agent:http".parse()?)?;
    let service = http(Plain(Arc::new((home, who))), StreamableHttpServerConfig::default());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
