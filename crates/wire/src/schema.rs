//! The tables of operations and events, and the error codes, as one JSON Schema document: what clients in other languages
//! take their types from. `spec/schema.json` is this, written down.

use crate::fault::{Code, Fault};
use crate::{events, operations};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The document.
#[must_use]
pub fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let operations: Map<String, Value> = operations::schemas(&mut generator)
        .into_iter()
        .map(|(row, params, answer)| {
            let terms = row.terms;
            let right = (!terms.rights.is_empty()).then(|| terms.rights.to_string());
            let told = json!({
                "doc": row.doc,
                "who": terms.who,
                "right": right,
                "turn": terms.turn,
                "trace": terms.trace,
                "params": params,
                "answer": answer,
                "bytes": row.bytes,
            });
            (row.name.into(), told)
        })
        .collect();
    let events: Map<String, Value> = events::schemas(&mut generator)
        .into_iter()
        .map(|(row, params)| (row.name.into(), json!({ "doc": row.doc, "params": params })))
        .collect();
    let (error, code) = (generator.subschema_for::<Fault>(), generator.subschema_for::<Code>());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The protocol between clients and a Holdfast host, version 1",
        "operations": operations,
        "events": events,
        "error": error,
        "code": code,
        "$defs": generator.take_definitions(true),
    })
}
