//! Notices to operators about the turn and their rights.

use crate::{Handle, Rights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// News for operators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Notice {
    /// The turn has another holder, or none.
    Turn {
        /// Who.
        holder: Option<Handle>,
    },
    /// An actor requests the turn.
    Requested {
        /// Who.
        by: Handle,
    },
    /// The turn was seized.
    Seized {
        /// By whom.
        by: Handle,
        /// From whom.
        from: Option<Handle>,
        /// Why.
        reason: String,
    },
    /// The tree stands still.
    Frozen {
        /// By whom.
        by: Handle,
    },
    /// The tree goes on.
    Thawed {
        /// By whom.
        by: Handle,
    },
    /// An actor asks the humans a question.
    Asked {
        /// The question's id.
        question: String,
        /// Who.
        by: Handle,
        /// What; of a long question the beginning.
        text: String,
        /// What can be answered; none: any text.
        options: Vec<String>,
    },
    /// An act is held until a human approves it.
    Held {
        /// The approval's id.
        approval: String,
        /// Who wants it.
        by: Handle,
        /// What; of a long command the beginning.
        command: String,
        /// What the policy asks.
        why: String,
    },
    /// What others changed before this operator took the turn.
    Handover {
        /// Who took it.
        to: Handle,
        /// What they changed, in a line.
        text: String,
    },
    /// The operator's rights are now these.
    Rights {
        /// What it may do.
        rights: Rights,
    },
}
