//! What `host start --http` said, kept in `<state>/http.json` for every later host: one that a crash or an upgrade brings up listens
//! where the last did.

use crate::args::{HTTP_ADDRESS, ListenArgs};
use crate::failure::Failure;
use holdfast_host::{Listen, Tls};
use holdfast_store::{HTTP, Survives, get_json, put_json};
use holdfast_types::Home;
use std::io;
use std::path::PathBuf;

const NAME: &str = "http.json";

fn file(home: &Home) -> PathBuf {
    home.state.join(NAME)
}

/// Where to listen, if anywhere.
pub fn load(home: &Home) -> Result<Option<Listen>, Failure> {
    get_json(&HTTP, &file(home)).map_err(|why| Failure::io(format!("cannot read {}", file(home).display()), why))
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
        let why = format!("refusing to listen on {address} without TLS: others could read the traffic");
        return Err(Failure::new("denied", why)
            .hint("use --tls-cert and --tls-key; or, on a private network, --insecure-listen"));
    }
    put_json(&HTTP, &home.state, NAME, &listen, Survives::PowerCut).map_err(failed)?;
    Ok(Some(listen) != before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn where_the_version_before_listened_is_read_and_damage_is_told() {
        let old = Home::under(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/v1"));
        let listen = load(&old).unwrap().expect("it is there");
        assert_eq!(listen.address.to_string(), "127.0.0.1:7499");
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path());
        assert!(load(&home).unwrap().is_none());
        put_json(&HTTP, dir.path(), NAME, &listen, Survives::Crash).unwrap();
        assert_eq!(load(&home).unwrap(), Some(listen));
        std::fs::write(file(&home), "holdfast http 2 what?").unwrap();
        assert!(load(&home).is_err());
    }
}
