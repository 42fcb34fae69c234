//! Who speaks to a host, and the path it came by.

use holdfast_types::{Actor, Right, Rights, TimeMs};
use holdfast_wire::Call;

/// An actor, and how it came. Both are needed for every decision: what an actor may do is the authority's to say, and the path
/// narrows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speaker {
    /// Who.
    pub actor: Actor,
    /// By which path.
    pub path: Path,
}

/// The path by which an actor speaks to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Path {
    /// The host's own socket: a process of this machine and user, which proved its key.
    Local,
    /// HTTP: one request, or a WebSocket.
    Http(Cap),
    /// The Model Context Protocol, over HTTP.
    Mcp(Cap),
    /// A sealed channel through a relay: another machine, whose actor proved its key there.
    Relay(Cap),
}

/// What caps a path: the token that was shown there, or the device that came by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cap {
    /// Its id, which is no secret.
    pub token: String,
    /// The most its actor may do by this path.
    pub can: Rights,
    /// When it ends.
    pub until_ms: TimeMs,
}

impl Path {
    /// What caps it; none: nothing does but the actor's own envelope.
    #[must_use]
    pub fn cap(&self) -> Option<&Cap> {
        match self {
            Path::Local => None,
            Path::Http(cap) | Path::Mcp(cap) | Path::Relay(cap) => Some(cap),
        }
    }

    /// The same path under what caps it now.
    #[must_use]
    pub fn under(&self, cap: Cap) -> Path {
        match self {
            Path::Local => Path::Local,
            Path::Http(_) => Path::Http(cap),
            Path::Mcp(_) => Path::Mcp(cap),
            Path::Relay(_) => Path::Relay(cap),
        }
    }

    /// Ring, keeper and terminal are not within reach: everything goes through the host.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        match self {
            Path::Local => false,
            Path::Http(_) | Path::Mcp(_) | Path::Relay(_) => true,
        }
    }

    /// What a call comes to by this path. By a remote one a terminal does not answer the session's queries, whatever it says of itself; it has no
    /// connection to the keeper, and its variables are another machine's. It sizes the session only if it is a person's terminal at the other
    /// end of a relay. Whoever may not type there watches.
    #[must_use]
    pub fn narrow(&self, call: Call) -> Call {
        let types = self.cap().is_none_or(|cap| cap.can.has(Right::Type));
        match call {
            Call::Attach(mut params) if self.is_remote() => {
                params.remote = true;
                // A client behind a relay comes back by other connections, and has its size with it.
                if !matches!(self, Path::Relay(_)) {
                    params.sizes = false;
                    params.resume = None;
                }
                params.read_only |= !types;
                params.env.clear();
                Call::Attach(params)
            }
            Call::Paint(mut params) if self.is_remote() => {
                params.remote = true;
                params.answers = None;
                Call::Paint(params)
            }
            Call::Update(mut params) if self.is_remote() => {
                params.answers = None;
                Call::Update(params)
            }
            call => call,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cap(can: &str) -> Cap {
        Cap { token: "tok_1".into(), can: can.parse().unwrap(), until_ms: 5 }
    }

    fn attach(path: &Path) -> (bool, bool, bool, usize) {
        let resume = json!({ "client": 1, "token": "00".repeat(16), "answers": true });
        let params = json!({ "session": "s", "size": "80x24", "env": ["TERM=x"], "resume": resume });
        match path.narrow(Call::decode("session.attach", params).unwrap()) {
            Call::Attach(params) => (params.remote, params.read_only, params.resume.is_some(), params.env.len()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_terminal_by_a_remote_path_reaches_neither_keeper_nor_environment_and_types_only_with_that_right() {
        assert_eq!(attach(&Path::Local), (false, false, true, 1));
        for path in [Path::Http, Path::Mcp] {
            assert_eq!(attach(&path(cap("observe,type"))), (true, false, false, 0));
            assert_eq!(attach(&path(cap("observe,run"))), (true, true, false, 0));
        }
    }

    #[test]
    fn a_terminal_by_a_remote_path_answers_no_queries() {
        let paint = json!({ "session": "s", "size": "80x24", "answers": 3 });
        let answers = json!({ "on": true, "left": 0, "from": 0 });
        let update = json!({ "session": "s", "client": 3, "answers": answers });
        for (path, answers) in
            [(Path::Local, true), (Path::Http(cap("observe,type")), false), (Path::Mcp(cap("observe,type")), false)]
        {
            let Call::Paint(paint) = path.narrow(Call::decode("session.paint", paint.clone()).unwrap()) else {
                panic!()
            };
            assert_eq!((paint.answers.is_some(), paint.remote), (answers, path.is_remote()), "{path:?}");
            let update = path.narrow(Call::decode("session.update", update.clone()).unwrap());
            let Call::Update(update) = update else { panic!() };
            assert_eq!(update.answers.is_some(), answers, "{path:?}");
        }
    }

    #[test]
    fn a_path_stays_what_it_is_when_its_cap_changes() {
        assert_eq!(Path::Http(cap("observe")).under(cap("run")), Path::Http(cap("run")));
        assert_eq!(Path::Mcp(cap("observe")).under(cap("run")), Path::Mcp(cap("run")));
        assert_eq!((Path::Local.under(cap("run")), Path::Local.cap()), (Path::Local, None));
    }
}
