//! The web client's files, as they were built into this program.

use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Nothing from elsewhere, nothing inline: what a session prints can never run here.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; manifest-src 'self'; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// What is shown where the client is not there.
const MISSING: &str = "<!doctype html><meta charset=utf-8><title>Holdfast</title>\
    <h1>This program was built without the web client</h1>\
    <p>Install npm, then: <code>cd web &amp;&amp; npm ci &amp;&amp; npm run build</code>, and build the program again.";

/// A file, or the page for every other path of the client.
pub async fn page(uri: Uri) -> Response {
    let find = |path: &str| FILES.iter().find(|(name, _)| *name == path).copied();
    let path = uri.path();
    // What looks like a file is one or is not there: a script that is missing must not come as a page.
    let is_file = path.rsplit('/').next().is_some_and(|last| last.contains('.'));
    let (name, content) = match find(path).or_else(|| find("/index.html").filter(|_| !is_file)) {
        Some((name, content)) => (name, content),
        None if is_file => return (StatusCode::NOT_FOUND, "there is no such file\n").into_response(),
        None => ("/index.html", MISSING.as_bytes()),
    };
    let mut headers = HeaderMap::new();
    let mut put = |name, value| headers.insert(name, HeaderValue::from_static(value));
    put(header::CONTENT_TYPE, kind(name));
    put(header::CONTENT_SECURITY_POLICY, POLICY);
    put(header::REFERRER_POLICY, "no-referrer");
    // The names of what Vite makes have a hash of what is in them.
    let lasts = name.starts_with("/assets/");
    put(header::CACHE_CONTROL, if lasts { "public, max-age=31536000, immutable" } else { "no-cache" });
    (headers, content).into_response()
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        _ => "application/octet-stream",
    }
}
