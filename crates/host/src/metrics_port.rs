//! The port for Prometheus: `GET /metrics`, on a loopback address the user chose.

use crate::serve::Server;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Serves the counters until the host ends. A port that cannot be had costs the port, not the host.
pub async fn serve(address: SocketAddr, server: Rc<Server>) {
    let listener = match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => return tracing::error!("metrics_listen {address}: {error}"),
    };
    tracing::info!("serves counters at http://{}/metrics", listener.local_addr().unwrap_or(address));
    let (ask, mut asked) = mpsc::channel(1);
    tokio::spawn(holdfast_http::serve_metrics(listener, ask));
    while let Some(reply) = asked.recv().await {
        let _ = reply.send(server.metrics());
    }
}
