//! A small HTTP server, as far as the fakes of both services need one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// A request.
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The parts of a multipart body: name, file name, content.
    pub fn parts(&self) -> Vec<(String, Option<String>, Vec<u8>)> {
        let kind = self.header("content-type").unwrap_or_default();
        let Some((_, boundary)) = kind.split_once("boundary=") else { return Vec::new() };
        let boundary = format!("--{boundary}");
        let mut parts = Vec::new();
        let mut rest = &self.body[..];
        while let Some(at) = find(rest, boundary.as_bytes()) {
            rest = &rest[at + boundary.len()..];
            if rest.starts_with(b"--") {
                break;
            }
            let head_end = find(rest, b"\r\n\r\n").expect("a part has a head");
            let head = String::from_utf8_lossy(&rest[..head_end]).into_owned();
            let content = &rest[head_end + 4..];
            let end = find(content, format!("\r\n{boundary}").as_bytes()).expect("a part ends");
            let named = |name: &str| Some(head.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.to_owned());
            parts.push((named("name").expect("a part has a name"), named("filename"), content[..end].to_vec()));
            rest = content;
        }
        parts
    }
}

pub fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// What is done with a connection: answered by a status and JSON, or taken over.
pub enum Answer {
    Json(u16, serde_json::Value),
    Taken,
}

/// Serves on a free port of this machine until the test ends; gives the address.
pub fn serve(handle: impl Fn(Request, TcpStream) -> Answer + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let handle = Arc::new(handle);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let handle = Arc::clone(&handle);
            std::thread::spawn(move || one(stream, &*handle));
        }
    });
    format!("127.0.0.1:{}", address.port())
}

fn one(stream: TcpStream, handle: &(impl Fn(Request, TcpStream) -> Answer + ?Sized)) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            Some((key, value)) => headers.push((key.to_owned(), value.trim().to_owned())),
            None => break,
        }
    }
    let mut request = Request { method, path, headers, body: Vec::new() };
    // A WebSocket's handshake is read by who takes it over.
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).ok()?;
    let mut stream = stream;
    match handle(request, stream.try_clone().ok()?) {
        Answer::Taken => {}
        Answer::Json(status, json) => {
            let body = if json.is_null() { String::new() } else { json.to_string() };
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).ok()?;
            stream.write_all(body.as_bytes()).ok()?;
        }
    }
    Some(())
}
