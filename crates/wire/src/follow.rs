//! Following a session's output: the host pushes it, as far as the client has granted.
//!
//! A client grants bytes (credit) and renews them as it has dealt with what came. The host sends no byte beyond that and keeps none
//! for it: what the ring no longer has when there is credit again is a gap.

use crate::fault::Fault;
use crate::params::Gap;
use holdfast_types::{Offset, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which output to follow.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FollowParams {
    /// Name or id.
    pub session: String,
    /// The client's number for it, which the events carry; free on this connection.
    pub follow: u32,
    /// First offset wanted; none: the oldest there is.
    #[serde(default)]
    pub from: Option<Offset>,
    /// Bytes that may be sent; more are granted by `session.credit`.
    #[serde(default)]
    pub credit: u64,
}

/// How much more may be sent.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreditParams {
    /// The number given to `session.follow`.
    pub follow: u32,
    /// Bytes on top of what was granted before.
    pub bytes: u64,
}

/// Which output is no longer followed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnfollowParams {
    /// The number given to `session.follow`.
    pub follow: u32,
}

/// The event's bytes are output; this says where they stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputEvent {
    /// The number given to `session.follow`.
    pub follow: u32,
    /// Output before `from` that is no longer kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    /// Offset of the first byte given.
    pub from: Offset,
    /// Offset behind the last byte given.
    pub to: Offset,
    /// The session's size when they were written. An event without bytes tells another size, a gap or an end.
    pub size: Size,
    /// The session has ended and everything was given: no event follows.
    pub end: bool,
    /// Why it ends before that; no event follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}
