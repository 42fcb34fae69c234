//! The page for browsers that come through a relay: this program's own, with the host's signature.

use super::Relays;
use crate::serve::Answer;
use holdfast_channel::sign_page;
use holdfast_types::{Signature, hex_text};
use holdfast_wire::devices::{PageFile, PageGetParams, PageView};
use holdfast_wire::{Code, Fault};
use sha2::{Digest, Sha256};
use std::sync::OnceLock;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Its files and their digests: they are those of the program, and hashed once.
fn digests() -> &'static [(&'static str, [u8; 32])] {
    static DIGESTS: OnceLock<Vec<(&str, [u8; 32])>> = OnceLock::new();
    DIGESTS.get_or_init(|| {
        holdfast_http::PHONE.iter().map(|(name, bytes)| (*name, Sha256::digest(bytes).into())).collect()
    })
}

impl Relays {
    /// The page, and its files where whoever asks has others or none.
    pub(crate) fn page(&self, params: &PageGetParams) -> Answer {
        let secret =
            self.key.as_ref().map_err(|why| Fault::new(Code::Damaged, format!("this host has no key: {why}")))?;
        if holdfast_http::PHONE.is_empty() {
            return Err(Fault::new(Code::NotFound, "this program was built without the page"));
        }
        let signature = Signature(sign_page(secret, VERSION, digests()));
        let sized = digests().iter().zip(holdfast_http::PHONE);
        let files = sized.map(|((name, digest), (_, bytes))| PageFile {
            name: (*name).to_owned(),
            digest: hex_text(digest),
            bytes: bytes.len() as u64,
        });
        let files = files.collect();
        let bytes = if params.have.as_ref() == Some(&signature) {
            Vec::new()
        } else {
            holdfast_http::PHONE.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>().concat()
        };
        crate::serve::with((PageView { version: VERSION.to_owned(), files, signature }, bytes))
    }
}
