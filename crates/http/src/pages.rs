//! The web client's files, as they were built into this program: packed, and served as the browser can take them.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

/// A file of the page.
struct File {
    name: &'static str,
    /// By which a browser knows that it has it already.
    tag: &'static str,
    body: Body,
}

/// What a file has.
#[derive(Clone, Copy)]
enum Body {
    /// As it is.
    Plain(&'static [u8]),
    /// A text, in both forms that browsers take.
    Packed { br: &'static [u8], gzip: &'static [u8] },
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Nothing from elsewhere, nothing inline: what a session prints can never run here.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; manifest-src 'self'; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The shell's own: it runs the page of a host behind a relay in a frame, which has no address and inherits this.
const SHELL_POLICY: &str = include_str!("../../../web/dist/i/policy");

/// What is shown where the client is not there.
const MISSING: File = File {
    name: "/index.html",
    tag: "W/\"missing\"",
    body: Body::Plain(
        b"<!doctype html><meta charset=utf-8><title>Holdfast</title>\
        <h1>This program was built without the web client</h1>\
        <p>In its sources, run <code>cargo xtask web-build</code>, and build the program again.",
    ),
};

/// The head of a gzip file without a name, as the packer writes it; the tail has the sum and the length.
const GZIP_HEAD: usize = 10;
const GZIP_TAIL: usize = 8;

/// A file, or the page for every other path of the client.
pub async fn page(uri: Uri, asked: HeaderMap) -> Response {
    let find = |path: &str| FILES.iter().find(|file| file.name == path);
    let path = if uri.path() == "/i" { "/i/index.html" } else { uri.path() };
    // What looks like a file is one or is not there: a script that is missing must not come as a page.
    let is_file = path.rsplit('/').next().is_some_and(|last| last.contains('.'));
    match find(path).or_else(|| find("/index.html").filter(|_| !is_file)) {
        Some(file) => serve(file, &asked),
        None if is_file => (StatusCode::NOT_FOUND, "not found\n").into_response(),
        None => serve(&MISSING, &asked),
    }
}

fn serve(file: &File, asked: &HeaderMap) -> Response {
    let mut headers = HeaderMap::new();
    let mut put = |name: HeaderName, value| headers.insert(name, HeaderValue::from_static(value));
    put(header::CONTENT_TYPE, kind(file.name));
    let is_shell = file.name.starts_with("/i/");
    put(header::CONTENT_SECURITY_POLICY, if is_shell { SHELL_POLICY } else { POLICY });
    if is_shell {
        // Its worker lies below the path that it serves.
        put(HeaderName::from_static("service-worker-allowed"), "/i");
    }
    put(header::REFERRER_POLICY, "no-referrer");
    put(header::ETAG, file.tag);
    // The names of what Vite makes have a hash of what is in them.
    let lasts = file.name.starts_with("/assets/");
    put(header::CACHE_CONTROL, if lasts { "public, max-age=31536000, immutable" } else { "no-cache" });
    if matches!(file.body, Body::Packed { .. }) {
        put(header::VARY, "accept-encoding");
    }
    let has = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|tags| tags.to_str().ok());
    if has.flat_map(|tags| tags.split(',')).any(|tag| tag.trim() == file.tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    match file.body {
        Body::Packed { br, .. } if takes(asked, "br") => {
            put(header::CONTENT_ENCODING, "br");
            (headers, br).into_response()
        }
        Body::Packed { gzip, .. } if takes(asked, "gzip") => {
            put(header::CONTENT_ENCODING, "gzip");
            (headers, gzip).into_response()
        }
        Body::Packed { gzip, .. } => match unpacked(gzip) {
            Some(plain) => (headers, plain).into_response(),
            None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        },
        Body::Plain(content) => (headers, content).into_response(),
    }
}

/// Whether whoever asks takes this encoding: named, or meant by `*`, and not with a weight of nothing.
fn takes(asked: &HeaderMap, encoding: &str) -> bool {
    let weight = |name: &str| {
        let said = asked.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        said.flat_map(|value| value.split(',')).find_map(|one| {
            let mut parts = one.split(';').map(str::trim);
            let named = parts.next().is_some_and(|found| found.eq_ignore_ascii_case(name));
            let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse::<f32>().ok());
            named.then(|| weight.unwrap_or(0.0))
        })
    };
    weight(encoding).or_else(|| weight("*")).is_some_and(|weight| weight > 0.0)
}

/// The text of a gzip file: for the few who take neither form.
fn unpacked(gzip: &[u8]) -> Option<Vec<u8>> {
    let packed = gzip.get(GZIP_HEAD..gzip.len().checked_sub(GZIP_TAIL)?)?;
    miniz_oxide::inflate::decompress_to_vec(packed).ok()
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

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    /// Asks for a file: the status, the headers, the body.
    async fn ask(path: &str, headers: &[(HeaderName, &str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
        let asked = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect();
        let (head, body) = page(path.parse().unwrap(), asked).await.into_parts();
        (head.status, head.headers, body.collect().await.unwrap().to_bytes().to_vec())
    }

    fn packed() -> impl Iterator<Item = (&'static str, &'static [u8], &'static [u8])> {
        FILES.iter().filter_map(|file| match file.body {
            Body::Packed { br, gzip } => Some((file.name, br, gzip)),
            Body::Plain(_) => None,
        })
    }

    #[tokio::test]
    async fn a_file_comes_in_the_smallest_form_its_browser_takes() {
        let encoded = async |path: &str, accept: &str| {
            let (status, headers, body) = ask(path, &[(header::ACCEPT_ENCODING, accept)]).await;
            assert_eq!((status, &headers[header::VARY]), (StatusCode::OK, &"accept-encoding".parse().unwrap()));
            (headers.get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap().to_owned()), body)
        };
        let mut count = 0;
        for (name, br, gzip) in packed() {
            count += 1;
            let plain = unpacked(gzip).unwrap();
            assert!(br.len() < gzip.len() && gzip.len() < plain.len(), "{name}");
            for accept in ["gzip, deflate, br, zstd", "BR", "*", "gzip;q=1.0, br;q=0.1"] {
                assert_eq!(encoded(name, accept).await, (Some("br".into()), br.to_vec()), "{name} {accept}");
            }
            for accept in ["gzip", "gzip, br;q=0", "br;q=no, *;q=0.5"] {
                assert_eq!(encoded(name, accept).await, (Some("gzip".into()), gzip.to_vec()), "{name} {accept}");
            }
            for accept in ["", "identity", "deflate", "*;q=0", "gzip;q=0, br;q=0.0"] {
                assert_eq!(encoded(name, accept).await, (None, plain.clone()), "{name} {accept}");
            }
        }
        assert!(count > 5, "the page is built in: {count}");
    }

    #[tokio::test]
    async fn what_a_browser_has_already_is_not_sent_again() {
        let (_, headers, body) = ask("/ses/of/the/client", &[]).await;
        let tag = headers[header::ETAG].to_str().unwrap().to_owned();
        assert_eq!(
            (&headers[header::CACHE_CONTROL], &headers[header::CONTENT_TYPE]),
            (&"no-cache".parse().unwrap(), &"text/html; charset=utf-8".parse().unwrap())
        );
        assert!(String::from_utf8(body).unwrap().contains("<div id=\"app\">"));
        let again = ask("/", &[(header::IF_NONE_MATCH, &format!("W/\"other\", {tag}"))]).await;
        assert_eq!((again.0, again.2), (StatusCode::NOT_MODIFIED, Vec::new()));
        assert_eq!(ask("/", &[(header::IF_NONE_MATCH, "W/\"other\"")]).await.0, StatusCode::OK);
        let (name, ..) = packed().find(|(name, ..)| name.starts_with("/assets/")).unwrap();
        assert_eq!(ask(name, &[]).await.1[header::CACHE_CONTROL], "public, max-age=31536000, immutable");
        assert_eq!(ask("/assets/none.js", &[]).await.0, StatusCode::NOT_FOUND);
        assert_eq!(ask("/stamp", &[]).await.1[header::CONTENT_TYPE], "text/html; charset=utf-8", "no file of the page");
    }
}
