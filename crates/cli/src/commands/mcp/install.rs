//! `holdfast mcp install`: shows what changes in a client's configuration, asks, and writes it.

use super::clients::{actor, difference, edited, file, server};
use crate::args::{McpClient, McpInstallArgs};
use crate::failure::{Failure, STATUS_USAGE};
use crate::here::Here;
use crate::show::{print, print_json};
use crate::who::Said;
use holdfast_store::Survives;
use rustix::termios::isatty;
use serde_json::json;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// `holdfast mcp install`.
pub fn install(here: &Here, args: &McpInstallArgs) -> Result<u8, Failure> {
    let words = words(here, args.client)?;
    let name = server(here.elsewhere().map(|host| host.name.as_str()));
    if args.print {
        let entry = edited(args.client, &name, "", Some(&words)).map_err(|why| Failure::new("internal", why))?;
        print(format!("{}\n", entry.trim_end()))?;
        return Ok(0);
    }
    let file = match &args.file {
        Some(file) => file.clone(),
        None => file(args.client, &|key| std::env::var_os(key))
            .ok_or_else(|| Failure::new("no_home", "HOME is not set").hint("use --file FILE"))?,
    };
    // Behind a link lies what is written: a rename must not replace the link.
    let file = std::fs::canonicalize(&file).unwrap_or(file);
    let before = read(&file)?;
    let after = edited(args.client, &name, &before, (!args.remove).then_some(&*words)).map_err(|why| {
        Failure::new("damaged", format!("cannot change {}: {why}", file.display())).hint("nothing was written")
    })?;
    let changes = after != before && !(args.remove && before.is_empty());
    if changes {
        agree(here, args, &difference(&file, &before, &after))?;
        write(&file, &after)?;
    }
    if here.json {
        print_json(&json!({ "file": file, "changed": changes }))?;
    } else {
        print(format!("{}: {}\n", file.display(), if changes { "written" } else { "nothing to change" }))?;
    }
    Ok(0)
}

/// How the client starts the server: this program, in this home, and as the actor that was named, or as the client's own. What a
/// client calls itself may change with its version; what it is called here must not.
fn words(here: &Here, client: McpClient) -> Result<Vec<String>, Failure> {
    let text = |path: &Path| match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(Failure::new("bad_request", format!("the path {} is not UTF-8", path.display()))),
    };
    let mut words = vec![text(&here.program)?, "mcp".into()];
    if let Some(home) = std::env::var_os("HOLDFAST_HOME").filter(|home| !home.is_empty()) {
        words.extend(["--home".into(), text(Path::new(&home))?]);
    }
    if let Some(host) = here.elsewhere() {
        words.extend(["--host".into(), host.name.clone()]);
    }
    match here.said() {
        Some(Said::Handle(handle)) => words.extend(["--as".into(), handle.to_string()]),
        Some(Said::File(path)) => words.extend(["--as".into(), text(path)?]),
        None => words.extend(["--as".into(), format!("agent:{}", actor(client))]),
    }
    Ok(words)
}

fn read(file: &Path) -> Result<String, Failure> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Failure::io(format!("cannot read {}", file.display()), error)),
    }
}

/// Shows the change and asks about it.
fn agree(here: &Here, args: &McpInstallArgs, change: &str) -> Result<(), Failure> {
    if !here.json {
        print(change)?;
    }
    if args.yes {
        return Ok(());
    }
    let refused = |message: &str| Failure::new("not_written", message.to_owned());
    if !isatty(rustix::stdio::stdin()) || !isatty(rustix::stdio::stdout()) {
        let hint = "use --yes to write it, or --print to see the entry";
        return Err(refused("there is no terminal to ask on").hint(hint).status(STATUS_USAGE));
    }
    print("write this? [y/N] ")?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|error| Failure::io("cannot read the answer", error))?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(refused("nothing was written")),
    }
}

/// Writes a file whole or not at all, as readable as it was.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error| Failure::io(format!("cannot write {}", file.display()), error);
    let dir = file.parent().unwrap_or(Path::new("/"));
    holdfast_store::make_dir(dir).map_err(failed)?;
    let mode = std::fs::metadata(file).map_or(0o600, |meta| meta.permissions().mode() & 0o7777);
    let name = file.file_name().unwrap_or_default();
    holdfast_store::replace_as(mode, dir, name, text.as_bytes(), Survives::PowerCut).map_err(failed)
}
