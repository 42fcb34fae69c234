//! How a host signs its page, so that a browser that came through a relay keeps and runs no other.

use crate::key::{Secret, fields, has_signed};

const DOMAIN: &[u8] = b"holdfast page v1\0";

/// What is signed: the domain, the version of the program, then each file's name and the SHA-256 of its bytes; each with its length in front
/// (u32, little-endian).
#[must_use]
pub fn page_bytes(version: &str, files: &[(&str, [u8; 32])]) -> Vec<u8> {
    let of_files = files.iter().flat_map(|(name, digest)| [name.as_bytes(), &digest[..]]);
    fields(DOMAIN, std::iter::once(version.as_bytes()).chain(of_files))
}

/// Signs a page.
#[must_use]
pub fn sign_page(secret: &Secret, version: &str, files: &[(&str, [u8; 32])]) -> [u8; 64] {
    secret.sign(&page_bytes(version, files))
}

/// Whether a host signed this page.
#[must_use]
pub fn verify_page(host: &[u8; 32], version: &str, files: &[(&str, [u8; 32])], signature: &[u8; 64]) -> bool {
    has_signed(host, &page_bytes(version, files), signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_good_for_one_page_of_one_host() {
        let secret = Secret::new([3; 32]);
        let files = [("page.js", [1; 32]), ("page.css", [2; 32])];
        let signature = sign_page(&secret, "1.2", &files);
        let fits =
            |host: [u8; 32], version: &str, files: &[(&str, [u8; 32])]| verify_page(&host, version, files, &signature);
        assert!(fits(secret.public(), "1.2", &files));
        assert!(!fits(Secret::new([4; 32]).public(), "1.2", &files), "another host's");
        assert!(!fits(secret.public(), "1.3", &files));
        assert!(!fits(secret.public(), "1.2", &files[..1]));
        assert!(!fits(secret.public(), "1.2", &[("page.js", [1; 32]), ("page.css", [9; 32])]));
        assert!(!fits(secret.public(), "1.2", &[("page.css", [1; 32]), ("page.js", [2; 32])]));
    }
}
