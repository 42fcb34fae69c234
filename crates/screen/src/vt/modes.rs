//! Modes: set, reset, reported.

use super::Vt;
use crate::parse::Params;

/// On/off modes as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modes(pub(crate) u32);

impl Modes {
    pub(crate) const SHOW_CURSOR: Modes = Modes(1);
    pub(crate) const APP_CURSOR: Modes = Modes(1 << 1);
    pub(crate) const APP_KEYPAD: Modes = Modes(1 << 2);
    pub(crate) const BRACKETED_PASTE: Modes = Modes(1 << 3);
    pub(crate) const WRAP: Modes = Modes(1 << 4);
    pub(crate) const NEW_LINE: Modes = Modes(1 << 5);
    pub(crate) const ORIGIN: Modes = Modes(1 << 6);
    pub(crate) const INSERT: Modes = Modes(1 << 7);
    pub(crate) const FOCUS: Modes = Modes(1 << 8);
    pub(crate) const ALT_SCROLL: Modes = Modes(1 << 9);
    pub(crate) const BLINKING_CURSOR: Modes = Modes(1 << 10);
    pub(crate) const REVERSE_WRAP: Modes = Modes(1 << 11);
    pub(crate) const REVERSE_VIDEO: Modes = Modes(1 << 12);
    pub(crate) const SYNC: Modes = Modes(1 << 13);
    pub(crate) const COLOR_SCHEME: Modes = Modes(1 << 14);
    pub(crate) const IN_BAND_SIZE: Modes = Modes(1 << 15);
    // One mouse protocol and one encoding at a time.
    pub(crate) const MOUSE_X10: Modes = Modes(1 << 16);
    pub(crate) const MOUSE_CLICK: Modes = Modes(1 << 17);
    pub(crate) const MOUSE_DRAG: Modes = Modes(1 << 18);
    pub(crate) const MOUSE_MOTION: Modes = Modes(1 << 19);
    pub(crate) const MOUSE_ANY: Modes = Modes(0xf << 16);
    pub(crate) const ENCODE_UTF8: Modes = Modes(1 << 20);
    pub(crate) const ENCODE_SGR: Modes = Modes(1 << 21);
    pub(crate) const ENCODE_URXVT: Modes = Modes(1 << 22);
    pub(crate) const ENCODE_PIXELS: Modes = Modes(1 << 23);
    pub(crate) const ENCODE_ANY: Modes = Modes(0xf << 20);
    pub(crate) const ALL: Modes = Modes((1 << 24) - 1);
    /// What xterm.js leaves alone at DECSTR.
    pub(crate) const SURVIVES_SOFT_RESET: Modes =
        Modes(Modes::MOUSE_ANY.0 | Modes::ENCODE_ANY.0 | Modes::NEW_LINE.0 | Modes::ALT_SCROLL.0);

    #[inline]
    pub(crate) fn has(self, bits: Modes) -> bool {
        self.0 & bits.0 != 0
    }

    pub(crate) fn insert(&mut self, bits: Modes) {
        self.0 |= bits.0;
    }

    pub(crate) fn remove(&mut self, bits: Modes) {
        self.0 &= !bits.0;
    }

    /// The DEC private number of each simple mode: those that nothing but the bit depends on.
    pub(crate) const PRIVATE: [(u16, Modes); 22] = [
        (1, Modes::APP_CURSOR),
        (5, Modes::REVERSE_VIDEO),
        (6, Modes::ORIGIN),
        (7, Modes::WRAP),
        (9, Modes::MOUSE_X10),
        (12, Modes::BLINKING_CURSOR),
        (25, Modes::SHOW_CURSOR),
        (45, Modes::REVERSE_WRAP),
        (66, Modes::APP_KEYPAD),
        (1000, Modes::MOUSE_CLICK),
        (1002, Modes::MOUSE_DRAG),
        (1003, Modes::MOUSE_MOTION),
        (1004, Modes::FOCUS),
        (1005, Modes::ENCODE_UTF8),
        (1006, Modes::ENCODE_SGR),
        (1007, Modes::ALT_SCROLL),
        (1015, Modes::ENCODE_URXVT),
        (1016, Modes::ENCODE_PIXELS),
        (2004, Modes::BRACKETED_PASTE),
        (2026, Modes::SYNC),
        (2031, Modes::COLOR_SCHEME),
        (2048, Modes::IN_BAND_SIZE),
    ];

