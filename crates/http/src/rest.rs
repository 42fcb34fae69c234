//! REST: one way for all rows. Path, query and body become one object, which is read as the operation's parameters.

use crate::guard::Names;
use crate::listen::Http;
use crate::refusal::Refused;
use crate::{bytes, files, login, openapi, pages, preview, socket, stream, tools};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use holdfast_door::Path;
use holdfast_wire::frame::REQUEST_BYTES_MAX;
use holdfast_wire::operations::{ALSO, Bytes, Route};
use holdfast_wire::{Call, Code, Fault, OPERATIONS, Row};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a body may take.
const BODY_WAIT: Duration = Duration::from_secs(30);
/// Raw bytes.
/// What is read on the thread that serves everybody: a millisecond's work.
pub(crate) const HERE_BYTES_MAX: usize = 64 * 1024;

const OCTETS: &str = "application/octet-stream";
const JSON: &str = "application/json";
/// Has the answer's fields where its body is raw bytes.
const ANSWER_HEADER: &str = "holdfast-answer";
/// Longest `wait`: eleven days.
pub const WAIT_SECONDS_MAX: f64 = 1e6;
/// Operations whose answers are events, which may be streamed.
pub const WATCHING: [&str; 2] = ["session.watch", "graph.watch"];

/// A row where HTTP has it.
#[derive(Debug)]
pub struct Endpoint {
    pub row: Row,
    pub route: Route,
    /// The path's name for a field, where it is another.
    pub renamed: Option<(&'static str, &'static str)>,
    /// How the fields of the parameters are read from a text.
    fields: BTreeMap<String, Reading>,
}

/// How a field is read from a query or a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Text,
    /// A number, a truth value, an object.
    Json,
}

/// Every endpoint of the table.
pub fn endpoints(schema: &Value) -> Vec<Endpoint> {
    let own = OPERATIONS.iter().map(|row| (*row, row.route, None));
    let also = ALSO.iter().map(|also| {
        let row =
            OPERATIONS.iter().find(|row| row.name == also.name).expect("a route beside a row's own names that row");
        let named = openapi::names_in(also.route.path().unwrap_or_default()).next().expect("and has one name");
        (*row, also.route, Some((named, also.field)))
    });
    let all = own.chain(also).filter(|(_, route, _)| route.path().is_some());
    all.map(|(row, route, renamed)| Endpoint { row, route, renamed, fields: readings(schema, row.name) }).collect()
}

fn readings(schema: &Value, name: &str) -> BTreeMap<String, Reading> {
    let params = openapi::resolved(schema, &schema["operations"][name]["params"]);
    let fields = params["properties"].as_object().into_iter().flatten();
    fields.map(|(field, of)| (field.clone(), reading(schema, of))).collect()
}

fn reading(schema: &Value, of: &Value) -> Reading {
    let of = openapi::resolved(schema, of);
    let alternatives = ["anyOf", "oneOf"].iter().find_map(|any| of[*any].as_array());
    let is_text = match (&of["type"], alternatives) {
        (Value::String(one), _) => one == "string",
        (Value::Array(several), _) => several.iter().any(|one| one == "string"),
        (_, Some(several)) => several.iter().any(|one| reading(schema, one) == Reading::Text),
        _ => false,
    };
    if is_text { Reading::Text } else { Reading::Json }
}

/// All routes.
pub fn router(http: Arc<Http>, endpoints: Vec<Endpoint>) -> Router {
    let (names, tools) = (http.names.clone(), tools::routes(&http));
    let mut router = Router::new().route("/v1/openapi.json", get(document)).route("/v1/connect", get(socket::connect));
    for endpoint in endpoints {
        let endpoint = Arc::new(endpoint);
        let path = format!("/v1{}", endpoint.route.path().unwrap_or_default());
        let method = match endpoint.route {
            Route::Get(_) => MethodFilter::GET,
            Route::Post(_) => MethodFilter::POST,
            Route::Put(_) => MethodFilter::PUT,
            Route::Delete(_) => MethodFilter::DELETE,
            Route::Connection => continue,
        };
        let handler = move |State(http): State<Arc<Http>>,
                            path: Result<RawPathParams, RawPathParamsRejection>,
                            request: Request| {
            let endpoint = Arc::clone(&endpoint);
            async move {
                match path {
                    Ok(path) => answer(http, &endpoint, &path, request).await.map_err(Refused).into_response(),
                    Err(why) => Refused(bad(&why.body_text())).into_response(),
                }
            }
        };
        router = router.route(&path, on(method, handler));
    }
    let nothing = || async { Refused(Fault::new(Code::UnknownOperation, "not found").hint("see /v1/openapi.json")) };
    router
        .merge(login::routes())
        .merge(preview::routes())
        .merge(files::routes())
        .route("/v1/{*rest}", axum::routing::any(nothing))
        .route("/", get(pages::page))
        .route("/{*rest}", get(pages::page))
        .fallback(nothing)
        .method_not_allowed_fallback(|| async {
            let fault = Fault::new(Code::UnknownOperation, "method not allowed").hint("see /v1/openapi.json");
            (StatusCode::METHOD_NOT_ALLOWED, axum::Json(fault))
        })
        .with_state(http)
        .merge(tools)
        .layer(middleware::from_fn_with_state(names, before))
}

