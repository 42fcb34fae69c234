//! How a browser logs in: by a code from the address's fragment, once. It gets two parts, a cookie that no script can read and a
//! key that the page keeps: a script of another port has neither use of the first nor sight of the second.
//!
//! The page never sends its key. It asks for a challenge with a random text, sees by the proof that this is the host that it logged in
//! at, and answers the challenge ([`holdfast_door::Challenge`]): who listens here in the host's place gets the cookie and nothing else.
//!
//! The cookie's name has the port: hosts on other ports of the same machine have cookies of their own.

use crate::guard::{self, Names, PAGE};
use crate::listen::Http;
use crate::refusal::Refused;
use crate::rest::read_json;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use holdfast_door::{Challenge, Path, Shown};
use holdfast_wire::{Code, Fault};
use serde_json::{Value, json};
use std::sync::Arc;

/// How long a browser keeps the cookie; the token in it ends by itself.
const COOKIE_SECONDS: u64 = 30 * 24 * 60 * 60;

/// A code or a token: an unknown client must not fill our memory.
const LOGIN_BYTES_MAX: usize = 4096;

/// The routes.
pub fn routes() -> Router<Arc<Http>> {
    let routes = Router::new().route("/v1/login", post(login)).route("/v1/logout", post(logout));
    routes.route("/v1/challenge", post(challenge))
}

async fn challenge(State(http): State<Arc<Http>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let asked = async {
        http.names.must_be_page(&head.headers)?;
        let fields = read_json(&head.headers, body, LOGIN_BYTES_MAX).await?;
        let nonce = fields.get("nonce").and_then(Value::as_str).unwrap_or_default().to_owned();
        let cookie = guard::cookie(&head.headers).map(str::to_owned);
        let cookie = cookie.ok_or_else(|| Fault::new(Code::Unidentified, "this browser has no cookie of this host"))?;
        http.paces.of_secret(http.handle.challenge(cookie, nonce).await)
    };
    match asked.await {
        Ok(Challenge { challenge, proof }) => {
            axum::Json(json!({ "challenge": challenge, "proof": proof })).into_response()
        }
        Err(fault) => Refused(fault).into_response(),
    }
}

async fn login(State(http): State<Arc<Http>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let exchanged = async {
        http.names.must_be_page(&head.headers)?;
        let fields = read_json(&head.headers, body, LOGIN_BYTES_MAX).await?;
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let only = text("as");
        match (text("code"), text("token")) {
            (Some(code), None) => {
                if let Some(only) = only {
                    must_be(&only, &http.paces.of_secret(http.handle.whose(code.clone()).await)?)?;
                }
                http.paces.of_secret(http.handle.login(code).await)
            }
            (None, Some(token)) => {
                let speaker = http.paces.check(&http.handle, Shown::Text(token), Path::Http).await?;
                if let Some(only) = only {
                    must_be(&only, &speaker.actor.handle.to_string())?;
                }
                http.handle.lend(speaker).await
            }
            (Some(_), Some(_)) | (None, None) => {
                Err(Fault::new(Code::BadRequest, "a login needs a `code` or a `token`, as a string"))
            }
        }
    };
    match exchanged.await {
        Ok(browser) => {
            let cookie = cookie(&http.names, &head.headers, &browser.cookie, COOKIE_SECONDS);
            let page = json!({ "page": format!("{PAGE}{}", browser.key) });
            ([(header::SET_COOKIE, cookie)], axum::Json(page)).into_response()
        }
        Err(fault) => Refused(fault).into_response(),
    }
}

/// A browser that is somebody stays so, until that one has said otherwise: a link in somebody's output must not make a person
/// act in another's name unawares. What was shown stays good.
fn must_be(only: &str, whose: &str) -> Result<(), Fault> {
    if only == whose {
        return Ok(());
    }
    let message = format!("this link is for {whose}, but this browser is signed in as {only}");
    Err(Fault { details: Some(Box::new(json!({ "actor": whose }))), ..Fault::new(Code::Denied, message) })
}

async fn logout(State(http): State<Arc<Http>>, headers: HeaderMap) -> Response {
    if let Err(fault) = http.names.must_be_page(&headers) {
        return Refused(fault).into_response();
    }
    // Who shows a token gives it back; a cookie that opens nothing goes all the same.
    if let Ok(speaker) = http.paces.admit(&http.handle, &headers, Path::Http).await {
        let _ = http.handle.logout(speaker).await;
    }
    ([(header::SET_COOKIE, cookie(&http.names, &headers, "", 0))], axum::Json(json!({}))).into_response()
}

fn cookie(names: &Names, headers: &HeaderMap, token: &str, seconds: u64) -> HeaderValue {
    let name = guard::cookie_name(headers);
    let secure = if names.tls { "; Secure" } else { "" };
    let text = format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}
