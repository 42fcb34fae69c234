//! `holdfast relay`: a relay of one's own, and the relays this machine's host waits at.

use crate::args::{RelayArgs, RelayCommand, RelayDirectArgs, RelayServeArgs, Store};
use crate::commands::host;
use crate::failure::Failure;
use crate::here::Here;
use crate::listen;
use crate::show::{columns, moment, now_ms, print, print_json, table, visible};
use holdfast_relay::Cluster;
use holdfast_relay::server::{Config, Limits, Shared, bind};
use holdfast_wire::devices::{DirectParams, DirectView, RelayParams, RelayView, RelaysAnswer};
use holdfast_wire::operations::op;
use holdfast_wire::params::Nothing;
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// So much later than a relay's death the other ones forget its hosts. Renewed three times as often.
const LEASE: Duration = Duration::from_secs(10);
/// How long `relay add` waits until the relay has taken the host: longer than a handshake over a slow line.
const UP: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// `holdfast relay`.
pub fn relay(here: &Here, args: &RelayArgs) -> Result<u8, Failure> {
    match &args.about {
        None => serve(here, &args.serve),
        Some(RelayCommand::Add(args)) => add(here, &args.url),
        Some(RelayCommand::Ls) => list(here),
        Some(RelayCommand::Remove(args)) => remove(here, &args.url),
        Some(RelayCommand::Direct(args)) => direct(here, args),
    }
}

fn serve(here: &Here, args: &RelayServeArgs) -> Result<u8, Failure> {
    let Some(listen) = args.listen else {
        return Err(Failure::new("usage", "nothing to do")
            .hint("run a relay: holdfast relay --listen ADDR; use one: holdfast relay add URL")
            .status(crate::failure::STATUS_USAGE));
    };
    let default = Limits::default();
    let config = Config {
        listen,
        tls: args.tls_cert.clone().zip(args.tls_key.clone()),
        behind_proxy: args.behind_proxy,
        name: args.name.clone(),
        limits: Limits {
            connections: args.connections.unwrap_or(default.connections),
            of_address: args.per_address.unwrap_or(default.of_address),
            clients_of_host: args.per_host.unwrap_or(default.clients_of_host),
        },
        shared: shared(args)?,
    };
    // A descriptor for each connection.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    let failed = |error| Failure::io("cannot run the relay", error);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let bound = bind(&config).await.map_err(|error| Failure::io(format!("cannot listen on {listen}"), error))?;
        let address = bound.address().map_err(failed)?;
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        if here.json {
            print_json(&json!({ "url": format!("{scheme}://{address}") }))?;
        } else {
            print(format!("relay {} listens at {scheme}://{address}\n", env!("CARGO_PKG_VERSION")))?;
        }
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let over = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        bound.serve_until(over).await;
        Ok::<(), Failure>(())
    })?;
    // Connections end with the process: both ends go on by another relay, or wait for the next one here.
    runtime.shutdown_background();
    Ok(0)
}

/// The directory that is shared with other relays, if one is named.
fn shared(args: &RelayServeArgs) -> Result<Option<Shared>, Failure> {
    let Some(Store::Etcd(cluster)) = &args.store else { return Ok(None) };
    let Some(url) = args.url.clone() else {
        return Err(Failure::new("usage", "other relays must know where this one is")
            .hint("add --url https://NAME, as hosts and clients know this relay")
            .status(crate::failure::STATUS_USAGE));
    };
    let cluster = Cluster {
        authorities: args.store_ca.clone(),
        certificate: args.store_cert.clone().zip(args.store_key.clone()),
        ..cluster.clone()
    };
    Ok(Some(Shared { cluster, url, lease: LEASE }))
}

fn add(here: &Here, url: &str) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let is_first = is_untended(here, &link.call::<op::RelayList>(&Nothing {})?)?;
    let mut now = link.call::<op::RelayAdd>(&RelayParams { url: url.to_owned() })?;
    if is_first {
        // From now on it is tended: nobody who comes through a relay could start the next one.
        drop(link);
        host::renew(here)?;
        link = here.link()?;
        now = link.call::<op::RelayList>(&Nothing {})?;
    }
    let wanted = url.trim_end_matches('/').to_ascii_lowercase();
    let of = |all: &RelaysAnswer| {
        let same = |relay: &&RelayView| wanted.ends_with(relay.url.split_once("://").map_or("", |(_, rest)| rest));
        all.relays.iter().find(same).cloned()
    };
    let deadline = Instant::now() + UP;
    let relay = loop {
        match of(&now) {
            Some(relay) if !relay.up && Instant::now() < deadline && !is_told(&relay) => {}
            other => break other,
        }
        std::thread::sleep(LOOK_EVERY);
        now = link.call::<op::RelayList>(&Nothing {})?;
    };
    if here.json {
        print_json(&now)?;
        return Ok(u8::from(relay.is_none_or(|relay| !relay.up)));
    }
    match relay {
        Some(relay) if relay.up => {
            print(format!(
                "connected to {}; this host can be reached through it\n  share a session    holdfast invite SESSION\n  add your machines  holdfast invite --host-wide\n",
                relay.url
            ))?;
            Ok(0)
        }
        other => {
            let why = other.and_then(|relay| relay.why).unwrap_or_default();
            Err(Failure::new("unreachable", format!("the relay was added, but is not connected: {}", visible(&why)))
                .hint(
                    "the host keeps trying; see `holdfast relay ls`, or take it out again: holdfast relay remove URL",
                ))
        }
    }
}

