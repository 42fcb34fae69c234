//! Where agents' programs keep their configuration, and what it looks like. Text in, text out.

use crate::args::McpClient;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, Table, value};

/// What the server is called there: one for this machine, and one for each host elsewhere.
pub fn server(host: Option<&str>) -> String {
    host.map_or_else(|| "holdfast".into(), |host| format!("holdfast-{host}"))
}

/// How a client's configuration names a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// JSON: under this key, `command` and `args`, and `type` where it is wanted.
    Json { key: &'static str, extra: &'static [(&'static str, &'static str)] },
    /// JSON: under `mcp`, one list of words.
    OpenCode,
    /// TOML: a table `mcp_servers.NAME`.
    Codex,
}

/// Whatever can be looked up in the environment.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<std::ffi::OsString>;

/// A client's configuration file.
pub fn file(client: McpClient, env: Lookup<'_>) -> Option<PathBuf> {
    let set = |key: &str| env(key).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = set("HOME")?;
    let config = set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
    Some(match client {
        McpClient::Claude => match set("CLAUDE_CONFIG_DIR") {
            Some(dir) => dir.join(".claude.json"),
            None => home.join(".claude.json"),
        },
        McpClient::ClaudeDesktop => config.join("Claude/claude_desktop_config.json"),
        McpClient::Codex => set("CODEX_HOME").unwrap_or_else(|| home.join(".codex")).join("config.toml"),
        McpClient::Cursor => home.join(".cursor/mcp.json"),
        McpClient::Gemini => home.join(".gemini/settings.json"),
        McpClient::Opencode => config.join("opencode/opencode.json"),
        McpClient::Vscode => config.join("Code/User/mcp.json"),
        McpClient::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
        McpClient::Zed => config.join("zed/settings.json"),
    })
}

/// What a client's agent is called.
pub fn actor(client: McpClient) -> &'static str {
    match client {
        McpClient::Claude => "claude-code",
        McpClient::ClaudeDesktop => "claude-desktop",
        McpClient::Codex => "codex",
        McpClient::Cursor => "cursor",
        McpClient::Gemini => "gemini",
        McpClient::Opencode => "opencode",
        McpClient::Vscode => "vscode",
        McpClient::Windsurf => "windsurf",
        McpClient::Zed => "zed",
    }
}

fn shape(client: McpClient) -> Shape {
    match client {
        McpClient::Claude => Shape::Json { key: "mcpServers", extra: &[("type", "stdio")] },
        McpClient::ClaudeDesktop | McpClient::Cursor | McpClient::Gemini | McpClient::Windsurf => {
            Shape::Json { key: "mcpServers", extra: &[] }
        }
        McpClient::Vscode => Shape::Json { key: "servers", extra: &[("type", "stdio")] },
        McpClient::Zed => Shape::Json { key: "context_servers", extra: &[("source", "custom")] },
        McpClient::Opencode => Shape::OpenCode,
        McpClient::Codex => Shape::Codex,
    }
}

/// The configuration with this server in it (`words` starts it), or without it (`None`). Everything else stays as it is.
pub fn edited(client: McpClient, name: &str, text: &str, words: Option<&[String]>) -> Result<String, String> {
    match shape(client) {
        Shape::Codex => toml(name, text, words),
        Shape::Json { key, extra } => {
            let entry = words.map(|words| {
                let mut entry: Vec<(String, CstInputValue)> =
                    extra.iter().map(|(key, value)| ((*key).to_owned(), string(value))).collect();
                let (program, args) = words.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
                entry.push(("command".into(), string(program)));
                entry.push(("args".into(), CstInputValue::Array(args.iter().map(|word| string(word)).collect())));
                CstInputValue::Object(entry)
            });
            json(name, text, key, entry)
        }
        Shape::OpenCode => {
            let entry = words.map(|words| {
                CstInputValue::Object(vec![
                    ("type".into(), string("local")),
                    ("command".into(), CstInputValue::Array(words.iter().map(|word| string(word)).collect())),
                    ("enabled".into(), CstInputValue::Bool(true)),
                ])
            });
            json(name, text, "mcp", entry)
        }
    }
}

fn string(text: &str) -> CstInputValue {
    CstInputValue::String(text.to_owned())
}

fn json(name: &str, text: &str, key: &str, entry: Option<CstInputValue>) -> Result<String, String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| error.to_string())?;
    let object = root.object_value().ok_or("it is not a JSON object")?;
    let servers = match (object.get(key), &entry) {
        (Some(servers), _) => servers.object_value().ok_or_else(|| format!("its {key:?} is not a JSON object"))?,
        (None, None) => return Ok(text.to_owned()),
        (None, Some(_)) => object.object_value_or_set(key),
    };
    match (servers.get(name), entry) {
        (Some(there), Some(entry)) => there.set_value(entry),
        (Some(there), None) => there.remove(),
        (None, Some(entry)) => {
            servers.append(name, entry);
        }
        (None, None) => {}
    }
    Ok(root.to_string())
}

