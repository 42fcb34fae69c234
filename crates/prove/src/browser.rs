//! A real browser without a window, steered by its own protocol (Chrome DevTools).

use crate::place::Place;
use crate::trial::{Stop, broken, wait};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tungstenite::{Message, WebSocket};

/// What it is called in the distributions.
const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// How long an answer may take; a browser's first one takes longest.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// What the page's terminal shows, as lines.
const SHOWN: &str = "(() => { const b = window.holdfastTerminal?.buffer.active; if (!b) return ''; const rows = []; \
    for (let i = 0; i < b.length; i++) rows.push(b.getLine(i).translateToString(true)); return rows.join('\\n'); })()";

/// A browser with one page.
pub struct Browser {
    child: Child,
    socket: WebSocket<TcpStream>,
    next: u64,
}

/// A program of the search path.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

impl Browser {
    /// Where one is installed.
    pub fn installed() -> Option<PathBuf> {
        NAMES.iter().find_map(|name| on_path(name))
    }

    /// Starts it with a profile of its own in the place, and opens an address.
    pub fn open(program: PathBuf, place: &Place, url: &str) -> Result<Browser, Stop> {
        let mut command = Command::new(program);
        command.args(["--headless=new", "--remote-debugging-port=0", "--no-first-run", "--disable-gpu"]);
        command.args(["--disable-dev-shm-usage", "--disable-background-networking"]);
        if rustix::process::getuid().is_root() {
            // It refuses to start as root otherwise; the only page that it opens is ours.
            command.arg("--no-sandbox");
        }
        command.arg(format!("--user-data-dir={}", place.path("browser").display())).arg("about:blank");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| broken("a browser", error))?;
        match connect(&mut child) {
            Ok(socket) => {
                let mut browser = Browser { child, socket, next: 0 };
                browser.ask("Page.navigate", &json!({ "url": url }))?;
                Ok(browser)
            }
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Waits until the terminal of the page shows a text.
    pub fn until_shown(&mut self, text: &str) -> Result<(), Stop> {
        let mut failed = None;
        wait(&format!("the page shows {text:?}"), || match self.shown() {
            Ok(shown) => shown.contains(text),
            Err(error) => {
                failed = Some(error);
                true
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    fn shown(&mut self) -> Result<String, Stop> {
        let answer = self.ask("Runtime.evaluate", &json!({ "expression": SHOWN, "returnByValue": true }))?;
        Ok(answer["result"]["value"].as_str().unwrap_or_default().to_owned())
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Stop> {
        self.next += 1;
        let text = json!({ "id": self.next, "method": method, "params": params }).to_string();
        self.socket.send(Message::text(text)).map_err(|error| broken("the browser", error))?;
        loop {
            let message = self.socket.read().map_err(|error| broken("the browser", error))?;
            let answer: Value =
                message.to_text().ok().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            if answer["id"] == self.next {
                return match answer.get("error") {
                    Some(error) => Err(broken(method, error)),
                    None => Ok(answer["result"].clone()),
                };
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends its own processes; what is left of it goes with it.
        let _ = self.ask("Browser.close", &json!({}));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Finds the port that the browser chose, and its page.
fn connect(child: &mut Child) -> Result<WebSocket<TcpStream>, Stop> {
    let fail = |what: &dyn std::fmt::Display| broken("a browser", what);
    let Some(said) = child.stderr.take() else { return Err(fail(&"no pipe")) };
    let mut said = BufReader::new(said).lines().map_while(Result::ok);
    let address = said.find_map(|line| {
        let (_, rest) = line.split_once("DevTools listening on ws://")?;
        rest.split_once('/').map(|(address, _)| address.to_owned())
    });
    // It may say more; nobody reads that, and it must not stop for it.
    std::thread::spawn(move || said.for_each(drop));
    let address = address.ok_or_else(|| fail(&"it does not listen"))?;
    let mut page = String::new();
    wait("the browser has a page", || {
        let list = ureq::get(format!("http://{address}/json/list")).call();
        let text = list.ok().and_then(|mut answer| answer.body_mut().read_to_string().ok()).unwrap_or_default();
        let all: Value = serde_json::from_str(&text).unwrap_or_default();
        let found = all.as_array().and_then(|all| all.iter().find(|one| one["type"] == "page"));
        page = found.and_then(|one| one["webSocketDebuggerUrl"].as_str()).unwrap_or_default().to_owned();
        !page.is_empty()
    })?;
    let stream = TcpStream::connect(&address).map_err(|error| fail(&error))?;
    stream.set_read_timeout(Some(ANSWER_TIME)).map_err(|error| fail(&error))?;
    let (socket, _) = tungstenite::client(page.as_str(), stream).map_err(|error| fail(&error))?;
    Ok(socket)
}
