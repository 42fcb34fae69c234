//! Values in the text of a shell command: always one word, whatever they contain.

use serde_json::Value;

/// A word as every shell takes it for what it is.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    // Neither a quote nor a backslash stands inside quotes: fish reads both differently there.
    let mut out = String::from("'");
    for c in word.chars() {
        match c {
            '\'' => out.push_str(r"'\''"),
            '\\' => out.push_str(r"'\\'"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// A step's value as text: of a run its output without the last line's end, of anything else what it says.
#[must_use]
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(fields) => match fields.get("output").or_else(|| fields.get("answer")) {
            Some(Value::String(text)) => text.trim_end_matches(['\r', '\n']).to_owned(),
            // A run that printed nothing.
            None if fields.contains_key("state") => String::new(),
            Some(_) | None => value.to_string(),
        },
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => value.to_string(),
    }
}

/// An undo's command with the output of the step that it undoes in place of `{{ output }}`.
#[must_use]
pub fn fill_output(command: &str, value: &Value) -> String {
    let mut out = String::new();
    let mut rest = command;
    while let Some((before, behind)) = rest.split_once("{{") {
        let Some((name, after)) = behind.split_once("}}") else { break };
        out.push_str(before);
        match name.trim() {
            "output" => out.push_str(&quoted(&text_of(value))),
            _ => out.push_str(&format!("{{{{{name}}}}}")),
        }
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_undo_gets_the_output_as_one_word() {
        let value = json!({"output": "ORDER 1; rm -rf /\r\n"});
        assert_eq!(fill_output("cancel {{ output }} -v", &value), "cancel 'ORDER 1; rm -rf /' -v");
        assert_eq!(fill_output("cancel {{other}} {{ open", &value), "cancel {{other}} {{ open");
        assert_eq!(fill_output("cancel", &value), "cancel");
    }
}
