//! `/mcp`: the host's sessions as tools and resources of the Model Context Protocol, over streamable HTTP.
//!
//! Each request says by its token who acts. A session of the protocol is its first token's alone.

use crate::listen::Http;
use crate::refusal::Refused;
use crate::rest::whole;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Router, body::Body};
use holdfast_door::{Path, Speaker};
use holdfast_mcp::Inside;
use holdfast_mcp::rmcp::transport::StreamableHttpServerConfig;
use holdfast_wire::{Code, Fault};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The header that names a session of the protocol.
const SESSION: &str = "mcp-session-id";
/// Sessions whose token is remembered; they are named at random, and one that is forgotten is simply opened anew.
const SESSIONS_MAX: usize = 10_000;

/// A request's bytes: a command of 1 MiB with its escapes. It is read on the thread that serves everybody.
const REQUEST_BYTES_MAX: usize = 2 * 1024 * 1024;

struct Door {
    http: Arc<Http>,
    /// Which token opened which session of the protocol.
    sessions: Mutex<HashMap<String, String>>,
}

/// The route.
pub fn routes(http: &Arc<Http>) -> Router {
    // Whose page asks is checked for all routes alike.
    let config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    let service = holdfast_mcp::http(Inside::new(http.handle.clone()), config);
    let door = Arc::new(Door { http: Arc::clone(http), sessions: Mutex::default() });
    Router::new().route_service("/mcp", service).layer(middleware::from_fn_with_state(door, admit))
}

async fn admit(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let speaker = match who(&door, request.headers()).await {
        Ok(speaker) => speaker,
        Err(fault) => return Refused(fault).into_response(),
    };
    let token = token_of(&speaker);
    let (mut head, body) = request.into_parts();
    head.extensions.insert(speaker);
    // Read here, where it has a time and our own limit: behind this one could come for ever.
    let body = match whole(&head.headers, body, REQUEST_BYTES_MAX).await {
        Ok(body) => Body::from(body),
        Err(fault) => return Refused(fault).into_response(),
    };
    let response: Response<Body> = next.run(Request::from_parts(head, body)).await;
    if let Some(session) = response.headers().get(SESSION).and_then(|id| id.to_str().ok()) {
        let mut all = door.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SESSIONS_MAX {
            all.clear();
        }
        all.entry(session.to_owned()).or_insert(token);
    }
    response
}

async fn who(door: &Door, headers: &HeaderMap) -> Result<Speaker, Fault> {
    let speaker = door.http.paces.admit(&door.http.handle, headers, Path::Mcp).await?;
    let session = headers.get(SESSION).and_then(|id| id.to_str().ok());
    if let Some(session) = session {
        let all = door.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(session) != Some(&token_of(&speaker)) {
            return Err(Fault::new(Code::NotFound, "unknown protocol session").hint("initialize again"));
        }
    }
    Ok(speaker)
}

fn token_of(speaker: &Speaker) -> String {
    speaker.path.cap().map(|cap| cap.token.clone()).unwrap_or_default()
}