/// What every request passes first, and what every answer says.
pub(crate) async fn before(State(names): State<Names>, request: Request, next: Next) -> Response {
    let mut response = match names.check(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(fault) => Refused(fault).into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn document(State(http): State<Arc<Http>>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], http.openapi.clone()).into_response()
}

async fn answer(
    http: Arc<Http>,
    endpoint: &Endpoint,
    path: &RawPathParams,
    request: Request,
) -> Result<Response, Fault> {
    let (head, body) = request.into_parts();
    let speaker = http.admit(&head.extensions, &head.headers, Path::Http).await?;
    let mut fields = Map::new();
    for (name, value) in path {
        let field = endpoint.renamed.filter(|(named, _)| *named == name).map_or(name, |(_, field)| field);
        put(&mut fields, field, endpoint.read(field, value)?)?;
    }
    let mut wait = None;
    for (name, value) in form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes()) {
        match &*name {
            // Seconds are what people write.
            "wait" if endpoint.fields.contains_key("wait_ms") && wait.is_none() => wait = Some(seconds(&value)?),
            name => put(&mut fields, name, endpoint.read(name, &value)?)?,
        }
    }
    let (asked, length) = read_body(endpoint, &head.method, &head.headers, body, &mut fields).await?;
    if let Some(wait) = wait {
        put(&mut fields, "wait_ms", wait)?;
    }
    if endpoint.row.name == "session.send" && !fields.contains_key("stream") && !fields.contains_key("seq") {
        // A client that does not repeat lost requests needs no number of its own.
        put(&mut fields, "stream", random().into())?;
        put(&mut fields, "seq", 1.into())?;
    }
    if WATCHING.contains(&endpoint.row.name) && stream::is_wanted(&head.headers) {
        return stream::answer(http, speaker, endpoint.row.name, fields, stream::last_event(&head.headers)?).await;
    }
    let name = endpoint.row.name;
    let call = if length > HERE_BYTES_MAX {
        aside(move || Call::decode(name, Value::Object(fields))).await??
    } else {
        Call::decode(name, Value::Object(fields))?
    };
    let (answer, answered) = http.handle.call(&speaker, call, asked).await?;
    Ok(respond(endpoint, &head.headers, answer, answered))
}

fn respond(endpoint: &Endpoint, headers: &HeaderMap, mut answer: Value, answered: Vec<u8>) -> Response {
    if endpoint.row.bytes == Bytes::Answered {
        let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if accept.split(',').any(|kind| kind.trim().starts_with(OCTETS)) {
            let fields = HeaderValue::from_str(&answer.to_string()).unwrap_or(HeaderValue::from_static("{}"));
            let mut response = answered.into_response();
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(OCTETS));
            response.headers_mut().insert(ANSWER_HEADER, fields);
            return response;
        }
        bytes::put(&mut answer, &answered);
    }
    let is_new = match endpoint.row.name {
        "session.new" | "token.new" => true,
        "run.start" => answer["existing"] != Value::Bool(true),
        _ => false,
    };
    (if is_new { StatusCode::CREATED } else { StatusCode::OK }, axum::Json(answer)).into_response()
}

