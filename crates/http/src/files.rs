//! Whole files over HTTP, at `/v1/sessions/{session}/tree/{path}`: downloads with ranges, uploads that stream and can be resumed.
//!
//! Each piece is a question of its own to the host, judged anew. Nothing of a session's file is ever a page of ours: it is always an
//! attachment of bytes, in a sandbox.

use crate::listen::Http;
use crate::refusal::Refused;
use crate::rest;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::StreamExt;
use holdfast_door::{Path, Speaker};
use holdfast_wire::files::{FilesReadAnswer, FilesReadParams, FilesUploadAnswer, FilesUploadParams, UPLOAD_BYTES_MAX};
use holdfast_wire::{Call, Code, Fault};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a file in one question: small enough that a reader who leaves costs little.
const PIECE_BYTES: u64 = 1024 * 1024;
/// How long a sender may be silent.
const SILENCE: Duration = Duration::from_secs(30);

pub(crate) fn routes() -> Router<Arc<Http>> {
    Router::new().route("/v1/sessions/{session}/tree/{*path}", get(download).head(download).put(upload))
}

fn named(path: &RawPathParams) -> (String, String) {
    let of = |name: &str| path.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned());
    (of("session").unwrap_or_default(), of("path").unwrap_or_default())
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, Fault> {
    serde_json::from_value(answer).map_err(|error| Fault::new(Code::Internal, error.to_string()))
}

/// Which bytes of a file are wanted.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    All,
    /// From the first up to and without the last.
    Part(u64, u64),
    /// None that are there.
    Nothing,
}

/// What a `Range` header asks for. Several ranges, and what is no range of bytes, are answered with the whole file, as is allowed.
fn wanted(range: Option<&str>, size: u64) -> Wanted {
    let Some(range) = range.and_then(|range| range.trim().strip_prefix("bytes=")) else { return Wanted::All };
    let Some((from, to)) = range.split_once('-').filter(|_| !range.contains(',')) else { return Wanted::All };
    let (from, to) = (from.trim(), to.trim());
    let part = |from: u64, end: u64| if from < end { Wanted::Part(from, end) } else { Wanted::Nothing };
    match (from.parse::<u64>(), to.parse::<u64>()) {
        (Ok(from), Ok(to)) if from <= to => part(from, to.saturating_add(1).min(size)),
        (Ok(from), Err(_)) if to.is_empty() => part(from, size),
        (Err(_), Ok(last)) if from.is_empty() => part(size.saturating_sub(last), size),
        _ => Wanted::All,
    }
}

async fn download(State(http): State<Arc<Http>>, path: RawPathParams, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let (session, path) = named(&path);
    let answer = async {
        let speaker = http.admit(&head.extensions, &head.headers, Path::Http).await?;
        let source = Source { http: Arc::clone(&http), speaker, session, path, etag: None };
        let (about, _) = source.piece(0, 0).await?;
        let source = Source { etag: Some(about.etag.clone()), ..source };
        Ok::<_, Fault>(respond(source, &about, &head.method, &head.headers))
    };
    answer.await.map_err(Refused).into_response()
}

/// A file that is read piece by piece, and is the same one from the first to the last.
#[derive(Debug)]
struct Source {
    http: Arc<Http>,
    speaker: Speaker,
    session: String,
    path: String,
    etag: Option<String>,
}

impl Source {
    async fn piece(&self, offset: u64, max: u64) -> Result<(FilesReadAnswer, Vec<u8>), Fault> {
        let (session, path, etag) = (self.session.clone(), self.path.clone(), self.etag.clone());
        let call = Call::FilesRead(FilesReadParams { session, path, offset, max: Some(max), etag });
        let (answer, bytes) = self.http.handle.call(&self.speaker, call, Vec::new()).await?;
        Ok((read(answer)?, bytes))
    }
}

fn respond(source: Source, about: &FilesReadAnswer, method: &Method, headers: &HeaderMap) -> Response {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let tag = format!("\"{}\"", about.etag);
    let has = |list: &str| list.split(',').any(|one| matches!(one.trim(), "*") || one.trim() == tag);
    if text(header::IF_NONE_MATCH).is_some_and(has) {
        return with_headers(StatusCode::NOT_MODIFIED, Body::empty(), about, &tag);
    }
    // A range of another version is no part of this one.
    let range = text(header::RANGE).filter(|_| text(header::IF_RANGE).is_none_or(|known| known.trim() == tag));
    let (status, from, to) = match wanted(range, about.size) {
        Wanted::All => (StatusCode::OK, 0, about.size),
        Wanted::Part(from, to) => (StatusCode::PARTIAL_CONTENT, from, to),
        Wanted::Nothing => {
            let mut response = with_headers(StatusCode::RANGE_NOT_SATISFIABLE, Body::empty(), about, &tag);
            put(&mut response, header::CONTENT_RANGE, &format!("bytes */{}", about.size));
            return response;
        }
    };
    let body = if *method == Method::HEAD { Body::empty() } else { Body::from_stream(stream(source, from, to)) };
    let mut response = with_headers(status, body, about, &tag);
    put(&mut response, header::CONTENT_LENGTH, &(to - from).to_string());
    if status == StatusCode::PARTIAL_CONTENT {
        put(&mut response, header::CONTENT_RANGE, &format!("bytes {from}-{}/{}", to - 1, about.size));
    }
    response
}

