//! A preview's listener: for as long as its login may use the port, and somebody does.

use super::enter::{Entry, plain};
use super::forward::forward;
use super::{Preview, is_final, is_over};
use crate::listen::{BUFFER_BYTES_MAX, HEAD_WAIT, Http, UNREAD_WAIT};
use crate::patient::Patient;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Connections of a preview at once: several tabs, each with the six that browsers open.
const CONNECTIONS_MAX: usize = 64;
/// How often the host is asked whether who is connected still may.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// A preview that nobody used for so long closes: its port is another's to have.
const UNUSED_WAIT: Duration = Duration::from_secs(30 * 60);

/// Serves it until it is over.
pub(super) async fn serve(http: Arc<Http>, preview: Arc<Preview>, on: Vec<TcpListener>, tls: Option<TlsAcceptor>) {
    let mut over = preview.over.subscribe();
    let mut open = JoinSet::new();
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        preview.connections.store(open.len(), Ordering::Relaxed);
        tokio::select! {
            () = is_over(&mut over) => break,
            stream = accept(&on) => match stream {
                Ok(stream) if open.len() < CONNECTIONS_MAX => {
                    open.spawn(greet(stream, tls.clone(), Arc::clone(&http), Arc::clone(&preview)));
                }
                Ok(_) => {}
                // Out of descriptors: those who are connected go on.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            Some(_) = open.join_next() => {}
            _ = look.tick() => {
                if !stays(&preview, &http).await {
                    break;
                }
            }
        }
    }
    // Connections end with the set, WebSockets by this.
    preview.end();
    http.previews.forget(&preview);
    drop(on);
}

/// Whether the preview goes on: while it is used the host says so.
async fn stays(preview: &Preview, http: &Http) -> bool {
    if !preview.is_used() {
        return preview.last_used().elapsed() < UNUSED_WAIT;
    }
    !preview.address(http).await.is_err_and(|fault| is_final(&fault))
}

async fn accept(on: &[TcpListener]) -> io::Result<TcpStream> {
    let (stream, _) = match on {
        [one] => one.accept().await?,
        [one, other, ..] => tokio::select! {
            stream = one.accept() => stream?,
            stream = other.accept() => stream?,
        },
        [] => std::future::pending().await,
    };
    Ok(stream)
}

async fn greet(stream: TcpStream, tls: Option<TlsAcceptor>, http: Arc<Http>, preview: Arc<Preview>) {
    let _ = stream.set_nodelay(true);
    let stream = Patient::new(stream, UNREAD_WAIT);
    match tls {
        None => converse(stream, http, preview).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HEAD_WAIT, tls.accept(stream)).await {
                converse(stream, http, preview).await;
            }
        }
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    http: Arc<Http>,
    preview: Arc<Preview>,
) {
    let service = service_fn(move |request| {
        let (http, preview) = (Arc::clone(&http), Arc::clone(&preview));
        async move { Ok::<_, Infallible>(answer(&http, &preview, request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .half_close(false)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let _ = connection.with_upgrades().await;
}

async fn answer(http: &Http, preview: &Preview, request: hyper::Request<Incoming>) -> Response {
    match preview.enter(request.method(), request.uri(), request.headers()) {
        Entry::Answered(mut response) => {
            // Whoever does not come in holds no place.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            return response;
        }
        Entry::Passed => preview.use_now(),
    }
    match preview.address(http).await {
        Ok(Some(address)) => forward(preview, address, request).await,
        Ok(None) => {
            let text = format!("Nothing in this session listens on port {} now.", preview.port);
            plain(StatusCode::BAD_GATEWAY, &text)
        }
        Err(fault) => {
            if is_final(&fault) {
                preview.end();
            }
            plain(StatusCode::FORBIDDEN, "This preview is closed: you may no longer use it, or its session has ended.")
        }
    }
}
