//! The host's log: a line for each thing worth knowing, on its standard error, as text or as JSON.
//!
//! No line has what a session prints, what is typed into it, a token, a secret or the address of a webhook; so only events of
//! our own crates are written, whatever level is asked for. A line that cannot be written is lost: a full disk must not stop
//! the host.

use holdfast_types::{Actor, SessionId};
use holdfast_wire::{Call, Fault};
use std::borrow::Cow;
use std::io::{self, Write};
use std::str::FromStr;
use tracing::Span;
use tracing::field::Empty;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Subscriber;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

/// What the targets of all our events begin with.
const OURS: &str = "holdfast";

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// An object a line, for programs.
    Json,
}

impl LogFormat {
    /// Its word in options and configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        }
    }
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<LogFormat, String> {
        let all = [LogFormat::Text, LogFormat::Json];
        all.into_iter().find(|format| format.word() == text).ok_or_else(|| "expected text or json".into())
    }
}

/// Which events are written: a level, and levels of modules, as in `info,holdfast_host::notify=debug`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLevels(String);

impl Default for LogLevels {
    fn default() -> LogLevels {
        LogLevels("info".into())
    }
}

impl FromStr for LogLevels {
    type Err = String;

    fn from_str(text: &str) -> Result<LogLevels, String> {
        let is_ours = |targets: &Targets| targets.iter().all(|(target, _)| target.starts_with(OURS));
        match text.parse::<Targets>() {
            Ok(targets) if is_ours(&targets) => Ok(LogLevels(text.into())),
            Ok(_) | Err(_) => {
                Err("expected off, error, warn, info, debug or trace; or levels of modules, for example \
                \"info,holdfast_host::notify=debug\""
                    .into())
            }
        }
    }
}

impl LogLevels {
    fn targets(&self) -> Targets {
        let said: Targets = self.0.parse().expect("checked when it was made");
        let default = said.default_level().unwrap_or(LevelFilter::OFF);
        Targets::new().with_default(LevelFilter::OFF).with_target(OURS, default).with_targets(said)
    }
}

/// Begins to write, for as long as the process lives; panics too.
pub fn begin_log(format: LogFormat, levels: &LogLevels) {
    // One that is there already stays.
    let _ = tracing::subscriber::set_global_default(subscriber(format, levels, io::stderr));
    std::panic::set_hook(Box::new(|panic| {
        // A text that was put together may quote what a session printed.
        let said = match panic.payload_as_str() {
            Some(text) if cfg!(debug_assertions) || panic.payload().is::<&str>() => text,
            Some(_) | None => "the message is left out",
        };
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!("panicked at {place}: {said}");
    }));
}

fn subscriber<W: Write + 'static>(
    format: LogFormat,
    levels: &LogLevels,
    out: impl Fn() -> W + Send + Sync + 'static,
) -> Box<dyn Subscriber + Send + Sync> {
    let lines = Lines { format, out };
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(lines);
    let all = tracing_subscriber::registry().with(levels.targets());
    match format {
        LogFormat::Text => Box::new(all.with(layer)),
        LogFormat::Json => Box::new(all.with(layer.json().flatten_event(true).with_current_span(false))),
    }
}

/// Writes each event as one line.
struct Lines<F> {
    format: LogFormat,
    out: F,
}

impl<'a, W: Write, F: Fn() -> W> MakeWriter<'a> for Lines<F> {
    type Writer = Line<W>;

    fn make_writer(&'a self) -> Line<W> {
        Line { format: self.format, out: (self.out)() }
    }
}

/// Takes an event as the formatter hands it over: whole, in one piece.
struct Line<W> {
    format: LogFormat,
    out: W,
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = format!("{}\n", one_line(text.strip_suffix('\n').unwrap_or(&text), self.format));
        let _ = self.out.write_all(line.as_bytes());
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A text without control characters: what comes from outside can forge no line of the log, nor speak to a terminal that shows it.
fn one_line(text: &str, format: LogFormat) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    let escaped = text.chars().map(|c| match format {
        _ if !c.is_control() => c.to_string(),
        LogFormat::Text => c.escape_default().to_string(),
        LogFormat::Json => format!("\\u{:04x}", u32::from(c)),
    });
    escaped.collect::<String>().into()
}

