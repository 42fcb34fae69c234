//! `/mcp`: the host's sessions as tools and resources of the Model Context Protocol, over streamable HTTP.
//!
//! Each request says by its token who acts. A session of the protocol is its first token's alone.

use crate::listen::Http;
use crate::protocol_sessions::{Sessions, Whose};
use crate::refusal::Refused;
use crate::rest::whole;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Router, body::Body};
use holdfast_door::{Path, Speaker};
use holdfast_mcp::rmcp::transport::StreamableHttpServerConfig;
use holdfast_mcp::{Inside, Opened};
use holdfast_types::ActorClass;
use holdfast_wire::{Code, Fault};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The header that names a session of the protocol.
const SESSION: &str = "mcp-session-id";
/// A request's bytes: a command of 1 MiB with its escapes. It is read on the thread that serves everybody.
const REQUEST_BYTES_MAX: usize = 2 * 1024 * 1024;

struct Door {
    http: Arc<Http>,
    /// Who opened which session of the protocol.
    sessions: Mutex<Sessions>,
    opened: Opened,
}

/// The route.
pub fn routes(http: &Arc<Http>) -> Router {
    // Whose page asks is checked for all routes alike.
    let config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    let (service, opened) = holdfast_mcp::http(Inside::new(http.handle.clone()), config);
    let door = Arc::new(Door { http: Arc::clone(http), sessions: Mutex::default(), opened });
    Router::new().route_service("/mcp", service).layer(middleware::from_fn_with_state(door, admit))
}

impl Door {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who sends a request; where it opens a session, the place that this has.
    async fn who(&self, head: &Parts) -> Result<(Speaker, Option<u64>), Fault> {
        let speaker = self.http.admit(&head.extensions, &head.headers, Path::Mcp).await?;
        let (whose, now) = (whose(&speaker), Instant::now());
        let Some(session) = name(&head.headers) else {
            let (opening, over) = self.sessions().open(&whose, now)?;
            for session in over {
                self.opened.close(&session).await;
            }
            return Ok((speaker, Some(opening)));
        };
        if !self.sessions().uses(session, &whose.token, now) {
            return Err(Fault::new(Code::NotFound, "unknown protocol session").hint("initialize again"));
        }
        if head.method == Method::DELETE {
            self.sessions().ended(session);
        }
        Ok((speaker, None))
    }

    /// What came of opening a session. One whose place is another's by now is closed.
    async fn settle(&self, opening: u64, headers: HeaderMap) {
        let session = name(&headers);
        let has_place = self.sessions().opened(opening, session, Instant::now());
        if let Some(session) = session.filter(|_| !has_place) {
            self.opened.close(session).await;
        }
    }
}

async fn admit(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let (speaker, opening) = match door.who(&head).await {
        Ok(known) => known,
        Err(fault) => return Refused(fault).into_response(),
    };
    head.extensions.insert(speaker);
    // Read here, where it has a time and our own limit: behind this one could come for ever.
    let body = whole(&head.headers, body, REQUEST_BYTES_MAX).await;
    let body = match (body, opening) {
        (Ok(body), _) => Body::from(body),
        (Err(fault), opening) => {
            opening.map(|opening| door.sessions().opened(opening, None, Instant::now()));
            return Refused(fault).into_response();
        }
    };
    let is_delete = head.method == Method::DELETE;
    let request = Request::from_parts(head, body);
    let Some(opening) = opening else {
        let response = next.run(request).await;
        // It is ended, not about to be; clients take any other success than 200 and 204 for a failure.
        let is_ended = is_delete && response.status() == StatusCode::ACCEPTED;
        return if is_ended { StatusCode::NO_CONTENT.into_response() } else { response };
    };
    // Apart, so that it is known what was opened though who asked for it is gone.
    let opened = tokio::spawn(async move {
        let response = next.run(request).await;
        door.settle(opening, response.headers().clone()).await;
        response
    });
    opened
        .await
        .unwrap_or_else(|_| Refused(Fault::new(Code::Internal, "the host ran into a fault of its own")).into_response())
}

/// The session of the protocol that headers name.
fn name(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION).and_then(|id| id.to_str().ok())
}

fn whose(speaker: &Speaker) -> Whose {
    // Who has a token is what its handle says: the host has checked it.
    let is_human = speaker.actor.handle.class() == ActorClass::Human;
    let token = speaker.path.cap().map(|cap| cap.token.clone()).unwrap_or_default();
    Whose { token, actor: speaker.actor.id, is_human }
}