    fn of_private(number: u16) -> Option<Modes> {
        Modes::PRIVATE.iter().find(|(n, _)| *n == number).map(|(_, mode)| *mode)
    }
}

impl Default for Modes {
    fn default() -> Modes {
        Modes(Modes::SHOW_CURSOR.0 | Modes::WRAP.0 | Modes::ALT_SCROLL.0)
    }
}

impl std::ops::BitAnd for Modes {
    type Output = Modes;
    fn bitand(self, other: Modes) -> Modes {
        Modes(self.0 & other.0)
    }
}

impl std::ops::BitOr for Modes {
    type Output = Modes;
    fn bitor(self, other: Modes) -> Modes {
        Modes(self.0 | other.0)
    }
}

impl std::ops::Not for Modes {
    type Output = Modes;
    fn not(self) -> Modes {
        Modes(!self.0 & Modes::ALL.0)
    }
}

/// How keys are reported: kitty's flags with their stack, and xterm's modifyOtherKeys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keyboard {
    pub(crate) flags: u8,
    pub(crate) stack: Vec<u8>,
    pub(crate) modify_other: u8,
}

impl Keyboard {
    /// Depth of the stack; the oldest entry goes first, as kitty does.
    pub(crate) const STACK_MAX: usize = 16;
    const FLAGS: u8 = 0x1f;

    pub(crate) fn push(&mut self, flags: u16) {
        if self.stack.len() >= Keyboard::STACK_MAX {
            self.stack.remove(0);
        }
        self.stack.push(self.flags);
        self.flags = flags as u8 & Keyboard::FLAGS;
    }

    pub(crate) fn pop(&mut self, count: u16) {
        for _ in 0..count.min(Keyboard::STACK_MAX as u16 + 1) {
            self.flags = self.stack.pop().unwrap_or(0);
        }
    }

    pub(crate) fn set(&mut self, flags: u16, how: u16) {
        let flags = flags as u8 & Keyboard::FLAGS;
        match how {
            1 => self.flags = flags,
            2 => self.flags |= flags,
            3 => self.flags &= !flags,
            _ => {}
        }
    }
}

impl Vt {
    pub(crate) fn set_modes(&mut self, private: bool, params: &Params, on: bool) {
        for number in params.all() {
            if private {
                self.set_private_mode(*number, on);
            } else {
                match number {
                    4 => self.set(Modes::INSERT, on),
                    20 => self.set(Modes::NEW_LINE, on),
                    _ => {}
                }
            }
        }
    }

    fn set(&mut self, mode: Modes, on: bool) {
        if on { self.modes.insert(mode) } else { self.modes.remove(mode) }
    }

    fn set_private_mode(&mut self, number: u16, on: bool) {
        match number {
            6 => {
                self.set(Modes::ORIGIN, on);
                self.goto(0, 0);
            }
            9 | 1000 | 1002 | 1003 => {
                self.modes.remove(Modes::MOUSE_ANY);
                if let (true, Some(mode)) = (on, Modes::of_private(number)) {
                    self.modes.insert(mode);
                }
            }
            1005 | 1006 | 1015 | 1016 => {
                self.modes.remove(Modes::ENCODE_ANY);
                if let (true, Some(mode)) = (on, Modes::of_private(number)) {
                    self.modes.insert(mode);
                }
            }
            47 | 1047 if on => self.enter_alternate(),
            47 | 1047 => self.leave_alternate(),
            1048 if on => self.save_cursor(),
            1048 => self.restore_cursor(),
            1049 if on => {
                self.save_cursor();
                self.enter_alternate();
            }
            1049 => {
                self.leave_alternate();
                self.restore_cursor();
            }
            _ => {
                if let Some(mode) = Modes::of_private(number) {
                    self.set(mode, on);
                }
            }
        }
    }

    /// DECRQM's answer: 1 set, 2 reset, 0 not known, 4 permanently reset.
    pub(crate) fn mode_state(&self, private: bool, number: u16) -> u8 {
        let state = |on: bool| if on { 1 } else { 2 };
        if !private {
            return match number {
                4 => state(self.modes.has(Modes::INSERT)),
                20 => state(self.modes.has(Modes::NEW_LINE)),
                2 | 12 => 4,
                _ => 0,
            };
        }
        match number {
            47 | 1047 | 1049 => state(self.alternate),
            3 => 4,
            _ => Modes::of_private(number).map_or(0, |mode| state(self.modes.has(mode))),
        }
    }
}