/// The span of a question: who asks what, of which session, and the newest record it made in that session's journal. What
/// acts is told of from `debug` on, what only looks from `trace` on.
pub(crate) fn span_of(call: &Call, actor: &Actor) -> Span {
    let what = call.row().name;
    if crate::connection::only_looks(call) {
        tracing::trace_span!("look", who = %actor.handle, what, session = Empty)
    } else {
        tracing::error_span!("act", who = %actor.handle, what, session = Empty, seq = Empty)
    }
}

/// The question that is being answered is about this session.
pub(crate) fn of_session(session: SessionId) {
    Span::current().record("session", tracing::field::display(session));
}

/// Says what came of a question, by code: the text of a refusal may quote what was asked.
pub(crate) fn answered<T>(span: &Span, answer: &Result<T, Fault>) {
    let is_act = span.metadata().is_some_and(|metadata| metadata.name() == "act");
    span.in_scope(|| match answer {
        Ok(_) if is_act => tracing::debug!("done"),
        Err(fault) if is_act => tracing::debug!(code = crate::metrics::word_of(fault.code), "refused"),
        Ok(_) => tracing::trace!("answered"),
        Err(fault) => tracing::trace!(code = crate::metrics::word_of(fault.code), "refused"),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// What is written of some events.
    fn written(format: LogFormat, levels: &str, events: impl FnOnce()) -> String {
        #[derive(Clone, Default)]
        struct Kept(Arc<Mutex<Vec<u8>>>);
        impl Write for Kept {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let kept = Kept::default();
        let out = kept.clone();
        tracing::subscriber::with_default(subscriber(format, &levels.parse().unwrap(), move || out.clone()), events);
        let bytes = kept.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_comes_from_outside_forges_no_line_of_the_log() {
        let odd = "é a\nb\u{1b}]0;c\u{7}\u{9b}\u{7f}";
        let text = written(LogFormat::Text, "info", || tracing::warn!(odd, "{odd}"));
        assert!(text.ends_with('\n') && !text.trim_end().contains(char::is_control), "{text:?}");
        assert!(text.contains(r"é a\nb") && text.contains(r"\u{9b}"), "{text}");
        let json = written(LogFormat::Json, "info", || tracing::warn!(odd, "{odd}"));
        assert!(!json.trim_end().contains(char::is_control), "{json:?}");
        let line: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(line["odd"], odd);
    }

    #[test]
    fn a_line_says_whose_act_it_is_of() {
        let act = || {
            let span = tracing::error_span!("act", who = "human:ann", what = "send", session = Empty, seq = Empty);
            let _in = span.enter();
            span.record("seq", 7);
            tracing::warn!("slow");
        };
        let text = written(LogFormat::Text, "warn", act);
        assert!(
            text.contains(r#"WARN act{who="human:ann" what="send" seq=7}: holdfast_host::log::tests: slow"#),
            "{text}"
        );
        let line: serde_json::Value = serde_json::from_str(&written(LogFormat::Json, "warn", act)).unwrap();
        let expected = serde_json::json!([{"name": "act", "who": "human:ann", "what": "send", "seq": 7}]);
        assert_eq!((&line["level"], &line["message"], &line["spans"]), (&"WARN".into(), &"slow".into(), &expected));
    }

    #[test]
    fn levels_are_of_our_own_modules_alone() {
        let events = || {
            tracing::info!("first");
            tracing::debug!(target: "holdfast_http", "second");
            tracing::error!(target: "rmcp", "third");
        };
        let seen = |levels: &str| {
            let text = written(LogFormat::Text, levels, events);
            ["first", "second", "third"].map(|word| text.contains(word))
        };
        assert_eq!(seen("trace"), [true, true, false]);
        assert_eq!(seen("info"), [true, false, false]);
        assert_eq!(seen("off,holdfast_http=debug"), [false, true, false]);
        assert_eq!(seen("holdfast_host=warn"), [false, false, false]);
        for wrong in ["loud", "rmcp=trace", "holdfast_host=loud", "info;debug"] {
            assert!(wrong.parse::<LogLevels>().is_err(), "{wrong}");
        }
    }
}