/// Reads a body: fields, or a question's bytes; and how long it was.
async fn read_body(
    endpoint: &Endpoint,
    method: &Method,
    headers: &HeaderMap,
    body: Body,
    fields: &mut Map<String, Value>,
) -> Result<(Vec<u8>, usize), Fault> {
    let body = whole(headers, body, REQUEST_BYTES_MAX).await?;
    let length = body.len();
    let takes_bytes = endpoint.row.bytes == Bytes::Asked;
    match kind(headers).as_str() {
        OCTETS if takes_bytes => return Ok((body.to_vec(), 0)),
        _ if body.is_empty() => {}
        JSON if *method == Method::POST || *method == Method::PUT => {
            let read = if body.len() <= HERE_BYTES_MAX { object(&body) } else { aside(move || object(&body)).await? };
            for (field, value) in read? {
                put(fields, &field, value)?;
            }
        }
        JSON => return Err(bad("this request takes its fields in the query, not in a body")),
        _ => return Err(not_json()),
    }
    // An upload also asks without bytes: how far it is, or that it is over.
    let has_none = !fields.contains_key(bytes::TEXT) && !fields.contains_key(bytes::BASE64);
    let is_without = !takes_bytes || endpoint.row.name == "files.upload" && has_none;
    Ok((if is_without { Vec::new() } else { bytes::take(fields)? }, length))
}

/// The fields of a body that is a JSON object of at most so many bytes.
pub async fn read_json(headers: &HeaderMap, body: Body, max: usize) -> Result<Map<String, Value>, Fault> {
    let body = whole(headers, body, max).await?;
    if kind(headers) == JSON { object(&body) } else { Err(not_json()) }
}

/// What a body is said to be.
fn kind(headers: &HeaderMap) -> String {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Reads something long where that holds nobody up.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    let read = tokio::task::spawn_blocking(work).await;
    read.map_err(|_| Fault::new(Code::Internal, "the host ran into a fault of its own"))
}

fn object(body: &[u8]) -> Result<Map<String, Value>, Fault> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(bad("the body is not a JSON object")),
        Err(error) => Err(bad(&format!("the body: {error}"))),
    }
}

fn bad(what: &str) -> Fault {
    Fault::new(Code::BadRequest, what)
}

fn not_json() -> Fault {
    bad("the body is JSON: send `Content-Type: application/json`")
}

/// A whole body of at most so many bytes.
pub async fn whole(headers: &HeaderMap, body: Body, max: usize) -> Result<axum::body::Bytes, Fault> {
    let too_large = || Fault::new(Code::TooLarge, format!("this request may have at most {max} bytes"));
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > max as u64) {
        return Err(too_large());
    }
    let read = tokio::time::timeout(BODY_WAIT, axum::body::to_bytes(body, max)).await;
    let body = read.map_err(|_| bad("the body did not come"))?.map_err(|error| {
        let is_long = std::iter::successors(std::error::Error::source(&error), |why| why.source())
            .any(|why| why.is::<http_body_util::LengthLimitError>());
        if is_long { too_large() } else { bad("the body broke off") }
    })?;
    Ok(body)
}

fn put(fields: &mut Map<String, Value>, field: &str, value: Value) -> Result<(), Fault> {
    match fields.insert(field.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(Fault::new(Code::BadRequest, format!("duplicate field `{field}`"))),
    }
}

impl Endpoint {
    fn read(&self, field: &str, text: &str) -> Result<Value, Fault> {
        match self.fields.get(field) {
            // The code that reads the parameters names an unknown one.
            None | Some(Reading::Text) => Ok(text.into()),
            // What is not given is left out: `null` is no number.
            Some(Reading::Json) => {
                let value = serde_json::from_str(text).ok().filter(|value: &Value| !value.is_null());
                value.ok_or_else(|| Fault::new(Code::BadRequest, format!("invalid value {text:?} for `{field}`")))
            }
        }
    }
}

fn seconds(text: &str) -> Result<Value, Fault> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=WAIT_SECONDS_MAX).contains(seconds));
    let seconds = seconds.ok_or_else(|| Fault::new(Code::BadRequest, "`wait` must be a number of seconds"))?;
    Ok(Value::from((seconds * 1000.0) as u64))
}

pub(crate) fn random() -> u64 {
    getrandom::u64().expect("the kernel gives random numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let never = futures_util::stream::pending::<Result<axum::body::Bytes, std::convert::Infallible>>();
        let fault = whole(&HeaderMap::new(), Body::from_stream(never), 10).await.unwrap_err();
        assert_eq!((fault.code, &*fault.message), (Code::BadRequest, "the body did not come"));
    }

    #[tokio::test]
    async fn a_body_that_is_too_long_is_refused_also_where_it_does_not_say_so() {
        let fault = whole(&HeaderMap::new(), Body::from("01234567890"), 10).await.unwrap_err();
        assert_eq!(fault.code, Code::TooLarge);
        assert_eq!(whole(&HeaderMap::new(), Body::from("0123456789"), 10).await.unwrap(), "0123456789");
    }
}
