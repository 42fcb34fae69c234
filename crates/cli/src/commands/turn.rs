//! `holdfast turn`, `take`, `request`, `withdraw`, `give`, `release`, `seize`, `thaw`: who may type into a session now.

use super::actor;
use crate::args::{GiveArgs, RequestArgs, SeizeArgs, SessionArg};
use crate::failure::{Failure, STATUS_TIMEOUT};
use crate::here::{Here, Link};
use crate::show::{fields, left, now_ms, print, print_json, span};
use holdfast_authority::Ask;
use holdfast_types::{ActorId, Handle, TimeMs};
use holdfast_wire::Code;
use holdfast_wire::operations::op;
use holdfast_wire::params::{SessionParams, SessionView};
use holdfast_wire::turns::{
    FrozeView, GiveParams, HolderView, SeizeAnswer, SeizeParams, TurnAnswer, TurnParams, TurnView,
};
use std::time::{Duration, Instant};

/// Between two looks at a turn that is waited for: a person does not notice, a host neither.
const LOOK_MS: u64 = 50;

/// `holdfast turn`.
pub fn turn(here: &Here, args: &SessionArg) -> Result<u8, Failure> {
    let turn = here.link()?.call::<op::Turn>(&SessionParams { session: args.session.clone() })?;
    if here.json {
        print_json(&turn)?;
    } else {
        print(fields(&rows(&turn, now_ms())))?;
    }
    Ok(0)
}

/// The turn as a person reads it; also a part of `holdfast info`.
pub fn rows(turn: &TurnView, now: TimeMs) -> Vec<(&'static str, String)> {
    let mut rows = vec![("turn", turn.holder.as_ref().map_or("free".into(), |holder| held(holder, now)))];
    if let Some(frozen) = &turn.frozen {
        rows.push(("frozen", format!("by {}, for {}", frozen.by, span(now.saturating_sub(frozen.since_ms)))));
    }
    if !turn.queue.is_empty() {
        let queue: Vec<String> = turn.queue.iter().map(Handle::to_string).collect();
        rows.push(("waiting", queue.join(", ")));
    }
    rows
}

fn held(holder: &HolderView, now: TimeMs) -> String {
    let ago = |at: TimeMs| span(now.saturating_sub(at));
    let mut text = format!("{}, for {}, idle {}", holder.actor, ago(holder.since_ms), ago(holder.active_ms));
    match holder.how.as_str() {
        "given" => text.push_str(", given"),
        "seized" => text.push_str(", seized"),
        "lent" => text.push_str(", lent"),
        // It wrote or asked, as everybody does.
        _ => {}
    }
    if let Some(client) = holder.client {
        text.push_str(&format!(", client {client}"));
    }
    if let Some(ends) = holder.ends_ms {
        text.push_str(&format!(", free in {}", left(ends, now)));
    }
    text
}

/// `holdfast take`.
pub fn take(here: &Here, args: &SessionArg) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&args.session)?;
    let answer = link.act::<op::Take>(&session, &Ask::Take, |proof| params(&session, proof))?;
    tell(here, &answer, || match &answer.handover {
        None => yours(&session, &answer.turn),
        Some(text) => {
            let more = format!("see each change: holdfast handover {} --diff", session.name);
            format!("{}\nchanged by {}\n{more}", yours(&session, &answer.turn), crate::show::visible(text))
        }
    })
}

/// `holdfast request`.
pub fn request(here: &Here, args: &RequestArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&args.of.session)?;
    let mut answer = ask_for_it(&mut link, &session)?;
    if let (Some(timeout), None) = (args.wait, answer.fence) {
        let deadline = timeout.and_then(|s| Instant::now().checked_add(Duration::from_millis(s.ms)));
        match wait(&mut link, &session, deadline)? {
            Some(turn) => answer = TurnAnswer { fence: Some(turn.fence), before: None, turn, handover: None },
            None => {
                link.act::<op::Withdraw>(&session, &Ask::Withdraw, |proof| params(&session, proof))?;
                let message = format!("gave up waiting for the turn in {}", session.name);
                return Err(Failure::new("timeout", message).status(STATUS_TIMEOUT));
            }
        }
    }
    tell(here, &answer, || match answer.before {
        None => yours(&session, &answer.turn),
        Some(0) => format!("waiting for the turn in {}: you are next", session.name),
        Some(before) => format!("waiting for the turn in {}: {before} before you", session.name),
    })
}

