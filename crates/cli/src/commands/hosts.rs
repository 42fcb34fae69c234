//! `holdfast hosts`: machines elsewhere whose sessions can be named from here; and `holdfast connect`, the way to one.

use crate::args::{ConnectArgs, HostsAddArgs, HostsCommand, HostsRenameArgs};
use crate::everywhere::{Round, is_silent};
use crate::failure::Failure;
use crate::here::Here;
use crate::hosts::{self, Admission, Elsewhere};
use crate::show::{columns, now_ms, print, print_json, table, visible};
use holdfast_client::{CallError, Connection, Ssh, admit, greet_or_start, join, socket, socket_or_start};
use holdfast_relay::RelayUrl;
use holdfast_types::ActorClass;
use holdfast_wire::operations::op;
use holdfast_wire::params::{Life, ListParams};
use serde_json::json;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// What a public key and a handle take, and more.
const ADMISSION_BYTES_MAX: u64 = 4096;
/// Connections through one socket at once: programs of one person.
const THROUGH_MAX: usize = 64;

/// `holdfast hosts`.
pub fn hosts(here: &Here, command: &HostsCommand) -> Result<u8, Failure> {
    match command {
        HostsCommand::Add(args) => add(here, args),
        HostsCommand::Ls => list(here),
        HostsCommand::Rename(args) => rename(here, args),
        HostsCommand::Forget(args) => forget(here, &args.name),
    }
}

fn add(here: &Here, args: &HostsAddArgs) -> Result<u8, Failure> {
    hosts::must_be_a_name(&args.name)?;
    let target = args.ssh.clone().unwrap_or_default();
    if args.key.is_none() && (target.starts_with('-') || target.is_empty()) {
        return Err(Failure::new("bad_request", format!("invalid ssh target {target:?}")));
    }
    if let Some(known) = hosts::load(&here.home)?.iter().find(|host| host.name == args.name) {
        let message = match (known.key, args.key) {
            (Some(known), Some(new)) if known != new => format!(
                "{} is known by another key ({known}): this is another machine, or it was set up anew; compare `holdfast host key` there",
                args.name
            ),
            _ => format!("a host is already called {}", args.name),
        };
        return Err(Failure::new("name_taken", message).hint(format!("forget it: holdfast hosts forget {}", args.name)));
    }
    let mut host = match args.key {
        Some(key) => Elsewhere::through_relays(&args.name, args.relay.clone(), key, now_ms()),
        None => Elsewhere {
            name: args.name.clone(),
            ssh: target,
            program: args.program.clone(),
            relays: Vec::new(),
            key: None,
            actors: Default::default(),
            added_ms: now_ms(),
        },
    };
    // Reached before it is kept: one that never answered is no host.
    let who = host.known_as(&here.home, here.who()?)?;
    let mut connection = host.route(&here.home)?.connect(&who)?;
    let (path, to) = host.path();
    let running = running(&mut connection)?;
    let program = visible(&connection.hello().program);
    hosts::change(&here.home, |hosts| {
        hosts.push(host);
        Ok(())
    })?;
    let handle = &who.actor().handle;
    if here.json {
        print_json(
            &json!({"name": args.name, "path": path, path: to, "program": program, "actor": handle, "sessions": running}),
        )?;
        return Ok(0);
    }
    print(format!(
        "added {name}: {program}, {running} session{s}; you are {handle} there\n  list    holdfast --host {name} ls\n  \
         start   holdfast --host {name} new\n  attach  holdfast attach {name}/SESSION\n",
        name = args.name,
        s = if running == 1 { "" } else { "s" },
    ))?;
    Ok(0)
}

fn running(connection: &mut Connection) -> Result<usize, CallError> {
    let all = connection.call::<op::List>(&ListParams { all: false })?;
    Ok(all.iter().filter(|session| session.life == Life::Running).count())
}

/// What a look at a host gave.
struct Seen {
    took: Duration,
    running: usize,
    program: String,
    /// The host's own address, where it was reached without a relay.
    direct: Option<String>,
}

type Looked = Result<Seen, Failure>;

