//! `holdfast grant`, `revoke`, `grants`: who may do what in a session.

use super::actor;
use crate::args::{GrantArgs, RevokeArgs, SessionArg};
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{columns, deadline, fields, now_ms, print, print_json, table};
use crate::values::rights_text;
use holdfast_authority::{Ask, GrantId, Revoke};
use holdfast_client::CallError;
use holdfast_types::{Actor, ActorId, TimeMs};
use holdfast_wire::Code;
use holdfast_wire::operations::op;
use holdfast_wire::params::{SessionParams, SessionView};
use holdfast_wire::turns::{GrantParams, GrantView, GrantsAnswer, RevokeAnswer, RevokeParams};
use jiff::Zoned;

/// `holdfast grant`.
pub fn grant(here: &Here, args: &GrantArgs) -> Result<u8, Failure> {
    let until_ms = ends(args)?;
    let mut link = here.link()?;
    let session = link.get(&args.of.session)?;
    let to = actor::find(&mut link, &session, &args.to)?;
    let params = GrantParams { session: session.id.to_string(), to, rights: args.can, until_ms, proof: None };
    let view = grant_once(here, &mut link, &session, params)?;
    if here.json {
        print_json(&view)?;
        return Ok(0);
    }
    let until = view.until_ms.map_or(String::new(), |at| format!(" until {}", deadline(at, now_ms())));
    let (to, name, rights) = (&view.to, &session.name, rights_text(view.rights));
    print(format!("grant {}: {to} may {rights} in {name}{until}\n", view.id))?;
    Ok(0)
}

/// When it ends by itself.
fn ends(args: &GrantArgs) -> Result<Option<TimeMs>, Failure> {
    match (args.span, args.until) {
        (Some(span), _) => Ok(Some(now_ms().saturating_add(span.ms))),
        (None, None) => Ok(None),
        (None, Some(when)) => match when.ms(&Zoned::now()) {
            Some(at) => Ok(Some(at)),
            None => Err(Failure::new("bad_request", "that time does not exist in this time zone")),
        },
    }
}

/// Grants once, whatever happens to the host in between: before it is asked again it is looked for.
fn grant_once(
    here: &Here,
    link: &mut Link<'_>,
    session: &SessionView,
    mut params: GrantParams,
) -> Result<GrantView, Failure> {
    let ask = Ask::Grant { to: params.to.clone(), rights: params.rights, until: params.until_ms };
    let me = here.who()?;
    let before = live(link, session)?;
    loop {
        params.proof = Some(me.prove(session.id, &ask));
        match link.once::<op::Grant>(&params, &[]) {
            Ok((view, _)) => return Ok(view),
            Err(CallError::Broken(error)) => link.mend(error)?,
            Err(error) => return Err(error.into()),
        }
        let is_it = |view: &GrantView| {
            let by_me = view.by.as_ref().is_some_and(|by| by.id == me.actor().id);
            by_me && (&view.to, view.rights, view.until_ms) == (&params.to, params.rights, params.until_ms)
        };
        let made = live(link, session)?.grants.into_iter().find(|view| is_it(view) && !before.grants.contains(view));
        if let Some(made) = made {
            return Ok(made);
        }
    }
}

fn live(link: &mut Link<'_>, session: &SessionView) -> Result<GrantsAnswer, Failure> {
    link.call::<op::Grants>(&SessionParams { session: session.id.to_string() })
}

/// `holdfast revoke`.
pub fn revoke(here: &Here, args: &RevokeArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&args.of.session)?;
    let whose = match &args.to {
        Some(handle) => Some(actor::find(&mut link, &session, handle)?),
        None => None,
    };
    // The parser wants one of both.
    let grant = args.grant.unwrap_or_default();
    let what = whose.as_ref().map_or(Revoke::Grant(GrantId(grant)), |actor| Revoke::Actor(actor.id));
    let (of_grant, of_actor) = match what {
        Revoke::Grant(grant) => (Some(grant.0), None),
        Revoke::Actor(actor) => (None, Some(actor)),
    };
    let params = |proof| RevokeParams { session: session.id.to_string(), grant: of_grant, actor: of_actor, proof };
    let answer = match link.act::<op::Revoke>(&session, &Ask::Revoke(what), params) {
        Err(refused) if refused.was_done(Code::NoSuchGrant) => RevokeAnswer { grants: vec![grant] },
        other => other?,
    };
    if here.json {
        print_json(&answer)?;
    } else {
        print(fallen(&session, whose.as_ref(), &answer.grants))?;
    }
    Ok(0)
}

