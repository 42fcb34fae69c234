//! In place of a connection to a keeper, where no keeper can run: it cannot be made, so nothing is ever asked of it.

use holdfast_abi::protocol::{FRAME_BYTES_MAX, Token};
use std::convert::Infallible;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// A connection that does not exist.
#[derive(Debug)]
pub struct Keeper(Infallible);

impl Keeper {
    /// Sessions run on Linux.
    pub fn open(_: &Path, _: Token) -> io::Result<Keeper> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Never asked.
    pub fn send(&self, _: &[u8]) -> io::Result<()> {
        match self.0 {}
    }

    /// Never asked.
    pub fn receive_now(&self, _: &mut [u8; FRAME_BYTES_MAX]) -> io::Result<Option<usize>> {
        match self.0 {}
    }

    /// Never asked.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

/// No keeper does.
pub fn lives(_: u32) -> bool {
    false
}
