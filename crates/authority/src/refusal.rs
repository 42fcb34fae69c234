//! Refusals: answers with a stable code, data for programs and a line for people.
//!
//! A text says who holds the turn and, at most, how to ask for it. It never tells how to get past the refusal.

use crate::grants::GrantId;
use holdfast_types::Actor;
use holdfast_types::{Fence, TimeMs};
use holdfast_types::{Right, Rights};
use serde::{Deserialize, Serialize};

/// The rule that denied an act. The words are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The actor's envelope does not have the right now.
    Envelope,
    /// What a human holds is taken from it by humans only.
    HumansFirst,
    /// Neither giver, nor receiver, nor as wide as what would be revoked.
    OwnGrants,
    /// A frozen session is thawed by who froze it, or by a human.
    Freezer,
    /// A question is answered by humans only.
    HumansAnswer,
    /// A question is withdrawn by who asked it, or by a human.
    Asker,
    /// An approval is given or denied by humans only, and not by the actor that asked for it.
    HumansApprove,
}

impl Rule {
    /// The stable word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Rule::Envelope => "envelope",
            Rule::HumansFirst => "humans_first",
            Rule::OwnGrants => "own_grants",
            Rule::Freezer => "freezer",
            Rule::HumansAnswer => "humans_answer",
            Rule::Asker => "asker",
            Rule::HumansApprove => "humans_approve",
        }
    }

    /// The rule in plain words; an envelope lacks `right`.
    fn text(self, right: Right) -> String {
        match self {
            Rule::Envelope => format!("this needs the right `{right}`"),
            Rule::HumansFirst => "only a human may do this to a human".into(),
            Rule::OwnGrants => {
                "only its giver, its receiver or an actor with at least its rights may take back a grant".into()
            }
            Rule::Freezer => "only a human or the actor that froze the session may resume it".into(),
            Rule::HumansAnswer => "only humans may answer questions".into(),
            Rule::Asker => "only a human or the actor that asked may withdraw a question".into(),
            Rule::HumansApprove => "only a human who did not ask for it may approve or deny this".into(),
        }
    }
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "code")]
pub enum Refusal {
    /// Another actor has the turn.
    #[error("{by} has the turn")]
    TurnHeld {
        /// Who.
        by: Actor,
    },
    /// The write was made under a fence that is no longer the newest.
    #[error("the turn has changed since this was written")]
    FenceStale {
        /// The newest.
        newest: Fence,
    },
    /// The actor may not do that.
    #[error("{}", rule.text(*right))]
    Denied {
        /// The right it would need.
        right: Right,
        /// What denied it.
        rule: Rule,
    },
    /// A rule of the host's policy denies it.
    #[error("policy rule `{rule}` denies this: {why}")]
    Forbidden {
        /// The rule's id.
        rule: String,
        /// Its reason.
        why: String,
    },
    /// A rule of the host's policy asks a human first. The act is held until one answers.
    #[error("a human must approve this ({approval}): {why}")]
    ApprovalNeeded {
        /// The approval's id.
        approval: String,
        /// The rule's id.
        rule: String,
        /// What it asks.
        why: String,
    },
    /// The session is frozen.
    #[error("{by} froze the session")]
    Frozen {
        /// By whom.
        by: Actor,
    },
    /// The session is not frozen.
    #[error("the session is not frozen")]
    NotFrozen,
    /// Only the holder of the turn can do that.
    #[error("you do not have the turn")]
    NotHolder,
    /// The operator is not attached, or is another actor's.
    #[error("this client is not attached")]
    NotAttached,
    /// There is no such grant now.
    #[error("no grant {grant}")]
    NoSuchGrant {
        /// Which was meant.
        grant: GrantId,
    },
    /// A grant wider than its giver's envelope.
    #[error("you cannot grant {missing}: you do not have it")]
    TooWide {
        /// What the giver does not hold.
        missing: Rights,
    },
    /// A grant that would outlast its giver's envelope.
    #[error("you cannot grant this for longer than you have it yourself")]
    TooLong {
        /// How long it could last.
        until: TimeMs,
    },
    /// A grant of nothing, or one that would have ended already.
    #[error("this grant is empty: it has no rights, or has already expired")]
    EmptyGrant,
    /// A bound of the session is reached.
    #[error("too many {what}, at most {max}")]
    TooMany {
        /// Of what.
        what: String,
        /// The bound.
        max: u32,
    },
    /// The actor asks faster than one may.
    #[error("too many {what} in a short time")]
    TooFast {
        /// Of what.
        what: String,
    },
}

