//! The tools: what each is called, takes and gives.

mod ask_human;
mod end;
mod files;
mod flows;
mod graph;
mod interrupt;
mod may;
mod overview;
mod read;
mod run;
mod runs;
mod sessions;
mod state;
mod turn;
mod views;
mod wait;
mod write;

use crate::desk::Desk;
use crate::host::Host;
use crate::trouble::Trouble;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::future::Future;
use std::sync::{Arc, LazyLock};

/// A tool's effect, as clients see it.
pub(crate) struct Hints {
    /// It only looks.
    reads: bool,
    /// It may undo or end something.
    destroys: bool,
    /// Doing it twice is doing it once.
    once: bool,
    /// What it starts may reach anywhere.
    open: bool,
}

/// Looks.
const LOOKS: Hints = Hints { reads: true, destroys: false, once: true, open: false };
/// Whatever a shell can do.
const ANYTHING: Hints = Hints { reads: false, destroys: true, once: false, open: true };

/// An answer that can be read.
pub(crate) trait Shown {
    /// A short text of what the structured content says.
    fn text(&self) -> String;
}

/// A tool.
pub(crate) trait Operate {
    /// What it is called.
    const NAME: &'static str;
    /// What people are shown.
    const TITLE: &'static str;
    /// What it does, for who decides whether to use it.
    const DESCRIPTION: &'static str;
    /// What it does to the world.
    const HINTS: Hints;
    /// What it takes.
    type In: DeserializeOwned + JsonSchema + Send;
    /// What it gives.
    type Out: Serialize + JsonSchema + Shown + Send;

    /// Does it.
    fn call<H: Host>(desk: &Desk<H>, input: Self::In) -> impl Future<Output = Result<Self::Out, Trouble>> + Send;
}

macro_rules! tools {
    ($($tool:ty),* $(,)?) => {
        /// Every tool, as clients see it.
        #[must_use]
        pub fn listing() -> Vec<Tool> {
            vec![$(described::<$tool>()),*]
        }

        /// Calls a tool by its name; none where there is no such tool.
        pub(crate) async fn call<H: Host>(name: &str, desk: &Desk<H>, arguments: JsonObject) -> Option<CallToolResult> {
            match today(name) {
                $(<$tool as Operate>::NAME => Some(perform::<$tool, H>(desk, arguments).await),)*
                _ => None,
            }
        }
    };
}

tools! {
    run::Run,
    wait::Wait,
    read::Read,
    write::Write,
    state::State,
    interrupt::Interrupt,
    overview::Overview,
    runs::Runs,
    sessions::Sessions,
    sessions::Open,
    end::End,
    turn::Turn,
    files::List,
    files::Read,
    files::Write,
    files::Edit,
    ask_human::AskHuman,
    may::May,
    graph::Graph,
    graph::Ports,
    flows::Start,
    flows::Status,
    flows::Signal,
}

/// Today's name of a tool. Names that clients have for tools of their own were given up; who knows the old ones is served.
pub(crate) fn today(name: &str) -> &str {
    match name {
        "run" => "run_command",
        "wait" => "wait_for",
        "read" => "read_output",
        "write" => "send_input",
        "state" => "session_state",
        "open" => "open_session",
        other => other,
    }
}

/// Whether a tool is about flows.
pub(crate) fn is_about_flows(name: &str) -> bool {
    matches!(name, "start_flow" | "flow_status" | "signal_flow")
}

/// The same, made once.
pub(crate) fn served() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(listing);
    &TOOLS
}

/// A graph as the tool `graph` answers it, as JSON.
pub(crate) fn graph_json(answer: &holdfast_wire::graphs::GraphAnswer) -> String {
    serde_json::to_string_pretty(&graph::shown(answer)).unwrap_or_default()
}

async fn perform<T: Operate, H: Host>(desk: &Desk<H>, mut arguments: JsonObject) -> CallToolResult {
    // Models fill in what they do not need.
    arguments.retain(|_, value| value.as_str() != Some("") && !value.is_null());
    let input: T::In = match serde_json::from_value(Value::Object(arguments)) {
        Ok(input) => input,
        Err(error) => return Trouble::bad(format!("{}: {error}", T::NAME)).answer(),
    };
    match T::call(desk, input).await {
        Ok(out) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(out.text())]);
            result.structured_content = serde_json::to_value(&out).ok();
            result
        }
        Err(trouble) => trouble.answer(),
    }
}

fn described<T: Operate>() -> Tool {
    let Hints { reads, destroys, once, open } = T::HINTS;
    let annotations =
        ToolAnnotations::with_title(T::TITLE).read_only(reads).destructive(destroys).idempotent(once).open_world(open);
    Tool::new(T::NAME, T::DESCRIPTION, Arc::new(schema_of::<T::In>(Contract::Deserialize)))
        .with_title(T::TITLE)
        .with_raw_output_schema(Arc::new(or_error(schema_of::<T::Out>(Contract::Serialize))))
        .with_annotations(annotations)
}

