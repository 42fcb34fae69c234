//! What a person reads when the host denies an act: which actor may not do what, and why this process is that actor.
//!
//! An agent that names itself, or is marked as one, reads no way around the refusal. A person in a session's own shell is taken for an
//! agent by the rule of [`identity`](holdfast_authority::identity) and reads how to say who they are.

use crate::failure::Failure;
use crate::here::Here;
use crate::who;
use holdfast_authority::identity::Because;
use holdfast_authority::{Refusal, Rule};
use holdfast_types::{Handle, Right};

/// Names the actor in a denial; every other failure stays as it is.
pub fn explain(failure: Failure, here: &Here) -> Failure {
    let Some(Ok(Refusal::Denied { right, rule })) = failure.details().cloned().map(serde_json::from_value) else {
        return failure;
    };
    let Ok(me) = here.me() else { return failure };
    let handle = &me.identity.actor().handle;
    let hint = reason(me.because, handle, who::person(&here.home).as_ref());
    let failure = match rule {
        Rule::Envelope => {
            failure.reworded(format!("{handle} may not {} (this needs the right `{right}`)", deed(right)))
        }
        Rule::HumansFirst
        | Rule::OwnGrants
        | Rule::Freezer
        | Rule::HumansAnswer
        | Rule::Asker
        | Rule::HumansApprove => failure,
    };
    if hint.is_empty() { failure } else { failure.hint(hint) }
}

/// Why this process is that actor, where nobody chose it.
fn reason(because: Because, handle: &Handle, person: Option<&Handle>) -> String {
    match (because, person) {
        (Because::Inside, Some(person)) => {
            format!("you are {handle} because this shell runs inside a session\nif you are a person, try --as {person}")
        }
        (Because::Inside, None) => format!("you are {handle} because this shell runs inside a session"),
        (Because::NoTerminal, _) => format!("you are {handle} because there is no terminal"),
        (Because::Said | Because::Marked | Because::AtTerminal, _) => String::new(),
    }
}

/// What a right allows, after "may not".
fn deed(right: Right) -> &'static str {
    match right {
        Right::Observe => "observe this session",
        Right::Type => "type in this session",
        Right::Run => "run commands in this session",
        Right::Start => "start sessions on this host",
        Right::Signal => "send signals in this session",
        Right::Seize => "seize the turn in this session",
        Right::Grant => "grant rights in this session",
        Right::Approve => "approve acts in this session",
        Right::Checkpoint => "checkpoint this session",
        Right::Fork => "fork this session",
        Right::End => "end this session",
        Right::Configure => "configure this session",
        Right::FilesRead => "read files of this session",
        Right::FilesWrite => "write files of this session",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_person_in_a_sessions_shell_reads_how_to_say_who_they_are() {
        let agent: Handle = "agent:ann".parse().unwrap();
        let ann: Handle = "human:ann".parse().unwrap();
        for because in [Because::Said, Because::Marked, Because::NoTerminal, Because::AtTerminal] {
            assert!(!reason(because, &agent, Some(&ann)).contains("--as"), "{because:?}");
        }
        assert!(!reason(Because::Inside, &agent, None).contains("--as"));
        assert_eq!(
            reason(Because::Inside, &agent, Some(&ann)),
            "you are agent:ann because this shell runs inside a session\nif you are a person, try --as human:ann"
        );
    }
}
