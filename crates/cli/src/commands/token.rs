//! `holdfast token`: what programs show over HTTP.

use crate::args::{TokenCommand, TokenNewArgs};
use crate::commands::actor;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{columns, deadline, now_ms, print, print_json, table, visible};
use crate::who::{self, Said};
use holdfast_wire::operations::op;
use holdfast_wire::params::Nothing;
use holdfast_wire::tokens::{TokenNewParams, TokenParams, TokenView};

/// `holdfast token`.
pub fn token(here: &Here, command: &TokenCommand) -> Result<u8, Failure> {
    match command {
        TokenCommand::New(args) => new(here, args),
        TokenCommand::Ls => list(here),
        TokenCommand::Revoke(args) => revoke(here, &args.token),
    }
}

fn new(here: &Here, args: &TokenNewArgs) -> Result<u8, Failure> {
    here.must_not_be_watched("a token", "holdfast token new > FILE")?;
    // `--as` says whose it is, and an actor that is not there yet is made: its token may be all it ever shows.
    if let Some(Said::Handle(handle)) = who::said(here.said())? {
        actor::make_if_missing(here, &handle)?;
    }
    let params = TokenNewParams {
        actor: here.who()?.actor().handle.clone(),
        can: args.can,
        for_ms: args.span.map(|span| span.ms),
        note: args.note.clone(),
    };
    let made = here.link()?.call::<op::TokenNew>(&params)?;
    if here.json {
        print_json(&made)?;
        return Ok(0);
    }
    // The token alone on standard output, for `TOKEN=$(holdfast token new …)`.
    let what = made.token.can.map_or_else(|| "all its rights".into(), |can| can.to_string());
    eprintln!(
        "{} for {}: {what}, until {}; it is shown only once",
        made.token.id,
        made.token.actor,
        deadline(made.token.until_ms, now_ms())
    );
    print(format!("{}\n", made.text))?;
    Ok(0)
}

fn list(here: &Here) -> Result<u8, Failure> {
    let tokens = here.link()?.call::<op::TokenList>(&Nothing {})?;
    if here.json {
        print_json(&tokens)?;
        return Ok(0);
    }
    if tokens.is_empty() {
        print("you have no tokens; create one: holdfast token new --as agent:NAME\n")?;
        return Ok(0);
    }
    let head = ["ID", "ACTOR", "CAN", "UNTIL", "MADE BY", "NOTE"].map(str::to_owned).to_vec();
    let row = |view: &TokenView| {
        vec![
            view.id.clone(),
            view.actor.to_string(),
            view.can.map_or_else(|| "all".into(), |can| can.to_string()),
            deadline(view.until_ms, now_ms()),
            view.by.to_string(),
            visible(&view.note),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(tokens.iter().map(row)).collect();
    print(table(&rows, columns()).into_iter().map(|line| line + "\n").collect::<String>())?;
    Ok(0)
}

fn revoke(here: &Here, token: &str) -> Result<u8, Failure> {
    let gone = here.link()?.call::<op::TokenRevoke>(&TokenParams { token: token.to_owned() })?;
    if here.json {
        print_json(&gone)?;
    } else {
        print(format!("revoked {}, which was {}'s\n", gone.id, gone.actor))?;
    }
    Ok(0)
}
