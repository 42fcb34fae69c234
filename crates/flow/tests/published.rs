//! What is published of YAML flows: the schema and the examples.
#![allow(clippy::unwrap_used)] // a test's failure is its message

use holdfast_flow::yaml::{KEYS, parse};
use serde_json::Value;
use std::collections::BTreeSet;

const SCHEMA: &str = include_str!("../../../spec/flow.schema.json");
const PIZZA: &str = include_str!("../../../examples/pizza-order.yaml");

#[test]
fn the_schema_has_the_keys_that_the_reader_knows() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    for (kind, keys) in KEYS {
        let object = if *kind == "flow" { &schema } else { &schema["$defs"][kind] };
        let published: BTreeSet<&str> = object["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(published, keys.iter().copied().collect(), "{kind}");
        assert_eq!(object["additionalProperties"], false, "{kind}");
    }
    let kinds: BTreeSet<String> = schema["$defs"]["step"]["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["$ref"].as_str().unwrap().replace("#/$defs/", ""))
        .collect();
    assert_eq!(kinds, KEYS[1..].iter().map(|(kind, _)| (*kind).to_owned()).collect());
}

#[test]
fn the_example_reads() {
    let pizza = parse(PIZZA).unwrap();
    let names: Vec<&str> = pizza.steps.iter().map(|step| step.name()).collect();
    assert_eq!(pizza.name, "PizzaOrder");
    assert_eq!(names, ["TakeOrder", "PreparePizza", "Timer", "DeliverPizza", "SendReceipt"]);
}