/// By which path a host is reached, in a word, and where that leads.
fn path_of(host: &Elsewhere, looked: &Looked) -> (&'static str, String) {
    match looked.as_ref().ok().and_then(|seen| seen.direct.clone()) {
        Some(address) => ("direct", address),
        None => host.path(),
    }
}

fn list(here: &Here) -> Result<u8, Failure> {
    let all = hosts::load(&here.home)?;
    if all.is_empty() && !here.json {
        print(
            "no hosts; add one: holdfast hosts add NAME --ssh user@machine, or accept an invite: holdfast accept LINK\n",
        )?;
        return Ok(0);
    }
    let look = |connection: &mut Connection| {
        let program = connection.hello().program.clone();
        let asked = Instant::now();
        let running = running(connection)?;
        let direct = connection.way().filter(|way| way.is_direct()).map(RelayUrl::address);
        Ok(Seen { took: asked.elapsed(), running, program, direct })
    };
    let looked = Round::begin(here, all, look)?.wait(here);
    if here.json {
        let view = |(host, looked): &(Elsewhere, Looked)| {
            let (path, to) = path_of(host, looked);
            match looked {
                Ok(Seen { took, running, program, .. }) => json!({
                    "name": host.name, "path": path, path: to, "state": "up", "latency_ms": took.as_secs_f64() * 1e3,
                    "sessions": running, "program": program,
                }),
                Err(why) if is_silent(why) => json!({"name": host.name, "path": path, path: to, "state": "silent"}),
                Err(why) => json!({"name": host.name, "path": path, path: to, "state": "down", "why": why.message()}),
            }
        };
        print_json(&looked.iter().map(view).collect::<Vec<_>>())?;
        return Ok(0);
    }
    let head = ["HOST", "PATH", "STATE", "SESSIONS", "LATENCY"].map(str::to_owned).to_vec();
    let row = |(host, looked): &(Elsewhere, Looked)| {
        let (state, sessions, latency) = match looked {
            Ok(Seen { took, running, .. }) => {
                ("up".into(), running.to_string(), format!("{:.1} ms", took.as_secs_f64() * 1e3))
            }
            Err(why) if is_silent(why) => ("no answer".into(), "-".into(), "-".into()),
            Err(why) => (format!("down: {}", visible(why.message())), "-".into(), "-".into()),
        };
        let (path, to) = path_of(host, looked);
        vec![host.name.clone(), format!("{path} {}", visible(&to)), state, sessions, latency]
    };
    let rows: Vec<_> = std::iter::once(head).chain(looked.iter().map(row)).collect();
    print(table(&rows, columns()).into_iter().map(|line| line + "\n").collect::<String>())?;
    Ok(0)
}

fn rename(here: &Here, args: &HostsRenameArgs) -> Result<u8, Failure> {
    hosts::must_be_a_name(&args.new)?;
    hosts::find(&here.home, &args.name)?;
    hosts::change(&here.home, |hosts| {
        if hosts.iter().any(|host| host.name == args.new) {
            return Err(Failure::new("name_taken", format!("a host is already called {}", args.new)));
        }
        hosts.iter_mut().filter(|host| host.name == args.name).for_each(|host| host.name.clone_from(&args.new));
        Ok(())
    })?;
    Ok(0)
}

fn forget(here: &Here, name: &str) -> Result<u8, Failure> {
    let host = hosts::find(&here.home, name)?;
    hosts::change(&here.home, |hosts| {
        hosts.retain(|host| host.name != name);
        Ok(())
    })?;
    if host.key.is_none() {
        host.ssh(&here.home).close();
    }
    Ok(0)
}

/// `holdfast connect`.
pub fn connect(here: &Here, args: &ConnectArgs) -> Result<u8, Failure> {
    if args.admit {
        return admit_actor(here);
    }
    match &args.to {
        None => {
            let socket = match args.if_running {
                true => socket(&here.home)?,
                false => {
                    here.make_state()?;
                    socket_or_start(&here.home, &here.program)?
                }
            };
            join(socket).map_err(|e| Failure::io("the connection broke", e))?;
            Ok(0)
        }
        Some(host) => serve_socket(here, host, args),
    }
}

