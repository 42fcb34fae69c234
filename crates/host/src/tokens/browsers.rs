//! What a browser has in place of a token's text, and how it shows it.
//!
//! A browser sends its cookies to every port of a machine, and whoever has the host's port while no host listens is taken for it. So
//! what a browser has is in two parts. The cookie says which token it is, and is no use alone. The page's key is never sent: the
//! page sends a random text, the host proves that it knows the key too, and only then does the page answer the host's challenge.
//!
//! Both parts are made from a secret of the home, so there is nothing to keep for each browser, and they end with their token. A
//! challenge is made from a secret of this process: what a page answered opens this host alone, and not for long.

use hmac::{Hmac, Mac};
use holdfast_door::{Browser, Challenge};
use holdfast_store::{BROWSERS_KEY, Survives, Unreadable, get, put};
use holdfast_types::hex_text;
use holdfast_wire::{Code, Fault};
use sha2::Sha256;
use std::io;
use std::path::Path;
use zeroize::Zeroizing;

const FILE: &str = "browsers.key";
/// How long an answer to a challenge is good: a slow network's round trip.
const CHALLENGE_MS: u64 = 60_000;
/// A page's random text, in bytes as hexadecimal digits: as many as nobody guesses, and not more than that.
const NONCE_DIGITS: std::ops::RangeInclusive<usize> = 32..=64;

/// Makes and checks what browsers have.
#[derive(Debug)]
pub struct Browsers {
    home: Zeroizing<Vec<u8>>,
    process: Zeroizing<Vec<u8>>,
}

impl Browsers {
    /// With the secret of this home, made where there is none. Where it can be neither read nor kept, logins end with this host.
    pub fn load(state: &Path) -> Browsers {
        let home = secret(state).unwrap_or_else(|error| {
            tracing::error!("{}: {error}; browsers will have to log in again", state.join(FILE).display());
            fresh()
        });
        Browsers { home, process: fresh() }
    }

    /// Both parts for a token, by its id.
    pub fn parts(&self, token: &str) -> Browser {
        let cookie = format!("{token}.{}", sum(&self.home, &["cookie", token]));
        Browser { cookie, key: self.key(token) }
    }

    fn key(&self, token: &str) -> String {
        sum(&self.home, &["page", token])
    }

    /// The token that a cookie is of; that its page has the key is another question.
    fn token<'a>(&self, cookie: &'a str) -> Result<&'a str, Fault> {
        let (token, shown) = cookie.rsplit_once('.').ok_or_else(unknown)?;
        is_sum(shown, &self.home, &["cookie", token]).then_some(token).ok_or_else(unknown)
    }

    /// Shows a page that we know its key, and asks whether it does.
    pub fn challenge(&self, cookie: &str, nonce: &str, clock_ms: u64) -> Result<Challenge, Fault> {
        let token = self.token(cookie)?;
        if !NONCE_DIGITS.contains(&nonce.len()) || !nonce.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Fault::new(Code::BadRequest, "`nonce` must be 32 to 64 hexadecimal digits"));
        }
        let until = format!("{:x}", clock_ms.saturating_add(CHALLENGE_MS));
        let challenge = format!("{until}-{}", sum(&self.process, &[token, nonce, &until]));
        let proof = sum(self.key(token).as_bytes(), &["host", nonce, &challenge]);
        Ok(Challenge { challenge, proof })
    }

    /// The token of a cookie whose page has shown that it has the key: by `NONCE.CHALLENGE.ANSWER`, or by the key itself, which is how
    /// a page does it whose browser keeps its ciphers for private connections.
    pub fn shown(&self, cookie: &str, shown: &str, clock_ms: u64) -> Result<String, Fault> {
        let token = self.token(cookie)?;
        let parts: Vec<&str> = shown.splitn(4, '.').collect();
        let is_good = match parts[..] {
            [key] => is_sum(key, &self.home, &["page", token]),
            [nonce, challenge, answer] => {
                let (until, ours) = challenge.split_once('-').ok_or_else(unknown)?;
                let is_ours = is_sum(ours, &self.process, &[token, nonce, until]);
                if !is_ours || u64::from_str_radix(until, 16).is_ok_and(|until| until < clock_ms) {
                    return Err(Fault::new(Code::Unidentified, "this answer was for another host, or is too old")
                        .hint("ask for another challenge: POST /v1/challenge"));
                }
                is_sum(answer, self.key(token).as_bytes(), &["page", nonce, challenge])
            }
            _ => false,
        };
        is_good.then(|| token.to_owned()).ok_or_else(unknown)
    }
}

fn unknown() -> Fault {
    Fault::new(Code::Unidentified, "this browser's login is not known here").hint("log in again: holdfast web")
}

