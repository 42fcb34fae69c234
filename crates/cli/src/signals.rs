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

/// As Linux counts them, on x86-64 and arm64: hosts run there, and this program may run where other numbers hold.
const NAMES: [(&str, u8); 31] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];

impl fmt::Display for SignalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown signal; expected a name like INT or SIGTERM, or a number from 1 to {NUMBER_MAX}")
    }
}

impl std::error::Error for SignalError {}

impl fmt::Display for SignalNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, number)| *number == self.0) {
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
        let named = NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
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
        #[cfg(target_os = "linux")]
        for (name, number) in
            [("USR1", libc::SIGUSR1), ("STKFLT", libc::SIGSTKFLT), ("CONT", libc::SIGCONT), ("SYS", libc::SIGSYS)]
        {
            assert_eq!(name.parse::<SignalNumber>().map(|signal| i32::from(signal.0)), Ok(number), "{name}");
        }
        assert_eq!(
            (SignalNumber(15).to_string(), SignalNumber(40).to_string()),
            ("SIGTERM".into(), "signal 40".into())
        );
    }
}
