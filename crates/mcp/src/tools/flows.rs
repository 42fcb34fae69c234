//! `start_flow`, `flow_status` and `signal_flow`: durable flows.

use super::{ANYTHING, Hints, LOOKS, Operate, Shown};
use crate::desk::Desk;
use crate::host::Host;
use crate::trouble::Trouble;
use holdfast_wire::flows::{FlowGetParams, FlowListParams, FlowSignalParams, FlowStartParams, FlowView};
use holdfast_wire::operations::op;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What to start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartIn {
    /// YAML: `flow: NAME` and `steps:`.
    #[serde(default)]
    definition: Option<String>,
    /// Or the name of a flow in code.
    #[serde(default)]
    name: Option<String>,
    /// Text.
    #[serde(default)]
    input: Option<String>,
    /// Same id: same flow.
    #[serde(default)]
    id: Option<String>,
}

/// Which flow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusIn {
    /// Flow id. Omitted: all open ones.
    #[serde(default)]
    flow: Option<String>,
    /// Wait this long for a change.
    #[serde(default)]
    wait_ms: Option<u64>,
}

/// A signal.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalIn {
    /// Flow id.
    flow: String,
    /// Signal name.
    name: String,
    /// Text.
    #[serde(default)]
    value: Option<String>,
}

/// What flows do.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FlowsOut {
    flows: Vec<String>,
}

impl Shown for FlowsOut {
    fn text(&self) -> String {
        if self.flows.is_empty() { "no open flows".to_owned() } else { self.flows.join("\n") }
    }
}

fn shown(flow: &FlowView) -> String {
    let mut text = format!("{} {}", flow.id, flow.status);
    let given = flow.value.as_ref().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    for more in given.iter().chain(&flow.why) {
        text.push_str(&format!(": {more}"));
    }
    for one in &flow.waits_for {
        if let Some(question) = &one.question {
            text.push_str(&format!("; asks the humans: {question}"));
        }
        for (word, what) in [("in session", &one.session), ("child", &one.flow), ("held up", &one.held_up)] {
            if let Some(what) = what {
                text.push_str(&format!("; {} {word} {what}", one.name));
            }
        }
    }
    text
}

fn one(flow: &FlowView) -> FlowsOut {
    FlowsOut { flows: vec![shown(flow)] }
}

/// The tool.
pub struct Start;

impl Operate for Start {
    const NAME: &'static str = "start_flow";
    const TITLE: &'static str = "Start a flow";
    const DESCRIPTION: &'static str =
        "Starts a durable flow: recorded steps over hours or days that survive crashes. It acts as you.";
    const HINTS: Hints = ANYTHING;
    type In = StartIn;
    type Out = FlowsOut;

    async fn call<H: Host>(desk: &Desk<H>, input: StartIn) -> Result<FlowsOut, Trouble> {
        let StartIn { definition, name, input, id } = input;
        let input = input.map(Value::String);
        let params = FlowStartParams { definition, name, flow: id, input, ..FlowStartParams::default() };
        Ok(one(&desk.ask::<op::FlowStart>(params).await?))
    }
}

/// The tool.
pub struct Status;

impl Operate for Status {
    const NAME: &'static str = "flow_status";
    const TITLE: &'static str = "Look at flows";
    const DESCRIPTION: &'static str = "Shows what a flow or all open ones wait for, and what they gave.";
    const HINTS: Hints = LOOKS;
    type In = StatusIn;
    type Out = FlowsOut;

    async fn call<H: Host>(desk: &Desk<H>, input: StatusIn) -> Result<FlowsOut, Trouble> {
        let Some(flow) = input.flow else {
            let flows = desk.ask::<op::FlowList>(FlowListParams::default()).await?;
            return Ok(FlowsOut { flows: flows.iter().map(shown).collect() });
        };
        let now = desk.ask::<op::FlowGet>(FlowGetParams { flow: flow.clone(), ..FlowGetParams::default() }).await?;
        let wait_ms = input.wait_ms.unwrap_or(0);
        if wait_ms == 0 {
            return Ok(one(&now));
        }
        let params = FlowGetParams { flow, after: now.events, wait_ms, generation: Some(now.generation) };
        Ok(one(&desk.ask::<op::FlowGet>(params).await?))
    }
}

/// The tool.
pub struct Signal;

impl Operate for Signal {
    const NAME: &'static str = "signal_flow";
    const TITLE: &'static str = "Signal a flow";
    const DESCRIPTION: &'static str = "Sends a signal to a flow of yours; one that comes early is kept for it.";
    const HINTS: Hints = Hints { reads: false, destroys: false, once: false, open: false };
    type In = SignalIn;
    type Out = FlowsOut;

    async fn call<H: Host>(desk: &Desk<H>, input: SignalIn) -> Result<FlowsOut, Trouble> {
        let SignalIn { flow, name, value } = input;
        let params = FlowSignalParams { flow, name, value: value.map(Value::String), id: String::new() };
        Ok(one(&desk.ask::<op::FlowSignal>(params).await?))
    }
}
