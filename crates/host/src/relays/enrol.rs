//! Who comes through a relay: devices that are known, and guests of an invite who become such.

use super::devices::{Change, DEVICE_PREFIX, Invite};
use crate::connection::Connection;
use crate::serve::Server;
use holdfast_authority::proof;
use holdfast_channel::{InviteLink, RELAYS_MAX, exchange_key};
use holdfast_door::{Cap, Path, Speaker};
use holdfast_types::{Actor, Handle, HostKey, Right, Rights, Signature, TimeMs};
use holdfast_wire::devices::{
    DeviceView, InviteAcceptAnswer, InviteAcceptParams, InviteNewAnswer, InviteNewParams, InviteState, InviteView,
};
use holdfast_wire::turns::GrantParams;
use holdfast_wire::{Code, Fault};
use zeroize::Zeroizing;

/// Most devices that invited one another: each request looks through them.
const CHAIN_MAX: usize = 8;
/// Handles that are tried for a guest.
const HANDLE_TRIES: u32 = 20;

/// How a connection came through a relay.
#[derive(Debug, Clone)]
pub struct Arrived {
    /// What its actor signs, in place of a local connection's word.
    pub binding: [u8; 32],
    /// The key that made its channel, in its X25519 form: its actor's.
    pub key: [u8; 32],
    /// The invite it came with.
    pub invite: Option<[u8; 16]>,
}

impl Server {
    /// Who a cap stands for and what it is now: a token's, or a device's.
    pub(crate) fn cap_holder(&self, id: &str) -> Result<(Actor, Cap), Fault> {
        if id.starts_with(DEVICE_PREFIX) { self.device_holder(id) } else { self.token_holder(id) }
    }

    fn device_holder(&self, id: &str) -> Result<(Actor, Cap), Fault> {
        let good = self.device_itself(id)?;
        let of = |id: &str| self.devices.borrow().find(id).ok().and_then(|device| device.through.clone());
        let mut next = of(id);
        for _ in 0..CHAIN_MAX {
            match next {
                None => return Ok(good),
                Some(through) if through.starts_with(DEVICE_PREFIX) => {
                    self.device_itself(&through)?;
                    next = of(&through);
                }
                Some(token) => return self.token_holder(&token).map(|_| good),
            }
        }
        Err(Fault::new(Code::Unidentified, "too many devices invited one another"))
    }

    /// Who a device is, whatever becomes of those that invited it.
    fn device_itself(&self, id: &str) -> Result<(Actor, Cap), Fault> {
        let (devices, actors) = (self.devices.borrow(), self.registry.shared.actors.borrow());
        let good = devices.good(id, crate::now_ms())?;
        let is_guest = devices.find(id)?.session.is_some();
        // Whoever was invited to the whole host is an actor of it, and goes with that. A guest of one session has what was granted there.
        if !is_guest && actors.vouched().get(&good.0.id) != Some(&good.0.handle) {
            return Err(Fault::new(Code::Unidentified, format!("this host no longer knows {}", good.0.handle)));
        }
        Ok(good)
    }

    /// Whether this path is that of a device that was invited to one session: such a device learns nothing of the machine. One that is not
    /// found is taken for such.
    pub(crate) fn is_guest(&self, path: &Path) -> bool {
        match path {
            Path::Local | Path::Http(_) | Path::Mcp(_) => false,
            Path::Relay(cap) => self.devices.borrow().find(&cap.token).map_or(true, |device| device.session.is_some()),
        }
    }

    /// The device whose key made a channel, as it speaks.
    pub(crate) fn device_of(&self, arrived: &Arrived) -> Result<Speaker, Fault> {
        let id = self.devices.borrow().by_exchange(&arrived.key).map(|device| device.id.clone());
        let id = id.ok_or_else(|| Fault::new(Code::Unidentified, "this host does not know the channel's key"))?;
        let (actor, cap) = self.device_holder(&id)?;
        Ok(Speaker { actor, path: Path::Relay(cap) })
    }

    /// Where whoever came through a relay finds this host without one: for devices of the whole host, whose key the channel has proven.
    pub(crate) fn direct_for(&self, connection: &Connection) -> Vec<String> {
        let device = connection.arrived.as_ref().filter(|arrived| arrived.invite.is_none());
        match device.and_then(|arrived| self.device_of(arrived).ok()) {
            Some(speaker) if !self.is_guest(&speaker.path) => self.relays.direct(),
            Some(_) | None => Vec::new(),
        }
    }

