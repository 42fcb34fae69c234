//! A person's terminal: what was shown on it, what was typed at it and nobody read yet.
//!
//! It answers every query it sees, as terminals do. Client and keeper may both write to it and read it; whoever does,
//! the oracle is told which bytes of the output were shown, so that one shown twice or left out is noticed.

use crate::program::{Token, reply};
use holdfast_types::Size;
use std::collections::VecDeque;

/// One terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    pub size: Size,
    /// When its window had another size.
    pub resized_ms: u64,
    /// Everything before this offset was shown.
    pub at: u64,
    /// It takes no bytes: somebody pressed Ctrl-S.
    pub stuck: bool,
    /// What was typed or answered, in pieces that are read whole.
    typed: VecDeque<Vec<u8>>,
    /// Which input is typed here, and how much was.
    pub source: u8,
    pub last_token: u32,
    scan: Scan,
}

impl Terminal {
    pub fn new(size: Size, source: u8) -> Terminal {
        Terminal {
            size,
            resized_ms: 0,
            at: 0,
            stuck: false,
            typed: VecDeque::new(),
            source,
            last_token: 0,
            scan: Scan::default(),
        }
    }

    /// Somebody types a few keys.
    pub fn type_keys(&mut self, count: u32) {
        let mut keys = Vec::new();
        for _ in 0..count {
            self.last_token += 1;
            Token { source: self.source, number: self.last_token }.encode(&mut keys);
        }
        self.typed.push_back(keys);
    }

    /// Bytes reach the terminal; gives the queries it answered.
    pub fn put(&mut self, bytes: &[u8]) -> Vec<u16> {
        let mut asked = Vec::new();
        self.scan.feed(bytes, &mut asked);
        let asked: Vec<u16> = asked.into_iter().map(|(_, id)| id).collect();
        self.typed.extend(asked.iter().map(|id| reply(*id)));
        asked
    }

    /// Reads what was typed, at most `room` bytes.
    pub fn read(&mut self, room: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.typed.front().is_some_and(|piece| bytes.len() + piece.len() <= room) {
            bytes.extend(self.typed.pop_front().unwrap_or_default());
        }
        bytes
    }

    pub fn has_keys(&self) -> bool {
        !self.typed.is_empty()
    }
}

/// Finds the queries in what is shown: `CSI ? n $ p`.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    held: Vec<u8>,
}

impl Scan {
    /// Adds the queries that end in `bytes`, each with its end there.
    pub fn feed(&mut self, bytes: &[u8], asked: &mut Vec<(usize, u16)>) {
        let mut at = 0;
        while at < bytes.len() {
            if self.held.is_empty() {
                let Some(next) = memchr::memchr(0x1b, &bytes[at..]) else { return };
                at += next;
            }
            let byte = bytes[at];
            at += 1;
            if byte == 0x1b {
                self.held.clear();
            }
            self.held.push(byte);
            match self.held.as_slice() {
                [_] | [_, b'['] | [_, b'[', b'?'] => {}
                [_, b'[', b'?', .., b'0'..=b'9' | b'$'] => {}
                [_, b'[', b'?', digits @ .., b'$', b'p'] => {
                    let id = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u16>().ok());
                    asked.extend(id.map(|id| (at, id)));
                    self.held.clear();
                }
                _ => self.held.clear(),
            }
        }
    }
}
