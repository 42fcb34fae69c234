//! Calls of [`operators_table`](crate::operators_table) that are about no terminal.

use holdfast_types::{Actor, Signature};
use holdfast_wire::Call;
use holdfast_wire::devices::{DeviceParams, InviteAcceptParams, InviteNewParams, InviteParams, RelayParams};
use holdfast_wire::params::Nothing;
use holdfast_wire::questions::*;

pub fn calls_about_questions(session: &str) -> Vec<Call> {
    let question = QuestionId::from_random_bits(1);
    let (session, text) = (session.to_owned(), "why?".to_owned());
    vec![
        Call::QuestionAsk(QuestionAskParams { session: session.clone(), text, ..QuestionAskParams::default() }),
        Call::QuestionGet(QuestionParams { question, wait_ms: 0 }),
        Call::QuestionList(QuestionListParams { session: Some(session), all: true }),
        Call::QuestionAnswer(QuestionAnswerParams {
            question,
            seen: holdfast_types::Hash([1; 32]),
            text: Some("so".into()),
            option: None,
            proof: None,
        }),
        Call::QuestionWithdraw(QuestionWithdrawParams { question }),
    ]
}

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
