//! The OpenAPI document, from the table's rows and the schemas of their types.

mod plain;

use crate::bytes::{BASE64, TEXT};
use crate::rest::{Endpoint, WAIT_SECONDS_MAX, WATCHING};
use holdfast_types::Terms;
use holdfast_wire::operations::{Bytes, Route};
use serde_json::{Map, Value, json};

/// What a reference in the schema document begins with, and what it begins with here.
const DEFS: &str = "#/$defs/";
const COMPONENTS: &str = "#/components/schemas/";

/// The document.
#[must_use]
pub fn document(schema: &Value, endpoints: &[Endpoint]) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in endpoints {
        let method = match endpoint.route {
            Route::Get(_) => "get",
            Route::Post(_) => "post",
            Route::Put(_) => "put",
            Route::Delete(_) => "delete",
            Route::Connection => continue,
        };
        let path = format!("/v1{}", endpoint.route.path().unwrap_or_default());
        let operation = operation(schema, endpoint);
        paths.entry(path).or_insert_with(|| json!({}))[method] = operation;
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Live sessions of this host. Every unsuccessful answer is an error with a code, a message \
                and a hint. `/v1/connect` is the whole protocol over WebSocket, see spec/protocol.md.",
        },
        "servers": [{ "url": "http://127.0.0.1:7433", "description": "A host that listens where it does by default" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": schema["$defs"],
        },
    });
    refer(&mut document);
    keep_reached(&mut document);
    plain::plain(&mut document);
    document
}

/// Leaves out what only connections speak: generators make a type of everything that is there, and stumble over some of it.
fn keep_reached(document: &mut Value) {
    let mut reached = std::collections::BTreeSet::new();
    let mut texts = vec![document["paths"].to_string()];
    while let Some(text) = texts.pop() {
        for part in text.split(COMPONENTS).skip(1) {
            let name = part.split('"').next().unwrap_or_default();
            if reached.insert(name.to_owned()) {
                texts.push(document["components"]["schemas"][name].to_string());
            }
        }
    }
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        schemas.retain(|name, _| reached.contains(name));
    }
}

fn operation(schema: &Value, endpoint: &Endpoint) -> Value {
    let row = endpoint.row;
    let declared = &schema["operations"][row.name];
    let params = resolved(schema, &declared["params"]);
    let path = endpoint.route.path().unwrap_or_default();
    let in_path: Vec<(&str, &str)> = names_in(path)
        .map(|name| (name, endpoint.renamed.filter(|(named, _)| *named == name).map_or(name, |(_, field)| field)))
        .collect();
    let empty = Map::new();
    let fields = params["properties"].as_object().unwrap_or(&empty);
    let required = |field: &str| params["required"].as_array().is_some_and(|all| all.iter().any(|one| one == field));
    let mut parameters: Vec<Value> =
        in_path.iter().map(|(name, field)| parameter(name, "path", true, &fields[*field])).collect();
    let rest = fields.iter().filter(|(field, _)| in_path.iter().all(|(_, taken)| taken != field));
    let is_in_body = matches!(endpoint.route, Route::Post(_) | Route::Put(_));
    let mut body = None;
    if is_in_body {
        let numbered = |field: &str| row.bytes == Bytes::Asked && matches!(field, "stream" | "seq");
        let must: Vec<&String> = rest.clone().map(|(f, _)| f).filter(|f| required(f) && !numbered(f)).collect();
        let mut properties: Map<String, Value> = rest.clone().map(|(f, of)| (f.clone(), of.clone())).collect();
        let mut object = json!({ "type": "object", "required": must, "additionalProperties": false });
        let mut content = Map::new();
        if row.bytes == Bytes::Asked {
            properties.insert(TEXT.into(), json!({ "type": "string", "description": "The bytes, as text." }));
            properties.insert(BASE64.into(), json!({ "type": "string", "description": "The exact bytes, instead of `text`.", "contentEncoding": "base64" }));
            object["oneOf"] = json!([{ "required": [TEXT] }, { "required": [BASE64] }]);
        }
        object["properties"] = Value::Object(properties);
        content.insert("application/json".into(), json!({ "schema": object }));
        body = Some(json!({ "required": !must.is_empty() || row.bytes == Bytes::Asked, "content": content }));
    } else {
        parameters.extend(rest.map(|(field, of)| parameter(field, "query", required(field), of)));
    }
    if fields.contains_key("wait_ms") {
        let seconds = json!({ "type": "number", "minimum": 0, "maximum": WAIT_SECONDS_MAX, "description": "Seconds to wait, instead of `wait_ms`." });
        parameters.push(parameter("wait", "query", false, &seconds));
    }
    let mut said = json!({
        "operationId": format!("{}{}", row.name.replace('.', "_"), if endpoint.renamed.is_some() { "_put" } else { "" }),
        "summary": row.doc,
        "tags": [row.name.split('.').next().unwrap_or_default()],
        "parameters": parameters,
        "responses": responses(declared, endpoint),
    });
    if let Some(needed) = needed(&row.terms) {
        said["description"] = needed.into();
    }
    if let Some(body) = body {
        said["requestBody"] = body;
    }
    said
}

