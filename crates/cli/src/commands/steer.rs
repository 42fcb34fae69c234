//! `holdfast resize`, `rename`, `detach`, `signal`: one signed act each, silent on success.

use crate::args::{DetachArgs, RenameArgs, ResizeArgs, SignalArgs};
use crate::failure::{Failure, STATUS_USAGE};
use crate::here::Here;
use crate::show::{print, print_json};
use holdfast_authority::{Ask, OperatorId};
use holdfast_client::CallError;
use holdfast_wire::operations::op;
use holdfast_wire::params::{DetachAnswer, DetachParams, RenameParams, ResizeParams, SessionView};
use holdfast_wire::turns::SignalParams;

/// `holdfast resize`.
pub fn resize(here: &Here, args: &ResizeArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&args.of.session)?;
    let params = |proof| ResizeParams { session: session.id.to_string(), size: args.size, proof };
    let answer = link.act::<op::Resize>(&session, &Ask::Resize { size: args.size }, params)?;
    if here.json {
        print_json(&answer)?;
    }
    Ok(0)
}

/// `holdfast rename`.
pub fn rename(here: &Here, args: &RenameArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    // The id: asked a second time, the old name may be gone.
    let session = link.get(&args.of.session)?;
    let params = |proof| RenameParams { session: session.id.to_string(), name: args.name.clone(), proof };
    let answer = link.act::<op::Rename>(&session, &Ask::Rename { name: args.name.clone() }, params)?;
    if here.json {
        print_json(&answer)?;
    }
    Ok(0)
}

/// `holdfast signal`. Sent once: if the answer is lost, a second request might deliver the signal twice.
pub fn signal(here: &Here, args: &SignalArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&args.of.session)?;
    let target = match (args.target.command, args.target.tree) {
        (false, false) => 0,
        (true, _) => 1,
        (false, true) => 2,
    };
    let number = args.signal.0;
    let proof = Some(here.who()?.prove(session.id, &Ask::Signal { number, target }));
    let params = SignalParams { session: session.id.to_string(), number, target, proof };
    let answer = match link.once::<op::Signal>(&params, &[]) {
        Ok((answer, _)) => answer,
        Err(error @ CallError::Broken(_)) => {
            let hint = format!("{} may or may not have been sent: check before you send it again", args.signal);
            return Err(Failure::from(error).hint(hint));
        }
        Err(error) => return Err(Failure::from(error).of_session(&here.called(session.name.as_str()))),
    };
    if here.json {
        print_json(&answer)?;
    }
    Ok(0)
}

/// `holdfast detach`. It does not guess: with several clients, the caller names one, or all.
pub fn detach(here: &Here, args: &DetachArgs) -> Result<u8, Failure> {
    let Some(session) = args.session.clone().or_else(crate::who::inside) else {
        return Err(Failure::new("usage", "which session?").hint("name it: holdfast detach NAME").status(STATUS_USAGE));
    };
    let mut link = here.link()?;
    let session = link.get(&session)?;
    let clients = chosen(&session, args)?;
    let answer = if clients.is_empty() {
        DetachAnswer { clients }
    } else {
        let ask = Ask::Detach { operators: clients.iter().copied().map(OperatorId).collect() };
        let params = |proof| DetachParams { session: session.id.to_string(), clients: clients.clone(), proof };
        link.act::<op::Detach>(&session, &ask, params)?
    };
    match answer.clients.as_slice() {
        _ if here.json => print_json(&answer)?,
        [] => print(format!("no client was attached to {}\n", session.name))?,
        [one] => print(format!("detached client {one} from {}\n", session.name))?,
        many => print(format!("detached {} clients from {}\n", many.len(), session.name))?,
    }
    Ok(0)
}

fn chosen(session: &SessionView, args: &DetachArgs) -> Result<Vec<u32>, Failure> {
    let all: Vec<u32> = session.clients.iter().map(|client| client.id).collect();
    match (args.client, all.as_slice()) {
        (Some(id), _) if all.contains(&id) => Ok(vec![id]),
        (Some(id), _) => Err(Failure::new("not_found", format!("session {} has no client {id}", session.name))
            .hint(format!("`holdfast info {}` shows its clients", session.name))),
        (None, [_, _, ..]) if !args.all => {
            Err(Failure::new("ambiguous", format!("session {} has {} clients", session.name, all.len()))
                .hint(format!("use --client ID (`holdfast info {}` lists them), or --all", session.name)))
        }
        (None, _) => Ok(all),
    }
}