fn fallen(session: &SessionView, whose: Option<&Actor>, grants: &[u32]) -> String {
    let mut text = whose.map_or(String::new(), |actor| format!("{actor} now holds no rights in {}\n", session.name));
    let list: Vec<String> = grants.iter().map(u32::to_string).collect();
    match grants {
        [] => {}
        [_] => text.push_str(&format!("revoked grant {}\n", list.join(", "))),
        _ => text.push_str(&format!("revoked grants {}\n", list.join(", "))),
    }
    text
}

/// `holdfast grants`.
pub fn grants(here: &Here, args: &SessionArg) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let answer = link.call::<op::Grants>(&SessionParams { session: args.session.clone() })?;
    if here.json {
        print_json(&answer)?;
        return Ok(0);
    }
    // Only names are missing where the host does not tell them.
    let known = if answer.barred.is_empty() { vec![] } else { actor::known(&mut link) };
    print(listed(&answer, &known, now_ms(), columns()))?;
    Ok(0)
}

fn listed(answer: &GrantsAnswer, known: &[Actor], now: TimeMs, width: Option<usize>) -> String {
    let head = ["ID", "TO", "RIGHTS", "UNTIL", "BY"].map(str::to_owned).to_vec();
    let row = |grant: &GrantView| {
        vec![
            grant.id.to_string(),
            grant.to.to_string(),
            rights_text(grant.rights),
            grant.until_ms.map_or("-".into(), |at| deadline(at, now)),
            grant.by.as_ref().map_or("the start".into(), Actor::to_string),
        ]
    };
    let mut text = String::new();
    if !answer.grants.is_empty() {
        let rows: Vec<_> = std::iter::once(head).chain(answer.grants.iter().map(row)).collect();
        table(&rows, width).into_iter().for_each(|line| text.push_str(&format!("{line}\n")));
        text.push('\n');
    }
    let defaults = &answer.defaults;
    let mut rows = vec![
        ("humans", rights_text(defaults.human)),
        ("agents", rights_text(defaults.agent)),
        ("services", rights_text(defaults.service)),
        ("devices", rights_text(defaults.device)),
        ("unknown", rights_text(defaults.unknown)),
    ];
    if !answer.barred.is_empty() {
        let name = |id: &ActorId| known.iter().find(|actor| actor.id == *id).map(Actor::to_string);
        let barred = answer.barred.iter().map(|id| name(id).unwrap_or_else(|| actor::short(*id)));
        rows.push(("but not", barred.collect::<Vec<_>>().join(", ")));
    }
    rows.push(("you", format!("{} ({})", rights_text(answer.yours), answer.you)));
    text + &fields(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{Defaults, Rights};

    #[test]
    fn grants_read_as_a_table_with_what_holds_without_one() {
        let actor = |n: u8, handle: &str| Actor { id: ActorId([n; 32]), handle: handle.parse().unwrap() };
        let (ann, bot) = (actor(1, "human:ann"), actor(2, "agent:bot"));
        let start =
            GrantView { id: 1, to: ann.clone(), by: None, rights: Rights::ALL, until_ms: None, at_ms: 1_000_000 };
        let passed = GrantView {
            id: 2,
            to: bot.clone(),
            by: Some(ann.clone()),
            rights: "observe,signal".parse().unwrap(),
            until_ms: Some(1_709_210_096_000),
            at_ms: 2_000_000,
        };
        let answer = GrantsAnswer {
            grants: vec![start, passed],
            barred: vec![ActorId([2; 32]), ActorId([9; 32])],
            defaults: Defaults::default(),
            you: bot.clone(),
            yours: "observe,signal".parse().unwrap(),
        };
        insta::assert_snapshot!(listed(&answer, &[bot], 1_709_210_000_000, None), @r"
        ID  TO         RIGHTS          UNTIL                            BY
        1   human:ann  all             -                                the start
        2   agent:bot  observe,signal  2024-02-29 12:34:56 UTC (in 1m)  human:ann

        humans    all
        agents    observe,type,run,start,files:read,files:write
        services  none
        devices   none
        unknown   none
        but not   agent:bot, 0909090909090909
        you       observe,signal (agent:bot)
        ");
    }
}
