//! The wires to the keeper: frames in order on each connection, as a sequenced-packet socket has them.
//!
//! What was sent before an end closed can still be read at the other; what is sent afterwards is lost.

use holdfast_abi::protocol::{FromKeeper, ToKeeper};
use std::collections::VecDeque;

/// Frames a socket's buffer holds for one who does not read.
const BUFFERED_MAX: usize = 256;

/// What an end of a wire has to say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Frame(Vec<u8>),
    Nothing,
    Closed,
}

#[derive(Debug, Default)]
struct Wire {
    to_keeper: VecDeque<Vec<u8>>,
    from_keeper: VecDeque<Vec<u8>>,
    caller_closed: bool,
    keeper_closed: bool,
}

/// All wires, by number.
#[derive(Debug, Default)]
pub(crate) struct Net {
    wires: Vec<Wire>,
    /// Knocks the keeper has not looked at.
    pub knocking: VecDeque<usize>,
}

impl Net {
    /// Connects to the keeper.
    pub fn connect(&mut self) -> usize {
        self.wires.push(Wire::default());
        let wire = self.wires.len() - 1;
        self.knocking.push_back(wire);
        wire
    }

    /// A host or client says something.
    pub fn say(&mut self, wire: usize, frame: ToKeeper<'_>) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.say_bytes(wire, bytes);
    }

    /// The same, of a frame that is encoded already.
    pub fn say_bytes(&mut self, wire: usize, frame: Vec<u8>) {
        let wire = &mut self.wires[wire];
        if !wire.keeper_closed && !wire.caller_closed {
            wire.to_keeper.push_back(frame);
        }
    }

    /// The keeper says something; false where the other end is gone or does not read.
    pub fn keeper_says(&mut self, wire: usize, frame: FromKeeper<'_>) -> bool {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        let wire = &mut self.wires[wire];
        let takes = !wire.caller_closed && !wire.keeper_closed && wire.from_keeper.len() < BUFFERED_MAX;
        if takes {
            wire.from_keeper.push_back(bytes);
        }
        takes
    }

    /// The next frame for the keeper.
    pub fn keeper_hears(&mut self, wire: usize) -> Heard {
        let wire = &mut self.wires[wire];
        wire.to_keeper.pop_front().map_or(if wire.caller_closed { Heard::Closed } else { Heard::Nothing }, Heard::Frame)
    }

    /// The next frame for the caller.
    pub fn hear(&mut self, wire: usize) -> Heard {
        let wire = &mut self.wires[wire];
        wire.from_keeper
            .pop_front()
            .map_or(if wire.keeper_closed { Heard::Closed } else { Heard::Nothing }, Heard::Frame)
    }

    /// Whether the caller has hung up, whatever it said before.
    pub fn has_hung_up(&self, wire: usize) -> bool {
        self.wires[wire].caller_closed
    }

    /// The caller hangs up, or dies.
    pub fn close(&mut self, wire: usize) {
        self.wires[wire].caller_closed = true;
    }

    /// The keeper hangs up.
    pub fn keeper_closes(&mut self, wire: usize) {
        self.wires[wire].keeper_closed = true;
    }

    /// The keeper is dead: nobody answers any more.
    pub fn keeper_dies(&mut self) {
        for wire in &mut self.wires {
            wire.keeper_closed = true;
            wire.to_keeper.clear();
        }
        self.knocking.clear();
    }

    /// Whether the caller has read everything.
    pub fn is_heard(&self, wire: usize) -> bool {
        self.wires[wire].from_keeper.is_empty()
    }

    /// Whether there are frames nobody has read.
    pub fn is_quiet(&self) -> bool {
        self.knocking.is_empty()
            && self.wires.iter().all(|wire| {
                (wire.to_keeper.is_empty() || wire.keeper_closed) && (wire.from_keeper.is_empty() || wire.caller_closed)
            })
    }
}
