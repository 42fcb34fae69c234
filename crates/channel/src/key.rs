//! One key for signing and for the channel: Ed25519, and the same point in its X25519 form.

use crate::ChannelError;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use zeroize::Zeroizing;

/// The secret half of a key: 32 random bytes, as Ed25519 knows them.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; 32]>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// From its bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Secret {
        Secret(Zeroizing::new(bytes))
    }

    pub(crate) fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.signing().sign(bytes).to_bytes()
    }

    fn signing(&self) -> SigningKey {
        SigningKey::from_bytes(&self.0)
    }

    /// The public half, as Ed25519 knows it.
    #[must_use]
    pub fn public(&self) -> [u8; 32] {
        self.signing().verifying_key().to_bytes()
    }

    /// The secret half as X25519 knows it: the lower half of the seed's SHA-512, which X25519 clamps.
    pub(crate) fn exchange(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.signing().to_scalar_bytes())
    }
}

/// What is signed: a domain, then fields, each with its length in front (u32, little-endian).
pub(crate) fn fields<'a>(domain: &[u8], fields: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = domain.to_vec();
    for field in fields {
        bytes.extend_from_slice(&u32::try_from(field.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(field);
    }
    bytes
}

/// Whether the owner of a public key signed these bytes.
pub(crate) fn has_signed(public: &[u8; 32], bytes: &[u8], signature: &[u8; 64]) -> bool {
    let Ok(key) = VerifyingKey::from_bytes(public) else { return false };
    key.verify_strict(bytes, &Signature::from_bytes(signature)).is_ok()
}

/// An Ed25519 public key in its X25519 form: `u = (1 + y) / (1 - y)`.
pub fn exchange_key(public: &[u8; 32]) -> Result<[u8; 32], ChannelError> {
    let key = VerifyingKey::from_bytes(public).map_err(|_| ChannelError::Key)?;
    // With a key of small order everybody would agree on the same secret.
    if key.is_weak() {
        return Err(ChannelError::Key);
    }
    Ok(key.to_montgomery().to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_keys_are_refused() {
        let mut one = [0; 32];
        one[0] = 1;
        for bad in [[0; 32], one] {
            assert_eq!(exchange_key(&bad), Err(ChannelError::Key), "{bad:?}");
        }
        assert!(exchange_key(&Secret::new([7; 32]).public()).is_ok());
    }
}
