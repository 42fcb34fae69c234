//! The parameters of any call, and one valid call of each operation about relays, invites and devices.

use holdfast_types::{Actor, SessionId, Signature};
use holdfast_wire::Call;
use holdfast_wire::contracts::TraceParams;
use holdfast_wire::devices::{
    DeviceParams, DirectParams, InviteAcceptParams, InviteNewParams, InviteParams, RelayParams,
};
use holdfast_wire::files::*;
use holdfast_wire::forks::{ForkDiffParams, ForkDiscardParams, ForkKeepParams, ForkParams};
use holdfast_wire::moves::{ArriveParams, ArriveStep, MoveParams, MoveStep};
use holdfast_wire::params::{Nothing, SessionParams};
use holdfast_wire::portable::{CheckpointListParams, CheckpointParams, CheckpointRemoveParams};
use holdfast_wire::runs::*;
use serde_json::Value;

pub fn calls_about_relays(session: String, human: &Actor) -> Vec<Call> {
    vec![
        Call::RelayAdd(RelayParams { url: "http://127.0.0.1:1".into() }),
        Call::RelayDirect(DirectParams::default()),
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

/// A call of each operation about runs, of one that is not there.
pub fn calls_about_runs(session: &str, run: RunId) -> [Call; 6] {
    [
        Call::RunStart(RunStartParams {
            session: Some(session.to_owned()),
            command: "rm".into(),
            ..RunStartParams::default()
        }),
        Call::RunGet(RunParams { run: run.into(), wait_ms: 0 }),
        Call::RunOutput(RunOutputParams { run: run.into(), from: None, max: None, wait_ms: 0 }),
        Call::RunList(RunListParams { session: Some(session.to_owned()) }),
        Call::RunCancel(RunCancelParams { run: run.into(), wait_ms: 0, proof: None }),
        Call::RunTrace(TraceParams { run: run.into() }),
    ]
}

pub fn calls_about_files(session: &str) -> Vec<Call> {
    let session = session.to_owned();
    let path = "/nonexistent/file".to_owned();
    vec![
        Call::FilesList(FilesListParams { session: session.clone(), ..FilesListParams::default() }),
        Call::FilesRead(FilesReadParams { session: session.clone(), path: path.clone(), ..FilesReadParams::default() }),
        Call::FilesWrite(FilesWriteParams {
            session: session.clone(),
            path: path.clone(),
            ..FilesWriteParams::default()
        }),
        Call::FilesEdit(FilesEditParams {
            session: session.clone(),
            path: path.clone(),
            old: "a".into(),
            new: "b".into(),
        }),
        Call::FilesUpload(FilesUploadParams {
            session: session.clone(),
            path,
            size: 1,
            tag: "t".into(),
            ..FilesUploadParams::default()
        }),
        Call::FilesUndo(FilesUndoParams { session: session.clone(), path: None }),
        Call::FilesChanges(FilesChangesParams { session: session.clone() }),
        Call::FilesDiff(FilesDiffParams { session, change: 1 }),
    ]
}

pub fn calls_about_copies(session: &str) -> [Call; 10] {
    let session = session.to_owned();
    [
        Call::Fork(ForkParams { session: session.clone(), ..ForkParams::default() }),
        Call::Move(MoveParams { session: session.clone(), step: MoveStep::Offer, proof: None }),
        Call::Arrive(ArriveParams { step: ArriveStep::Whole { session: SessionId::from_random_bits(1) } }),
        Call::ForkDiff(ForkDiffParams { session: session.clone(), ..ForkDiffParams::default() }),
        Call::ForkKeep(ForkKeepParams { session: session.clone(), ..ForkKeepParams::default() }),
        Call::ForkDiscard(ForkDiscardParams { session: session.clone(), proof: None }),
        Call::CheckpointCheck(SessionParams { session: session.clone() }),
        Call::CheckpointMake(CheckpointParams { session: session.clone(), keep_running: true, proof: None }),
        Call::CheckpointList(CheckpointListParams { session: Some(session.clone()) }),
        Call::CheckpointRemove(CheckpointRemoveParams { session, ..Default::default() }),
    ]
}

fn json(params: impl serde::Serialize) -> Value {
    serde_json::to_value(params).unwrap()
}

fn params_of_copies(call: &Call) -> Value {
    match call {
        Call::Fork(params) => json(params),
        Call::ForkDiff(params) => json(params),
        Call::ForkKeep(params) => json(params),
        Call::ForkDiscard(params) => json(params),
        Call::Move(params) => json(params),
        Call::Arrive(params) => json(params),
        other => panic!("{other:?} is about no copy"),
    }
}

pub fn params(call: &Call) -> Value {
    match call {
        Call::Hello(params) => json(params),
        Call::Identify(params) => json(params),
        Call::New(params) => json(params),
        Call::List(params) => json(params),
        Call::Get(params) | Call::Turn(params) | Call::Grants(params) | Call::State(params) => json(params),
        Call::Watch(params) => json(params),
        Call::Env(params) => json(params),
        Call::Handover(params) => json(params),
        Call::Graph(params) => json(params),
        Call::Ports(params) => json(params),
        Call::WatchGraph(params) => json(params),
        Call::Attach(params) => json(params),
        Call::Paint(params) => json(params),
        Call::Update(params) => json(params),
        Call::Leave(params) => json(params),
        Call::Screen(params) => json(params),
        Call::Read(params) => json(params),
        Call::Follow(params) => json(params),
        Call::Credit(params) => json(params),
        Call::Unfollow(params) => json(params),
        Call::Send(params) => json(params),
        Call::Wait(params) => json(params),
        Call::Resize(params) => json(params),
        Call::Signal(params) => json(params),
        Call::Rename(params) => json(params),
        Call::Keep(params) => json(params),
        Call::Cost(params) => json(params),
        Call::Detach(params) => json(params),
        Call::End(params) => json(params),
        Call::Recover(params) => json(params),
        Call::Restore(params) => json(params),
        Call::Fork(_) | Call::ForkDiff(_) | Call::ForkKeep(_) | Call::ForkDiscard(_) => params_of_copies(call),
        Call::Move(_) | Call::Arrive(_) => params_of_copies(call),
        Call::CheckpointCheck(params) => json(params),
        Call::CheckpointMake(params) => json(params),
        Call::CheckpointList(params) => json(params),
        Call::CheckpointRemove(params) => json(params),
        Call::Journal(params) => json(params),
        Call::FilesList(_) | Call::FilesRead(_) | Call::FilesChanges(_) | Call::FilesDiff(_) => params_of_files(call),
        Call::FilesWrite(_) | Call::FilesEdit(_) | Call::FilesUpload(_) | Call::FilesUndo(_) => params_of_files(call),
        Call::RunStart(params) => json(params),
        Call::RunGet(params) => json(params),
        Call::RunOutput(params) => json(params),
        Call::RunList(params) => json(params),
        Call::RunCancel(params) => json(params),
        Call::RunTrace(_) | Call::ActorRecord(_) => params_of_contracts(call),
        Call::QuestionAsk(params) => json(params),
        Call::QuestionGet(params) => json(params),
        Call::QuestionList(params) => json(params),
        Call::QuestionAnswer(params) => json(params),
        Call::QuestionWithdraw(params) => json(params),
        Call::ApprovalAnswer(params) => json(params),
        Call::ApprovalGet(params) => json(params),
        Call::ApprovalList(params) => json(params),
        Call::PolicyMay(params) => json(params),
        Call::FlowStart(_) | Call::FlowList(_) | Call::FlowGet(_) => params_of_flows(call),
        Call::FlowSignal(_) | Call::FlowAnswer(_) | Call::FlowCancel(_) | Call::FlowRetry(_) => params_of_flows(call),
        Call::Take(params) | Call::Request(params) | Call::Withdraw(params) => json(params),
        Call::Release(params) | Call::Thaw(params) => json(params),
        Call::Give(params) => json(params),
        Call::Seize(params) => json(params),
        Call::Grant(params) => json(params),
        Call::Revoke(params) => json(params),
        Call::LoginNew(params) | Call::Me(params) | Call::TokenList(params) | Call::PolicyGet(params) => json(params),
        Call::TokenNew(params) => json(params),
        Call::TokenRevoke(params) => json(params),
        Call::RelayAdd(params) | Call::RelayRemove(params) => json(params),
        Call::RelayDirect(params) => json(params),
        Call::RelayList(params) | Call::InviteList(params) | Call::DeviceList(params) => json(params),
        Call::InviteNew(params) => json(params),
        Call::InviteRevoke(params) => json(params),
        Call::InviteAccept(params) => json(params),
        Call::DeviceRevoke(params) => json(params),
        Call::PageGet(params) => json(params),
        Call::ActorRemove(params) => json(params),
        Call::Actors(params) | Call::Metrics(params) | Call::Status(params) | Call::Stop(params) => json(params),
    }
}

fn params_of_flows(call: &Call) -> Value {
    let params = match call {
        Call::FlowStart(params) => serde_json::to_value(params),
        Call::FlowList(params) => serde_json::to_value(params),
        Call::FlowGet(params) => serde_json::to_value(params),
        Call::FlowSignal(params) => serde_json::to_value(params),
        Call::FlowAnswer(params) => serde_json::to_value(params),
        Call::FlowCancel(params) => serde_json::to_value(params),
        Call::FlowRetry(params) => serde_json::to_value(params),
        other => panic!("{} is not about flows", other.row().name),
    };
    params.unwrap()
}

fn params_of_files(call: &Call) -> Value {
    let params = match call {
        Call::FilesList(params) => serde_json::to_value(params),
        Call::FilesRead(params) => serde_json::to_value(params),
        Call::FilesWrite(params) => serde_json::to_value(params),
        Call::FilesEdit(params) => serde_json::to_value(params),
        Call::FilesUpload(params) => serde_json::to_value(params),
        Call::FilesUndo(params) => serde_json::to_value(params),
        Call::FilesChanges(params) => serde_json::to_value(params),
        Call::FilesDiff(params) => serde_json::to_value(params),
        other => panic!("{} is not about files", other.row().name),
    };
    params.unwrap()
}

/// The parameters of a call about contracts.
fn params_of_contracts(call: &Call) -> Value {
    match call {
        Call::RunTrace(params) => json(params),
        Call::ActorRecord(params) => json(params),
        other => panic!("{} is not about contracts", other.row().name),
    }
}