    /// An actor signed what only this channel has, with the key that made it.
    fn prove_in_channel(
        &self,
        actor: &Actor,
        signature: &Signature,
        connection: &Connection,
        arrived: &Arrived,
    ) -> Result<(), Fault> {
        let unproven = |why: String| Fault::new(Code::Unidentified, format!("{} is not proven: {why}", actor.handle));
        let bytes = proof::challenge_bytes(&connection.challenge.0, &arrived.binding, actor);
        proof::verify(actor.id, &bytes, signature).map_err(|error| unproven(error.to_string()))?;
        if exchange_key(&actor.id.0).ok() != Some(arrived.key) {
            return Err(unproven("the channel is another key's".into()));
        }
        Ok(())
    }

    /// Who identifies through a relay.
    pub(crate) fn prove_device(
        &self,
        actor: &Actor,
        signature: &Signature,
        connection: &Connection,
        arrived: &Arrived,
    ) -> Result<Speaker, Fault> {
        self.prove_in_channel(actor, signature, connection, arrived)?;
        let speaker = self.device_of(arrived)?;
        if speaker.actor != *actor {
            return Err(Fault::new(Code::Unidentified, format!("the key does not belong to {}", actor.handle)));
        }
        Ok(speaker)
    }

    async fn keep_devices(&self, change: Change) -> Result<(), Fault> {
        let written = crate::disk::at_disk(move || {
            change.write()?;
            Ok(change)
        });
        let failed = |error| Fault::new(Code::Unrecorded, format!("cannot write the devices: {error}"));
        let change = written.await.map_err(failed)?;
        self.devices.borrow_mut().adopt(change);
        Ok(())
    }

    /// Makes an invite: for a session by who may grant there, for the host by a human.
    pub(crate) async fn invite_new(
        &self,
        params: &InviteNewParams,
        by: &Actor,
        path: &Path,
    ) -> Result<InviteNewAnswer, Fault> {
        let mut urls = self.relays.urls();
        if urls.is_empty() {
            urls = self.relays.direct().iter().map(|address| format!("direct://{address}")).collect();
        }
        urls.truncate(RELAYS_MAX);
        if urls.is_empty() {
            return Err(Fault::new(Code::NoSuchRelay, "this host waits at no relay, so nobody could accept an invite")
                .hint("add a relay first: holdfast relay add https://RELAY; within one network: holdfast relay direct --listen IP:PORT"));
        }
        let can = params.can.unwrap_or_else(|| match params.session {
            Some(_) => Right::Observe.into(),
            None => self.registry.shared.policy().default_of(by),
        });
        let (session, held) = match &params.session {
            Some(name) => {
                let session = self.registry.find_for(name, by, Right::Grant)?;
                if can.has(Right::Start) {
                    return Err(Fault::new(Code::BadRequest, "`start` is not a right in a session")
                        .hint("invite to the whole host: holdfast invite --host-wide --can start,…"));
                }
                (Some(session.id), session.rights(by))
            }
            None => {
                let policy = self.registry.shared.policy();
                if !policy.is_human(by) {
                    return Err(Fault::new(Code::Denied, "only a human may invite to the whole host"));
                }
                (None, policy.default_of(by))
            }
        };
        let missing = can.without(held);
        if !missing.is_empty() {
            let mut fault = Fault::new(Code::TooWide, format!("you cannot pass on {missing}: you do not have it"));
            fault.details = Some(Box::new(serde_json::json!({ "missing": missing })));
            return Err(fault);
        }
        let _alone = self.changing_devices.lock().await;
        let (now, cap) = (crate::now_ms(), path.cap());
        let (mut invite, mut change) =
            self.devices.borrow().invite(params, can, session, by, cap.map(|cap| cap.token.as_str()), now)?;
        if let Some(cap) = cap {
            change.shorten(&mut invite, cap.until_ms);
        }
        let link = self.link(&invite, self.relays.host_key()?, urls)?;
        self.keep_devices(change).await?;
        tracing::info!(invite = invite.id, "{by} made an invite: {can}");
        Ok(InviteNewAnswer { link, invite: invite.view(now) })
    }

    fn link(&self, invite: &Invite, host: HostKey, relays: Vec<String>) -> Result<String, Fault> {
        let (id, secret) = invite.secrets().ok_or_else(|| Fault::new(Code::Internal, "the invite has no secret"))?;
        Ok(InviteLink { relays, host, name: self.relays.name(), id, secret: Zeroizing::new(secret) }.text())
    }

