//! VT state, keyframe, history, repaint, plain-text view.
//!
//! A [`Screen`] is what a terminal would show after the output bytes before its offset. It can be frozen into a keyframe at any
//! byte, also in the middle of an escape sequence, and thawed into an equal screen; it can be repainted into a real terminal
//! ([`Screen::repaint`]) or drawn into one of another size ([`Viewport`]); lines that scroll off become history
//! ([`Screen::drain_history`]); and it answers the queries a terminal answers, for when no terminal is attached.
//!
//! What makes it safe: every buffer is bounded, no input panics, and a keyframe is checked before it is believed.
//!
//! Knows nothing of clocks, files or sockets, nor of who is attached.

mod codec;
mod fast;
mod filter;
mod history;
mod keyframe;
pub mod keys;
mod marks;
mod parse;
mod plain;
mod repaint;
mod screen;
mod settled;
mod view;
mod viewport;
mod vt;
mod window;

pub use filter::QueryFilter;
pub use history::{history_ansi, history_text};
pub use keyframe::KeyframeError;
#[doc(hidden)]
pub use keyframe::sign_keyframe_for_tests;
pub use marks::{Mark, MarkKind, Reply, ShellMark, TOKEN_BYTES_MAX, TerminalColors};
pub use plain::PlainText;
pub use repaint::{CLEAR, leave, start_over};
pub use screen::Screen;
pub use settled::SettledText;
pub use viewport::Viewport;
pub use window::Window;