impl Refusal {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::TurnHeld { .. } => "turn_held",
            Refusal::FenceStale { .. } => "fence_stale",
            Refusal::Denied { .. } => "denied",
            Refusal::Forbidden { .. } => "forbidden",
            Refusal::ApprovalNeeded { .. } => "approval_needed",
            Refusal::Frozen { .. } => "frozen",
            Refusal::NotFrozen => "not_frozen",
            Refusal::NotHolder => "not_holder",
            Refusal::NotAttached => "not_attached",
            Refusal::NoSuchGrant { .. } => "no_such_grant",
            Refusal::TooWide { .. } => "too_wide",
            Refusal::TooLong { .. } => "too_long",
            Refusal::EmptyGrant => "empty_grant",
            Refusal::TooMany { .. } => "too_many",
            Refusal::TooFast { .. } => "too_fast",
        }
    }

    /// What a person can do about it; may be empty.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Refusal::TurnHeld { .. } => "request the turn, then try again",
            Refusal::FenceStale { .. } => "look at the screen again before you continue",
            Refusal::NotAttached => "attach again",
            Refusal::ApprovalNeeded { .. } => "wait for the answer; do not try it in another way meanwhile",
            Refusal::Denied { .. }
            | Refusal::Forbidden { .. }
            | Refusal::Frozen { .. }
            | Refusal::NotFrozen
            | Refusal::NotHolder
            | Refusal::NoSuchGrant { .. }
            | Refusal::TooWide { .. }
            | Refusal::TooLong { .. }
            | Refusal::EmptyGrant => "",
            Refusal::TooMany { .. } => "end one of yours first, or try again later",
            Refusal::TooFast { .. } => "wait a second between them",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::ActorId;

    #[test]
    fn codes_travel_as_they_are_named_and_no_text_tells_how_to_get_past() {
        let by = Actor { id: ActorId([1; 32]), handle: "human:ann".parse().unwrap() };
        let denied = [
            Rule::Envelope,
            Rule::HumansFirst,
            Rule::OwnGrants,
            Rule::Freezer,
            Rule::HumansAnswer,
            Rule::Asker,
            Rule::HumansApprove,
        ];
        let mut all = vec![
            Refusal::TurnHeld { by: by.clone() },
            Refusal::FenceStale { newest: Fence(3) },
            Refusal::Forbidden { rule: "solo.unthinkable".into(), why: "this would destroy the system".into() },
            Refusal::ApprovalNeeded { approval: "apr_1".into(), rule: "solo.opaque".into(), why: "why".into() },
            Refusal::Frozen { by },
            Refusal::NotFrozen,
            Refusal::NotHolder,
            Refusal::NotAttached,
            Refusal::NoSuchGrant { grant: GrantId(1) },
            Refusal::TooWide { missing: Right::End.into() },
            Refusal::TooLong { until: 5 },
            Refusal::EmptyGrant,
            Refusal::TooMany { what: "requests".into(), max: 64 },
            Refusal::TooFast { what: "acts".into() },
        ];
        all.extend(denied.map(|rule| Refusal::Denied { right: Right::Type, rule }));
        for refusal in all {
            let json = serde_json::to_value(&refusal).unwrap();
            assert_eq!(json["code"], refusal.code());
            assert_eq!(serde_json::from_value::<Refusal>(json).unwrap(), refusal);
            let text = format!("{refusal} {}", refusal.hint());
            for recipe in
                ["seize", "take it", "take over", "--", "force", "revoke", "grant yourself", "HOLDFAST", "thaw"]
            {
                assert!(!text.contains(recipe), "{text}");
            }
        }
    }
}
