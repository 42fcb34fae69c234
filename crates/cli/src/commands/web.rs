//! `holdfast web`: the host's page in a browser, by a link that logs in once.

use crate::args::{ListenArgs, WebArgs};
use crate::commands::host;
use crate::commands::qr::code;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{print, print_json};
use holdfast_wire::devices::InviteNewParams;
use holdfast_wire::operations::op;
use holdfast_wire::params::Nothing;
use rustix::termios::isatty;
use serde_json::json;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// `holdfast web`.
pub fn web(here: &Here, args: &WebArgs) -> Result<u8, Failure> {
    here.must_not_be_watched("a link that logs in", "holdfast web --json > FILE")?;
    let (mut status, _) = host::listening(here, &ListenArgs::default())?;
    let is_new = status.http.is_none() && status.http_error.is_none();
    if is_new {
        let args = ListenArgs { http: Some(None), ..ListenArgs::default() };
        status = host::listening(here, &args)?.0;
    }
    let Some(url) = status.http else {
        let why = status.http_error.unwrap_or_default();
        return Err(Failure::new("cannot_listen", format!("the host is not listening for HTTP: {why}"))
            .hint("choose another address: holdfast host start --http ADDR"));
    };
    let shown = if args.phone {
        from_elsewhere(here, &url)?
    } else {
        // An address that stands for all is asked at this machine's own.
        url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    };
    let (link, until_ms) = if args.away {
        let made = here.link()?.call::<op::InviteNew>(&InviteNewParams::default())?;
        // The same invite, with the page around it from here instead of from a relay.
        let code = made.link.split_once("/i#").map_or_else(String::new, |(_, code)| code.to_owned());
        (format!("{shown}/i#{code}"), made.invite.until_ms)
    } else {
        let login = here.link()?.call::<op::LoginNew>(&Nothing {})?;
        (format!("{shown}/#code={}", login.code), login.until_ms)
    };
    if here.json {
        print_json(&json!({ "url": link, "until_ms": until_ms }))?;
        return Ok(0);
    }
    let is_seen = isatty(rustix::stdio::stdout());
    if args.phone && is_seen {
        print(code(&link)?)?;
    }
    print(format!("{link}\n"))?;
    let at_a_desk = std::env::var_os("DISPLAY").is_some() || std::env::var_os("WAYLAND_DISPLAY").is_some();
    if args.away {
        eprintln!(
            "this link makes one browser a device of this host, once, within an hour; open it while the phone is in this network"
        );
    } else {
        eprintln!("this link logs in as {}, once, within five minutes", here.who()?.actor().handle);
    }
    if is_new {
        eprintln!("the host listens at {url} from now on; to turn that off: holdfast host start --no-http");
    }
    if !args.no_open && !args.phone && at_a_desk && is_seen && !crate::browser::open(&link).unwrap_or(false) {
        eprintln!("no browser came for it; open the link yourself");
    }
    Ok(0)
}

/// Where another machine reaches this host: by the name it was given, else by the address of the way out of here.
fn from_elsewhere(here: &Here, url: &str) -> Result<String, Failure> {
    let unreachable = |why: String, hint: &str| Failure::new("unreachable", why).hint(hint);
    let bound = url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.parse::<SocketAddr>().ok()?)));
    let Some((scheme, mut at)) = bound.filter(|(_, at)| !at.ip().is_loopback()) else {
        return Err(unreachable(
            format!("the host listens at {url}, which no other device can reach"),
            "listen on the network: holdfast host start --http 0.0.0.0:7433 --tls-cert FILE --tls-key FILE",
        ));
    };
    if let Some(name) = crate::listen::load(&here.home)?.and_then(|listen| listen.names.into_iter().next()) {
        return Ok(format!("{scheme}://{name}:{}", at.port()));
    }
    if at.ip().is_unspecified() {
        at.set_ip(way_out(at.ip()).map_err(|error| {
            unreachable(
                format!("cannot find an address of this machine that other devices can reach: {error}"),
                "name this machine: holdfast host start --http ADDR --name NAME",
            )
        })?);
    }
    Ok(format!("{scheme}://{at}"))
}

/// The address this machine speaks to others from. Nothing is sent.
fn way_out(any: IpAddr) -> io::Result<IpAddr> {
    let (here, there) = if any.is_ipv4() { ("0.0.0.0:0", "192.0.2.1:9") } else { ("[::]:0", "[2001:db8::1]:9") };
    let socket = UdpSocket::bind(here)?;
    socket.connect(there)?;
    Ok(socket.local_addr()?.ip())
}
