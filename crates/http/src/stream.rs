//! Events as they happen, as a browser's `EventSource` and `curl -N` read them.
//!
//! Each event has its number as `id`: a client that comes back with `Last-Event-ID` continues after it. What was dropped meanwhile is
//! an event of its own, `lost`.

use crate::listen::Http;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use holdfast_door::Speaker;
use holdfast_wire::{Call, Code, Fault};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// How long the host is asked to wait for an event: a line is sent at least this often, so that a dead reader is noticed.
const WAIT_MS: u64 = 15_000;

/// Whether a reader wants a stream.
pub fn is_wanted(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts.flat_map(|value| value.split(',')).any(|kind| kind.trim().starts_with("text/event-stream"))
}

/// Where a reader was, if it comes back.
pub fn last_event(headers: &HeaderMap) -> Result<Option<u64>, Fault> {
    let Some(last) = headers.get("last-event-id") else { return Ok(None) };
    let number = last.to_str().ok().and_then(|last| last.trim().parse().ok());
    // One that begins anew without having asked for it would miss events and not know.
    number.map(Some).ok_or_else(|| Fault::new(Code::BadRequest, "invalid `Last-Event-ID`: expected a number"))
}

struct Follow {
    http: Arc<Http>,
    speaker: Speaker,
    name: &'static str,
    fields: Map<String, Value>,
    is_over: bool,
}

/// Answers a watching operation as a stream. The first answer is waited for, so that a refusal is one.
pub async fn answer(
    http: Arc<Http>,
    speaker: Speaker,
    name: &'static str,
    mut fields: Map<String, Value>,
    last: Option<u64>,
) -> Result<Response, Fault> {
    if let Some(last) = last {
        fields.insert("after".into(), last.into());
    }
    fields.insert("wait_ms".into(), 0.into());
    let mut follow = Follow { http, speaker, name, fields, is_over: false };
    let first = follow.next().await?;
    let body = futures_util::stream::unfold((Some(first), follow), |(text, mut follow)| async move {
        let text = match text {
            Some(text) => text,
            None if follow.is_over => return None,
            None => match follow.next().await {
                Ok(text) => text,
                // The stream says why it ends: a refusal (the token was revoked) is not a cut line.
                Err(fault) => {
                    follow.is_over = true;
                    format!("event: error\ndata: {}\n\n", json!(fault))
                }
            },
        };
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(text)), (None, follow)))
    });
    let mut response = Body::from_stream(body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

impl Follow {
    /// The next events as text; a comment where there are none.
    async fn next(&mut self) -> Result<String, Fault> {
        let call = Call::decode(self.name, Value::Object(self.fields.clone()))?;
        let (answer, _) = self.http.handle.call(&self.speaker, call, Vec::new()).await?;
        self.fields.insert("wait_ms".into(), WAIT_MS.into());
        let to = answer["to"].clone();
        self.is_over = answer["end"].as_bool().unwrap_or(false);
        let mut text = String::new();
        let lost = &answer["lost"];
        if lost.as_u64().unwrap_or(0) > 0 || lost.as_bool().unwrap_or(false) {
            text.push_str(&format!("event: lost\nid: {to}\ndata: {}\n\n", json!({ "lost": lost })));
        }
        for event in answer["events"].as_array().into_iter().flatten() {
            let kind = event["event"].as_str().unwrap_or("message");
            let id = event.get("seq").unwrap_or(&to);
            text.push_str(&format!("event: {kind}\nid: {id}\ndata: {event}\n\n"));
        }
        if text.is_empty() {
            text.push_str(": nothing happens\n\n");
        }
        self.fields.insert("after".into(), to);
        Ok(text)
    }
}
