//! Names of signals, as people write them.

use std::fmt;
use std::str::FromStr;

/// The number of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalNumber(pub u8);

/// A text that names no signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalError;

/// The highest number Linux delivers.
const NUMBER_MAX: u8 = 64;

const NAMES: [(&str, i32); 31] = [
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ILL", libc::SIGILL),
    ("TRAP", libc::SIGTRAP),
    ("ABRT", libc::SIGABRT),
    ("BUS", libc::SIGBUS),
    ("FPE", libc::SIGFPE),
    ("KILL", libc::SIGKILL),
    ("USR1", libc::SIGUSR1),
    ("SEGV", libc::SIGSEGV),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("STKFLT", libc::SIGSTKFLT),
    ("CHLD", libc::SIGCHLD),
    ("CONT", libc::SIGCONT),
    ("STOP", libc::SIGSTOP),
    ("TSTP", libc::SIGTSTP),
    ("TTIN", libc::SIGTTIN),
    ("TTOU", libc::SIGTTOU),
    ("URG", libc::SIGURG),
    ("XCPU", libc::SIGXCPU),
    ("XFSZ", libc::SIGXFSZ),
    ("VTALRM", libc::SIGVTALRM),
    ("PROF", libc::SIGPROF),
    ("WINCH", libc::SIGWINCH),
    ("IO", libc::SIGIO),
    ("PWR", libc::SIGPWR),
    ("SYS", libc::SIGSYS),
];

impl fmt::Display for SignalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown signal; expected a name like INT or SIGTERM, or a number from 1 to {NUMBER_MAX}")
    }
}

impl std::error::Error for SignalError {}

impl fmt::Display for SignalNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, number)| *number == i32::from(self.0)) {
            Some((name, _)) => write!(f, "SIG{name}"),
            None => write!(f, "signal {}", self.0),
        }
    }
}

impl FromStr for SignalNumber {
    type Err = SignalError;

    fn from_str(text: &str) -> Result<SignalNumber, SignalError> {
        let name = text.to_ascii_uppercase();
        let name = name.strip_prefix("SIG").unwrap_or(&name);
        let named = NAMES.iter().find(|(known, _)| *known == name).and_then(|(_, number)| u8::try_from(*number).ok());
        let number = named.or_else(|| text.parse().ok()).filter(|number| (1..=NUMBER_MAX).contains(number));
        number.map(SignalNumber).ok_or(SignalError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_read_by_name_with_and_without_sig_and_by_number() {
        for (text, number) in [("INT", 2), ("sigterm", 15), ("SIGKILL", 9), ("9", 9), ("Winch", 28), ("64", 64)] {
            assert_eq!(text.parse(), Ok(SignalNumber(number)), "{text}");
        }
        for text in ["", "SIG", "0", "65", "-9", "INTT", "256"] {
            assert_eq!(text.parse::<SignalNumber>(), Err(SignalError), "{text}");
        }
        assert_eq!(
            (SignalNumber(15).to_string(), SignalNumber(40).to_string()),
            ("SIGTERM".into(), "signal 40".into())
        );
    }
}
