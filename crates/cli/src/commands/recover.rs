//! `holdfast recover`: another life for a session that was lost.

use super::new::variables;
use crate::args::RecoverArgs;
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{print, print_json, visible};
use holdfast_authority::Ask;
use holdfast_wire::lives::{RecoverAnswer, RecoverParams};
use holdfast_wire::operations::op;
use holdfast_wire::params::SessionView;

/// `holdfast recover`.
pub fn recover(here: &Here, args: &RecoverArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&args.of.session)?;
    let answer = begin(here, &mut link, &session, args.run)?;
    if here.json {
        print_json(&answer)?;
    } else {
        print(told(&answer, &here.called(session.name.as_str())))?;
    }
    Ok(0)
}

/// Asks for another life.
pub fn begin(here: &Here, link: &mut Link<'_>, session: &SessionView, run: bool) -> Result<RecoverAnswer, Failure> {
    // Of another machine's session nobody here has the variables.
    let env = if here.is_elsewhere() { Vec::new() } else { variables() };
    let params = |proof| RecoverParams { session: session.id.to_string(), run, env: env.clone(), proof };
    Ok(link.act::<op::Recover>(session, &Ask::Recover { run }, params)?)
}

fn told(answer: &RecoverAnswer, name: &str) -> String {
    let RecoverAnswer { session, began } = answer;
    let name = visible(name);
    let life = session.incarnation;
    if !began {
        return format!("{name} is running (life {life}); nothing to recover\n");
    }
    let instead = session.stand_in.as_ref().map_or_else(String::new, |shell| {
        format!(
            "  its command was not run again; {} runs in its place (to run it: holdfast recover --run)\n",
            visible(shell)
        )
    });
    format!("{name} is running again (life {life})\n{instead}  attach  holdfast attach {name}\n")
}