/// Nothing outside of this machine reaches the host yet, so nothing watches over it.
fn is_untended(here: &Here, all: &RelaysAnswer) -> Result<bool, Failure> {
    Ok(all.relays.is_empty() && all.direct.is_none() && listen::load(&here.home)?.is_none())
}

fn direct(here: &Here, args: &RelayDirectArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let mut now = link.call::<op::RelayList>(&Nothing {})?;
    if args.listen.is_some() || args.off {
        let is_first = args.listen.is_some() && is_untended(here, &now)?;
        let params =
            DirectParams { listen: args.listen.map(|listen| listen.to_string()), addresses: args.addresses.clone() };
        now = link.call::<op::RelayDirect>(&params)?;
        if is_first {
            drop(link);
            host::renew(here)?;
            link = here.link()?;
        }
        let deadline = Instant::now() + UP;
        let is_open = |direct: &DirectView| !direct.up && direct.why.is_none();
        while now.direct.as_ref().is_some_and(is_open) && Instant::now() < deadline {
            std::thread::sleep(LOOK_EVERY);
            now = link.call::<op::RelayList>(&Nothing {})?;
        }
    }
    if here.json {
        print_json(&now)?;
        return Ok(0);
    }
    match &now.direct {
        None => print("this host does not listen itself; to let it: holdfast relay direct --listen 0.0.0.0:7434\n")?,
        Some(DirectView { listen, up: false, why, .. }) => {
            let why = visible(why.as_deref().unwrap_or("it takes too long"));
            return Err(Failure::new("unreachable", format!("cannot listen on {listen}: {why}"))
                .hint("the host keeps trying; stop that: holdfast relay direct --off"));
        }
        Some(DirectView { listen, addresses, .. }) => {
            let found = if addresses.is_empty() { "no address that others reach".into() } else { addresses.join(", ") };
            print(format!(
                "listens on {listen}; devices that were invited to this host try {found} before its relays\n"
            ))?;
        }
    }
    Ok(0)
}

/// It was tried, and did not work.
fn is_told(relay: &RelayView) -> bool {
    relay.why.as_deref().is_some_and(|why| why != "connecting")
}

fn list(here: &Here) -> Result<u8, Failure> {
    let all = here.link()?.call::<op::RelayList>(&Nothing {})?;
    if here.json {
        print_json(&all)?;
        return Ok(0);
    }
    if let Some(direct) = &all.direct {
        print(format!("this host also listens itself, on {}: see `holdfast relay direct`\n", direct.listen))?;
    }
    if all.relays.is_empty() {
        print("no relays; add one: holdfast relay add https://RELAY\n")?;
        return Ok(0);
    }
    let head = ["RELAY", "STATE", "SINCE"].map(str::to_owned).to_vec();
    let row = |relay: &RelayView| {
        let state =
            if relay.up { "up".into() } else { format!("down: {}", visible(relay.why.as_deref().unwrap_or_default())) };
        vec![relay.url.clone(), state, moment(relay.since_ms, now_ms())]
    };
    let rows: Vec<_> = std::iter::once(head).chain(all.relays.iter().map(row)).collect();
    print(table(&rows, columns()).into_iter().map(|line| line + "\n").collect::<String>())?;
    Ok(0)
}

fn remove(here: &Here, url: &str) -> Result<u8, Failure> {
    let left = here.link()?.call::<op::RelayRemove>(&RelayParams { url: url.to_owned() })?;
    if here.json {
        print_json(&left)?;
    }
    Ok(0)
}

/// `holdfast host key`.
pub fn key(here: &Here) -> Result<u8, Failure> {
    let all = here.link()?.call::<op::RelayList>(&Nothing {})?;
    if here.json {
        print_json(&json!({ "key": all.key, "name": all.name }))?;
    } else {
        print(format!("{}\n", all.key))?;
    }
    Ok(0)
}
