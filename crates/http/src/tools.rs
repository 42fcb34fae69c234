//! `/mcp`: the host's sessions as tools and resources of the Model Context Protocol, over streamable HTTP.
//!
//! Each request says by its token who acts. A session of the protocol is its first token's alone.

use crate::Handle;
use crate::listen::Http;
use crate::refusal::Refused;
use crate::rest::whole;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Router, body::Body};
use holdfast_mcp::rmcp::model::Extensions;
use holdfast_mcp::rmcp::transport::StreamableHttpServerConfig;
use holdfast_mcp::{Host, Wanted};
use holdfast_wire::frame::REQUEST_BYTES_MAX;
use holdfast_wire::operations::op;
use holdfast_wire::params::Nothing;
use holdfast_wire::tokens::MeAnswer;
use holdfast_wire::{Call, Code, Fault, Operation};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The header that names a session of the protocol.
const SESSION: &str = "mcp-session-id";
/// Sessions whose token is remembered; they are named at random, and one that is forgotten is simply opened anew.
const SESSIONS_MAX: usize = 10_000;

/// Who sent a request.
#[derive(Debug, Clone)]
struct Caller {
    token: String,
    name: String,
}

/// The host, in the name of the actor that asks.
#[derive(Debug, Clone)]
struct Tools {
    handle: Handle,
    caller: Option<Caller>,
}

impl Host for Tools {
    async fn call(&self, method: &str, params: Value, bytes: Vec<u8>) -> Result<(Value, Vec<u8>), Fault> {
        let caller = self.caller.as_ref().ok_or_else(nobody)?;
        self.handle.call(&caller.token, Call::decode(method, params)?, bytes).await
    }

    async fn settle(&self, wanted: Wanted) -> Result<Value, Fault> {
        let Wanted { name, command, cwd, env_add } = wanted;
        // What is not said is the host's user's.
        Ok(json!({ "name": name, "command": command, "cwd": cwd, "env_add": env_add }))
    }

    fn own_name(&self) -> String {
        self.caller.as_ref().map_or_else(|| "agent".into(), |caller| caller.name.clone())
    }

    fn of(&self, request: &Extensions) -> Result<Tools, Fault> {
        let caller = request.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>());
        Ok(Tools { handle: self.handle.clone(), caller: Some(caller.ok_or_else(nobody)?.clone()) })
    }
}

fn nobody() -> Fault {
    Fault::new(Code::Unidentified, "the request has no actor")
}

struct Door {
    http: Arc<Http>,
    /// Which token opened which session of the protocol.
    sessions: Mutex<HashMap<String, String>>,
}

/// The route.
pub fn routes(http: &Arc<Http>) -> Router {
    // Whose page asks is checked for all routes alike.
    let config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    let service = holdfast_mcp::http(Tools { handle: http.handle.clone(), caller: None }, config);
    let door = Arc::new(Door { http: Arc::clone(http), sessions: Mutex::default() });
    Router::new().route_service("/mcp", service).layer(middleware::from_fn_with_state(door, admit))
}

async fn admit(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let caller = match who(&door, request.headers().clone()).await {
        Ok(caller) => caller,
        Err(fault) => return Refused(fault).into_response(),
    };
    let token = caller.token.clone();
    let (mut head, body) = request.into_parts();
    head.extensions.insert(caller);
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

async fn who(door: &Door, headers: HeaderMap) -> Result<Caller, Fault> {
    let http = &door.http;
    let token = http.paces.admit(&http.handle, &headers).await?;
    let session = headers.get(SESSION).and_then(|id| id.to_str().ok());
    if let Some(session) = session {
        let all = door.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(session) != Some(&token) {
            return Err(Fault::new(Code::NotFound, "unknown protocol session").hint("initialize again"));
        }
    }
    let (me, _) = http.handle.call(&token, Call::decode(op::Me::ROW.name, json!(Nothing {}))?, Vec::new()).await?;
    let me: MeAnswer = serde_json::from_value(me).map_err(|e| Fault::new(Code::Internal, e.to_string()))?;
    Ok(Caller { token, name: me.actor.handle.name().to_owned() })
}
