//! `[[notify]]` of the configuration: which events are reported, and how.

use holdfast_host::{Deliver, On, Rule};
use toml::{Table, Value};

/// Every key of a rule.
const KEYS: [&str; 6] = ["on", "session", "command", "webhook", "secret", "ring"];

/// Reads all rules.
pub fn rules(value: Value) -> Result<Vec<Rule>, String> {
    let Value::Array(rules) = value else { return Err(FORM.into()) };
    let rule = |(n, value): (usize, Value)| match value {
        Value::Table(table) => rule(table).map_err(|why| format!("rule {}: {why}", n + 1)),
        _ => Err(FORM.into()),
    };
    rules.into_iter().enumerate().map(rule).collect()
}

const FORM: &str = "expected tables: [[notify]], then on = [\"waiting\"] and command, webhook or ring";

fn rule(mut table: Table) -> Result<Rule, String> {
    if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("unknown key `{key}`; known keys: {}", KEYS.join(", ")));
    }
    let on = table.remove("on").ok_or("on is missing, for example on = [\"waiting\", \"exit\"]")?;
    let on = texts("on", on)?.iter().map(|word| of_what(word)).collect::<Result<Vec<_>, _>>()?;
    if on.is_empty() {
        return Err(
            "on: expected at least one of waiting, exit, approval, turn_requested, question, run_ended, reap".into()
        );
    }
    let session = table.remove("session").map(|value| text("session", value)).transpose()?;
    let secret = table.remove("secret").map(|value| text("secret", value)).transpose()?;
    let ways = (table.remove("command"), table.remove("webhook"), table.remove("ring"));
    let by = match ways {
        (Some(command), None, None) => Deliver::Command(command_of(command)?),
        (None, Some(url), None) => {
            return Ok(Rule { on, session, by: Deliver::Webhook { url: webhook(text("webhook", url)?)?, secret } });
        }
        (None, None, Some(Value::Boolean(true))) => Deliver::Ring,
        (None, None, Some(_)) => return Err("ring: expected true".into()),
        _ => return Err("expected one of command, webhook and ring".into()),
    };
    if secret.is_some() {
        return Err("secret: needs webhook".into());
    }
    Ok(Rule { on, session, by })
}

fn of_what(word: &str) -> Result<On, String> {
    match word {
        "waiting" => Ok(On::Waiting),
        "exit" => Ok(On::Exit),
        "turn_requested" => Ok(On::TurnRequested),
        "question" => Ok(On::Question),
        "run_ended" => Ok(On::RunEnded),
        "approval" => Ok(On::Approval),
        "reap" => Ok(On::Reap),
        other => Err(format!(
            "on: expected waiting, exit, approval, turn_requested, question, run_ended or reap, not {other:?}"
        )),
    }
}

fn command_of(value: Value) -> Result<Vec<String>, String> {
    let words = texts("command", value)?;
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        Some(_) | None => Err("command: expected a program, for example [\"notify-send\", \"holdfast\"]".into()),
    }
}

/// Prompts go there: over TLS, unless it does not leave this machine.
fn webhook(url: String) -> Result<String, String> {
    let plain = url.strip_prefix("http://").map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let is_here = |authority: &str| {
        // A user's name before the host could look like one.
        if authority.contains('@') {
            return false;
        }
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        matches!(host, "localhost" | "127.0.0.1" | "[::1]")
    };
    match plain {
        Some(authority) if is_here(authority) => Ok(url),
        Some(_) => {
            Err("webhook: expected https:// (http:// only for this machine), because it receives prompts".into())
        }
        None if url.starts_with("https://") => Ok(url),
        None => Err("webhook: expected an address that starts with https://".into()),
    }
}

fn text(key: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) if !text.is_empty() => Ok(text),
        _ => Err(format!("{key}: expected a string in quotes")),
    }
}

fn texts(key: &str, value: Value) -> Result<Vec<String>, String> {
    let Value::Array(values) = value else { return Err(format!("{key}: expected a list of strings")) };
    values.into_iter().map(|value| text(key, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Rule>, String> {
        let mut table: Table = toml::from_str(text).unwrap();
        rules(table.remove("notify").unwrap())
    }

    #[test]
    fn rules_are_read() {
        let text = r#"
            [[notify]]
            on = ["waiting", "turn_requested"]
            session = "build-*"
            command = ["notify-send", "holdfast"]
            [[notify]]
            on = ["exit"]
            webhook = "https://example.org/hook"
            secret = "hush"
            [[notify]]
            on = ["waiting", "approval"]
            ring = true
        "#;
        let command = Deliver::Command(vec!["notify-send".into(), "holdfast".into()]);
        let webhook = Deliver::Webhook { url: "https://example.org/hook".into(), secret: Some("hush".into()) };
        let expected = [
            Rule { on: vec![On::Waiting, On::TurnRequested], session: Some("build-*".into()), by: command },
            Rule { on: vec![On::Exit], session: None, by: webhook },
            Rule { on: vec![On::Waiting, On::Approval], session: None, by: Deliver::Ring },
        ];
        assert_eq!(read(text).unwrap(), expected);
    }

    #[test]
    fn a_mistake_says_what_was_expected() {
        for (text, expected) in [
            ("notify = 1", "expected tables"),
            ("[[notify]]\nring = true", "rule 1: on is missing"),
            ("[[notify]]\non = []\nring = true", "at least one"),
            ("[[notify]]\non = [\"wating\"]\nring = true", "not \"wating\""),
            ("[[notify]]\non = [\"exit\"]", "one of command, webhook and ring"),
            ("[[notify]]\non = [\"exit\"]\nring = true\ncommand = [\"x\"]", "one of command, webhook and ring"),
            ("[[notify]]\non = [\"exit\"]\nring = false", "ring: expected true"),
            ("[[notify]]\non = [\"exit\"]\ncommand = []", "command: expected a program"),
            ("[[notify]]\non = [\"exit\"]\nwebhook = \"http://example.org\"", "expected https://"),
            ("[[notify]]\non = [\"exit\"]\nwebhook = \"http://localhost.example.org\"", "expected https://"),
            ("[[notify]]\non = [\"exit\"]\nwebhook = \"http://localhost:80@example.org/\"", "expected https://"),
            ("[[notify]]\non = [\"exit\"]\nring = true\nsecret = \"x\"", "secret: needs webhook"),
            ("[[notify]]\non = [\"exit\"]\nrign = true", "unknown key `rign`"),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(expected), "{text:?}: {why}");
        }
        assert!(read("[[notify]]\non = [\"exit\"]\nwebhook = \"http://127.0.0.1:8080/x\"").is_ok());
    }
}
