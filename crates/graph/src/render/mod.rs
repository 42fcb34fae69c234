//! Pictures of a [`Graph`](crate::Graph): text for a terminal and SVG for a page. Pure: the same graph gives the
//! same picture.
//!
//! Nothing a program calls itself reaches the picture raw: control characters and those that turn the writing direction
//! are made visible, and SVG's own characters are escaped.

mod parts;
mod svg;
mod tree;

#[cfg(test)]
mod tests;

pub use parts::{Notes, visible};
pub use svg::svg;
pub use tree::tree;
