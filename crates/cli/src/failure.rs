//! Why a command failed, for people and for programs.

use crate::show::{harmless, visible};
use holdfast_client::{AttachError, CallError, ConnectError, KeyError};
use holdfast_store::trust::Untrusted;
use holdfast_types::NoHome;
use holdfast_wire::Fault;
use serde_json::json;
use std::error::Error;
use std::io::Write;

/// A usage error, as every shell tool reports it.
pub const STATUS_USAGE: u8 = 2;
/// What timeout(1) reports.
pub const STATUS_TIMEOUT: u8 = 124;

/// One failure: what is printed, and the status the program ends with.
#[derive(Debug)]
pub struct Failure {
    code: String,
    message: String,
    hint: String,
    /// What a program can go by, as the host gave it.
    details: Option<Box<serde_json::Value>>,
    status: u8,
}

impl Failure {
    /// A failure of the program itself.
    pub fn new(code: &str, message: impl Into<String>) -> Failure {
        Failure { code: code.into(), message: message.into(), hint: String::new(), details: None, status: 1 }
    }

    /// Something failed because of something else.
    pub fn from_error(code: &str, error: &dyn Error) -> Failure {
        Failure::new(code, chain(error))
    }

    /// A call to the system failed.
    pub fn io(what: impl std::fmt::Display, error: impl Error) -> Failure {
        Failure::new("io", format!("{what}: {}", chain(&error)))
    }

    /// Says in other words what went wrong.
    pub fn reworded(mut self, message: impl Into<String>) -> Failure {
        self.message = message.into();
        self
    }

    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = hint.into();
        self
    }

    /// Ends the program with another status than 1.
    pub fn status(mut self, status: u8) -> Failure {
        self.status = status;
        self
    }

    /// Names the session in the hint, so that the command to request the turn is complete.
    pub fn of_session(self, name: &str) -> Failure {
        if self.code == "turn_held" { self.hint(format!("to request it: holdfast request {name}")) } else { self }
    }

    /// Says it on standard error; gives the status to end with.
    pub fn report(&self, json: bool) -> u8 {
        let text = if json {
            let mut error = json!({"code": self.code, "message": self.message});
            if !self.hint.is_empty() {
                error["hint"] = json!(self.hint);
            }
            if let Some(details) = &self.details {
                error["details"] = (**details).clone();
            }
            harmless(&json!({ "error": error }).to_string()) + "\n"
        } else {
            self.text()
        };
        // If this fails, there is no other place to report it.
        let _ = std::io::stderr().write_all(text.as_bytes());
        self.status
    }

    fn text(&self) -> String {
        let mut text = format!("holdfast: {}\n", visible(&self.message));
        for line in self.hint.lines() {
            text.push_str(&format!("  {}\n", visible(line)));
        }
        text
    }

    /// Whether it is this one, by its code.
    pub fn is(&self, code: &str) -> bool {
        self.code == code
    }

    /// What went wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What a program can go by, where the host gave it.
    pub fn details(&self) -> Option<&serde_json::Value> {
        self.details.as_deref()
    }

    /// What to do about it; may be empty.
    pub fn advice(&self) -> &str {
        &self.hint
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        let code =
            serde_json::to_value(fault.code).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
        Failure { code, message: fault.message, hint: fault.hint, details: fault.details, status: 1 }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        match error {
            CallError::Fault(fault) => fault.into(),
            CallError::Broken(_) => Failure::from_error("broken", &error)
                .hint("sessions keep running; the next command starts the host again"),
            CallError::Nonsense(_) => Failure::from_error("nonsense", &error)
                .hint("the host may have another version; to start this one: holdfast host restart"),
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Failure {
        if let ConnectError::Far { hint, .. } = &error {
            let hint = hint.clone();
            let failure = Failure::from_error("unreachable", &error);
            return match hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            };
        }
        let code = match error {
            ConnectError::Far { .. } => "unreachable",
            ConnectError::NoHost(_) => "no_host",
            ConnectError::Socket(..) => "socket",
            ConnectError::Start(..) | ConnectError::NotReady(_) => "host_start",
            ConnectError::Hello(_) => "hello",
            ConnectError::Silent(_) => "host_silent",
        };
        let hint = match &error {
            // The host says what to do.
            ConnectError::Hello(CallError::Fault(fault)) if !fault.hint.is_empty() => fault.hint.clone(),
            _ => "to find the cause: holdfast doctor".into(),
        };
        Failure::from_error(code, &error).hint(hint)
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Failure {
        let code = match error {
            KeyError::Missing(_) => "no_such_actor",
            KeyError::Damaged(..) => "bad_key",
            KeyError::Taken(_) => "actor_taken",
            KeyError::Io(..) => "io",
        };
        Failure::from_error(code, &error)
    }
}

impl From<AttachError> for Failure {
    fn from(error: AttachError) -> Failure {
        match error {
            AttachError::Call(error) => error.into(),
            AttachError::NoTerminal => Failure::from_error("no_terminal", &error),
            AttachError::Io { .. } => Failure::from_error("io", &error),
        }
    }
}

impl From<NoHome> for Failure {
    fn from(error: NoHome) -> Failure {
        Failure::from_error("no_home", &error).hint("set HOME, or use --home DIR")
    }
}

impl From<Untrusted> for Failure {
    fn from(why: Untrusted) -> Failure {
        Failure::from_error("untrusted_home", &why).hint(why.remedy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_wire::Code;

    #[test]
    fn causes_follow_in_one_line_and_the_hint_in_its_own() {
        let cause = std::io::Error::new(std::io::ErrorKind::PermissionDenied, "no \x1b[31mway");
        let failure = Failure::from(ConnectError::Socket("/s".into(), cause));
        let expected =
            "holdfast: cannot reach the host's socket /s: no \\u{1b}[31mway\n  to find the cause: holdfast doctor\n";
        assert_eq!(failure.text(), expected);
    }

    #[test]
    fn a_host_that_refuses_says_what_to_do() {
        let fault = Fault::new(Code::Version, "this host speaks protocol versions [2], not [1]").hint("restart it");
        let failure = Failure::from(ConnectError::Hello(CallError::Fault(fault)));
        assert_eq!((failure.code.as_str(), failure.advice()), ("hello", "restart it"));
    }

    #[test]
    fn a_fault_keeps_its_code_and_hint() {
        let failure = Failure::from(Fault::new(Code::NameTaken, "there is one").hint("pick another"));
        assert_eq!((failure.code.as_str(), failure.hint.as_str(), failure.status), ("name_taken", "pick another", 1));
    }
}
