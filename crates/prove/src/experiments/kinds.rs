//! The falsifiable claim: open to any kind of client, also on other machines.

use super::distance::join;
use crate::browser::Browser;
use crate::mcp::Agent;
use crate::place::Place;
use crate::sdk;
use crate::ssh::{self, Ssh};
use crate::terminal::Terminal;
use crate::trial::{Stop, Trial, broken, wait};
use crate::web::Web;
use serde_json::json;

/// Clients of every kind see the same bytes at the same offsets.
pub fn any_client(t: &mut Trial) -> Result<(), Stop> {
    let place = t.place()?;
    place.ok(&["new", "-d", "shared", "--", "cat"])?;
    let web = Web::open(&place)?;
    let token = Web::token(&place, "agent:sdk", "observe")?;

    let terminal = Terminal::start(&mut place.command(&["attach", "shared", "-r"]))?;
    let mut page = web.socket(&token)?;
    page.ask("session.attach", &json!({ "session": "shared", "size": "80x24" }), &[])?;
    let mut agent = Agent::start(&place, "agent:ai")?;
    wait("the terminal is attached", || {
        place
            .json(&["info", "shared"])
            .is_ok_and(|info| info["clients"].as_array().is_some_and(|clients| clients.len() >= 2))
    })?;
    let head = place.json(&["info", "shared"])?["head"].as_u64().unwrap_or_default();
    place.ok(&["send", "shared", "--enter", "seen by everybody"])?;

    terminal.until_shown("seen by everybody")?;
    t.saw("a terminal shows it");
    let mut expected = String::new();
    wait("the output has the line and its echo", || {
        expected = place.ok(&["logs", "shared", "--from", &head.to_string()]).unwrap_or_default();
        expected.matches("seen by everybody").count() == 2
    })?;
    t.saw("the command line reads it by offset");
    let (_, _, text) = web.output(&token, "shared", head)?;
    t.check("HTTP gives the same bytes", text == expected, &text)?;
    let (_, bytes) = page.ask("session.read", &json!({ "session": "shared", "from": head, "wait_ms": 5000 }), &[])?;
    t.check("a WebSocket gives the same bytes", bytes == expected.as_bytes(), String::from_utf8_lossy(&bytes))?;
    let seen = agent.ok("read_output", &json!({ "session": "shared", "from": head }))?;
    t.check("MCP shows it", seen.to_string().contains("seen by everybody"), &seen)?;
    let mut kinds = 5;
    for sdk in sdk::all() {
        match sdk {
            Ok(sdk) => {
                let text = sdk.read(&place, "shared", head, expected.len())?;
                t.check(&format!("{} gives the same bytes", sdk.name), text == expected, &text)?;
                kinds += 1;
            }
            Err((name, why)) => t.lacks(name, why),
        }
    }
    match Browser::installed() {
        Some(program) => {
            let mut browser = Browser::open(program, &place, &web.page(&token, "shared"))?;
            browser.until_shown("seen by everybody")?;
            t.saw("the page in a browser shows it");
            kinds += 1;
        }
        None => t.lacks("a browser", "no Chromium is installed"),
    }
    kinds += from_afar(t, &place, head, &expected)?;
    t.figure("kinds of client on one execution", kinds);
    Ok(())
}

/// The same from other machines, through a relay and over ssh; how many ways there are.
fn from_afar(t: &mut Trial, there: &Place, head: u64, expected: &str) -> Result<usize, Stop> {
    let from = head.to_string();
    let mut ways = 0;
    if t.program().has(&["relay"]) {
        let here = t.place()?;
        let (_relay, host) = join(&here, there)?;
        let text = here.ok(&["logs", &format!("{host}/shared"), "--from", &from])?;
        t.check("another machine reads the same bytes through a relay", text == expected, &text)?;
        ways += 1;
    } else {
        t.lacks("a relay", "this program has none");
    }
    match Ssh::lacks() {
        None => {
            let here = t.place()?;
            let ssh = Ssh::join(&here, there)?;
            let ran = ssh.run(&["logs", &format!("{}/shared", ssh::HOST), "--from", &from])?;
            if ran.status != 0 {
                return Err(broken("logs over ssh", ran.err.trim()));
            }
            t.check("another machine reads the same bytes over ssh", ran.out == expected, &ran.out)?;
            ways += 1;
        }
        Some(why) => t.lacks("ssh", why),
    }
    Ok(ways)
}
