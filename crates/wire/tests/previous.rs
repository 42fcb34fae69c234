//! A client and a host, one of them of the version before, understand each other: whatever that version's protocol has is in today's, and
//! neither side needs a field that the other may leave out.
#![allow(clippy::unwrap_used)] // a test's failure is its message

use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Two documents, and where they part.
struct Pair<'a> {
    old: &'a Value,
    new: &'a Value,
    /// Definitions that were compared, or are being compared above.
    seen: BTreeSet<(String, String)>,
}

fn words(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Array(all) => {
            all.iter().map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect()
        }
        Value::Null => BTreeSet::new(),
        one => BTreeSet::from([one.as_str().map_or_else(|| one.to_string(), str::to_owned)]),
    }
}

fn variants(schema: &Value) -> Option<&Vec<Value>> {
    schema["oneOf"].as_array().or(schema["anyOf"].as_array())
}

impl<'a> Pair<'a> {
    fn resolved(doc: &'a Value, schema: &'a Value) -> (&'a Value, String) {
        match schema["$ref"].as_str() {
            Some(to) => (doc.pointer(to.trim_start_matches('#')).unwrap(), to.to_owned()),
            None => (schema, String::new()),
        }
    }

    fn compare(&mut self, old: &'a Value, new: &'a Value, at: &str, problems: &mut Vec<String>) {
        let ((old, from), (new, to)) = (Self::resolved(self.old, old), Self::resolved(self.new, new));
        if !from.is_empty() && !self.seen.insert((from, to)) {
            return;
        }
        if words(&old["type"]) != words(&new["type"]) {
            problems.push(format!("{at}: was {}, is {}", old["type"], new["type"]));
        }
        if old["const"] != new["const"] {
            problems.push(format!("{at}: was {}, is {}", old["const"], new["const"]));
        }
        for word in words(&old["enum"]).difference(&words(&new["enum"])) {
            problems.push(format!("{at}: {word} is gone"));
        }
        for field in words(&old["required"]).symmetric_difference(&words(&new["required"])) {
            problems.push(format!("{at}.{field}: must be there for one of the two versions only"));
        }
        for (name, field) in old["properties"].as_object().into_iter().flatten() {
            match new["properties"].get(name) {
                Some(now) => self.compare(field, now, &format!("{at}.{name}"), problems),
                None => problems.push(format!("{at}.{name}: is gone")),
            }
        }
        for part in ["items", "additionalProperties"] {
            if old[part].is_object() {
                self.compare(&old[part], &new[part], &format!("{at}[]"), problems);
            }
        }
        for (i, variant) in variants(old).into_iter().flatten().enumerate() {
            let fits = |now: &'a Value| {
                let mut found = vec![];
                // A definition that is being compared above must be looked at again here, and no deeper.
                let mut pair = Pair { old: self.old, new: self.new, seen: self.seen.clone() };
                pair.compare(variant, now, at, &mut found);
                found.is_empty()
            };
            if !variants(new).into_iter().flatten().any(fits) {
                problems.push(format!("{at}: variant {i} ({variant}) is gone"));
            }
        }
    }
}

/// What a client or a host of the one version would not understand of the other.
fn differences(old: &Value, new: &Value) -> Vec<String> {
    let mut problems = vec![];
    let mut pair = Pair { old, new, seen: BTreeSet::new() };
    for (kind, parts) in [("operations", &["params", "answer"][..]), ("events", &["params"])] {
        for (name, row) in old[kind].as_object().into_iter().flatten() {
            let Some(now) = new[kind].get(name) else {
                problems.push(format!("{name}: is gone"));
                continue;
            };
            for part in parts {
                pair.compare(&row[*part], &now[*part], &format!("{name} {part}"), &mut problems);
            }
            if row["bytes"] != now["bytes"] {
                problems.push(format!("{name}: bytes were {}, are {}", row["bytes"], now["bytes"]));
            }
        }
    }
    pair.compare(&old["error"], &new["error"], "error", &mut problems);
    pair.compare(&old["code"], &new["code"], "code", &mut problems);
    problems
}

#[test]
fn whatever_the_version_before_speaks_is_understood_both_ways() {
    let old: Value = serde_json::from_str(include_str!("../../../tests/previous/schema.json")).unwrap();
    assert!(old["operations"].as_object().unwrap().len() > 50, "the fixture is whole");
    let found = differences(&old, &holdfast_wire::schema::document());
    assert!(
        found.is_empty(),
        "a client or a host of the version before would not understand this:\n{}\nmake new fields optional, keep old ones, or speak another protocol version",
        found.join("\n")
    );
}

#[test]
fn a_field_that_only_one_version_needs_is_found() {
    let doc = |definition: Value| {
        json!({
            "operations": { "a": { "params": { "$ref": "#/$defs/A" }, "answer": { "type": "null" }, "bytes": "none" } },
            "events": {}, "error": {}, "code": { "oneOf": [{ "const": "x" }] }, "$defs": { "A": definition },
        })
    };
    let field = |kind: &str, required: Value| json!({ "type": "object", "properties": { "f": { "type": kind } }, "required": required });
    let old = doc(field("string", json!(["f"])));
    assert_eq!(differences(&old, &old), [""; 0]);
    assert_eq!(differences(&old, &doc(field("string", json!([])))).len(), 1, "today's client may leave it out");
    assert_eq!(differences(&doc(field("string", json!([]))), &old).len(), 1, "yesterday's client may leave it out");
    assert_eq!(differences(&old, &doc(field("integer", json!(["f"])))), ["a params.f: was \"string\", is \"integer\""]);
    assert_eq!(differences(&old, &doc(json!({ "type": "object", "required": ["f"] }))), ["a params.f: is gone"]);
    let mut more = old.clone();
    more["operations"]["b"] = old["operations"]["a"].clone();
    more["code"]["oneOf"].as_array_mut().unwrap().push(json!({ "const": "y" }));
    more["$defs"]["A"]["properties"]["g"] = json!({ "type": "string" });
    assert_eq!(differences(&old, &more), [""; 0], "what is new and can be left out is no difference");
    assert_eq!(differences(&more, &old).len(), 3);
}
