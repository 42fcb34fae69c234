//! Fixed byte strings with a hexadecimal text form.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Why a text is not a fixed number of hexadecimal bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {0} hexadecimal digits")]
pub struct HexError(pub usize);

/// Bytes as lower-case digits.
pub fn hex_text(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]).map(char::from).collect()
}

/// Bytes from lower-case digits; one text form per value, so that nothing can be respelled unnoticed.
pub fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

macro_rules! fixed {
    ($( #[doc = $doc:literal] $name:ident [$length:literal]; )*) => { $(
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(into = "String", try_from = "String")]
        #[schemars(extend("pattern" = concat!("^([0-9a-f]{2}){", $length, "}$")))]
        pub struct $name(pub [u8; $length]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&hex_text(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}…", hex_text(&self.0[..4]))
            }
        }

        impl FromStr for $name {
            type Err = HexError;

            fn from_str(text: &str) -> Result<$name, HexError> {
                hex_bytes(text).and_then(|b| b.try_into().ok()).map($name).ok_or(HexError(2 * $length))
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.to_string()
            }
        }

        impl TryFrom<String> for $name {
            type Error = HexError;

            fn try_from(text: String) -> Result<$name, HexError> {
                text.parse()
            }
        }
    )* };
}

fixed! {
    #[doc = "An actor's identity: its Ed25519 public key."]
    ActorId[32];
    #[doc = "The BLAKE3 hash of a journal record, or of a question as it was read."]
    Hash[32];
    #[doc = "An Ed25519 signature."]
    Signature[64];
    #[doc = "Random bytes that make each signed act unlike every other."]
    Nonce[16];
    #[doc = "A host's identity: its Ed25519 public key."]
    HostKey[32];
    #[doc = "What a host asks a connection to sign."]
    Challenge[32];
    #[doc = "What an attached client alone knows: the host made it up for this client, and the keeper repeats it to the next host."]
    ClientToken[16];
}

/// An actor's signature over one act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// Random, from the actor: the same act signed again is another one, and a copied one is found out.
    pub nonce: Nonce,
    /// Over the act's content, as the authority spells it.
    pub signature: Signature,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_reads_back_and_has_one_spelling() {
        let nonce = Nonce([0x0f; 16]);
        assert_eq!(nonce.to_string(), "0f".repeat(16));
        assert_eq!(nonce.to_string().parse(), Ok(nonce));
        for bad in ["", "0f", &"0F".repeat(16), &"0g".repeat(16), &"0f".repeat(17), "ä"] {
            assert_eq!(bad.parse::<Nonce>(), Err(HexError(32)), "{bad}");
        }
    }
}