/// What a token must carry for it, in a sentence.
fn needed(terms: &Terms) -> Option<String> {
    let rights: Vec<String> = terms.rights.iter().map(|right| format!("`{right}`")).collect();
    let (last, others) = rights.split_last()?;
    Some(match others {
        [] => format!("Needs the right {last}."),
        others => format!("Needs one of the rights {} and {last}.", others.join(", ")),
    })
}

fn responses(declared: &Value, endpoint: &Endpoint) -> Value {
    let mut answer = declared["answer"].clone();
    let mut content = Map::new();
    if endpoint.row.bytes == Bytes::Answered {
        let bytes = json!({
            "type": "object",
            "required": [TEXT, BASE64],
            "properties": {
                TEXT: { "type": "string", "description": "The bytes as text; invalid UTF-8 is replaced." },
                BASE64: { "type": "string", "description": "The exact bytes." },
            },
        });
        answer = json!({ "allOf": [answer, bytes] });
        content.insert("application/octet-stream".into(), json!({}));
    }
    if WATCHING.contains(&endpoint.row.name) {
        content.insert("text/event-stream".into(), json!({}));
    }
    content.insert("application/json".into(), json!({ "schema": answer }));
    let good = json!({ "description": endpoint.row.doc, "content": content });
    let error = json!({ "description": "The error.", "content": { "application/json": { "schema": { "$ref": format!("{DEFS}Fault") } } } });
    match endpoint.row.name {
        "session.new" | "token.new" => json!({ "201": good, "default": error }),
        "run.start" => json!({ "200": good, "201": good, "default": error }),
        _ => json!({ "200": good, "default": error }),
    }
}

fn parameter(name: &str, place: &str, required: bool, of: &Value) -> Value {
    let mut schema = of.clone();
    plain::without_null(&mut schema);
    let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
    let mut parameter = json!({ "name": name, "in": place, "required": required, "schema": schema });
    if let Some(description) = description {
        parameter["description"] = description;
    }
    parameter
}

/// The names in a path's braces.
pub fn names_in(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// What a schema stands for, if it is a reference.
pub fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let name = schema["$ref"].as_str().and_then(|to| to.strip_prefix(DEFS));
    name.map_or(schema, |name| &document["$defs"][name])
}

/// Lets references point to where the schemas are here.
fn refer(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(to) if name == "$ref" => *to = to.replacen(DEFS, COMPONENTS, 1),
                    other => refer(other),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(refer),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::endpoints;
    use holdfast_wire::OPERATIONS;

    fn document() -> Value {
        let schema = holdfast_wire::schema::document();
        super::document(&schema, &endpoints(&schema))
    }

    #[test]
    fn every_row_but_a_connections_is_there_with_its_doc_line() {
        let document = document();
        for row in OPERATIONS {
            let Some(path) = row.route.path() else { continue };
            let found = document["paths"][format!("/v1{path}")].as_object().into_iter().flatten();
            let found: Vec<_> = found.filter(|(_, said)| said["summary"] == row.doc).collect();
            assert_eq!(found.len(), 1, "{}", row.name);
            for name in names_in(path) {
                let parameters = found[0].1["parameters"].as_array().unwrap();
                assert!(parameters.iter().any(|p| p["name"] == name && p["in"] == "path"), "{}: {name}", row.name);
            }
        }
    }

    #[test]
    fn generators_find_what_they_understand() {
        fn look(value: &Value, at: &str) {
            let is_words = |choices: &[Value]| choices.iter().all(|choice| choice.get("const").is_some());
            assert!(!value["oneOf"].as_array().is_some_and(|choices| is_words(choices)), "{at}: {value}");
            match value {
                Value::Object(fields) => fields.iter().for_each(|(name, of)| look(of, &format!("{at}/{name}"))),
                Value::Array(all) => all.iter().for_each(|one| look(one, at)),
                _ => {}
            }
        }
        let document = document();
        look(&document, "");
        assert!(document["servers"][0]["url"].is_string());
        let operations =
            document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
        let parameters = operations.flat_map(|operation| operation["parameters"].as_array().unwrap());
        let in_paths: Vec<&Value> = parameters.filter(|parameter| parameter["in"] == "path").collect();
        assert!(in_paths.len() > 20 && in_paths.iter().all(|one| !one["schema"].to_string().contains("null")));
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document();
        let text = document.to_string();
        let mut seen = 0;
        for part in text.split(COMPONENTS).skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
            seen += 1;
        }
        assert!(seen > 50 && !text.contains(DEFS), "{seen}");
        // What only a connection speaks is not there.
        let schemas = &document["components"]["schemas"];
        assert!(schemas.get("SessionView").is_some() && schemas.get("ArriveStep").is_none());
    }
}
