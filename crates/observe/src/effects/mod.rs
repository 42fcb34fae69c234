//! What a run does to files, and which processes it leaves behind.
//!
//! [`Meter`] is told by the kernel (fanotify and the proc connector): every change on every file system, each with the process that made
//! it. It needs the rights of an administrator. [`Scan`] looks at one directory before and after, and needs none. Both say what they may
//! have missed; neither is ever asked while nobody wants to know.

mod fold;
mod group;
mod meter;
mod scan;

pub use fold::{Change, Files, Fold};
pub use meter::{Left, Meter, Number, Taken};
pub use scan::Scan;
