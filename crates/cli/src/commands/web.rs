//! `holdfast web`: the host's page in a browser, by a link that logs in once.

use crate::args::{ListenArgs, WebArgs};
use crate::commands::host;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{print, print_json};
use holdfast_wire::operations::op;
use holdfast_wire::params::Nothing;
use rustix::termios::isatty;
use serde_json::json;
use std::process::{Command, Stdio};

/// `holdfast web`.
pub fn web(here: &Here, args: &WebArgs) -> Result<u8, Failure> {
    let (mut status, _) = host::listening(here, &ListenArgs::default())?;
    if status.http.is_none() && status.http_error.is_none() {
        let args = ListenArgs { http: Some(None), ..ListenArgs::default() };
        status = host::listening(here, &args)?.0;
    }
    let Some(url) = status.http else {
        let why = status.http_error.unwrap_or_default();
        return Err(Failure::new("cannot_listen", format!("the host does not listen for HTTP: {why}"))
            .hint("give another address: holdfast host start --http ADDR"));
    };
    let login = here.link()?.call::<op::LoginNew>(&Nothing {})?;
    // An address that stands for all is asked at this machine's own.
    let shown = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
    let link = format!("{shown}/#code={}", login.code);
    if here.json {
        print_json(&json!({ "url": link, "until_ms": login.until_ms }))?;
        return Ok(0);
    }
    print(format!("{link}\n"))?;
    let at_a_desk = std::env::var_os("DISPLAY").is_some() || std::env::var_os("WAYLAND_DISPLAY").is_some();
    if !args.no_open && at_a_desk && isatty(rustix::stdio::stdout()) {
        let mut open = Command::new("xdg-open");
        let _ = open.arg(&link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    }
    eprintln!("it logs in as {}, once, within five minutes", here.who()?.actor().handle);
    Ok(0)
}
