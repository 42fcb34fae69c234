//! What the screen crate promises, checked from outside.
// Tests read the corpus and start the xterm.js reference; the crate itself does neither.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod filter;
mod flood;
mod history;
mod keyframe;
mod repaint;
mod replies;
mod robust;
mod streams;
mod viewport;
mod xterm;
