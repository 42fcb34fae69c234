//! Codes by which a chat user is enrolled: shown in a terminal, sent to the bot, once.
//!
//! 50 random bits, good for ten minutes. On disk is a hash. Whoever guesses is stopped by [`Guesses`], so that a code stands for its time: at
//! the bound of all guesses a stranger finds one of ten codes with a chance below one in a hundred billion.

use crate::Service;
use crate::config::Config;
use crate::envelope::Can;
use holdfast_store::BOT_CODE;
use holdfast_types::{Handle, Home, SessionId, TimeMs, hex_text};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

/// How long a code is good: time to find the phone.
pub const CODE_MS: u64 = 10 * 60 * 1000;
/// Digits of a code.
const DIGITS: usize = 10;
/// Digits that are not mistaken for each other.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Wrong codes of one chat user, and of all, within an hour.
const GUESSES_MAX: u32 = 5;
const ALL_GUESSES_MAX: u32 = 200;
const GUESSES_MS: u64 = 60 * 60 * 1000;
/// Strangers that are remembered.
const STRANGERS_MAX: usize = 1_000;

/// A code as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code(String);

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", &self.0[..DIGITS / 2], &self.0[DIGITS / 2..])
    }
}

/// What a code gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// How much.
    pub can: Can,
    /// Where; empty: everywhere.
    #[serde(default)]
    pub sessions: Vec<SessionId>,
    /// For how long, from the moment it is used.
    #[serde(default)]
    pub for_ms: Option<u64>,
    /// Who made it.
    pub by: Handle,
    /// The code is not good after this.
    pub until_ms: TimeMs,
}

/// An offer nobody has used yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offered {
    /// What names it on disk; not the code.
    pub id: String,
    /// What it gives.
    #[serde(flatten)]
    pub offer: Offer,
}

/// The code that a text is, whatever its case and hyphens.
pub(crate) fn read(text: &str) -> Option<Code> {
    let mut digits = String::new();
    for c in text.trim().chars().filter(|c| !matches!(c, '-' | ' ')) {
        let c = match c.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            c => c,
        };
        if !ALPHABET.contains(&u8::try_from(c).ok()?) || digits.len() == DIGITS {
            return None;
        }
        digits.push(c);
    }
    (digits.len() == DIGITS).then_some(Code(digits))
}

fn dir(home: &Home, service: Service) -> PathBuf {
    Config::dir(home, service).join("codes")
}

/// What a code is called on disk.
pub(crate) fn name(code: &Code) -> String {
    hex_text(&Sha256::digest(format!("holdfast bot code {}", code.0)))
}

/// Makes a code for an offer.
pub fn make(home: &Home, service: Service, offer: &Offer) -> io::Result<Code> {
    let mut bits = [0; DIGITS];
    getrandom::fill(&mut bits).map_err(io::Error::other)?;
    let code = Code(bits.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect());
    let dir = dir(home, service);
    holdfast_store::make_dir(&dir)?;
    holdfast_store::create(&dir.join(name(&code)), &holdfast_store::seal_json(&BOT_CODE, offer)?)?;
    Ok(code)
}

/// What a code gives, if it is good now.
pub(crate) fn find(home: &Home, service: Service, code: &Code, now: TimeMs) -> Option<Offer> {
    let path = dir(home, service).join(name(code));
    let offer: Offer = holdfast_store::get_json(&BOT_CODE, &path).ok().flatten()?;
    (offer.until_ms > now).then_some(offer)
}

/// A code that was used is good no more.
pub(crate) fn spend(home: &Home, service: Service, name: &str) {
    let _ = std::fs::remove_file(dir(home, service).join(name));
}

/// Offers that can still be used; those whose time is over are removed.
#[must_use]
pub fn offers(home: &Home, service: Service, now: TimeMs) -> Vec<Offered> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir(home, service)).into_iter().flatten().flatten() {
        match holdfast_store::get_json::<Offer>(&BOT_CODE, &entry.path()) {
            Ok(Some(offer)) if offer.until_ms > now => {
                let id = entry.file_name().to_string_lossy().chars().take(8).collect();
                all.push(Offered { id, offer });
            }
            Ok(Some(_)) => {
                let _ = std::fs::remove_file(entry.path());
            }
            Ok(None) | Err(_) => {}
        }
    }
    all.sort_by_key(|one| one.offer.until_ms);
    all
}

/// How often strangers were wrong lately.
#[derive(Debug, Default)]
pub(crate) struct Guesses {
    by_user: HashMap<String, (u32, TimeMs)>,
    all: u32,
    since_ms: TimeMs,
}

impl Guesses {
    /// Whether this stranger may try once more; counts the try.
    pub fn allow(&mut self, user: &str, now: TimeMs) -> bool {
        if now.saturating_sub(self.since_ms) > GUESSES_MS {
            (self.all, self.since_ms) = (0, now);
            self.by_user.retain(|_, (_, since)| now.saturating_sub(*since) <= GUESSES_MS);
        }
        if self.by_user.len() >= STRANGERS_MAX && !self.by_user.contains_key(user) {
            return false;
        }
        let (count, since) = self.by_user.entry(user.to_owned()).or_insert((0, now));
        if now.saturating_sub(*since) > GUESSES_MS {
            (*count, *since) = (0, now);
        }
        if *count >= GUESSES_MAX || self.all >= ALL_GUESSES_MAX {
            return false;
        }
        *count += 1;
        self.all += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_reads_back_however_it_is_typed_and_nothing_else_is_one() {
        let code = read("abcde-fgh0o").unwrap();
        assert_eq!(code.to_string(), "ABCDE-FGH00");
        assert_eq!(read(" ABCDE FGH00 "), Some(code));
        for text in ["", "hello", "ABCDE-FGH0", "ABCDE-FGH000", "ABCDE-FGHÜ0", "ABCDE_FGH00", "/etc/passwd"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn who_guesses_is_stopped_and_so_are_many() {
        let mut guesses = Guesses::default();
        let allowed = (0..50).filter(|_| guesses.allow("1", 1)).count();
        assert_eq!(allowed, GUESSES_MAX as usize);
        assert!(guesses.allow("2", 1), "others may still try");
        let many = (0..5_000).filter(|n| guesses.allow(&format!("x{n}"), 2)).count();
        assert!(many < ALL_GUESSES_MAX as usize, "{many}");
        assert!(guesses.allow("1", 2 + 2 * GUESSES_MS), "an hour later");
    }
}
