//! The document as generators of clients understand it: what JSON Schema can say in several ways is said in the one that all of them
//! read, and means the same.

use serde_json::{Map, Value, json};

/// Rewrites every schema in the document.
pub fn plain(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.values_mut().for_each(plain);
            enumerate(object);
            let required = object.get("required").cloned().unwrap_or_default();
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                properties.iter_mut().for_each(|(name, of)| optional(name, of, &required));
            }
        }
        Value::Array(all) => all.iter_mut().for_each(plain),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A choice between constants is an `enum`; what each means is told in its description.
fn enumerate(object: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = object.get("oneOf") else { return };
    let words: Vec<Value> = choices.iter().filter_map(words_of).flatten().collect();
    if choices.is_empty() || choices.iter().any(|choice| words_of(choice).is_none()) {
        return;
    }
    let told = choices.iter().filter_map(|choice| {
        let (word, means) = (choice.get("const")?.as_str()?, choice.get("description")?.as_str()?);
        Some(format!("`{word}`: {means}"))
    });
    let description = object.get("description").and_then(Value::as_str).map(str::to_owned);
    let lines: Vec<String> = description.into_iter().chain(told).collect();
    object.remove("oneOf");
    object.insert("type".into(), json!("string"));
    object.insert("enum".into(), Value::Array(words));
    if !lines.is_empty() {
        object.insert("description".into(), lines.join("\n").into());
    }
}

/// The constants that a schema allows, where it allows nothing else.
fn words_of(schema: &Value) -> Option<Vec<Value>> {
    let word = schema.get("const").filter(|word| word.is_string());
    word.map(|word| vec![word.clone()]).or_else(|| schema.get("enum")?.as_array().cloned())
}

/// A property that may be left out has no `default`: some generators take that for a value that is always there.
fn optional(name: &str, of: &mut Value, required: &Value) {
    let is_required = required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let Some(object) = of.as_object_mut().filter(|_| !is_required) else { return };
    let Some(default) = object.remove("default") else { return };
    if default.is_number() || default.is_string() || default == true {
        let description = object.get("description").and_then(Value::as_str).unwrap_or_default();
        object.insert("description".into(), format!("{description} Default: {default}.").trim_start().into());
    }
}

/// A value that stands in an address is never null.
pub fn without_null(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|one| one != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            object.insert("type".into(), one);
        }
    }
    if let Some(Value::Array(any)) = object.get_mut("anyOf") {
        any.retain(|one| one["type"] != "null");
        if let [one] = any.as_slice() {
            let one = one.clone();
            object.remove("anyOf");
            for (key, value) in one.as_object().into_iter().flatten() {
                object.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    if object.get("default") == Some(&Value::Null) {
        object.remove("default");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_an_enum_and_other_choices_stay() {
        let mut words = json!({ "description": "How.", "oneOf": [
            { "type": "string", "const": "a", "description": "First." }, { "type": "string", "enum": ["b", "c"] }] });
        plain(&mut words);
        assert_eq!(words, json!({ "type": "string", "enum": ["a", "b", "c"], "description": "How.\n`a`: First." }));
        let mixed = json!({ "oneOf": [{ "const": "a" }, { "type": "object" }] });
        let mut same = mixed.clone();
        plain(&mut same);
        assert_eq!(same, mixed);
    }

    #[test]
    fn what_may_be_left_out_has_no_default() {
        let of = |default: Value| json!({ "type": "integer", "description": "So many.", "default": default });
        let mut object = json!({ "required": ["must"], "properties": { "may": of(json!(7)), "must": of(json!(7)), "no": of(json!(null)) } });
        plain(&mut object);
        assert_eq!(object["properties"]["may"], json!({ "type": "integer", "description": "So many. Default: 7." }));
        assert_eq!(object["properties"]["must"], of(json!(7)));
        assert_eq!(object["properties"]["no"], json!({ "type": "integer", "description": "So many." }));
    }

    #[test]
    fn an_address_has_no_null() {
        for mut schema in [
            json!({ "type": ["string", "null"], "default": null }),
            json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }),
        ] {
            without_null(&mut schema);
            assert_eq!(schema, json!({ "type": "string" }));
        }
    }
}