/// A type's schema as one object, without references that some clients do not follow.
fn schema_of<T: JsonSchema>(contract: Contract) -> JsonObject {
    let is_answer = contract == Contract::Serialize;
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        settings.contract = contract;
    });
    let schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    let mut object = match schema.to_value() {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    };
    object.remove("title");
    object.remove("description");
    if is_answer {
        // Tokens that nobody reads: an answer's text says what its fields mean.
        object.values_mut().for_each(undescribed);
    }
    object.values_mut().for_each(plainer);
    object.entry("type").or_insert_with(|| json!("object"));
    object.entry("properties").or_insert_with(|| json!({}));
    object
}

/// Takes descriptions of properties away.
fn undescribed(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("description").is_some_and(Value::is_string) {
                object.remove("description");
            }
            if object.get("minimum").is_some_and(Value::is_number) {
                object.remove("minimum");
            }
            object.values_mut().for_each(undescribed);
        }
        Value::Array(all) => all.iter_mut().for_each(undescribed),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Makes a schema one that also simple readers take: one type each, and no formats of Rust's. What may be left out is never null
/// in our answers, and null counts as left out in what we are asked.
fn plainer(schema: &mut Value) {
    let is_null = |value: &Value| value["type"] == "null";
    if let Some(Value::Array(any)) = schema.get_mut("anyOf")
        && any.iter().any(is_null)
    {
        any.retain(|one| !is_null(one));
        if let [Value::Object(one)] = any.as_slice() {
            let one = one.clone();
            if let Value::Object(object) = &mut *schema {
                object.remove("anyOf");
                for (key, value) in one {
                    object.entry(key).or_insert(value);
                }
            }
        }
    }
    match schema {
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|one| one != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    object.insert("type".into(), one);
                }
            }
            if object.get("format").and_then(Value::as_str).is_some_and(|format| format.contains("int")) {
                object.remove("format");
            }
            if object.get("default") == Some(&Value::Null) {
                object.remove("default");
            }
            object.values_mut().for_each(plainer);
        }
        Value::Array(all) => all.iter_mut().for_each(plainer),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A tool that fails answers with `error` alone: clients that check answers check those too.
fn or_error(mut schema: JsonObject) -> JsonObject {
    let required = schema.remove("required").unwrap_or_else(|| json!([]));
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let text = json!({ "type": "string" });
        // What else an error has is in its text too.
        let error = json!({ "type": "object", "properties": { "code": text, "message": text }, "required": ["code"] });
        properties.insert("error".into(), error);
    }
    schema.insert("anyOf".into(), json!([{ "required": required }, { "required": ["error"] }]));
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_teaches_and_says_what_it_takes_and_gives() {
        let tools = listing();
        assert!(tools.len() >= 10);
        for tool in &tools {
            assert!(tool.description.as_ref().is_some_and(|text| text.len() > 60), "{}", tool.name);
            let input = &tool.input_schema;
            assert_eq!(input["type"], "object", "{}", tool.name);
            for (name, property) in input["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{}.{name}", tool.name);
            }
            let output = tool.output_schema.as_ref().unwrap();
            assert_eq!(output["type"], "object", "{}", tool.name);
            assert!(output["properties"]["error"]["properties"]["code"].is_object(), "{}", tool.name);
            let text = serde_json::to_string(&tool).unwrap();
            for odd in ["$ref", "null", "uint"] {
                assert!(!text.contains(odd), "{odd}: {text}");
            }
            let hints = tool.annotations.as_ref().unwrap();
            assert!(hints.read_only_hint.is_some() && hints.open_world_hint.is_some());
            assert!(!(hints.read_only_hint == Some(true) && hints.destructive_hint == Some(true)));
        }
    }

    /// Clients put all of it before every conversation.
    #[test]
    fn the_list_of_tools_is_short_and_each_says_what_it_does_in_its_first_words() {
        let mut tools = listing();
        let all = serde_json::to_string(&tools).unwrap().len();
        assert!(all <= 35_100, "{all} bytes with the tools for flows, which are listed where there are flows");
        tools.retain(|tool| !is_about_flows(&tool.name));
        let bytes = serde_json::to_string(&tools).unwrap().len();
        // 28,660 bytes of it were 6,974 tokens of o200k and 6,999 of Claude's tokenizer: a little over four bytes each.
        assert!(bytes <= 32_600, "{bytes} bytes are more than 7,960 tokens, of 8,000");
        for tool in &tools {
            let text = tool.description.as_deref().unwrap_or_default();
            let first: usize = text.find(['.', ':']).unwrap_or(text.len());
            assert!(first <= 150, "{}: {text}", tool.name);
        }
    }

    #[test]
    fn names_of_before_are_served_and_not_listed() {
        let names: Vec<String> = listing().iter().map(|tool| tool.name.to_string()).collect();
        for old in ["run", "wait", "read", "write", "state", "open"] {
            assert!(names.contains(&today(old).to_owned()) && !names.contains(&old.to_owned()), "{old}");
        }
    }
}
