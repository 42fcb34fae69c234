//! How a notification gets where it shall: by a program, or by HTTP. Off the host's thread.

use super::Deliver;
use super::text::Message;
use hmac::{Hmac, Mac};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use sha2::Sha256;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A program that takes longer than this to tell somebody something hangs.
const COMMAND_TIME: Duration = Duration::from_secs(30);
/// So long may one attempt at a webhook take.
const WEBHOOK_TIME: Duration = Duration::from_secs(10);
/// Pauses before the next attempts: a restart of the other side is bridged, an outage is not.
const WEBHOOK_PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(25)];
/// What the receiver checks that the host sent it.
const SIGNATURE: &str = "X-Holdfast-Signature";
/// What it knows a repetition by.
const DELIVERY: &str = "X-Holdfast-Delivery";

/// Delivers; what fails is in the host's log, without addresses, which may be secrets.
pub async fn deliver(by: &Deliver, message: &Message) {
    match by {
        Deliver::Command(command) => {
            let (command, message) = (command.clone(), message.clone());
            let ran = tokio::task::spawn_blocking(move || {
                run(&command, &message).map_err(|error| format!("{:?}: {error}", command.first()))
            });
            if let Ok(Err(error)) = ran.await {
                tracing::warn!("notification command {error}");
            }
        }
        Deliver::Webhook { url, secret } => post_patiently(url, secret.as_deref(), message).await,
        Deliver::Ring => {}
    }
}

fn run(command: &[String], message: &Message) -> io::Result<()> {
    let [program, arguments @ ..] = command else { return Ok(()) };
    // The host's standard error is its log; standard output goes there too.
    let log = io::stderr().as_fd().try_clone_to_owned()?;
    let mut child = Command::new(program)
        .args(arguments)
        .env("HOLDFAST_EVENT", message.on.word())
        .env("HOLDFAST_EVENT_SESSION", &message.session)
        .env("HOLDFAST_EVENT_NAME", &message.name)
        .env("HOLDFAST_EVENT_TEXT", &message.text)
        .env("HOLDFAST_EVENT_PROMPT", &message.prompt)
        .stdin(Stdio::piped())
        .stdout(log)
        // A group of its own, which ends with it when it hangs.
        .process_group(0)
        .spawn()?;
    let pid = Pid::from_child(&child);
    let ends = pidfd_open(pid, PidfdFlags::empty())?;
    if let Some(mut input) = child.stdin.take() {
        // Shorter than a pipe is long; one that does not read it may.
        let _ = input.write_all(format!("{}\n", message.json).as_bytes());
    }
    let time = COMMAND_TIME.try_into().map_err(io::Error::other)?;
    if poll(&mut [PollFd::new(&ends, PollFlags::IN)], Some(&time))? == 0 {
        let _ = kill_process_group(pid, Signal::KILL);
        child.wait()?;
        return Err(io::Error::other(format!("took longer than {} s and was killed", COMMAND_TIME.as_secs())));
    }
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

/// Whether another attempt may do better.
pub(crate) enum Posted {
    Done,
    /// The receiver is away, or has too much to do.
    Later(String),
    /// It answered, and does not want it.
    Refused(String),
    /// There is none, or it never wants it.
    Never(String),
}

async fn post_patiently(url: &str, secret: Option<&str>, message: &Message) {
    let body = message.json.to_string();
    let signature = secret.map(|secret| signature(secret, &body));
    let mut pauses = WEBHOOK_PAUSES.into_iter();
    loop {
        let (url, body, signature) = (url.to_owned(), body.clone(), signature.clone());
        let posted = tokio::task::spawn_blocking(move || post(&url, body, signature, None)).await;
        let (why, pause) = match posted {
            Ok(Posted::Done) | Err(_) => return,
            Ok(Posted::Refused(why) | Posted::Never(why)) => (why, None),
            Ok(Posted::Later(why)) => (why, pauses.next()),
        };
        let Some(pause) = pause else {
            tracing::warn!("a webhook about {} was not delivered: {why}", message.name);
            return;
        };
        tokio::time::sleep(pause).await;
    }
}

/// One attempt: signed where there is a secret, and numbered so that a receiver recognises a repeat.
pub(crate) async fn post_signed(url: String, secret: Option<String>, body: String, delivery: Option<String>) -> Posted {
    let signature = secret.map(|secret| signature(&secret, &body));
    let posted = tokio::task::spawn_blocking(move || post(&url, body, signature, delivery)).await;
    posted.unwrap_or_else(|_| Posted::Later("the host ran into a fault of its own".into()))
}

fn post(url: &str, body: String, signature: Option<String>, delivery: Option<String>) -> Posted {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(WEBHOOK_TIME))
        .http_status_as_error(false)
        // What is signed for one receiver is not for another.
        .max_redirects(0)
        .build()
        .into();
    let mut request = agent.post(url).header("Content-Type", "application/json");
    if let Some(signature) = signature {
        request = request.header(SIGNATURE, signature);
    }
    if let Some(delivery) = delivery {
        request = request.header(DELIVERY, delivery);
    }
    match request.send(body) {
        Ok(answer) if answer.status().is_success() => Posted::Done,
        Ok(answer) if answer.status().is_server_error() || answer.status().as_u16() == 429 => {
            Posted::Later(format!("it answered {}", answer.status().as_u16()))
        }
        Ok(answer) if answer.status().as_u16() == 410 => Posted::Never("it answered 410".into()),
        Ok(answer) => Posted::Refused(format!("it answered {}", answer.status().as_u16())),
        Err(ureq::Error::BadUri(_)) => Posted::Never("invalid address".into()),
        Err(error) => Posted::Later(error.to_string()),
    }
}

/// The body's HMAC-SHA256, in the form that receivers of other webhooks know.
fn signature(secret: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length will do");
    mac.update(body.as_bytes());
    format!("sha256={}", holdfast_types::hex_text(&mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_rfc_4231() {
        let expected = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature("Jefe", "what do ya want for nothing?"), expected);
    }
}
