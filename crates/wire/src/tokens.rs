//! Tokens: what a program shows over HTTP in place of a signature.
//!
//! A token is an actor, the most it may do, and an end. What the actor may do in a session is asked at each act as ever; a
//! token only narrows it. Its text is shown once; the host keeps a hash.

use holdfast_types::{Actor, Handle, Rights, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the token shall be.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenNewParams {
    /// The actor it acts as. An unknown handle becomes an actor that has tokens and no key.
    pub actor: Handle,
    /// The token's rights; none: all rights of its actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub can: Option<Rights>,
    /// How long it is good, in milliseconds; none: 30 days. One that is made with a token does not outlast that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
    /// What it is for, in the maker's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A new token.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TokenNewAnswer {
    /// Its text: it is not shown again.
    pub text: String,
    /// What it is.
    pub token: TokenView,
}

/// Which token.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenParams {
    /// Its id.
    pub token: String,
}

/// A token as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenView {
    /// Identity: no secret.
    pub id: String,
    /// Who shows it.
    pub actor: Handle,
    /// The token's rights; none: all rights of its actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub can: Option<Rights>,
    /// Who made it.
    pub by: Handle,
    /// When.
    pub created_ms: TimeMs,
    /// When it ends.
    pub until_ms: TimeMs,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The token with which it was made: it ends with that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// A code that a browser exchanges for a token of the asker.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LoginAnswer {
    /// It serves once, at `/v1/login`.
    pub code: String,
    /// And not after this.
    pub until_ms: TimeMs,
}

/// Who asks.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MeAnswer {
    /// Who.
    pub actor: Actor,
    /// The host knows this actor.
    pub known: bool,
    /// The token that says so, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenView>,
}
