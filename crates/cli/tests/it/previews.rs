//! A port that a session's processes listen on, previewed: at an origin of its own, for who may type there, as long as they may.

use crate::http::{Http, Said};
use holdfast_harness::until;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// Says what it is asked, sets cookies, and echoes lines to who asks for that.
const SERVER: &str = r#"
import http.server, json
class Told(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.headers.get("Upgrade") == "echo":
            self.send_response(101)
            self.send_header("Connection", "upgrade")
            self.send_header("Upgrade", "echo")
            self.end_headers()
            for line in self.rfile:
                self.wfile.write(line)
            self.close_connection = True
            return
        length = int(self.headers.get("Content-Length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        said = {"method": self.command, "path": self.path, "headers": headers, "body": self.rfile.read(length).decode()}
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", "holdfast-7433=forged; Path=/")
        self.send_header("Set-Cookie", "own=1")
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_GET
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Told)
with open("port.new", "w") as file:
    file.write(str(server.server_port))
import os
os.rename("port.new", "port")
server.serve_forever()
"#;

/// A session that serves, its port, and a person's token.
struct Served {
    http: Http,
    port: u16,
    token: String,
    token_id: String,
}

fn served() -> Served {
    let http = Http::new();
    std::fs::write(http.home.join("server.py"), SERVER).unwrap();
    http.home.session("web", "exec python3 server.py");
    let port = until("the server's port", || std::fs::read_to_string(http.home.join("port")).ok()?.parse().ok());
    let token = http.home.json(&["token", "new", "--json"]);
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{token}")).to_owned();
    Served { port, token: text(&token["text"]), token_id: text(&token["token"]["id"]), http }
}

impl Served {
    fn open_as(&self, token: &str, port: u16) -> Said {
        self.http.ask_as(token, "POST", "/previews", Some(json!({ "session": "web", "port": port })))
    }

    /// Opens the preview, and goes in with the ticket.
    fn enter(&self) -> Preview {
        let said = self.open_as(&self.token, self.port);
        assert_eq!(said.status, 200, "{said:?}");
        let url = said.body["url"].as_str().unwrap();
        let (authority, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let preview = Preview { authority: authority.to_owned(), cookie: String::new() };
        let entered = preview.ask(&format!("/{path}"), &[]);
        assert!(entered.starts_with("HTTP/1.1 303 "), "{entered}");
        assert!(!entered.contains("ticket="), "{entered}");
        let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        assert!(cookie.contains("; HttpOnly; SameSite=Lax"), "{cookie}");
        let again = preview.ask(&format!("/{path}"), &[]);
        assert!(again.starts_with("HTTP/1.1 403 "), "a ticket serves once: {again}");
        Preview { cookie: cookie.split(';').next().unwrap().to_owned(), ..preview }
    }
}

/// A browser's view of a preview.
struct Preview {
    authority: String,
    cookie: String,
}

impl Preview {
    fn connect(&self) -> Option<TcpStream> {
        let port: u16 = self.authority.rsplit_once(':').unwrap().1.parse().unwrap();
        TcpStream::connect(("127.0.0.1", port)).ok()
    }

    fn request(&self, first: &str, headers: &[&str]) -> String {
        let cookie = if self.cookie.is_empty() { String::new() } else { format!("Cookie: {}; a=b\r\n", self.cookie) };
        let host = match headers.iter().any(|header| header.starts_with("Host:")) {
            true => String::new(),
            false => format!("Host: {}\r\n", self.authority),
        };
        let more: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        format!("{first} HTTP/1.1\r\n{host}{cookie}{more}")
    }

    fn ask(&self, path: &str, headers: &[&str]) -> String {
        self.say(&format!("{}Connection: close\r\n\r\n", self.request(&format!("GET {path}"), headers)))
    }

    fn say(&self, request: &str) -> String {
        let mut stream = self.connect().expect("the preview listens");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

fn body(answer: &str) -> Value {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
    assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
    serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {answer}"))
}

#[test]
fn a_port_is_previewed_at_an_origin_of_its_own_and_told_nothing_of_the_hosts() {
    let served = served();
    let preview = served.enter();
    let (name, at) = preview.authority.rsplit_once(':').unwrap();
    assert!(name.starts_with("hf-") && name.ends_with(".localhost"), "{name}");
    assert_ne!(at, served.http.address().rsplit_once(':').unwrap().1, "never the page's own port");
    let cookies = format!("Cookie: {}; theirs=2; holdfast-7433=login", preview.cookie);
    let answer = Preview { cookie: String::new(), ..preview_of(&preview) }.ask("/a?b=c", &[&cookies]);
    let told = body(&answer);
    assert_eq!((&told["path"], &told["headers"]["cookie"]), (&json!("/a?b=c"), &json!("theirs=2")));
    assert_eq!(told["headers"]["host"], format!("localhost:{}", served.port));
    assert!(answer.contains("set-cookie: own=1\r\n") && !answer.contains("forged"), "{answer}");
    // A form of its own page, and one of another page.
    let post = |origin: &str| {
        let head = preview.request("POST /form", &[&format!("Origin: {origin}"), "Content-Length: 4"]);
        preview.say(&format!("{head}Connection: close\r\n\r\na=42"))
    };
    let told = body(&post(&format!("http://{}", preview.authority)));
    assert_eq!((&told["method"], &told["body"]), (&json!("POST"), &json!("a=42")));
    assert_eq!(told["headers"]["origin"], format!("http://localhost:{}", served.port));
    for origin in [&served.http.url, "https://evil.example"] {
        assert!(post(origin).starts_with("HTTP/1.1 403 "), "{origin}");
    }
    // Neither without the cookie nor by another name.
    let stranger = Preview { cookie: String::new(), ..preview_of(&preview) };
    assert!(stranger.ask("/", &[]).starts_with("HTTP/1.1 403 "));
    assert!(preview.ask("/", &["Host: evil.example"]).starts_with("HTTP/1.1 421 "));
    assert!(preview.ask("/", &[&format!("Host: 127.0.0.1:{at}")]).starts_with("HTTP/1.1 421 "));
    // Its cookie opens nothing of the host.
    let me = served.http.ask_as(preview.cookie.split_once('=').unwrap().1, "GET", "/me", None);
    assert_eq!(me.status, 401, "{me:?}");
}

fn preview_of(preview: &Preview) -> Preview {
    Preview { authority: preview.authority.clone(), cookie: preview.cookie.clone() }
}

#[test]
fn only_who_may_type_opens_a_port_and_only_one_that_the_session_listens_on() {
    let served = served();
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let own: u16 = served.http.address().rsplit_once(':').unwrap().1.parse().unwrap();
    for (port, status) in [(elsewhere.local_addr().unwrap().port(), 404), (own, 404), (0, 404), (served.port, 200)] {
        let said = served.open_as(&served.token, port);
        assert_eq!(said.status, status, "{port}: {said:?}");
    }
    let looks = served.http.home.ok(&["token", "new", "--can", "observe"]);
    let said = served.open_as(looks.trim(), served.port);
    assert_eq!((said.status, &said.body["code"]), (403, &json!("denied")), "{said:?}");
    // Whose grant does not have it, whatever the token carries.
    let service = served.http.home.ok(&["--as", "service:ci", "token", "new"]);
    assert_ne!(served.open_as(service.trim(), served.port).status, 200);
    served.http.home.ok(&["grant", "web", "--to", "service:ci", "--can", "observe"]);
    let said = served.open_as(service.trim(), served.port);
    assert_eq!(said.status, 403, "{said:?}");
    assert_eq!(served.http.ask_as("hf_none", "POST", "/previews", Some(json!({}))).status, 401);
}

#[test]
fn a_websocket_goes_through_and_ends_with_the_login_that_opened_it() {
    let served = served();
    let preview = served.enter();
    let origin = format!("Origin: http://{}", preview.authority);
    let switch = ["Connection: keep-alive, Upgrade", "Upgrade: echo", &origin];
    let mut stream = preview.connect().unwrap();
    stream.write_all(format!("{}\r\n", preview.request("GET /hot", &switch)).as_bytes()).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut line = || {
        let mut line = String::new();
        lines.read_line(&mut line).map(|_| line.trim_end().to_owned()).unwrap_or_default()
    };
    assert_eq!(line(), "HTTP/1.1 101 Switching Protocols");
    while !line().is_empty() {}
    for text in ["one", "two"] {
        stream.write_all(format!("{text}\n").as_bytes()).unwrap();
        assert_eq!(line(), text);
    }
    // A page of another origin does not get one.
    let foreign = preview.ask("/hot", &["Upgrade: echo", "Origin: https://evil.example"]);
    assert!(foreign.starts_with("HTTP/1.1 403 "), "{foreign}");
    served.http.home.ok(&["token", "revoke", &served.token_id]);
    assert_eq!(line(), "", "the connection ends with the token");
    until("the preview's end", || preview.connect().is_none());
}

#[test]
fn a_preview_ends_with_its_session() {
    let served = served();
    let preview = served.enter();
    assert_eq!(body(&preview.ask("/", &[]))["path"], "/");
    served.http.home.ok(&["end", "web", "--grace", "0"]);
    until("the preview's end", || preview.connect().is_none() || preview.ask("/", &[]).starts_with("HTTP/1.1 403 "));
}

#[test]
fn one_actor_has_so_many_previews_and_the_one_that_was_unused_longest_goes() {
    let http = Http::new();
    let script = "import socket, time\n\
        all = [socket.create_server(('127.0.0.1', 0)) for _ in range(9)]\n\
        print(*[one.getsockname()[1] for one in all], file=open('ports.new', 'w'), flush=True)\n\
        import os; os.rename('ports.new', 'ports'); time.sleep(1000)";
    std::fs::write(http.home.join("many.py"), script).unwrap();
    http.home.session("web", "exec python3 many.py");
    let ports = until("the ports", || std::fs::read_to_string(http.home.join("ports")).ok());
    let token = http.home.ok(&["token", "new"]);
    let open = |port: &str| {
        let port: u16 = port.parse().unwrap();
        let said = http.ask_as(token.trim(), "POST", "/previews", Some(json!({ "session": "web", "port": port })));
        assert_eq!(said.status, 200, "{said:?}");
        let url = said.body["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        Preview { authority: url.split_once('/').unwrap().0.to_owned(), cookie: String::new() }
    };
    let all: Vec<Preview> = ports.split_whitespace().map(open).collect();
    assert_eq!(all.len(), 9);
    let answers = |preview: &Preview| preview.connect().is_some() && preview.ask("/", &[]).starts_with("HTTP/1.1 403 ");
    // The ninth took the place, and perhaps the port, of the first.
    assert!(!answers(&all[0]) && all[1..].iter().all(answers));
    // The same port again is the same preview.
    assert_eq!(open(ports.split_whitespace().next_back().unwrap()).authority, all[8].authority);
}