    pub(crate) fn invite_list(&self, actor: &Actor) -> Vec<InviteView> {
        let is_human = self.registry.shared.policy().is_human(actor);
        let devices = self.devices.borrow();
        let shown = devices.invites().iter().filter(|invite| is_human || invite.by == *actor);
        shown.map(|invite| invite.view(crate::now_ms())).collect()
    }

    pub(crate) async fn invite_revoke(&self, id: &str, by: &Actor) -> Result<InviteView, Fault> {
        let is_human = self.registry.shared.policy().is_human(by);
        let _alone = self.changing_devices.lock().await;
        let others = self.devices.borrow().invites().iter().any(|invite| invite.id == id && invite.by != *by);
        if others && !is_human {
            return Err(Fault::new(Code::Denied, "only a human may revoke another actor's invite"));
        }
        let (view, change) = self.devices.borrow_mut().revoke_invite(id, crate::now_ms())?;
        self.keep_devices(change).await?;
        Ok(view)
    }

    /// Enrols the guest of an invite.
    pub(crate) async fn invite_accept(
        &self,
        params: &InviteAcceptParams,
        connection: &Connection,
    ) -> Result<InviteAcceptAnswer, Fault> {
        let not_invited = || Fault::new(Code::Unidentified, "this connection did not come by an invite");
        let arrived = connection.arrived.as_ref().ok_or_else(not_invited)?;
        let id = arrived.invite.as_ref().ok_or_else(not_invited)?;
        self.prove_in_channel(&params.actor, &params.signature, connection, arrived)?;
        let _alone = self.changing_devices.lock().await;
        let now = crate::now_ms();
        let invite = self.devices.borrow().invited_by(id).cloned();
        let invite = invite.ok_or_else(|| Fault::new(Code::NoSuchInvite, "this host does not know the invite"))?;
        self.invite_must_be_open(&invite, now)?;
        let known = self.registry.shared.actors.borrow().vouched().get(&params.actor.id).cloned();
        let (handle, made_known) = match (&known, invite.session) {
            (Some(handle), _) => (handle.clone(), false),
            (None, Some(_)) => (self.free_handle(&params.actor)?, false),
            (None, None) => (self.admit_guest(&params.actor)?, true),
        };
        let actor = Actor { id: params.actor.id, handle };
        let session = match invite.session {
            Some(session) => Some(self.grant_guest(&invite, &session.to_string(), &actor, now)?),
            None => None,
        };
        let (device, change) = self.devices.borrow().enrol(&invite, &actor, made_known, now)?;
        self.keep_devices(change).await?;
        tracing::info!(invite = invite.id, device = device.id, "{actor} accepted an invite of {}", invite.by.handle);
        Ok(InviteAcceptAnswer { actor, host: self.relays.name(), relays: self.relays.urls(), session, can: invite.can })
    }

    /// It can be accepted, and whoever made it could still make it.
    fn invite_must_be_open(&self, invite: &Invite, now: TimeMs) -> Result<(), Fault> {
        let over = |why: &str| Err(Fault::new(Code::InviteOver, why).hint("ask for a new one: holdfast invite"));
        match invite.state(now) {
            InviteState::Open => {}
            InviteState::Used => return over("this invite was already used"),
            InviteState::Expired => return over("this invite has expired"),
            InviteState::Revoked => return over("this invite was revoked"),
        }
        if invite.token.as_ref().is_some_and(|token| self.cap_holder(token).is_err()) {
            return over("the access with which this invite was made has ended");
        }
        let policy = self.registry.shared.policy();
        if invite.session.is_none()
            && !(policy.is_human(&invite.by) && policy.default_of(&invite.by).covers(invite.can))
        {
            return over("whoever made this invite may no longer share this host");
        }
        Ok(())
    }

    /// Gives the guest of a session what it was invited to, in the name of who invited it; the session's name.
    fn grant_guest(&self, invite: &Invite, session: &str, to: &Actor, now: TimeMs) -> Result<String, Fault> {
        let gone = || Fault::new(Code::InviteOver, "the session of this invite has ended");
        let session = self.registry.find(session).ok().filter(|session| session.is_live()).ok_or_else(gone)?;
        let path = match &invite.token {
            Some(token) => Path::Http(self.cap_holder(token)?.1),
            None => Path::Local,
        };
        let params = GrantParams {
            session: session.id.to_string(),
            to: to.clone(),
            rights: invite.can,
            until_ms: invite.access_ms.map(|access_ms| now.saturating_add(access_ms)),
            proof: None,
        };
        session.grant(&params, &Speaker { actor: invite.by.clone(), path })?;
        Ok(session.name())
    }

