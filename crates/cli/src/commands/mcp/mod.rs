//! `holdfast mcp`: the tools and resources of `holdfast-mcp` for one agent, which is an actor of its own.

mod clients;
mod install;
mod link;

use crate::args::{McpArgs, McpCommand};
use crate::failure::Failure;
use crate::here::Here;
use crate::show::say;
use crate::who::{self, Said};
use holdfast_client::Identity;
use holdfast_mcp::rmcp::ServiceExt;
use holdfast_mcp::rmcp::transport::io::stdio_pipes;
use holdfast_mcp::service;
use holdfast_types::ActorClass;
use link::HostLink;

/// `holdfast mcp`.
pub fn mcp(here: &Here, args: &McpArgs) -> Result<u8, Failure> {
    match &args.command {
        None => serve(here),
        Some(McpCommand::Install(args)) => install::install(here, args),
    }
}

fn serve(here: &Here) -> Result<u8, Failure> {
    let host = HostLink::new(here, said(here)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("cannot serve", error))?;
    let served = runtime.block_on(async {
        let running = service(host).serve(stdio_pipes()).await.map_err(|error| error.to_string())?;
        running.waiting().await.map_err(|error| error.to_string())
    });
    // A thread may still wait for a line that never comes.
    runtime.shutdown_background();
    match served {
        Ok(_) => Ok(0),
        Err(error) => Err(Failure::new("protocol", format!("the client does not speak MCP: {error}"))
            .hint("an agent's program starts this command: see `holdfast mcp install --help`")),
    }
}

/// The actor that the flag or the variable names; the variable may not name a human. A person may have set that for all their shells, and
/// an agent that inherits it must not come out as that person.
fn said(here: &Here) -> Result<Option<Identity>, Failure> {
    if here.said().is_some() {
        return Ok(Some(here.own()?));
    }
    match who::said(None)? {
        None => Ok(None),
        Some(Said::Handle(handle)) if handle.class() == ActorClass::Human => {
            say(&format!(
                "ignoring {}={handle}: an agent does not act as a human by default; use --as {handle} if you mean it",
                who::VARIABLE
            ));
            Ok(None)
        }
        Some(_) => {
            let identity = here.own()?;
            let is_human = identity.actor().handle.class() == ActorClass::Human;
            Ok((!is_human).then_some(identity))
        }
    }
}
