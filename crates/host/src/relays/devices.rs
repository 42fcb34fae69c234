//! Invites and devices: `<state>/devices.json`.
//!
//! An invite's secret must be there to be mixed into a channel, so the file has it as it is; it is for its user alone, and an invite ends. What is
//! over is remembered for a week, so that whoever comes late is told why.

use holdfast_channel::exchange_key;
use holdfast_door::Cap;
use holdfast_store::{DEVICES, Survives, get_json, put_json};
use holdfast_types::{Actor, FOREVER, Handle, Rights, SessionId, TimeMs, hex_bytes, hex_text};
use holdfast_wire::devices::{DeviceView, InviteNewParams, InviteState, InviteView};
use holdfast_wire::{Code, Fault};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// How long an invite can be accepted unless said otherwise: time to walk over to the other machine.
const INVITE_MS_DEFAULT: u64 = 60 * 60 * 1000;
/// The longest: a link that lies around is somebody else's in the end.
const INVITE_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1000;
/// Guests of one invite.
const USES_MAX: u32 = 100;
/// How long one that is over is remembered.
const OVER_KEEP_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// Invites at once, over ones included.
const INVITES_MAX: usize = 500;
/// Devices of a host: a large team's machines.
const DEVICES_MAX: usize = 1000;
const FILE: &str = "devices.json";
/// What ids of devices begin with: tokens begin otherwise.
pub const DEVICE_PREFIX: &str = "dev_";

/// An invite as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Invite {
    pub id: String,
    secret: String,
    /// Who made it.
    pub by: Actor,
    /// The token through which it was made: it ends with that one.
    #[serde(default)]
    pub token: Option<String>,
    pub session: Option<SessionId>,
    pub can: Rights,
    pub created_ms: TimeMs,
    pub until_ms: TimeMs,
    pub access_ms: Option<u64>,
    pub uses: u32,
    pub used: u32,
    #[serde(default)]
    pub revoked: bool,
}

/// A device as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Device {
    pub id: String,
    pub actor: Actor,
    pub session: Option<SessionId>,
    pub can: Rights,
    pub by: Handle,
    pub created_ms: TimeMs,
    pub until_ms: TimeMs,
    /// The token or device through which its invite was made: it ends with that one.
    #[serde(default)]
    pub through: Option<String>,
    /// Its actor became known to the host with it, and is forgotten with it.
    #[serde(default)]
    pub made_known: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Kept {
    invites: Vec<Invite>,
    devices: Vec<Device>,
}

/// All of a home.
#[derive(Debug)]
pub struct Devices {
    state: PathBuf,
    kept: Kept,
    /// Whom the thread of the relays lets in.
    guests: Arc<GuestList>,
}

/// All of them as they shall be, to be written.
#[derive(Debug)]
pub struct Change {
    state: PathBuf,
    kept: Kept,
}

impl Change {
    /// An invite that was made through a token ends with it at the latest.
    pub fn shorten(&mut self, invite: &mut Invite, until_ms: TimeMs) {
        invite.until_ms = invite.until_ms.min(until_ms);
        let kept = self.kept.invites.iter_mut().find(|kept| kept.id == invite.id);
        kept.into_iter().for_each(|kept| kept.until_ms = invite.until_ms);
    }

    /// Writes them, so that they survive a power cut: a device that was revoked must not be back.
    pub fn write(&self) -> io::Result<()> {
        put_json(&DEVICES, &self.state, FILE, &self.kept, Survives::PowerCut)
    }
}

/// Keys and secrets, for the thread that carries.
#[derive(Debug, Default)]
pub struct GuestList(Mutex<Lists>);

#[derive(Debug, Default)]
struct Lists {
    known: HashMap<[u8; 32], Handle>,
    invites: HashMap<[u8; 16], [u8; 32]>,
}

impl holdfast_relay::Guests for GuestList {
    fn known(&self, key: &[u8; 32]) -> Option<Handle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).known.get(key).cloned()
    }

    fn invite(&self, id: &[u8; 16]) -> Option<[u8; 32]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).invites.get(id).copied()
    }
}

impl Invite {
    fn bytes(&self) -> Option<([u8; 16], [u8; 32])> {
        let id = hex_bytes(self.id.strip_prefix("inv_")?)?.try_into().ok()?;
        Some((id, hex_bytes(&self.secret)?.try_into().ok()?))
    }