fn ask_for_it(link: &mut Link<'_>, session: &SessionView) -> Result<TurnAnswer, Failure> {
    Ok(link.act::<op::Request>(session, &Ask::Request, |proof| params(session, proof))?)
}

/// Looks at the turn until it is ours; none where that took too long.
fn wait(link: &mut Link<'_>, session: &SessionView, deadline: Option<Instant>) -> Result<Option<TurnView>, Failure> {
    let me = link.who()?.actor().clone();
    while deadline.is_none_or(|deadline| Instant::now() < deadline) {
        std::thread::sleep(Duration::from_millis(LOOK_MS));
        let turn = link.call::<op::Turn>(&SessionParams { session: session.id.to_string() })?;
        if has(&turn, me.id) {
            return Ok(Some(turn));
        }
        // A seizure clears the queue: every waiting request ends.
        if !turn.queue.contains(&me.handle) {
            let answer = ask_for_it(link, session)?;
            if answer.fence.is_some() {
                return Ok(Some(answer.turn));
            }
        }
    }
    Ok(None)
}

/// `holdfast withdraw`.
pub fn withdraw(here: &Here, args: &SessionArg) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&args.session)?;
    let answer = link.act::<op::Withdraw>(&session, &Ask::Withdraw, |proof| params(&session, proof))?;
    tell(here, &answer, || format!("not waiting for the turn in {}", session.name))
}

/// `holdfast give`.
pub fn give(here: &Here, args: &GiveArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&args.of.session)?;
    let to = actor::find(&mut link, &session, &args.to)?;
    let params = |proof| GiveParams { session: session.id.to_string(), client: None, to: to.clone(), proof };
    let given = link.act::<op::Give>(&session, &Ask::Give { to: to.clone() }, params);
    let answer = match given {
        Err(refused) if refused.was_done(Code::NotHolder) => as_it_stands(&mut link, &session)?,
        other => other?,
    };
    tell(here, &answer, || stands(&session, &answer.turn))
}

/// `holdfast release`.
pub fn release(here: &Here, args: &SessionArg) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&args.session)?;
    let answer = match link.act::<op::Release>(&session, &Ask::Release, |proof| params(&session, proof)) {
        Err(refused) if refused.was_done(Code::NotHolder) => as_it_stands(&mut link, &session)?,
        other => other?,
    };
    tell(here, &answer, || stands(&session, &answer.turn))
}

/// `holdfast seize`.
pub fn seize(here: &Here, args: &SeizeArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&args.of.session)?;
    let (freeze, reason) = (args.freeze, args.reason.clone());
    let ask = Ask::Seize { freeze, reason: reason.clone() };
    let id = session.id.to_string();
    let params = |proof| SeizeParams { session: id.clone(), client: None, freeze, reason: reason.clone(), proof };
    let answer = link.act::<op::Seize>(&session, &ask, params)?;
    let me = here.who()?.actor().id;
    tell(here, &answer, || seized(&session, &answer, me))
}

fn seized(session: &SessionView, answer: &SeizeAnswer, me: ActorId) -> String {
    let lost = match &session.turn.holder {
        Some(holder) if holder.actor.id != me => format!("; {} lost it", holder.actor),
        Some(_) | None => String::new(),
    };
    let froze = answer.froze.as_ref().map_or(String::new(), |froze| format!("\n{}", frozen(froze)));
    format!("{}{lost}{froze}", yours(session, &answer.turn))
}

