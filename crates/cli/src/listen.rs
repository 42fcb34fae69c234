//! What `host start --http` said, kept in `<state>/http.json` for every later host: one that a crash or an upgrade brings up listens
//! where the last did.

use crate::args::{HTTP_ADDRESS, ListenArgs};
use crate::failure::Failure;
use holdfast_host::{Listen, Tls};
use holdfast_types::Home;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

fn file(home: &Home) -> PathBuf {
    home.state.join("http.json")
}

/// Where to listen, if anywhere.
pub fn load(home: &Home) -> Result<Option<Listen>, Failure> {
    let failed = |error| Failure::io(format!("cannot read {}", file(home).display()), error);
    let text = match std::fs::read(file(home)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| failed(error.into()))
}

/// Keeps what was said; says whether that is something else than before.
pub fn keep(home: &Home, args: &ListenArgs) -> Result<bool, Failure> {
    let failed = |error| Failure::io(format!("cannot write {}", file(home).display()), error);
    let before = load(home).ok().flatten();
    if args.no_http {
        return match std::fs::remove_file(file(home)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(error)),
        };
    }
    let Some(address) = args.http else { return Ok(false) };
    let address = address.unwrap_or(HTTP_ADDRESS);
    let absolute = |path: &PathBuf| std::path::absolute(path).map_err(failed);
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some(Tls { cert: absolute(cert)?, key: absolute(key)? }),
        _ => None,
    };
    let listen = Listen { address, tls, names: args.names.clone(), insecure: args.insecure_listen };
    if !listen.is_allowed() {
        let why = format!("{address} is beyond this machine, where others could read along");
        return Err(Failure::new("denied", why)
            .hint("give --tls-cert and --tls-key; or, where something else keeps it private, --insecure-listen"));
    }
    let text = serde_json::to_vec_pretty(&listen).expect("texts and numbers always serialise");
    let beside = home.state.join("http.json.new");
    std::fs::OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| file.write_all(&text))
        .and_then(|()| std::fs::rename(&beside, file(home)))
        .map_err(failed)?;
    Ok(Some(listen) != before)
}