    /// What its link carries.
    pub fn secrets(&self) -> Option<([u8; 16], [u8; 32])> {
        self.bytes()
    }

    pub fn state(&self, now: TimeMs) -> InviteState {
        match self {
            Invite { revoked: true, .. } => InviteState::Revoked,
            invite if invite.used >= invite.uses => InviteState::Used,
            invite if invite.until_ms <= now => InviteState::Expired,
            _ => InviteState::Open,
        }
    }

    pub fn view(&self, now: TimeMs) -> InviteView {
        InviteView {
            id: self.id.clone(),
            state: self.state(now),
            session: self.session,
            can: self.can,
            by: self.by.handle.clone(),
            created_ms: self.created_ms,
            until_ms: self.until_ms,
            uses: self.uses,
            used: self.used,
        }
    }
}

impl Device {
    pub fn view(&self, connections: u32) -> DeviceView {
        DeviceView {
            id: self.id.clone(),
            actor: self.actor.clone(),
            session: self.session,
            can: self.can,
            by: self.by.clone(),
            created_ms: self.created_ms,
            until_ms: (self.until_ms != FOREVER).then_some(self.until_ms),
            connections,
        }
    }
}

impl Devices {
    /// Reads them. A file that cannot be read lets nobody in.
    pub fn load(state: &Path) -> Devices {
        let kept = get_json(&DEVICES, &state.join(FILE)).map(Option::unwrap_or_default).unwrap_or_else(|why| {
            tracing::error!("{}: {why}; no device is known", state.join(FILE).display());
            Kept::default()
        });
        let devices = Devices { state: state.to_owned(), kept, guests: Arc::default() };
        devices.tell();
        devices
    }

    /// What the thread of the relays asks.
    pub fn guests(&self) -> Arc<GuestList> {
        Arc::clone(&self.guests)
    }

    fn tell(&self) {
        let key = |device: &Device| Some((exchange_key(&device.actor.id.0).ok()?, device.actor.handle.clone()));
        let known = self.kept.devices.iter().filter_map(key).collect();
        let invites = self.kept.invites.iter().filter_map(Invite::bytes).collect();
        *self.guests.0.lock().unwrap_or_else(PoisonError::into_inner) = Lists { known, invites };
    }

    /// All as they are, without what is long over.
    fn change(&self, now: TimeMs) -> Change {
        let mut kept = self.kept.clone();
        kept.invites.retain(|invite| invite.until_ms.saturating_add(OVER_KEEP_MS) > now);
        Change { state: self.state.clone(), kept }
    }

    /// A change was written.
    pub fn adopt(&mut self, change: Change) {
        self.kept = change.kept;
        self.tell();
    }

    /// An invite that is good once its change is adopted.
    pub fn invite(
        &self,
        params: &InviteNewParams,
        can: Rights,
        session: Option<SessionId>,
        by: &Actor,
        token: Option<&str>,
        now: TimeMs,
    ) -> Result<(Invite, Change), Fault> {
        let bad = |message: String| Fault::new(Code::BadRequest, message);
        if can.is_empty() {
            return Err(Fault::new(Code::EmptyGrant, "an invite without rights is good for nothing"));
        }
        let uses = params.uses.unwrap_or(1);
        if !(1..=USES_MAX).contains(&uses) {
            return Err(bad(format!("an invite can be accepted 1 to {USES_MAX} times")));
        }
        let for_ms = params.for_ms.unwrap_or(INVITE_MS_DEFAULT);
        if !(1..=INVITE_MS_MAX).contains(&for_ms) {
            return Err(bad("an invite can be accepted for 30 days at most".into()));
        }
        let mut change = self.change(now);
        if change.kept.invites.len() >= INVITES_MAX {
            return Err(Fault::new(Code::TooMany, format!("too many invites: {INVITES_MAX}"))
                .hint("revoke some: holdfast invites ls, holdfast invites revoke ID"));
        }
        let secret = [crate::random_token(), crate::random_token()].concat();
        let invite = Invite {
            id: format!("inv_{}", hex_text(&crate::random_token())),
            secret: hex_text(&secret),
            by: by.clone(),
            token: token.map(str::to_owned),
            session,
            can,
            created_ms: now,
            until_ms: now.saturating_add(for_ms),
            access_ms: params.access_ms,
            uses,
            used: 0,
            revoked: false,
        };
        change.kept.invites.push(invite.clone());
        Ok((invite, change))
    }

