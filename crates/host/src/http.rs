//! The counters over HTTP, for Prometheus: `GET /metrics`, on a loopback address the user chose.

use crate::serve::Server;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpListener;

/// A scrape takes milliseconds: whoever holds a connection longer only holds a descriptor.
const CONNECTION_MAX: Duration = Duration::from_secs(10);
/// The Prometheus text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves the counters until the host ends. A port that cannot be had costs the port, not the host.
pub async fn serve(address: SocketAddr, server: Rc<Server>) {
    let listener = match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => return tracing::error!("metrics_listen {address}: {error}"),
    };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let server = Rc::clone(&server);
        tokio::task::spawn_local(async move {
            let service = hyper::service::service_fn(move |request| {
                let answer = answer(&request, &server);
                async { Ok::<_, Infallible>(answer) }
            });
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            let _ = tokio::time::timeout(CONNECTION_MAX, connection).await;
        });
    }
}

fn answer(request: &Request<Incoming>, server: &Server) -> Response<Full<Bytes>> {
    let plain = |status, text: String| {
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        response
    };
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => {
            let mut response = plain(StatusCode::OK, server.metrics());
            response.headers_mut().insert(CONTENT_TYPE, TEXT.parse().expect("a header's value"));
            response
        }
        (_, "/metrics") => {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".into());
            response.headers_mut().insert(ALLOW, "GET".parse().expect("a header's value"));
            response
        }
        _ => plain(StatusCode::NOT_FOUND, "there is /metrics\n".into()),
    }
}
