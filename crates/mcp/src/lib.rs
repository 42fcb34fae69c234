//! Sessions as tools and resources of the Model Context Protocol.
//!
//! The tools are fewer than the operations and shaped as agents know them: a command that takes longer is answered with a
//! handle, output is bounded and addressed by offset, and a refusal says what to do next. Every answer is structured, by a
//! schema that the tool declares, and has a text to be read.
//!
//! Knows no sockets: whatever can ask a host ([`Host`]) can be served, over standard input and output or over HTTP
//! ([`http`]). Who acts is that host's matter; nothing here is more allowed than its actor is.

mod desk;
mod excerpt;
mod host;
mod http;
mod inside;
mod resources;
mod service;
mod tools;
mod trouble;
mod watch;

pub use self::http::{HttpService, Opened, http};
pub use host::{Claim, Client, Host, Wanted, ask, ask_with_bytes};
pub use inside::Inside;
pub use rmcp;
pub use service::{Service, service};
pub use tools::listing;
