//! `holdfast web`: the host's page in a browser, by a link that logs in once.

use crate::args::{ListenArgs, WebArgs};
use crate::commands::host;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{print, print_json};
use holdfast_wire::operations::op;
use holdfast_wire::params::Nothing;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use rustix::termios::isatty;
use serde_json::json;
use std::io;
use std::net::{IpAddr, UdpSocket};
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
    // An address that stands for all is asked at this machine's own.
    let shown = if args.phone {
        from_elsewhere(here, &url)?
    } else {
        url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    };
    let login = here.link()?.call::<op::LoginNew>(&Nothing {})?;
    let link = format!("{shown}/#code={}", login.code);
    if here.json {
        print_json(&json!({ "url": link, "until_ms": login.until_ms }))?;
        return Ok(0);
    }
    let is_seen = isatty(rustix::stdio::stdout());
    if args.phone && is_seen {
        print(code(&link)?)?;
    }
    print(format!("{link}\n"))?;
    let at_a_desk = std::env::var_os("DISPLAY").is_some() || std::env::var_os("WAYLAND_DISPLAY").is_some();
    if !args.no_open && !args.phone && at_a_desk && is_seen {
        let mut open = Command::new("xdg-open");
        let _ = open.arg(&link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    }
    eprintln!("it logs in as {}, once, within five minutes", here.who()?.actor().handle);
    Ok(0)
}

/// Where another machine reaches this host: by the name it was given, else by the address of the way out of here.
fn from_elsewhere(here: &Here, url: &str) -> Result<String, Failure> {
    let listen = crate::listen::load(&here.home)?;
    let Some(listen) = listen.filter(|listen| !listen.address.ip().is_loopback()) else {
        return Err(Failure::new("unreachable", format!("the host listens at {url}, which no other device reaches"))
            .hint("let it listen wider: holdfast host start --http 0.0.0.0:7433 --tls-cert FILE --tls-key FILE"));
    };
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let (_, port) = rest.rsplit_once(':').unwrap_or((rest, "80"));
    let host = match (listen.names.first(), listen.address.ip()) {
        (Some(name), _) => name.clone(),
        (None, ip) if ip.is_unspecified() => bracketed(way_out(ip).map_err(|error| {
            Failure::new("unreachable", format!("this machine has no address that others reach: {error}"))
                .hint("say by which name it is reached: holdfast host start --http ADDR --name NAME")
        })?),
        (None, ip) => bracketed(ip),
    };
    Ok(format!("{scheme}://{host}:{port}"))
}

/// The address this machine speaks to others from. Nothing is sent.
fn way_out(any: IpAddr) -> io::Result<IpAddr> {
    let (here, there) = if any.is_ipv4() { ("0.0.0.0:0", "192.0.2.1:9") } else { ("[::]:0", "[2001:db8::1]:9") };
    let socket = UdpSocket::bind(here)?;
    socket.connect(there)?;
    Ok(socket.local_addr()?.ip())
}

fn bracketed(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// A link as cameras read it: black on white, whatever the terminal's colours.
fn code(link: &str) -> Result<String, Failure> {
    let code = QrCode::with_error_correction_level(link, EcLevel::L)
        .map_err(|error| Failure::new("internal", format!("the link is no QR code: {error}")))?;
    let drawn = code.render::<Dense1x2>().build();
    Ok(drawn.lines().map(|line| format!("\x1b[30;107m{line}\x1b[m\n")).collect())
}
