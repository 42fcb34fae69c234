//! What `host start --http` said, kept for every later host: one that a crash or an upgrade brings up listens where the last did.

use crate::args::{HTTP_ADDRESS, ListenArgs};
use crate::failure::Failure;
use holdfast_host::{Listen, Tls};
use holdfast_types::Home;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// `<state>/http.json`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    address: SocketAddr,
    #[serde(default)]
    tls: Option<(PathBuf, PathBuf)>,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    insecure: bool,
}

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
    let kept: Kept = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
    let tls = kept.tls.map(|(cert, key)| Tls { cert, key });
    Ok(Some(Listen { address: kept.address, tls, names: kept.names, insecure: kept.insecure }))
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
        (Some(cert), Some(key)) => Some((absolute(cert)?, absolute(key)?)),
        _ => None,
    };
    if !address.ip().is_loopback() && tls.is_none() && !args.insecure_listen {
        return Err(Failure::new("denied", format!("{address} is beyond this machine, where others could read along"))
            .hint("give --tls-cert and --tls-key; or, where something else keeps it private, --insecure-listen"));
    }
    let kept = Kept { address, tls, names: args.names.clone(), insecure: args.insecure_listen };
    let text = serde_json::to_vec_pretty(&kept).expect("texts and numbers always serialise");
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
    Ok(load(home)? != before)
}