fn frozen(froze: &FrozeView) -> String {
    let processes = if froze.processes == 1 { "process" } else { "processes" };
    let mut text = format!("frozen: {} {processes} by {}", froze.processes, froze.how);
    if !froze.refused.is_empty() {
        let refused: Vec<String> = froze.refused.iter().map(u32::to_string).collect();
        text.push_str(&format!("\nnot frozen, because they run as another user: {}", refused.join(" ")));
    }
    text
}

/// `holdfast thaw`.
pub fn thaw(here: &Here, args: &SessionArg) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&args.session)?;
    let answer = match link.act::<op::Thaw>(&session, &Ask::Thaw, |proof| params(&session, proof)) {
        Err(refused) if refused.was_done(Code::NotFrozen) => as_it_stands(&mut link, &session)?,
        other => other?,
    };
    tell(here, &answer, || format!("{} resumed", session.name))
}

fn params(session: &SessionView, proof: Option<holdfast_types::Proof>) -> TurnParams {
    TurnParams { session: session.id.to_string(), client: None, proof }
}

/// For an act whose answer went away with its host.
fn as_it_stands(link: &mut Link<'_>, session: &SessionView) -> Result<TurnAnswer, Failure> {
    let turn = link.call::<op::Turn>(&SessionParams { session: session.id.to_string() })?;
    Ok(TurnAnswer { fence: None, before: None, turn, handover: None })
}

fn has(turn: &TurnView, actor: ActorId) -> bool {
    turn.holder.as_ref().is_some_and(|holder| holder.actor.id == actor)
}

/// What the new holder of the turn should know.
fn yours(session: &SessionView, turn: &TurnView) -> String {
    match turn.holder.as_ref().and_then(|holder| holder.ends_ms) {
        Some(ends) => format!("you have the turn in {} for {}", session.name, left(ends, now_ms())),
        None => format!("you have the turn in {}", session.name),
    }
}

fn stands(session: &SessionView, turn: &TurnView) -> String {
    match &turn.holder {
        Some(holder) => format!("{} has the turn in {}", holder.actor, session.name),
        None => format!("the turn in {} is free", session.name),
    }
}

fn tell(here: &Here, answer: &impl serde::Serialize, text: impl FnOnce() -> String) -> Result<u8, Failure> {
    if here.json {
        print_json(answer)?;
    } else {
        print(format!("{}\n", text()))?;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{Actor, Fence};
    use holdfast_wire::turns::FrozenView;

    fn actor(handle: &str) -> Actor {
        Actor { id: ActorId([1; 32]), handle: handle.parse().unwrap() }
    }

    #[test]
    fn a_turn_tells_who_since_when_and_who_waits() {
        let now = 1_000_000;
        let holder = HolderView {
            actor: actor("agent:claude"),
            client: Some(3),
            since_ms: now - 180_000,
            active_ms: now - 20_000,
            ends_ms: Some(now + 29_900),
            how: "seized".into(),
        };
        let turn = TurnView {
            holder: Some(holder),
            fence: Fence(7),
            queue: vec!["human:ann".parse().unwrap(), "agent:bot".parse().unwrap()],
            frozen: Some(FrozenView { by: actor("human:bob"), since_ms: now - 61_000 }),
        };
        insta::assert_snapshot!(fields(&rows(&turn, now)), @r"
        turn     agent:claude, for 3m, idle 20s, seized, client 3, free in 30s
        frozen   by human:bob, for 1m
        waiting  human:ann, agent:bot
        ");
        assert_eq!(fields(&rows(&TurnView::default(), now)), "turn  free\n");
    }

    #[test]
    fn what_froze_is_counted_and_what_did_not_is_named() {
        let froze = FrozeView { how: "cgroup".into(), processes: 12, refused: vec![], us: 900 };
        assert_eq!(frozen(&froze), "frozen: 12 processes by cgroup");
        let froze = FrozeView { how: "signals".into(), processes: 1, refused: vec![7, 9], us: 900 };
        assert_eq!(frozen(&froze), "frozen: 1 process by signals\nnot frozen, because they run as another user: 7 9");
    }
}