fn stream(source: Source, from: u64, to: u64) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> {
    futures_util::stream::unfold(Some((source, from)), move |state| async move {
        let (source, at) = state.filter(|(_, at)| *at < to)?;
        match source.piece(at, PIECE_BYTES.min(to - at)).await {
            Ok((_, bytes)) if !bytes.is_empty() => {
                let next = at + bytes.len() as u64;
                Some((Ok(Bytes::from(bytes)), Some((source, next))))
            }
            // The answer is cut off here: what follows is not known.
            Ok(_) => Some((Err(std::io::ErrorKind::UnexpectedEof.into()), None)),
            Err(fault) => Some((Err(std::io::Error::other(fault)), None)),
        }
    })
}

fn put(response: &mut Response, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

fn with_headers(status: StatusCode, body: Body, about: &FilesReadAnswer, tag: &str) -> Response {
    let mut response = (status, body).into_response();
    put(&mut response, header::ETAG, tag);
    put(&mut response, header::ACCEPT_RANGES, "bytes");
    put(&mut response, header::CONTENT_TYPE, "application/octet-stream");
    put(&mut response, header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox");
    let name = about.path.rsplit('/').next().unwrap_or("file");
    let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20");
    put(&mut response, header::CONTENT_DISPOSITION, &format!("attachment; filename*=UTF-8''{name}"));
    response
}

/// `PUT`: the file whole, or from `offset` on of an upload with this `tag` and `size`.
async fn upload(State(http): State<Arc<Http>>, path: RawPathParams, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let (session, path) = named(&path);
    let answer = async {
        let speaker = http.admit(&head.extensions, &head.headers, Path::Http).await?;
        let mut params = FilesUploadParams { session, path, tag: random_tag(), ..FilesUploadParams::default() };
        let length = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let mut offset = 0;
        let mut size = length;
        for (name, value) in form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes()) {
            let number = || value.parse::<u64>().map_err(|_| bad(&format!("invalid value for `{name}`")));
            match &*name {
                "tag" => params.tag = value.into_owned(),
                "size" => size = Some(number()?),
                "offset" => offset = number()?,
                "mode" => params.mode = u32::from_str_radix(&value, 8).ok(),
                other => return Err(bad(&format!("unknown field `{other}`"))),
            }
        }
        params.size = size.ok_or_else(|| bad("say how long the file is: `Content-Length`, or `size`"))?;
        let arrived = take(&http, &speaker, &params, offset, body).await?;
        if arrived < params.size {
            return Ok((StatusCode::ACCEPTED, axum::Json(FilesUploadAnswer { offset: arrived, change: None })));
        }
        let done = FilesUploadParams { finish: true, ..params };
        let (answer, _) = http.handle.call(&speaker, Call::FilesUpload(done), Vec::new()).await?;
        Ok::<_, Fault>((StatusCode::OK, axum::Json(read(answer)?)))
    };
    answer.await.map_err(Refused).into_response()
}

/// Takes a body piece by piece; gives how far the upload is.
async fn take(
    http: &Http,
    speaker: &Speaker,
    params: &FilesUploadParams,
    mut offset: u64,
    body: Body,
) -> Result<u64, Fault> {
    let mut incoming = body.into_data_stream();
    let mut piece: Vec<u8> = Vec::new();
    loop {
        let next = tokio::time::timeout(SILENCE, incoming.next()).await;
        let next = next.map_err(|_| bad("the body did not come"))?.transpose();
        let next = next.map_err(|_| bad("the body broke off"))?;
        let is_last = next.is_none();
        let mut rest = next.unwrap_or_default();
        loop {
            let room = UPLOAD_BYTES_MAX - piece.len();
            piece.extend_from_slice(&rest.split_to(room.min(rest.len())));
            if piece.len() < UPLOAD_BYTES_MAX && (!is_last || piece.is_empty()) {
                break;
            }
            let call = Call::FilesUpload(FilesUploadParams { offset: Some(offset), ..params.clone() });
            offset += piece.len() as u64;
            http.handle.call(speaker, call, std::mem::take(&mut piece)).await?;
        }
        if is_last {
            return Ok(offset);
        }
    }
}

fn bad(message: &str) -> Fault {
    Fault::new(Code::BadRequest, message)
}

/// The tag of an upload that is not resumed.
fn random_tag() -> String {
    format!("{:016x}", rest::random())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_as_the_standard_says() {
        let all = |range: &str| wanted(Some(range), 10);
        assert_eq!(wanted(None, 10), Wanted::All);
        assert_eq!(all("bytes=0-3"), Wanted::Part(0, 4));
        assert_eq!(all("bytes=4-"), Wanted::Part(4, 10));
        assert_eq!(all("bytes=-3"), Wanted::Part(7, 10));
        assert_eq!(all("bytes=-30"), Wanted::Part(0, 10));
        assert_eq!(all("bytes=8-99"), Wanted::Part(8, 10));
        assert_eq!(all("bytes=10-"), Wanted::Nothing);
        assert_eq!(all("bytes=-0"), Wanted::Nothing);
        assert_eq!(wanted(Some("bytes=0-"), 0), Wanted::Nothing);
        for whole in ["bytes=3-1", "bytes=0-1,4-5", "lines=1-2", "bytes=a-b", "bytes="] {
            assert_eq!(all(whole), Wanted::All, "{whole}");
        }
    }
}
