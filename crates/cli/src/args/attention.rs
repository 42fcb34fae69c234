//! The options of what concerns states and events: `watch`, and what `wait` waits for.

use super::SessionArg;
use crate::values::Seconds;
use std::fmt;
use std::str::FromStr;

#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    /// Name, id, or prefix of an id
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "all_hosts"], conflicts_with_all = ["all", "all_hosts"])]
    pub session: Option<String>,
    /// Watch every session you may observe, including new ones
    #[arg(long)]
    pub all: bool,
    /// Watch every session of this host and of every host you added
    #[arg(long)]
    pub all_hosts: bool,
}

#[derive(Debug, clap::Args)]
pub struct WaitArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Event to wait for: exit, idle (at its prompt), waiting (for input), text:REGEX (in new output), port:N (a process
    /// listens), quiet:S (no output for S seconds) [default: exit]
    #[arg(long = "for", value_name = "WHAT", default_value = "exit", hide_default_value = true)]
    pub what: Awaited,
    /// With text:REGEX, search the output from this offset instead of only new output
    #[arg(long, value_name = "OFFSET")]
    pub from: Option<u64>,
    /// Give up after S seconds, with status 124
    #[arg(long, value_name = "S")]
    pub timeout: Option<Seconds>,
}

/// What is waited for.
#[derive(Debug, Clone)]
pub enum Awaited {
    Exit,
    Idle,
    Waiting,
    Text(regex::bytes::Regex),
    Port(u16),
    Quiet(Seconds),
}

/// Longest pattern, and largest program it may become: what a person writes has far less, and a search stays fast.
const PATTERN_BYTES_MAX: usize = 4096;
const PROGRAM_BYTES_MAX: usize = 1024 * 1024;

impl FromStr for Awaited {
    type Err = String;

    fn from_str(text: &str) -> Result<Awaited, String> {
        match text.split_once(':') {
            None if text == "exit" => Ok(Awaited::Exit),
            None if text == "idle" => Ok(Awaited::Idle),
            None if text == "waiting" => Ok(Awaited::Waiting),
            Some(("text", pattern)) => pattern_of(pattern).map(Awaited::Text),
            Some(("port", port)) => match port.parse() {
                Ok(0) | Err(_) => Err("expected a port from 1 to 65535, for example port:8080".into()),
                Ok(port) => Ok(Awaited::Port(port)),
            },
            Some(("quiet", time)) => {
                time.parse().map(Awaited::Quiet).map_err(|e: crate::values::ValueError| e.to_string())
            }
            Some(_) | None => Err("expected exit, idle, waiting, text:REGEX, port:N or quiet:S".into()),
        }
    }
}

/// A pattern over lines, as far as it is bounded.
pub fn pattern_of(pattern: &str) -> Result<regex::bytes::Regex, String> {
    if pattern.is_empty() || pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!("a pattern must have 1 to {PATTERN_BYTES_MAX} bytes"));
    }
    let built = regex::bytes::RegexBuilder::new(pattern).size_limit(PROGRAM_BYTES_MAX).multi_line(true).build();
    built.map_err(|error| error.to_string())
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Awaited::Exit => f.write_str("exit"),
            Awaited::Idle => f.write_str("idle"),
            Awaited::Waiting => f.write_str("waiting"),
            Awaited::Text(pattern) => write!(f, "text:{pattern}"),
            Awaited::Port(port) => write!(f, "port:{port}"),
            Awaited::Quiet(time) => write!(f, "quiet:{}ms", time.ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_waited_for_is_read_and_the_rest_refused() {
        for text in ["exit", "idle", "waiting", "text:^done: \\d+", "port:8080"] {
            assert_eq!(text.parse::<Awaited>().unwrap().to_string(), text);
        }
        assert_eq!("quiet:2".parse::<Awaited>().unwrap().to_string(), "quiet:2000ms");
        let huge = format!("text:{}", "a{1000}".repeat(500));
        for text in ["", "ended", "exit:", "text:", "text:(", "port:0", "port:x", "port:70000", "quiet:soon", &huge] {
            assert!(text.parse::<Awaited>().is_err(), "{text}");
        }
    }
}
