//! Proof of who speaks: the exact bytes an actor signs, and their verification.
//!
//! Signed bytes are a domain with its version and a zero byte, then each field with its length in front (u32,
//! little-endian). So no signature for one purpose can serve another, and no field can run into the next.

use crate::act::Ask;
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use holdfast_types::SessionId;
use holdfast_types::{Actor, ActorId};
use holdfast_types::{Hash, Nonce, Proof, Signature};

/// What a connection over a unix socket is bound to, beside its challenge: nothing else can be in between.
pub const UNIX_BINDING: &[u8] = b"unix";

const CONNECT: &str = "holdfast connect v1";
const ACT: &str = "holdfast act v1";

/// Why a proof does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The id is not a point on the curve, or a weak one.
    #[error("the actor's id is not a usable key")]
    Key,
    /// The signature is not this key's over these bytes.
    #[error("the signature does not fit")]
    Signature,
}

/// The identity of a secret key.
#[must_use]
pub fn actor_id(secret: &[u8; 32]) -> ActorId {
    ActorId(SigningKey::from_bytes(secret).verifying_key().to_bytes())
}

/// Signs bytes; deterministic.
#[must_use]
pub fn sign(secret: &[u8; 32], bytes: &[u8]) -> Signature {
    Signature(SigningKey::from_bytes(secret).sign(bytes).to_bytes())
}

/// Whether a signature is this actor's over these bytes.
pub fn verify(actor: ActorId, bytes: &[u8], signature: &Signature) -> Result<(), ProofError> {
    let key = VerifyingKey::from_bytes(&actor.0).map_err(|_| ProofError::Key)?;
    let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
    // Strict: a key of small order would fit any message.
    key.verify_strict(bytes, &signature).map_err(|_| ProofError::Signature)
}

fn fields(domain: &str, fields: &[&[u8]]) -> Vec<u8> {
    let mut bytes = domain.as_bytes().to_vec();
    bytes.push(0);
    for field in fields {
        bytes.extend_from_slice(&u32::try_from(field.len()).expect("fields are far below 4 GiB").to_le_bytes());
        bytes.extend_from_slice(field);
    }
    bytes
}

/// What an actor signs to prove on connecting that it has the key: the host's random nonce, what only this connection has
/// (a channel hash, or the host's own nonce for a local socket), and who it says it is.
#[must_use]
pub fn challenge_bytes(host_nonce: &[u8; 32], binding: &[u8], actor: &Actor) -> Vec<u8> {
    fields(CONNECT, &[host_nonce, binding, &actor.id.0, actor.handle.to_string().as_bytes()])
}

/// What an actor signs for one act: the session, its nonce, and the ask as JSON without spaces, fields in the order of
/// their declaration.
#[must_use]
pub fn act_bytes(session: SessionId, nonce: &Nonce, ask: &Ask) -> Vec<u8> {
    let ask = serde_json::to_vec(ask).expect("asks always serialise");
    fields(ACT, &[session.to_string().as_bytes(), &nonce.0, &ask])
}

/// Signs one act.
#[must_use]
pub fn sign_act(secret: &[u8; 32], session: SessionId, nonce: Nonce, ask: &Ask) -> Proof {
    Proof { nonce, signature: sign(secret, &act_bytes(session, &nonce, ask)) }
}

/// Whether a proof is this actor's for this act.
pub fn verify_act(actor: ActorId, session: SessionId, ask: &Ask, proof: &Proof) -> Result<(), ProofError> {
    verify(actor, &act_bytes(session, &proof.nonce, ask), &proof.signature)
}

/// The hash of a question as it was read: its text and what can be answered. Each part has its length before it, so that no two
/// questions have the same bytes.
#[must_use]
pub fn question_hash(text: &str, options: &[String]) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"holdfast question v1\0");
    for part in std::iter::once(text).chain(options.iter().map(String::as_str)) {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    Hash(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 32] = [7; 32];

    fn ann() -> Actor {
        Actor { id: actor_id(&SECRET), handle: "human:ann".parse().unwrap() }
    }

    #[test]
    fn a_challenge_proves_the_key_for_one_nonce_one_connection_and_one_handle() {
        let signature = sign(&SECRET, &challenge_bytes(&[1; 32], b"channel", &ann()));
        let fits = |nonce: u8, binding: &[u8], actor: &Actor| {
            verify(ann().id, &challenge_bytes(&[nonce; 32], binding, actor), &signature)
        };
        assert_eq!(fits(1, b"channel", &ann()), Ok(()));
        assert_eq!(fits(2, b"channel", &ann()), Err(ProofError::Signature));
        assert_eq!(fits(1, b"channe", &ann()), Err(ProofError::Signature));
        let other = Actor { handle: "agent:ann".parse().unwrap(), ..ann() };
        assert_eq!(fits(1, b"channel", &other), Err(ProofError::Signature));
    }

    #[test]
    fn an_acts_proof_serves_no_other_session_actor_or_content() {
        let session = SessionId::from_random_bits(1);
        let ask = Ask::Seize { freeze: false, reason: "it loops".into() };
        let proof = sign_act(&SECRET, session, Nonce([3; 16]), &ask);
        assert_eq!(verify_act(ann().id, session, &ask, &proof), Ok(()));
        assert!(verify_act(ann().id, SessionId::from_random_bits(2), &ask, &proof).is_err());
        assert!(verify_act(actor_id(&[8; 32]), session, &ask, &proof).is_err());
        let other = Ask::Seize { freeze: true, reason: "it loops".into() };
        assert!(verify_act(ann().id, session, &other, &proof).is_err());
        let nonce = Proof { nonce: Nonce([4; 16]), ..proof };
        assert!(verify_act(ann().id, session, &ask, &nonce).is_err());
    }

    #[test]
    fn weak_and_impossible_keys_prove_nothing() {
        for id in [[0; 32], [255; 32]] {
            assert!(verify(ActorId(id), b"x", &Signature([0; 64])).is_err());
        }
    }

    /// Other languages sign the same bytes.
    #[test]
    fn the_signed_bytes_are_frozen() {
        let bytes = act_bytes(SessionId::from_random_bits(0), &Nonce([0; 16]), &Ask::Take);
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(
            text,
            "holdfast act v1\0\u{1e}\0\0\0ses_00000000000000000000000000\u{10}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\u{6}\0\0\0\"take\""
        );
    }
}