    /// The handle it would like, or the next that nobody has.
    fn free_handle(&self, guest: &Actor) -> Result<Handle, Fault> {
        let (devices, actors) = (self.devices.borrow(), self.registry.shared.actors.borrow());
        let own = devices.all().iter().find(|device| device.actor.id == guest.id);
        if let Some(device) = own {
            return Ok(device.actor.handle.clone());
        }
        let is_free = |handle: &Handle| {
            !handle.is_reserved() && actors.by_handle(handle).is_none() && devices.by_handle(handle).is_none()
        };
        near(&guest.handle).find(is_free).ok_or_else(taken)
    }

    /// Makes a guest of the whole host known to it.
    fn admit_guest(&self, guest: &Actor) -> Result<Handle, Fault> {
        let is_taken =
            |handle: &Handle| self.devices.borrow().by_handle(handle).is_some_and(|device| device.actor.id != guest.id);
        for handle in near(&guest.handle).filter(|handle| !is_taken(handle)) {
            let actor = Actor { id: guest.id, handle };
            let admitted = self.registry.shared.actors.borrow_mut().admit(&actor);
            match admitted {
                Ok(true) => {
                    self.registry.actors_changed();
                    return Ok(actor.handle);
                }
                Ok(false) => {}
                Err(error) => return Err(Fault::new(Code::Unrecorded, format!("cannot write the key: {error}"))),
            }
        }
        Err(taken())
    }

    pub(crate) fn device_list(&self, actor: &Actor) -> Vec<DeviceView> {
        let is_human = self.registry.shared.policy().is_human(actor);
        let (devices, open) = (self.devices.borrow(), self.device_connections.borrow());
        let shown = devices.all().iter().filter(|d| is_human || d.actor.id == actor.id || d.by == actor.handle);
        shown.map(|device| device.view(open.get(&device.id).copied().unwrap_or(0))).collect()
    }

    /// Takes a device out at once: its connections end, and what it was granted.
    pub(crate) async fn device_revoke(&self, which: &str, by: &Actor) -> Result<DeviceView, Fault> {
        let _alone = self.changing_devices.lock().await;
        let device = self.devices.borrow().find(which)?.clone();
        let may = device.actor.id == by.id || device.by == by.handle || self.registry.shared.policy().is_human(by);
        if !may {
            return Err(Fault::new(Code::Denied, "only a human may revoke another actor's device"));
        }
        let change = self.devices.borrow_mut().revoke(&device.id, crate::now_ms());
        // At once, whatever becomes of the disk.
        self.fewer_tokens();
        if device.made_known {
            let removed = self.registry.shared.actors.borrow_mut().remove(&device.actor.handle);
            removed.map_err(|error| Fault::new(Code::Internal, format!("cannot remove the key: {error}")))?;
            self.registry.actors_changed();
        }
        let is_known = self.registry.shared.actors.borrow().vouched().contains_key(&device.actor.id);
        if !is_known {
            for session in self.registry.all().into_iter().filter(|session| session.is_live()) {
                session.forget(device.actor.id);
            }
        }
        self.keep_devices(change).await.map_err(|fault| {
            fault.hint("this host lets the device in no more, but the next one would: make room, and revoke it again")
        })?;
        tracing::info!(device = device.id, "{by} revoked the device of {}", device.actor);
        Ok(device.view(0))
    }
}

/// A handle and those like it.
fn near(handle: &Handle) -> impl Iterator<Item = Handle> + use<> {
    let handle = handle.clone();
    let more = {
        let handle = handle.clone();
        (2..=HANDLE_TRIES).map(move |n| Handle::near(handle.class(), &format!("{}-{n}", handle.name())))
    };
    std::iter::once(handle).chain(more)
}

fn taken() -> Fault {
    Fault::new(Code::NameTaken, "too many actors of that name are known here").hint("use another one: --as CLASS:NAME")
}

/// What an invite passes on at most.
pub fn passes_on(params: &InviteNewParams) -> Rights {
    params.can.unwrap_or(if params.session.is_some() { Right::Observe.into() } else { Rights::ALL })
}
