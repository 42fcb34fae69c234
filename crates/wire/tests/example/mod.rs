//! The least value that fits a schema: what must be there, and of a choice the first.

use holdfast_types::{Actor, ActorId};
use serde_json::{Map, Value, json};

/// Texts that have a form of their own, by the name of their type.
const TEXTS: &[(&str, &str)] = &[
    ("ActorId", "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"),
    ("Handle", "agent:bot"),
    ("Nonce", "018bcfe5680000000000000000000000"),
    ("QuestionId", "que_00000000000000000000000001"),
    ("ApprovalId", "apr_00000000000000000000000001"),
    ("Rights", "observe"),
    ("RunId", "run_00000000000000000000000001"),
    ("RunRef", "build-7"),
    ("SessionId", "ses_00000000000000000000000001"),
    ("SessionName", "work"),
    ("Size", "80x24"),
];

/// Somebody.
pub fn actor() -> Actor {
    Actor { id: ActorId([1; 32]), handle: "agent:bot".parse().unwrap() }
}

/// The least value of a schema of this document.
pub fn minimal(document: &Value, schema: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return match TEXTS.iter().find(|(of, _)| *of == name) {
            Some((_, text)) => json!(text),
            None if name == "Signature" => json!("ab".repeat(64)),
            None if name == "Hash" => json!("cd".repeat(32)),
            None => minimal(document, &document["$defs"][name]),
        };
    }
    if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return value.clone();
    }
    let kind = if schema["type"].is_array() { &schema["type"][0] } else { &schema["type"] };
    let choice = schema["oneOf"].get(0).or_else(|| schema["anyOf"].get(0)).map(|first| minimal(document, first));
    match (kind.as_str(), choice) {
        (Some("object"), choice) => {
            let mut object = Map::new();
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                object.insert(name.to_owned(), minimal(document, &schema["properties"][name]));
            }
            if let Some(Value::Object(more)) = choice {
                object.extend(more);
            }
            Value::Object(object)
        }
        (_, Some(choice)) => choice,
        (Some("array"), None) => {
            schema["prefixItems"].as_array().into_iter().flatten().map(|item| minimal(document, item)).collect()
        }
        (Some("integer" | "number"), None) => schema.get("minimum").cloned().unwrap_or(json!(0)),
        (Some("boolean"), None) => json!(false),
        (Some("string"), None) => json!("work"),
        (Some("null") | None, None) => Value::Null,
        (Some(other), None) => panic!("no example of type {other}"),
    }
}
