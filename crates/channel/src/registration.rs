//! How a host proves its key to a relay: it signs the relay's challenge, together with the relay's address as the host knows it.
//!
//! With the address in it one relay cannot pass another's challenge on and take the host's place there.

use crate::key::{Secret, fields, has_signed};

const DOMAIN: &[u8] = b"holdfast relay v1\0";

/// What is signed: the domain, then challenge and address, each with its length in front (u32, little-endian). The address is `NAME`
/// or `NAME:PORT`, in lower case, as it stands in the relay's URL.
#[must_use]
pub fn challenge_bytes(challenge: &[u8; 32], address: &str) -> Vec<u8> {
    fields(DOMAIN, [&challenge[..], address.as_bytes()])
}

/// Signs a relay's challenge.
#[must_use]
pub fn prove_host(secret: &Secret, challenge: &[u8; 32], address: &str) -> [u8; 64] {
    secret.sign(&challenge_bytes(challenge, address))
}

/// Whether a host has the key it says it has.
#[must_use]
pub fn verify_host(host: &[u8; 32], challenge: &[u8; 32], address: &str, signature: &[u8; 64]) -> bool {
    has_signed(host, &challenge_bytes(challenge, address), signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_serves_one_challenge_at_one_relay() {
        let secret = Secret::new([3; 32]);
        let proof = prove_host(&secret, &[1; 32], "relay.example");
        let fits = |host: [u8; 32], nonce: u8, address: &str| verify_host(&host, &[nonce; 32], address, &proof);
        assert!(fits(secret.public(), 1, "relay.example"));
        assert!(!fits(secret.public(), 2, "relay.example"));
        assert!(!fits(secret.public(), 1, "relay.example:8443"));
        assert!(!fits(Secret::new([4; 32]).public(), 1, "relay.example"));
        assert!(!fits([0; 32], 1, "relay.example"));
    }
}