fn toml(name: &str, text: &str, words: Option<&[String]>) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    const KEY: &str = "mcp_servers";
    const APPROVAL: &str = "default_tools_approval_mode";
    let Some(words) = words else {
        if let Some(servers) = document.get_mut(KEY).and_then(Item::as_table_like_mut) {
            servers.remove(name);
        }
        return Ok(document.to_string());
    };
    let servers = document.entry(KEY).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = servers.as_table_like_mut().ok_or("its mcp_servers is not a table")?;
    if servers.get(name).is_none() {
        servers.insert(name, Item::Table(Table::new()));
    }
    let server = servers
        .get_mut(name)
        .and_then(Item::as_table_like_mut)
        .ok_or_else(|| format!("its {name} entry is not a table"))?;
    let (program, args) = words.split_first().ok_or("there is no command")?;
    server.insert("command", value(program));
    server.insert("args", value(args.iter().collect::<Array>()));
    if server.get(APPROVAL).is_none() {
        // Without it Codex refuses every tool where nobody can be asked, as in `codex exec`. Who set it otherwise meant it.
        server.insert(APPROVAL, value("approve"));
    }
    Ok(document.to_string())
}

/// What changes, as people know it from diff(1).
pub fn difference(file: &Path, before: &str, after: &str) -> String {
    let name = file.display().to_string();
    let diff = similar::TextDiff::from_lines(before, after);
    diff.unified_diff().context_radius(3).header(&name, &name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    fn words() -> Vec<String> {
        vec!["/opt/holdfast".into(), "mcp".into()]
    }

    #[test]
    fn an_entry_is_added_once_and_taken_out_again() {
        for client in McpClient::value_variants() {
            for before in ["", "{\n  \"theme\": \"dark\"\n}\n"] {
                let before =
                    if *client == McpClient::Codex && !before.is_empty() { "model = \"x\" # mine\n" } else { before };
                let once = edited(*client, "holdfast", before, Some(&words())).unwrap();
                assert!(once.contains("holdfast") && once.contains("\"mcp\""), "{client:?}: {once}");
                assert_eq!(edited(*client, "holdfast", &once, Some(&words())).unwrap(), once, "{client:?}");
                let gone = edited(*client, "holdfast", &once, None).unwrap();
                assert!(!gone.contains("holdfast"), "{client:?}: {gone}");
                assert_eq!(edited(*client, "holdfast", &gone, None).unwrap(), gone, "{client:?}");
            }
        }
    }

    #[test]
    fn order_and_comments_and_other_servers_stay() {
        let before = "{\n  // mine\n  \"z\": 1,\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }\n  },\n  \"a\": [1, 2]\n}\n";
        let after = edited(McpClient::Cursor, "holdfast", before, Some(&words())).unwrap();
        for line in before.lines().filter(|line| !line.contains("other")) {
            assert!(after.contains(line), "{line}: {after}");
        }
        assert!(after.contains("\"other\": { \"command\": \"x\" }"), "{after}");
        let before = "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"x\" # y\n";
        let after = edited(McpClient::Codex, "holdfast", before, Some(&words())).unwrap();
        assert!(after.starts_with(before), "{after}");
        assert!(after.contains("[mcp_servers.holdfast]\ncommand = \"/opt/holdfast\"\nargs = [\"mcp\"]\n"), "{after}");
        assert!(after.contains("default_tools_approval_mode = \"approve\"\n"), "{after}");
        let asks = after.replace("\"approve\"", "\"prompt\"");
        assert_eq!(
            edited(McpClient::Codex, "holdfast", &asks, Some(&words())).unwrap(),
            asks,
            "what a person set stays"
        );
    }

    #[test]
    fn another_path_replaces_the_one_that_was_there() {
        let old = edited(McpClient::Claude, "holdfast", "{}", Some(&["/old".into(), "mcp".into()])).unwrap();
        let new = edited(McpClient::Claude, "holdfast", &old, Some(&words())).unwrap();
        assert!(!new.contains("/old") && new.contains("/opt/holdfast"), "{new}");
        let value: serde_json::Value = serde_json::from_str(&new).unwrap();
        assert_eq!(value["mcpServers"]["holdfast"]["args"], serde_json::json!(["mcp"]));
    }

    #[test]
    fn each_host_has_an_entry_of_its_own() {
        for client in McpClient::value_variants() {
            let here = edited(*client, &server(None), "", Some(&words())).unwrap();
            let both = edited(*client, &server(Some("gpu")), &here, Some(&words())).unwrap();
            assert!(both.contains("holdfast-gpu") && both.matches("/opt/holdfast").count() == 2, "{client:?}: {both}");
            let again = edited(*client, &server(Some("gpu")), &both, None).unwrap();
            assert!(!again.contains("gpu") && again.contains("/opt/holdfast"), "{client:?}: {again}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_left_alone() {
        for text in ["[1]", "{\"mcpServers\": 3}", "{\"mcpServers\": "] {
            assert!(edited(McpClient::Cursor, "holdfast", text, Some(&words())).is_err(), "{text}");
        }
        assert!(edited(McpClient::Codex, "holdfast", "a = ", Some(&words())).is_err());
    }

    #[test]
    fn files_lie_where_the_clients_look() {
        let env = |key: &str| (key == "HOME").then(|| "/h".into());
        let at = |client| file(client, &env).unwrap().display().to_string();
        assert_eq!(at(McpClient::Claude), "/h/.claude.json");
        assert_eq!(at(McpClient::Codex), "/h/.codex/config.toml");
        assert_eq!(at(McpClient::Vscode), "/h/.config/Code/User/mcp.json");
        assert_eq!(file(McpClient::Codex, &|_| None), None);
    }
}
