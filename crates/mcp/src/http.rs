//! The same over HTTP: a service that any tower or axum router can mount.

use crate::host::Host;
use crate::service::{Service, service};
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::sync::Arc;

/// Streamable HTTP.
pub type HttpService<H> = StreamableHttpService<Service<H>, LocalSessionManager>;

/// A service of streamable HTTP: one [`Service`] per session of the protocol. Who acts is said by each request
/// ([`Host::of`]); the caller has checked the request's token before, and put into the request's extensions what
/// `of` reads.
pub fn http<H: Host>(host: H, config: StreamableHttpServerConfig) -> (HttpService<H>, Opened) {
    let make = move || Ok(service(host.clone()));
    let opened = Arc::new(LocalSessionManager::default());
    (StreamableHttpService::new(make, Arc::clone(&opened), config), Opened(opened))
}

/// The sessions of the protocol that clients opened.
#[derive(Clone)]
pub struct Opened(Arc<LocalSessionManager>);

impl Opened {
    /// Ends one: its client is told that it is not known.
    pub async fn close(&self, session: &str) {
        let _ = self.0.close_session(&session.into()).await;
    }
}
