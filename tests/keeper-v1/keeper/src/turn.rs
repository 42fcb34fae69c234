//! Who may connect and who may write, as the host said it last.
//!
//! The keeper decides nothing: it holds the newest fence, the writer named with it, and the tokens announced. What is written
//! under any other fence is dropped, whoever sends it, so a delayed keystroke of a past holder is harmless.
//!
//! Pure.

use holdfast_abi::protocol::{RIGHT_WRITE, Token, WRITER_ANY, WRITER_HOST, refused};

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// The host.
    Host,
    /// A client.
    Client {
        /// Its connection's number.
        connection: u32,
        /// What it was admitted with.
        rights: u8,
    },
}

/// The newest fence and who writes under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    fence: u64,
    writer: u32,
}

impl Default for Turn {
    /// Nobody but the host writes until it says otherwise.
    fn default() -> Turn {
        Turn { fence: 0, writer: WRITER_HOST }
    }
}

impl Turn {
    /// The newest fence.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Whether this one is the writer, whatever its fence.
    #[must_use]
    pub fn allows(&self, asker: Asker) -> bool {
        match asker {
            Asker::Host => true,
            Asker::Client { rights, .. } if self.writer == WRITER_ANY => rights & RIGHT_WRITE != 0,
            Asker::Client { connection, .. } => self.writer == connection,
        }
    }

    /// Whether a write under `fence` may pass; else the code to refuse it with.
    pub fn check(&self, asker: Asker, fence: u64) -> Result<(), u8> {
        if fence != self.fence {
            Err(refused::STALE)
        } else if !self.allows(asker) {
            Err(refused::WRITER)
        } else {
            Ok(())
        }
    }

    /// A new writer; false where the fence is older than the newest.
    pub fn assign(&mut self, fence: u64, writer: u32) -> bool {
        let risen = self.raise(fence);
        if risen {
            self.writer = writer;
        }
        risen
    }

    /// A newer fence for the same writer; false where it is older than the newest.
    pub fn raise(&mut self, fence: u64) -> bool {
        let risen = fence >= self.fence;
        if risen {
            self.fence = fence;
        }
        risen
    }
}

/// Tokens waiting for their client: a few per client that may connect, so that a host that announces and never sends anybody
/// cannot make the keeper grow.
pub const ADMITTED_MAX: usize = 128;

/// The tokens announced and not yet used. Where there are too many the oldest goes.
#[derive(Debug, Default)]
pub struct Admitted {
    tokens: Vec<(Token, u8)>,
}

impl Admitted {
    /// Announces a token; announced again, its rights are the newer ones.
    pub fn admit(&mut self, token: Token, rights: u8) {
        self.take(&token);
        if self.tokens.len() == ADMITTED_MAX {
            self.tokens.remove(0);
        }
        self.tokens.push((token, rights));
    }

    /// Uses a token up and gives its rights.
    pub fn take(&mut self, token: &Token) -> Option<u8> {
        let at = self.tokens.iter().position(|(known, _)| same(known, token))?;
        Some(self.tokens.remove(at).1)
    }
}

/// Compares in constant time: how long a wrong guess takes must not tell how wrong it was.
#[must_use]
pub fn same(a: &Token, b: &Token) -> bool {
    a.iter().zip(b).fold(0, |difference, (x, y)| difference | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(connection: u32, rights: u8) -> Asker {
        Asker::Client { connection, rights }
    }

    #[test]
    fn only_the_newest_fence_and_the_named_writer_pass() {
        let mut turn = Turn::default();
        assert_eq!(turn.check(Asker::Host, 0), Ok(()));
        assert_eq!(turn.check(client(1, RIGHT_WRITE), 0), Err(refused::WRITER));
        assert!(turn.assign(5, 1));
        assert_eq!(turn.check(client(1, 0), 5), Ok(()));
        assert_eq!(turn.check(client(1, 0), 4), Err(refused::STALE));
        assert_eq!(turn.check(client(1, 0), 6), Err(refused::STALE));
        assert_eq!(turn.check(client(2, RIGHT_WRITE), 5), Err(refused::WRITER));
        assert_eq!(turn.check(Asker::Host, 5), Ok(()));
        assert_eq!(turn.check(Asker::Host, 4), Err(refused::STALE));
        assert!(turn.assign(6, WRITER_ANY));
        assert!(turn.allows(client(2, RIGHT_WRITE)) && !turn.allows(client(2, 0)));
    }

    #[test]
    fn a_fence_is_never_lowered() {
        let mut turn = Turn::default();
        assert!(turn.assign(5, 1));
        assert!(!turn.assign(4, 2) && !turn.raise(4));
        assert_eq!(turn, Turn { fence: 5, writer: 1 });
        assert!(turn.raise(7));
        assert_eq!(turn, Turn { fence: 7, writer: 1 });
    }

    #[test]
    fn a_token_serves_once_and_the_oldest_gives_way() {
        let mut admitted = Admitted::default();
        admitted.admit([1; 16], 1);
        assert_eq!((admitted.take(&[1; 16]), admitted.take(&[1; 16])), (Some(1), None));
        for n in 0..=ADMITTED_MAX as u8 {
            admitted.admit([n; 16], 0);
        }
        assert_eq!((admitted.take(&[0; 16]), admitted.take(&[1; 16])), (None, Some(0)));
    }
}
