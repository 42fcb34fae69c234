//! One valid call of each operation about questions, approvals and the policy.

use holdfast_wire::Call;
use holdfast_wire::flows::*;
use holdfast_wire::gate::{ApprovalAnswerParams, ApprovalId, ApprovalListParams, ApprovalParams, MayParams};
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

pub fn calls_about_flows() -> Vec<Call> {
    let flow = || "A-1".to_owned();
    vec![
        // Neither a definition nor a name: refused before a service is started for it.
        Call::FlowStart(FlowStartParams { flow: Some(flow()), ..FlowStartParams::default() }),
        Call::FlowList(FlowListParams { all: true, ..FlowListParams::default() }),
        Call::FlowGet(FlowGetParams { flow: flow(), ..FlowGetParams::default() }),
        Call::FlowSignal(FlowSignalParams { flow: flow(), name: "go".into(), ..FlowSignalParams::default() }),
        Call::FlowAnswer(FlowAnswerParams { flow: flow(), text: "yes".into(), step: None }),
        Call::FlowCancel(FlowCancelParams { flow: flow(), reason: String::new() }),
        Call::FlowRetry(FlowRetryParams { flow: flow(), ..FlowRetryParams::default() }),
    ]
}

pub fn calls_about_the_gate(session: &str) -> Vec<Call> {
    let approval = ApprovalId::from_random_bits(1);
    vec![
        Call::ApprovalAnswer(ApprovalAnswerParams {
            approval,
            seen: holdfast_types::Hash([1; 32]),
            approve: true,
            reason: None,
            minutes: None,
            proof: None,
        }),
        Call::ApprovalGet(ApprovalParams { approval, wait_ms: 0 }),
        Call::ApprovalList(ApprovalListParams { session: Some(session.to_owned()), all: true }),
        Call::PolicyGet(Nothing {}),
        Call::PolicyMay(MayParams { command: "rm".into(), ..MayParams::default() }),
    ]
}