    /// Those that are remembered.
    pub fn invites(&self) -> &[Invite] {
        &self.kept.invites
    }

    /// One by what its guest's channel said.
    pub fn invited_by(&self, id: &[u8; 16]) -> Option<&Invite> {
        let id = format!("inv_{}", hex_text(id));
        self.kept.invites.iter().find(|invite| invite.id == id)
    }

    /// Ends an invite.
    pub fn revoke_invite(&mut self, id: &str, now: TimeMs) -> Result<(InviteView, Change), Fault> {
        let invite = self.kept.invites.iter_mut().find(|invite| invite.id == id).ok_or_else(|| {
            Fault::new(Code::NoSuchInvite, format!("no invite {id:?}")).hint("see `holdfast invites ls`")
        })?;
        // At once, whatever becomes of the disk.
        invite.revoked = true;
        let view = invite.view(now);
        Ok((view, self.change(now)))
    }

    /// An invite is accepted by an actor under this handle; a device of the same key gets wider instead.
    pub fn enrol(
        &self,
        invite: &Invite,
        actor: &Actor,
        made_known: bool,
        now: TimeMs,
    ) -> Result<(Device, Change), Fault> {
        let mut change = self.change(now);
        let until_ms = invite.access_ms.map_or(FOREVER, |access_ms| now.saturating_add(access_ms));
        let kept = change.kept.invites.iter_mut().find(|kept| kept.id == invite.id);
        kept.into_iter().for_each(|kept| kept.used += 1);
        if let Some(known) = change.kept.devices.iter_mut().find(|device| device.actor.id == actor.id) {
            known.can = known.can.and(invite.can);
            known.until_ms = known.until_ms.max(until_ms);
            if invite.session.is_none() {
                known.session = None;
            }
            known.made_known |= made_known;
            known.actor.handle.clone_from(&actor.handle);
            let device = known.clone();
            return Ok((device, change));
        }
        if change.kept.devices.len() >= DEVICES_MAX {
            return Err(Fault::new(Code::TooMany, format!("this host has {DEVICES_MAX} devices already")));
        }
        let device = Device {
            id: format!("{DEVICE_PREFIX}{}", hex_text(&crate::random_token()[..6])),
            actor: actor.clone(),
            session: invite.session,
            can: invite.can,
            by: invite.by.handle.clone(),
            created_ms: now,
            until_ms,
            through: invite.token.clone(),
            made_known,
        };
        change.kept.devices.push(device.clone());
        Ok((device, change))
    }

    /// Every device.
    pub fn all(&self) -> &[Device] {
        &self.kept.devices
    }

    /// The device with this key, in its X25519 form.
    pub fn by_exchange(&self, key: &[u8; 32]) -> Option<&Device> {
        self.kept.devices.iter().find(|device| exchange_key(&device.actor.id.0).is_ok_and(|known| known == *key))
    }

    /// The device whose actor has this handle.
    pub fn by_handle(&self, handle: &Handle) -> Option<&Device> {
        self.kept.devices.iter().find(|device| device.actor.handle == *handle)
    }

    /// One by its id or handle.
    pub fn find(&self, which: &str) -> Result<&Device, Fault> {
        let fits = |device: &&Device| device.id == which || device.actor.handle.to_string() == which;
        self.kept.devices.iter().find(fits).ok_or_else(|| {
            Fault::new(Code::NoSuchDevice, format!("no device {which:?}")).hint("see `holdfast devices ls`")
        })
    }

    /// Who a device is and what caps it, now.
    pub fn good(&self, id: &str, now: TimeMs) -> Result<(Actor, Cap), Fault> {
        let gone = |why: &str| Fault::new(Code::Unidentified, why).hint("ask for another invite");
        let device = self.kept.devices.iter().find(|device| device.id == id);
        let device = device.ok_or_else(|| gone("this device was revoked"))?;
        if device.until_ms <= now {
            return Err(gone("this device's access has ended"));
        }
        let cap = Cap { token: device.id.clone(), can: device.can, until_ms: device.until_ms };
        Ok((device.actor.clone(), cap))
    }

