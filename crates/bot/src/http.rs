//! HTTP as both services want it: JSON out and in, files as multipart, their ways to say "slower" and "not you".

use crate::chat::Trouble;
use serde_json::Value;
use std::time::Duration;

/// Longest answer that is read: Telegram's updates are at most 100, some kilobytes each.
const ANSWER_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// A request that takes longer is tried again later.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest wait that is believed.
const SLOW_MAX: Duration = Duration::from_secs(600);

/// What is sent.
pub enum Sending<'a> {
    /// Nothing: it is a GET.
    Nothing,
    /// A JSON body.
    Json(&'a Value),
    /// Fields of text and a file.
    Multipart(&'a [(&'a str, String)], Attached<'a>),
}

/// A file to upload.
pub struct Attached<'a> {
    /// The field's name.
    pub field: &'a str,
    /// The file's name.
    pub name: &'a str,
    /// What it is.
    pub kind: &'a str,
    /// What it has.
    pub bytes: &'a [u8],
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its JSON, or null.
    pub json: Value,
    /// What a `Retry-After` said.
    pub retry_after: Option<Duration>,
}

/// One client for all requests of a thread.
pub struct Http {
    agent: ureq::Agent,
}

impl Http {
    /// With connections that are used again.
    pub fn new() -> Http {
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            // A token is for one host.
            .max_redirects(0)
            // The gateway's WebSocket knows none either, and a service has the environment of nobody.
            .proxy(None)
            .build()
            .into();
        Http { agent }
    }

    /// Asks. `method` is GET, POST, PATCH, PUT or DELETE.
    pub fn ask(&self, method: &str, url: &str, auth: Option<&str>, body: &Sending<'_>) -> Result<Answer, Trouble> {
        let (kind, bytes) = match body {
            Sending::Nothing => (None, Vec::new()),
            Sending::Json(value) => (Some("application/json".to_owned()), value.to_string().into_bytes()),
            Sending::Multipart(fields, file) => {
                let (kind, bytes) = multipart(fields, file)?;
                (Some(kind), bytes)
            }
        };
        let mut request = ureq::http::Request::builder().method(method).uri(url);
        if let Some(kind) = kind {
            request = request.header("Content-Type", kind);
        }
        if let Some(auth) = auth {
            request = request.header("Authorization", auth);
        }
        request = request.header("User-Agent", concat!("DiscordBot (holdfast, ", env!("CARGO_PKG_VERSION"), ")"));
        // Not with the address in it: Telegram's has the token.
        let away = |what: &str| Trouble::Away(what.to_owned());
        let sent = match request.body(bytes) {
            Ok(request) => self.agent.run(request),
            Err(_) => return Err(away("the request cannot be made")),
        };
        let mut answer = sent.map_err(|error| away(reason(&error)))?;
        let retry = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse::<f64>().ok());
        let status = answer.status().as_u16();
        let text = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let text = text.map_err(|error| away(reason(&error)))?;
        let json = serde_json::from_slice(&text).unwrap_or(Value::Null);
        Ok(Answer { status, json, retry_after: retry.map(pause) })
    }
}

/// A wait as a service says it, in seconds.
pub fn pause(seconds: f64) -> Duration {
    if seconds.is_finite() && seconds > 0.0 {
        Duration::try_from_secs_f64(seconds).unwrap_or(SLOW_MAX).min(SLOW_MAX)
    } else {
        Duration::from_millis(500)
    }
}

/// What went wrong, without the address.
fn reason(error: &ureq::Error) -> &'static str {
    match error {
        ureq::Error::Timeout(_) => "the service does not answer",
        ureq::Error::HostNotFound => "the service's host is not found",
        ureq::Error::Io(_) => "the connection to the service failed",
        ureq::Error::ConnectionFailed => "the service cannot be reached",
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) => "the service's certificate is not accepted",
        _ => "the request to the service failed",
    }
}

fn multipart(fields: &[(&str, String)], file: &Attached<'_>) -> Result<(String, Vec<u8>), Trouble> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| Trouble::Away("there are no random bytes".into()))?;
    // Random, so that no content has it in it.
    let boundary = format!("holdfast{}", holdfast_types::hex_text(&random));
    let mut body = Vec::new();
    for (name, value) in fields {
        let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(head.as_bytes());
    }
    let Attached { field, name, kind, bytes } = file;
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\nContent-Type: {kind}\r\n\r\n"
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(bytes);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    Ok((format!("multipart/form-data; boundary={boundary}"), body))
}
