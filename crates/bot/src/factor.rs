//! A second factor: a passphrase, or numbers of an authenticator app, asked for before anything but looking, and again after a while.
//!
//! It helps where somebody else has the phone or the account. A passphrase goes through the chat service like everything else; a number of an
//! app is worth nothing half a minute later.

use holdfast_types::{TimeMs, hex_bytes, hex_text};
use ring::{hmac, pbkdf2};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// Rounds of PBKDF2: about a tenth of a second, once per unlock.
const ROUNDS: u32 = 300_000;
/// Shortest passphrase: guesses are slow and few, and still.
const PASSPHRASE_CHARS_MIN: usize = 8;
/// A number is good for so long; the one before and the one after count too.
const STEP_MS: u64 = 30_000;
/// How long it stays unlocked unless said otherwise.
pub const UNLOCKED_MS: u64 = 60 * 60 * 1000;

/// What is asked for.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// It is asked for again after this long.
    pub again_ms: u64,
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Passphrase { salt: String, hash: String, rounds: u32 },
    Totp { secret: String },
}

/// A new factor, and what its user needs of it.
pub struct Made {
    /// What is kept.
    pub factor: Factor,
    /// For an authenticator app: an address it reads, with the secret.
    pub link: Option<String>,
}

impl Factor {
    /// A passphrase.
    pub fn passphrase(words: &str, again_ms: Option<u64>) -> Result<Made, &'static str> {
        if words.chars().count() < PASSPHRASE_CHARS_MIN {
            return Err("a passphrase needs at least 8 characters");
        }
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).map_err(|_| "there are no random bytes")?;
        let hash = hex_text(&derived(words, &salt, ROUNDS));
        let kind = Kind::Passphrase { salt: hex_text(&salt), hash, rounds: ROUNDS };
        Ok(Made { factor: Factor { again_ms: again_ms.unwrap_or(UNLOCKED_MS), kind }, link: None })
    }

    /// Numbers of an authenticator app.
    pub fn totp(bot: &str, again_ms: Option<u64>) -> Result<Made, &'static str> {
        let mut secret = [0; 20];
        getrandom::fill(&mut secret).map_err(|_| "there are no random bytes")?;
        let link = format!("otpauth://totp/Holdfast:{bot}?secret={}&issuer=Holdfast", base32(&secret));
        let kind = Kind::Totp { secret: hex_text(&secret) };
        Ok(Made { factor: Factor { again_ms: again_ms.unwrap_or(UNLOCKED_MS), kind }, link: Some(link) })
    }

    /// What to ask for.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self.kind {
            Kind::Passphrase { .. } => "passphrase",
            Kind::Totp { .. } => "code of your authenticator app",
        }
    }

    /// Whether this is it. `used` is the last step of an app whose number was taken: each is taken once.
    #[must_use]
    pub fn check(&self, said: &str, used: &mut u64, now: TimeMs) -> bool {
        match &self.kind {
            Kind::Passphrase { salt, hash, rounds } => {
                let (Some(salt), Some(hash)) = (hex_bytes(salt), hex_bytes(hash)) else { return false };
                let Some(rounds) = NonZeroU32::new(*rounds) else { return false };
                pbkdf2::verify(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, said.as_bytes(), &hash).is_ok()
            }
            Kind::Totp { secret } => {
                let Some(secret) = hex_bytes(secret) else { return false };
                let step = now / STEP_MS;
                let fits = |step: &u64| *step > *used && number(&secret, *step) == said;
                let found = (step.saturating_sub(1)..=step + 1).find(fits);
                *used = found.unwrap_or(*used);
                found.is_some()
            }
        }
    }
}

fn derived(words: &str, salt: &[u8], rounds: u32) -> [u8; 32] {
    let mut hash = [0; 32];
    let rounds = NonZeroU32::new(rounds).unwrap_or(NonZeroU32::MIN);
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, salt, words.as_bytes(), &mut hash);
    hash
}

/// The six digits of a step (RFC 6238, SHA-1 as all apps have it).
fn number(secret: &[u8], step: u64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let tag = tag.as_ref();
    let at = usize::from(tag[tag.len() - 1] & 15);
    let word = u32::from_be_bytes([tag[at] & 0x7f, tag[at + 1], tag[at + 2], tag[at + 3]]);
    format!("{:06}", word % 1_000_000)
}

fn base32(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut text = String::new();
    for chunk in bytes.chunks(5) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let bits = u64::from_be_bytes(word);
        let digits = (chunk.len() * 8).div_ceil(5);
        text.extend((0..digits).map(|n| char::from(DIGITS[(bits >> (59 - 5 * n)) as usize & 31])));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_rfc_6238() {
        let secret = b"12345678901234567890";
        for (seconds, expected) in [(59, "287082"), (1_111_111_109, "081804"), (20_000_000_000, "353130")] {
            assert_eq!(number(secret, seconds / 30), expected);
        }
        assert_eq!(base32(b"12345678901234567890"), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
    }

    #[test]
    fn a_number_is_taken_once() {
        let made = Factor::totp("bot", None).unwrap();
        let Kind::Totp { secret } = &made.factor.kind else { unreachable!() };
        let said = number(&hex_bytes(secret).unwrap(), 1_000);
        let mut used = 0;
        assert!(!made.factor.check("abc", &mut used, 30_000_000));
        assert!(made.factor.check(&said, &mut used, 30_000_000));
        assert!(!made.factor.check(&said, &mut used, 30_000_000), "the same number again");
        assert!(!made.factor.check(&said, &mut 0, 30_100_000), "and not much later");
    }

    #[test]
    fn a_passphrase_is_kept_as_a_hash_and_known_again() {
        let made = Factor::passphrase("correct horse", None).unwrap();
        assert!(made.factor.check("correct horse", &mut 0, 0) && !made.factor.check("correct hors", &mut 0, 0));
        assert!(!serde_json::to_string(&made.factor).unwrap().contains("horse"));
        assert!(Factor::passphrase("short", None).is_err());
    }
}