fn fresh() -> Zeroizing<Vec<u8>> {
    Zeroizing::new([crate::random_token(), crate::random_token()].concat())
}

fn secret(state: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let path = state.join(FILE);
    match get(&BROWSERS_KEY, &path, |content| {
        (content.bytes().len() == 32).then(|| Zeroizing::new(content.bytes().to_vec()))
    }) {
        Ok(Some(secret)) => Ok(secret),
        Ok(None) | Err(Unreadable::Damaged { .. }) => {
            let secret = fresh();
            put(&BROWSERS_KEY, state, FILE, &secret, Survives::Crash)?;
            Ok(secret)
        }
        Err(why) => Err(why.into()),
    }
}

/// Over words that have no line's end in them, so that no two lists make one text.
fn mac(key: &[u8], words: &[&str]) -> Hmac<Sha256> {
    let mac = <Hmac<Sha256> as Mac>::new_from_slice(key).expect("a key may have any length");
    mac.chain_update(words.join("\n").as_bytes())
}

fn sum(key: &[u8], words: &[&str]) -> String {
    hex_text(&mac(key, words).finalize().into_bytes())
}

/// Compared in a time that tells nothing.
fn is_sum(shown: &str, key: &[u8], words: &[&str]) -> bool {
    let bytes = holdfast_types::hex_bytes(shown);
    bytes.is_some_and(|bytes| mac(key, words).verify_slice(&bytes).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "00112233445566778899aabbccddeeff";

    fn answer(key: &str, nonce: &str, challenge: &str) -> String {
        format!("{nonce}.{challenge}.{}", sum(key.as_bytes(), &["page", nonce, challenge]))
    }

    #[test]
    fn a_page_that_has_the_key_is_let_in_by_the_host_that_asked_and_not_for_long() {
        let dir = tempfile::tempdir().unwrap();
        let host = Browsers::load(dir.path());
        let Browser { cookie, key } = host.parts("tok_1");
        let Challenge { challenge, proof } = host.challenge(&cookie, NONCE, 1000).unwrap();
        assert_eq!(proof, sum(key.as_bytes(), &["host", NONCE, &challenge]), "the page checks this");
        let shown = answer(&key, NONCE, &challenge);
        assert_eq!(host.shown(&cookie, &shown, 1000 + CHALLENGE_MS).unwrap(), "tok_1");
        assert_eq!(host.shown(&cookie, &key, 0).unwrap(), "tok_1");
        // Too late, of another browser, made with another key, for another text, or the host's own proof.
        let other = host.parts("tok_2");
        let wrong = [answer(&other.key, NONCE, &challenge), answer(&key, &NONCE.replace('0', "1"), &challenge)];
        assert!(host.shown(&cookie, &shown, 1001 + CHALLENGE_MS).is_err());
        assert!(host.shown(&other.cookie, &shown, 1000).is_err());
        assert!(wrong.iter().all(|shown| host.shown(&cookie, shown, 1000).is_err()));
        assert!(host.shown(&cookie, &format!("{NONCE}.{challenge}.{proof}"), 1000).is_err());
        for odd in ["", ".", "..", "...", "a.b.c", "a.-.c", "a.b-c.d.e", &other.key, &cookie] {
            assert!(host.shown(&cookie, odd, 1000).is_err(), "{odd}");
        }
        for odd in ["", "tok_1", "tok_1.", &format!("tok_1.{key}"), &format!("x{cookie}")] {
            assert!(host.challenge(odd, NONCE, 0).is_err(), "{odd}");
        }
        assert!(host.challenge(&cookie, "short", 0).is_err() && host.challenge(&cookie, &"z".repeat(32), 0).is_err());
        // The next host knows the browser, and takes no answer that was given to this one.
        let next = Browsers::load(dir.path());
        assert_eq!(next.parts("tok_1").key, key);
        assert!(next.shown(&cookie, &shown, 1000).is_err());
    }

    #[test]
    fn a_damaged_secret_logs_everybody_out_and_one_of_a_later_version_stays() {
        let dir = tempfile::tempdir().unwrap();
        let key = |browsers: &Browsers| browsers.parts("tok_1").key;
        let before = key(&Browsers::load(dir.path()));
        std::fs::write(dir.path().join(FILE), "holdfast browsers-key 2 what?").unwrap();
        let after = key(&Browsers::load(dir.path()));
        assert_ne!(before, after);
        assert_eq!(key(&Browsers::load(dir.path())), after);
        let newer = holdfast_store::Format { version: 3, ..BROWSERS_KEY }.seal(b"x");
        std::fs::write(dir.path().join(FILE), &newer).unwrap();
        assert_ne!(key(&Browsers::load(dir.path())), after);
        assert_eq!(std::fs::read(dir.path().join(FILE)).unwrap(), newer);
    }
}
