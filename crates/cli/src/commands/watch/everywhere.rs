//! `holdfast watch --all-hosts`: the events of every host in one stream. A host that goes away is said, and followed again once it is back.

use super::{WAIT_MS, text};
use crate::everywhere::{Place, THIS, called, unreachable};
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{end_with_reader, json_line, print, say};
use crate::tell::Teller;
use holdfast_client::{CallError, Connection, Identity};
use holdfast_types::Home;
use holdfast_wire::attention::{Event, WatchParams};
use holdfast_wire::operations::op;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::json;
use std::io::ErrorKind;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// Pause before a host that went away is asked again, doubled each time up to the longest: a person who opens the laptop again waits no longer,
/// and a machine that is off costs one login by ssh in half a minute.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How much longer than it was asked to wait a host may take for an answer.
const LATE: Duration = Duration::from_secs(15);
/// News that wait for who reads them, of all hosts; behind them the hosts are not asked for more.
const NEWS_MAX: usize = 256;

/// What is heard of a host.
enum News {
    Event(Box<Event>),
    /// So many events are gone.
    Lost(u64),
    /// It does not answer.
    Down(String),
    /// It answers again.
    Up,
}

/// Who hears no more news.
struct Over;

/// The events of all hosts.
pub fn watch(here: &Here) -> Result<u8, Failure> {
    let who = here.who()?;
    // Asked here first: only here a person can be asked who they are, and a host that cannot be started says so at once.
    let mut first = Some(here.connect()?);
    end_with_reader();
    let (sender, news) = sync_channel(NEWS_MAX);
    for (at, place) in Place::all(here)?.into_iter().enumerate() {
        let (sender, connection) = (sender.clone(), if at == 0 { first.take() } else { None });
        let (home, who) = (here.home.clone(), who.clone());
        std::thread::spawn(move || follow(place, &home, &who, connection, &sender));
    }
    drop(sender);
    let clock = Teller::new(TimeZone::system());
    for (host, news) in news {
        let host: Option<&str> = host.as_deref();
        match news {
            News::Event(event) if here.json => print(json_line(&Of { host, event: &event })? + "\n")?,
            News::Event(event) => {
                let (at, name) = (clock.local(event.at_ms).strftime("%H:%M:%S"), called(host, event.name.as_str()));
                print(format!("{at}  {name}  {}\n", text(&event)))?;
            }
            News::Lost(count) if here.json => line(&json!({"host": host, "lost": count}))?,
            News::Lost(count) => say(&format!("{}: {count} events were dropped", host.unwrap_or(THIS))),
            News::Down(why) if here.json => line(&json!({"host": host, "state": "down", "why": why}))?,
            News::Down(why) => say(&format!("{}; trying again", unreachable(host, &why))),
            News::Up if here.json => line(&json!({"host": host, "state": "up"}))?,
            News::Up => say(&format!("{}: connected again", host.unwrap_or(THIS))),
        }
    }
    Ok(0)
}

/// An event and its host.
#[derive(Serialize)]
struct Of<'a> {
    host: Option<&'a str>,
    #[serde(flatten)]
    event: &'a Event,
}

fn line(value: &serde_json::Value) -> Result<(), Failure> {
    print(json_line(value)? + "\n")
}

/// Follows one host until nobody hears of it.
fn follow(
    mut place: Place,
    home: &Home,
    who: &Identity,
    mut connection: Option<Connection>,
    to: &SyncSender<(Option<String>, News)>,
) {
    let name = place.name().map(str::to_owned);
    let tell = |news| to.send((name.clone(), news)).map_err(|_| Over);
    let (mut after, mut is_down, mut pause) = (None, false, PAUSE);
    loop {
        let connected = connection.take().map_or_else(|| place.connect(home, who), Ok);
        let why = connected.and_then(|mut connection| {
            let _ = connection.set_patience(Some(Duration::from_millis(WAIT_MS) + LATE));
            loop {
                let answer = events(&mut connection, &mut after)?;
                pause = PAUSE;
                let up = std::mem::take(&mut is_down).then_some(News::Up);
                let lost = (answer.1 > 0).then_some(News::Lost(answer.1));
                let events = answer.0.into_iter().map(|event| News::Event(Box::new(event)));
                if up.into_iter().chain(lost).chain(events).try_for_each(tell).is_err() {
                    return Ok(());
                }
            }
        });
        let Err(why) = why else { return };
        if !std::mem::replace(&mut is_down, true) && tell(News::Down(why.message().to_owned())).is_err() {
            return;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// The next events, and how many are gone.
fn events(connection: &mut Connection, after: &mut Option<u64>) -> Result<(Vec<Event>, u64), Failure> {
    let params = WatchParams { session: None, after: *after, wait_ms: if after.is_some() { WAIT_MS } else { 0 } };
    let answer = connection.call::<op::Watch>(&params).map_err(|error| match error {
        CallError::Broken(why) if why.kind() == ErrorKind::WouldBlock => Failure::new("silent", "it does not answer"),
        CallError::Broken(why) if why.kind() == ErrorKind::UnexpectedEof => Failure::new("broken", "connection lost"),
        other => other.into(),
    })?;
    *after = Some(answer.to);
    Ok((answer.events, answer.lost))
}
