//! `{{ NAME }}` in a command: the value of an earlier step, or of the input, as one word of the shell.
//!
//! A value is quoted when it is put in, so it stands outside the command's own quotes: inside them a value from outside could
//! become a command.

use super::{Problem, problem};
use crate::shell::{quoted, text_of};
use serde_json::Value;

/// Pieces of a text: as they are, or a name that stands for a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    Name(String),
}

/// Splits a text into its pieces; what opens and does not close is refused.
pub fn pieces(text: &str, line: usize) -> Result<Vec<Piece>, Problem> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        let Some((name, after)) = behind.split_once("}}") else {
            return problem(line, "`{{` without `}}`", "close it: {{ NAME }}");
        };
        pieces.push(Piece::Text(before.to_owned()));
        pieces.push(Piece::Name(name.trim().to_owned()));
        rest = after;
    }
    pieces.push(Piece::Text(rest.to_owned()));
    Ok(pieces)
}

/// The names in a command, each of which must stand outside quotes.
pub fn names_in_command(text: &str, line: usize) -> Result<Vec<String>, Problem> {
    let pieces = pieces(text, line)?;
    let names: Vec<String> = pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Name(name) => Some(name.clone()),
            Piece::Text(_) => None,
        })
        .collect();
    let hint = |name: &str| format!("write {{{{ {name} }}}} outside quotes: it is quoted when it is put in");
    if let Some(name) = names.first().filter(|_| text.contains("<<") || text.contains('`')) {
        let message = format!("{{{{ {name} }}}} cannot stand in a command with `<<` or backquotes");
        return problem(line, message, "write the command to a script and pass the value as its argument");
    }
    let mut quote = None;
    for piece in &pieces {
        match piece {
            Piece::Name(name) if quote.is_some() => {
                return problem(line, format!("{{{{ {name} }}}} is inside quotes"), hint(name));
            }
            Piece::Name(_) => {}
            Piece::Text(text) => {
                let mut chars = text.chars();
                while let Some(c) = chars.next() {
                    match (quote, c) {
                        (None | Some('"'), '\\') if chars.next().is_none() => {
                            return problem(line, "a backslash before `{{`", "remove it");
                        }
                        (None | Some('"'), '\\') => {}
                        (None, '\'' | '"') => quote = Some(c),
                        (Some(open), c) if open == c => quote = None,
                        _ => {}
                    }
                }
            }
        }
    }
    Ok(names)
}

/// A text with its values put in: quoted for a shell, or as they are for people.
pub fn filled(text: &str, for_shell: bool, value: impl Fn(&str) -> Option<Value>) -> String {
    let Ok(pieces) = pieces(text, 0) else { return text.to_owned() };
    let shown = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        // An undo's own output is put in when it is known.
        Piece::Name(name) if name == "output" => "{{ output }}".to_owned(),
        Piece::Name(name) => {
            let text = text_of(&value(name).unwrap_or(Value::Null));
            if for_shell { quoted(&text) } else { text }
        }
    };
    pieces.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_from_outside_stays_one_word() {
        let value = |_: &str| Some(json!({"output": "x; rm -rf / $(id)\n"}));
        assert_eq!(filled("bake {{ Take }} --hot", true, value), "bake 'x; rm -rf / $(id)' --hot");
        assert_eq!(filled("{{Take}}", false, value), "x; rm -rf / $(id)");
    }

    #[test]
    fn a_name_inside_quotes_is_refused() {
        for text in [
            r#"echo "{{ A }}""#,
            "echo '{{ A }}'",
            r#"echo "a\"{{ A }}""#,
            "cat <<E\n{{ A }}\nE",
            "echo `{{ A }}`",
            r"a\{{ A }}",
        ] {
            assert!(names_in_command(text, 3).is_err(), "{text}");
        }
        for text in [
            "echo {{ A }}",
            r#"echo "x" {{ A }} 'y'"#,
            r#"echo "\"" {{ A }}"#,
            r"echo \' {{ A }}",
            "echo ${HOME} {{A}}",
        ] {
            assert_eq!(names_in_command(text, 3), Ok(vec!["A".into()]), "{text}");
        }
    }
}
