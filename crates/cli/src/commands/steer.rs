//! `holdfast resize`, `rename`, `detach`: one request each, silent where it did what it was told.

use crate::args::{DetachArgs, RenameArgs, ResizeArgs};
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{print, print_json};
use holdfast_wire::operations::op;
use holdfast_wire::params::{DetachAnswer, DetachParams, RenameParams, ResizeParams};

/// `holdfast resize`.
pub fn resize(here: &Here, args: &ResizeArgs) -> Result<u8, Failure> {
    let params = ResizeParams { session: args.of.session.clone(), size: args.size };
    let answer = here.link()?.call::<op::Resize>(&params)?;
    if here.json {
        print_json(&answer)?;
    }
    Ok(0)
}

/// `holdfast rename`.
pub fn rename(here: &Here, args: &RenameArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    // The id: asked a second time, the old name may be gone.
    let session = link.get(&args.of.session)?.id.to_string();
    let answer = link.call::<op::Rename>(&RenameParams { session, name: args.name.clone() })?;
    if here.json {
        print_json(&answer)?;
    }
    Ok(0)
}

/// `holdfast detach`. Nobody is detached by guessing: with several clients one must be named, or all.
pub fn detach(here: &Here, args: &DetachArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&args.of.session)?;
    let known = |id: u32| session.clients.iter().any(|client| client.id == id);
    let client = match (args.client, session.clients.as_slice()) {
        (Some(id), _) if known(id) => Some(id),
        (Some(id), _) => {
            return Err(Failure::new("not_found", format!("session {} has no client {id}", session.name))
                .hint(format!("`holdfast info {}` shows its clients", session.name)));
        }
        (None, []) => None,
        (None, _) if args.all => None,
        (None, [one]) => Some(one.id),
        (None, many) => {
            return Err(Failure::new("ambiguous", format!("session {} has {} clients", session.name, many.len()))
                .hint(format!("give --client ID (`holdfast info {}` shows them), or --all", session.name)));
        }
    };
    let answer = if session.clients.is_empty() {
        DetachAnswer { clients: vec![] }
    } else {
        link.call::<op::Detach>(&DetachParams { session: session.id.to_string(), client })?
    };
    match answer.clients.as_slice() {
        _ if here.json => print_json(&answer)?,
        [] => print(format!("nobody was attached to {}\n", session.name))?,
        [one] => print(format!("detached client {one} from {}\n", session.name))?,
        many => print(format!("detached {} clients from {}\n", many.len(), session.name))?,
    }
    Ok(0)
}
