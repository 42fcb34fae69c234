//! Who comes into a preview: by a ticket once, then by a cookie, from the preview's own pages.

use super::{Preview, TICKET_WAIT, TICKETS_MAX, random};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use std::sync::PoisonError;
use std::time::Instant;

/// Paths that begin so are the preview's own and never passed on: one of them has the ticket.
const OWN: &str = "/.holdfast/";
const ENTER: &str = "/.holdfast/enter";
/// All cookies of this host begin so; none of them is for what listens in a session.
pub(super) const COOKIES: &str = "holdfast-";

/// What becomes of a request.
#[derive(Debug)]
pub(super) enum Entry {
    /// It is answered here.
    Answered(Response),
    /// It is the preview's own page that asks.
    Passed,
}

impl Preview {
    /// An address that brings a browser in, once.
    pub(super) fn ticket(&self) -> String {
        let ticket = random();
        let mut all = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, made)| made.elapsed() < TICKET_WAIT);
        if all.len() >= TICKETS_MAX {
            all.remove(0);
        }
        all.push((ticket.clone(), Instant::now()));
        format!("{}{ENTER}?ticket={ticket}", self.origin)
    }

    fn takes(&self, ticket: &str) -> bool {
        let mut all = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, made)| made.elapsed() < TICKET_WAIT);
        let found = all.iter().position(|(known, _)| is_same(known, ticket));
        found.map(|at| all.remove(at)).is_some()
    }

    fn cookie_name(&self) -> String {
        format!("{COOKIES}preview-{}", self.at)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(known, secret)| known == name && is_same(secret, &self.secret))
    }

    /// Judges a request before anything of it is passed on.
    pub(super) fn enter(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Entry {
        if !self.is_asked_by_name(uri, headers) {
            return refuse(StatusCode::MISDIRECTED_REQUEST, "This preview has another name.");
        }
        if uri.path().starts_with(OWN) {
            return Entry::Answered(self.own(method, uri));
        }
        if !self.has_cookie(headers) {
            return refuse(
                StatusCode::FORBIDDEN,
                "This preview is open in the browser that opened it. Open it again from the session's page: click its port.",
            );
        }
        if !self.is_own_page(method, headers) {
            return refuse(StatusCode::FORBIDDEN, "Pages of another origin may not use this preview.");
        }
        // It would outlive the preview, and serve whatever is previewed here next.
        if headers.contains_key("service-worker") {
            return refuse(StatusCode::FORBIDDEN, "A preview has no service workers.");
        }
        Entry::Passed
    }

    /// A name can be made to point anywhere: only this preview's own is answered to.
    fn is_asked_by_name(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let said = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
        let mut said = said.chain(uri.authority().map(axum::http::uri::Authority::as_str)).peekable();
        said.peek().is_some() && said.all(|said| said.eq_ignore_ascii_case(&self.authority))
    }

    fn own(&self, method: &Method, uri: &Uri) -> Response {
        let ticket = uri.query().and_then(|query| query.strip_prefix("ticket="));
        if uri.path() != ENTER || *method != Method::GET || !ticket.is_some_and(|ticket| self.takes(ticket)) {
            let text = "This link no longer works. Open the preview again from the session's page: click its port.";
            return plain(StatusCode::FORBIDDEN, text);
        }
        let secure = if self.is_tls { "; Secure" } else { "" };
        // Not `Strict`: the page that sent the browser here has another name.
        let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Lax{secure}", self.cookie_name(), self.secret);
        let mut response = StatusCode::SEE_OTHER.into_response();
        let headers = response.headers_mut();
        headers.insert(header::LOCATION, HeaderValue::from_static("/"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        if !self.has_own_name() {
            // What another preview left at this origin is not for this one.
            headers.insert("clear-site-data", HeaderValue::from_static("\"cache\", \"storage\""));
        }
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            headers.insert(header::SET_COOKIE, cookie);
        }
        response
    }

    /// Whether the preview's own page asks, or a person went to its address. A browser sends cookies to every port of a name, whoever's page
    /// asks there.
    fn is_own_page(&self, method: &Method, headers: &HeaderMap) -> bool {
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        if let Some(origin) = text("origin") {
            return origin.eq_ignore_ascii_case(&self.origin);
        }
        match text("sec-fetch-site") {
            None | Some("same-origin" | "none") => true,
            // A link leads here: it asks for a page, and changes nothing in a server that keeps to HTTP.
            Some(_) => *method == Method::GET && text("sec-fetch-mode") == Some("navigate"),
        }
    }
}

/// Compares without telling by its time how much was right.
fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn refuse(status: StatusCode, text: &'static str) -> Entry {
    Entry::Answered(plain(status, text))
}

/// A line of text, from us.
pub(super) fn plain(status: StatusCode, text: &str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, format!("{text}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_door::{Cap, Path, Speaker};
    use holdfast_types::{Actor, ActorId, Rights};

    fn preview() -> Preview {
        let cap = Cap { token: "tok".into(), can: Rights::ALL, until_ms: u64::MAX };
        let actor = Actor { id: ActorId([1; 32]), handle: "human:ann".parse().unwrap() };
        let by = Speaker { actor, path: Path::Http(cap) };
        Preview::new(by, "ses_1".into(), 3000, 7434, "box.example", false)
    }

    fn asked(preview: &Preview, method: Method, uri: &str, pairs: &[(&'static str, &str)]) -> StatusCode {
        let headers = pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        match preview.enter(&method, &uri.parse().unwrap(), &headers) {
            Entry::Answered(response) => response.status(),
            Entry::Passed => StatusCode::OK,
        }
    }

    #[test]
    fn a_ticket_serves_once_and_its_cookie_opens_this_preview_alone() {
        let (one, other) = (preview(), preview());
        let host = ("host", "box.example:7434");
        let uri = one.ticket();
        let uri = uri.strip_prefix("http://box.example:7434").unwrap();
        assert_eq!(asked(&other, Method::GET, uri, &[host]), StatusCode::FORBIDDEN);
        assert_eq!(asked(&one, Method::POST, uri, &[host]), StatusCode::FORBIDDEN);
        assert_eq!(asked(&one, Method::GET, uri, &[host]), StatusCode::SEE_OTHER);
        assert_eq!(asked(&one, Method::GET, uri, &[host]), StatusCode::FORBIDDEN, "it has served");
        let cookie = format!("a=b; holdfast-preview-7434={}", one.secret);
        assert_eq!(asked(&one, Method::GET, "/", &[host, ("cookie", &cookie)]), StatusCode::OK);
        assert_eq!(asked(&other, Method::GET, "/", &[host, ("cookie", &cookie)]), StatusCode::FORBIDDEN);
        assert_eq!(asked(&one, Method::GET, "/", &[host]), StatusCode::FORBIDDEN);
        assert_eq!(asked(&one, Method::GET, "/.holdfast/x", &[host, ("cookie", &cookie)]), StatusCode::FORBIDDEN);
    }

    #[test]
    fn another_name_another_origin_and_service_workers_are_refused() {
        let one = preview();
        let cookie = format!("holdfast-preview-7434={}", one.secret);
        let with = |method: Method, more: &[(&'static str, &str)]| {
            let mut pairs = vec![("cookie", cookie.as_str())];
            pairs.extend(more);
            asked(&one, method, "/", &pairs)
        };
        let host = ("host", "box.example:7434");
        assert_eq!(with(Method::GET, &[]), StatusCode::MISDIRECTED_REQUEST);
        assert_eq!(with(Method::GET, &[("host", "evil.example:7434")]), StatusCode::MISDIRECTED_REQUEST);
        assert_eq!(with(Method::GET, &[("host", "box.example:7433")]), StatusCode::MISDIRECTED_REQUEST);
        assert_eq!(with(Method::POST, &[host, ("origin", "http://box.example:7434")]), StatusCode::OK);
        for origin in ["http://box.example:7433", "https://evil.example", "null"] {
            assert_eq!(with(Method::POST, &[host, ("origin", origin)]), StatusCode::FORBIDDEN, "{origin}");
        }
        let site = |site: &'static str, mode: &'static str, method| {
            with(method, &[host, ("sec-fetch-site", site), ("sec-fetch-mode", mode)])
        };
        assert_eq!(site("same-origin", "no-cors", Method::GET), StatusCode::OK);
        assert_eq!(site("cross-site", "navigate", Method::GET), StatusCode::OK);
        assert_eq!(site("same-site", "no-cors", Method::GET), StatusCode::FORBIDDEN);
        assert_eq!(site("cross-site", "navigate", Method::POST), StatusCode::FORBIDDEN);
        assert_eq!(with(Method::GET, &[host, ("service-worker", "script")]), StatusCode::FORBIDDEN);
    }
}