/// Makes an actor of another machine known here: whoever logged in by ssh is this user.
fn admit_actor(here: &Here) -> Result<u8, Failure> {
    let mut text = Vec::new();
    std::io::stdin()
        .take(ADMISSION_BYTES_MAX)
        .read_to_end(&mut text)
        .map_err(|e| Failure::io("cannot read the key", e))?;
    let said: Admission = serde_json::from_slice(&text)
        .map_err(|e| Failure::new("bad_request", format!("expected a handle and a key as JSON: {e}")))?;
    here.make_state()?;
    // The host knows where this process is; without one nobody would say that it is inside a session.
    let is_human = said.handle.class() == ActorClass::Human;
    if is_human && greet_or_start(&here.home, &here.program)?.inside().is_some() {
        return Err(Failure::new("denied", format!("{} can only be admitted from outside of sessions", said.handle)));
    }
    let handle = admit(&here.home, &said.handle, said.id)?;
    if handle.class() != said.handle.class() {
        return Err(Failure::new("denied", format!("the key belongs to {handle}")));
    }
    print_json(&Admission { handle, id: said.id })?;
    Ok(0)
}

/// A socket on this machine that speaks to a host elsewhere: for programs that know the protocol and no ssh. Over ssh they prove their own keys;
/// through a relay they speak as whoever opened it.
fn serve_socket(here: &Here, name: &str, args: &ConnectArgs) -> Result<u8, Failure> {
    let known = hosts::find(&here.home, name)?;
    let mut host = known.clone();
    let path = args.socket.as_deref().map_or_else(|| here.home.run.join(format!("{name}.sock")), Path::to_owned);
    holdfast_store::make_dir(&here.home.run).map_err(|e| Failure::io("cannot create the socket's directory", e))?;
    let failed = |error| Failure::io(format!("cannot listen on {}", path.display()), error);
    match std::fs::symlink_metadata(&path) {
        Ok(found) if found.file_type().is_socket() && UnixStream::connect(&path).is_err() => {
            std::fs::remove_file(&path).map_err(failed)?;
        }
        Ok(_) => return Err(Failure::new("taken", format!("{} already exists", path.display()))),
        Err(_) => {}
    }
    // A program that started this cannot answer ssh.
    let ssh_of = |host: &Elsewhere| Ssh { batch: args.while_stdin, ..host.ssh(&here.home) };
    let relayed = host.relayed(&here.home)?;
    let who = here.who()?;
    match &relayed {
        Some(relayed) => drop(relayed.open(who)?),
        // Asked once here, where a person can answer ssh.
        None => drop(ssh_of(&host).ask(&["--version"], b"")?),
    }
    // A program proves the key of the actor that opens this, under the name that it has there.
    let there = match args.while_stdin {
        true => host.known_unattended(&here.home, who)?,
        false => host.known_as(&here.home, who)?,
    };
    if host != known {
        hosts::keep(&here.home, &host)?;
    }
    let listener = UnixListener::bind(&path).map_err(failed)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    if here.json {
        // A line: it goes on behind it.
        print(json!({"host": name, "socket": path, "actor": there.actor()}).to_string() + "\n")?;
    } else {
        print(format!("{}\n", path.display()))?;
    }
    if args.while_stdin {
        let path = path.clone();
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            let _ = std::fs::remove_file(&path);
            std::process::exit(0);
        });
    }
    let open = std::sync::Arc::new(());
    for stream in listener.incoming().flatten() {
        if std::sync::Arc::strong_count(&open) > THROUGH_MAX {
            continue;
        }
        let (ssh, place) = (ssh_of(&host), std::sync::Arc::clone(&open));
        let (relayed, who) = (relayed.clone(), who.clone());
        std::thread::spawn(move || {
            let _ = match relayed {
                Some(relayed) => relayed.carry(&who, stream),
                None => ssh.carry(stream),
            };
            drop(place);
        });
    }
    Ok(0)
}
