//! Relays a host waits at, invites it gave, and devices that came by one.
//!
//! A device is an actor whose key was enrolled by an invite: it reaches the host through a relay, with the rights of the invite at most.
//! An invite's secret is in its link, which is shown once.

use holdfast_types::{Actor, Handle, HostKey, Rights, SessionId, Signature, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which relay.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RelayParams {
    /// Where it is: `https://NAME` or `https://NAME:PORT`.
    pub url: String,
}

/// Addresses of its own that a host names: a machine has few that others reach.
pub const DIRECT_MAX: usize = 8;

/// Where a host shall listen itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectParams {
    /// `IP:PORT`; none: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// Where others find it, as `NAME:PORT`; none: at the machine's own address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
}

/// Where a host listens itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DirectView {
    /// `IP:PORT`.
    pub listen: String,
    /// Where its devices are told to find it.
    pub addresses: Vec<String>,
    /// It listens.
    pub up: bool,
    /// Why it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A relay as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RelayView {
    /// Where it is.
    pub url: String,
    /// Clients find this host there.
    pub up: bool,
    /// Since when it is so.
    pub since_ms: TimeMs,
    /// Why it is not up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What an invite shall be.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InviteNewParams {
    /// The session it is for; none: the whole host, which only a human may share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The most its guests may do; none: to observe a session, or all that you may do on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub can: Option<Rights>,
    /// How long it can be accepted, in milliseconds; none: an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
    /// How often it can be accepted; none: once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses: Option<u32>,
    /// How long a guest's access lasts once it has accepted, in milliseconds; none: until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_ms: Option<u64>,
}

/// A new invite.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct InviteNewAnswer {
    /// The link: a secret, and not shown again.
    pub link: String,
    /// What it is.
    pub invite: InviteView,
}

/// Which invite.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InviteParams {
    /// Its id.
    pub invite: String,
}

/// How an invite stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InviteState {
    /// It can be accepted.
    Open,
    /// It was accepted as often as it can be.
    Used,
    /// Its time is over.
    Expired,
    /// It was revoked.
    Revoked,
}

/// An invite as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InviteView {
    /// Identity: no secret.
    pub id: String,
    /// How it stands.
    pub state: InviteState,
    /// The session it is for; none: the whole host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The most its guests may do.
    pub can: Rights,
    /// Who made it.
    pub by: Handle,
    /// When.
    pub created_ms: TimeMs,
    /// Until when it can be accepted.
    pub until_ms: TimeMs,
    /// How often it can be accepted in all.
    pub uses: u32,
    /// How often it was.
    pub used: u32,
}

/// A guest of an invite says who it is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InviteAcceptParams {
    /// Its key, and the handle it would like.
    pub actor: Actor,
    /// As in `identify`, over the challenge and the channel's binding.
    pub signature: Signature,
}

/// A guest is enrolled.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct InviteAcceptAnswer {
    /// Its key, and the handle by which the host knows it.
    pub actor: Actor,
    /// What the host calls itself.
    pub host: String,
    /// Where else the host can be reached.
    pub relays: Vec<String>,
    /// The name of the session it was invited to; none: the whole host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The most it may do.
    pub can: Rights,
}

/// Which device.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceParams {
    /// Its id, or its actor's handle.
    pub device: String,
}

/// A device as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceView {
    /// Identity: no secret.
    pub id: String,
    /// Its actor.
    pub actor: Actor,
    /// The session it was invited to; none: the whole host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The most it may do.
    pub can: Rights,
    /// Who invited it.
    pub by: Handle,
    /// When it was enrolled.
    pub created_ms: TimeMs,
    /// When its access ends; none: when it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<TimeMs>,
    /// How many connections it has now.
    pub connections: u32,
}

/// What a host is called and known by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RelaysAnswer {
    /// The host's key: what clients know it by.
    pub key: HostKey,
    /// What it calls itself.
    pub name: String,
    /// Its relays.
    pub relays: Vec<RelayView>,
    /// Where it listens itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<DirectView>,
}

/// Which page a browser has already.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageGetParams {
    /// The signature of the page it has: the files of that one are not sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub have: Option<Signature>,
}

/// The page, signed: what a browser runs that came through a relay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PageView {
    /// The version of the program it belongs to.
    pub version: String,
    /// Its files, in the order in which their bytes follow the answer.
    pub files: Vec<PageFile>,
    /// The host's, over the version and the files' names and digests.
    pub signature: Signature,
}

/// A file of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PageFile {
    /// Its name; `.gz` is packed.
    pub name: String,
    /// SHA-256 of its bytes.
    pub digest: String,
    /// How many bytes it has.
    pub bytes: u64,
}
