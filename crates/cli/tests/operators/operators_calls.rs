//! One valid call of each operation about relays, invites and devices.

use holdfast_types::{Actor, Signature};
use holdfast_wire::Call;
use holdfast_wire::devices::{DeviceParams, InviteAcceptParams, InviteNewParams, InviteParams, RelayParams};
use holdfast_wire::params::Nothing;

pub fn calls_about_relays(session: String, human: &Actor) -> Vec<Call> {
    vec![
        Call::RelayAdd(RelayParams { url: "http://127.0.0.1:1".into() }),
        Call::RelayList(Nothing {}),
        Call::RelayRemove(RelayParams { url: "http://127.0.0.1:1".into() }),
        Call::InviteNew(InviteNewParams { session: Some(session), ..InviteNewParams::default() }),
        Call::InviteList(Nothing {}),
        Call::InviteRevoke(InviteParams { invite: "inv_0".into() }),
        Call::InviteAccept(InviteAcceptParams { actor: human.clone(), signature: Signature([0; 64]) }),
        Call::DeviceList(Nothing {}),
        Call::DeviceRevoke(DeviceParams { device: "dev_0".into() }),
    ]
}
