//! `GET /metrics` for Prometheus, on a port of its own that asks for no token.

use crate::guard::Names;
use crate::listen::accept_all;
use crate::rest::before;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// OpenMetrics, which Prometheus reads since 2.5.
const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves what the host says of itself, until the host ends. Each scrape asks it anew.
pub async fn serve_metrics(listener: TcpListener, ask: mpsc::Sender<oneshot::Sender<String>>) {
    let metrics = move || scrape(ask.clone());
    // A page of a stranger whose name was made to point here must not read them: there is no token to ask for.
    let names = Names { known: vec!["localhost".to_owned()], tls: false };
    let router = Router::new()
        .route("/metrics", get(metrics))
        .fallback((StatusCode::NOT_FOUND, "there is /metrics\n"))
        .layer(middleware::from_fn_with_state(names, before));
    accept_all(listener, None, router).await;
}

async fn scrape(ask: mpsc::Sender<oneshot::Sender<String>>) -> Response {
    let (reply, answer) = oneshot::channel();
    let _ = ask.send(reply).await;
    match answer.await {
        Ok(text) => ([(header::CONTENT_TYPE, TEXT)], text).into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the host is going away\n").into_response(),
    }
}