    /// Takes a device out: it is good no more, from now on.
    pub fn revoke(&mut self, id: &str, now: TimeMs) -> Change {
        self.kept.devices.retain(|device| device.id != id);
        self.tell();
        self.change(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_authority::proof::actor_id;
    use holdfast_relay::Guests;
    use holdfast_types::Right;

    fn actor(handle: &str, secret: u8) -> Actor {
        Actor { id: actor_id(&[secret; 32]), handle: handle.parse().unwrap() }
    }

    fn params(uses: u32, for_ms: u64) -> InviteNewParams {
        InviteNewParams { uses: Some(uses), for_ms: Some(for_ms), ..InviteNewParams::default() }
    }

    fn invite(devices: &mut Devices, params: &InviteNewParams, now: TimeMs) -> Invite {
        let can = params.can.unwrap_or(Right::Observe.into());
        let (invite, change) = devices.invite(params, can, None, &actor("human:ann", 1), None, now).unwrap();
        change.write().unwrap();
        devices.adopt(change);
        invite
    }

    #[test]
    fn an_invite_is_open_used_expired_or_revoked_and_what_is_over_is_remembered_for_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let mut devices = Devices::load(dir.path());
        let first = invite(&mut devices, &params(1, 1000), 5000);
        assert_eq!((first.state(5999), first.state(6000)), (InviteState::Open, InviteState::Expired));
        let (_, change) = devices.enrol(&first, &actor("human:bob", 2), true, 5500).unwrap();
        devices.adopt(change);
        let (id, secret) = first.secrets().unwrap();
        assert_eq!(devices.invited_by(&id).unwrap().state(5600), InviteState::Used);
        assert_eq!(devices.guests().invite(&id), Some(secret), "its guest is told so");
        let second = invite(&mut devices, &params(2, 1000), 5000);
        assert_eq!(devices.revoke_invite(&second.id, 5001).unwrap().0.state, InviteState::Revoked);
        assert_eq!(devices.revoke_invite("inv_0", 5001).unwrap_err().code, Code::NoSuchInvite);
        let ann = actor("human:ann", 1);
        assert!(devices.invite(&params(0, 1), Rights::ALL, None, &ann, None, 0).is_err());
        assert!(devices.invite(&params(1, INVITE_MS_MAX + 1), Rights::ALL, None, &ann, None, 0).is_err());
        assert!(devices.invite(&params(1, 1), Rights::NONE, None, &ann, None, 0).is_err());
        invite(&mut devices, &params(1, 1), 6000 + OVER_KEEP_MS);
        assert_eq!(devices.invites().len(), 1);
        // Also for the next host.
        assert_eq!(Devices::load(dir.path()).invites().len(), 1);
    }

    #[test]
    fn a_device_is_known_by_its_key_until_it_is_revoked_or_its_time_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let mut devices = Devices::load(dir.path());
        let bob = actor("human:bob", 2);
        let key = exchange_key(&bob.id.0).unwrap();
        let first = invite(&mut devices, &InviteNewParams { access_ms: Some(100), ..params(5, 1000) }, 0);
        let (device, change) = devices.enrol(&first, &bob, true, 10).unwrap();
        change.write().unwrap();
        devices.adopt(change);
        assert_eq!(devices.guests().known(&key), Some(bob.handle.clone()));
        let (who, cap) = devices.good(&device.id, 109).unwrap();
        assert_eq!((who, cap.can, cap.until_ms), (bob.clone(), Right::Observe.into(), 110));
        assert!(devices.good(&device.id, 110).is_err());
        let mut devices = Devices::load(dir.path());
        assert!(devices.good(&device.id, 50).is_ok());
        // A second invite makes the same device wider.
        let wide = invite(&mut devices, &InviteNewParams { can: Some("type".parse().unwrap()), ..params(1, 1000) }, 20);
        let (again, change) = devices.enrol(&wide, &bob, false, 30).unwrap();
        assert_eq!(
            (again.id.clone(), again.can.to_string(), again.until_ms),
            (device.id.clone(), "observe,type".into(), FOREVER)
        );
        assert_eq!((device.view(0).until_ms, again.view(0).until_ms), (Some(110), None), "no end is no number");
        devices.adopt(change);
        let change = devices.revoke(&device.id, 40);
        change.write().unwrap();
        assert_eq!(devices.guests().known(&key), None);
        assert!(devices.good(&device.id, 50).is_err() && Devices::load(dir.path()).all().is_empty());
    }
}
