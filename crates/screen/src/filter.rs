//! Output without the questions in it, and without what only the terminal of who writes may be asked for.

use crate::parse::{Boundary, Csi, ESC, State};

/// Passes output on byte for byte, but for the sequences a terminal would answer, those that set its clipboard, and the one-byte
/// forms of escapes (as two bytes of UTF-8), which the screen does not know either.
///
/// For terminals that must not answer because another one does: their person watches, and whoever writes must not reach
/// their clipboard. An unfinished sequence is held back until it can be judged; a
/// string longer than any query is passed on as it comes, so memory is bounded.
#[derive(Debug, Default)]
pub struct QueryFilter {
    held: Vec<u8>,
    boundary: Option<Boundary>,
    /// Within a sequence whose fate is decided.
    through: Option<(State, Fate)>,
    /// A dropped string ended at an escape: if that is its terminator, it goes too.
    terminator: bool,
    /// The last byte may be the first of a C1 control, and is not passed on yet.
    lead: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Pass,
    Drop,
}

/// What a query fits into by far; what is longer is judged by its beginning.
const HELD_BYTES_MAX: usize = 4096;
const ENQ: u8 = 0x05;
/// The first byte of U+0080 to U+00BF.
const C1_LEAD: u8 = 0xc2;

impl QueryFilter {
    /// At the beginning of a stream.
    #[must_use]
    pub fn new() -> QueryFilter {
        QueryFilter::default()
    }

    /// Appends what is left of `bytes` to `out`.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let from = out.len();
        if self.lead {
            out.push(C1_LEAD);
        }
        self.feed_rest(bytes, out);
        self.lead = drop_c1(out, from);
    }

    fn feed_rest(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = if let Some((state, fate)) = self.through {
                self.go_through(state, fate, rest, out)
            } else if self.boundary.is_some() {
                self.hold(rest, out)
            } else {
                self.pass_text(rest, out)
            };
        }
    }

    /// What is held back, for a terminal that is to get everything from here on. None within a string that is being
    /// dropped: its end would be shown as text.
    pub fn give_up(&mut self) -> Option<Vec<u8>> {
        if matches!(self.through, Some((_, Fate::Drop))) {
            return None;
        }
        self.boundary = None;
        let lead = if std::mem::take(&mut self.lead) { vec![C1_LEAD] } else { Vec::new() };
        Some([lead, std::mem::take(&mut self.held)].concat())
    }

    fn go_through<'a>(&mut self, state: State, fate: Fate, rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let mut boundary = Boundary::within(state);
        let end = boundary.find(rest);
        let length = end.unwrap_or(rest.len());
        if fate == Fate::Pass {
            out.extend_from_slice(&rest[..length]);
        }
        self.through = if end.is_none() { Some((boundary.state, fate)) } else { None };
        self.terminator = end.is_some() && fate == Fate::Drop && rest.get(length) == Some(&ESC);
        &rest[length..]
    }

    fn pass_text<'a>(&mut self, rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let length = memchr::memchr2(ESC, ENQ, rest).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..length]);
        let rest = &rest[length..];
        match rest.first() {
            Some(&ENQ) => &rest[1..],
            Some(_) => {
                self.held.clear();
                self.held.push(ESC);
                self.boundary = Some(Boundary::new());
                &rest[1..]
            }
            None => rest,
        }
    }

    fn hold<'a>(&mut self, rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let Some(mut boundary) = self.boundary else { return rest };
        let before = self.held.len();
        let taken = rest.len().min(HELD_BYTES_MAX + 1 - before.min(HELD_BYTES_MAX));
        self.held.extend_from_slice(&rest[..taken]);
        let end = boundary.find(&self.held);
        self.boundary = Some(boundary);
        let Some(length) = end else {
            if self.held.len() > HELD_BYTES_MAX {
                let fate = judge(boundary.state, &self.held, false);
                self.settle(fate, self.held.len(), out);
                self.through = Some((boundary.state, fate));
            }
            return &rest[taken..];
        };
        let fate = if self.terminator && self.held[..length] == *b"\x1b\\" {
            Fate::Drop
        } else {
            judge(boundary.state, &self.held[..length], true)
        };
        let string = matches!(boundary.state, State::Osc | State::Text);
        let rest = &rest[length - before..];
        self.terminator = string && fate == Fate::Drop && self.held[length - 1] != 0x07;
        self.settle(fate, length, out);
        rest
    }

    fn settle(&mut self, fate: Fate, length: usize, out: &mut Vec<u8>) {
        if fate == Fate::Pass {
            let string = matches!(self.boundary, Some(Boundary { state: State::Osc | State::Text, .. }));
            out.extend(self.held[..length].iter().filter(|b| string || **b != ENQ));
        }
        self.held.clear();
        self.boundary = None;
    }
}

/// Takes U+0080 to U+009F out of what follows `from`; whether the last byte may begin one, which is taken out too.
fn drop_c1(out: &mut Vec<u8>, from: usize) -> bool {
    let mut at = from;
    while let Some(found) = memchr::memchr(C1_LEAD, &out[at..]) {
        at += found;
        match out.get(at + 1) {
            Some(0x80..=0x9f) => drop(out.drain(at..at + 2)),
            Some(_) => at += 1,
            None => {
                out.pop();
                return true;
            }
        }
    }
    false
}

/// Decides over a sequence; `complete` is false when only its beginning is known.
fn judge(state: State, sequence: &[u8], complete: bool) -> Fate {
    let body = sequence.iter().skip(1).position(|b| *b >= 0x20).map_or(&[][..], |at| &sequence[at + 2..]);
    let asks = match state {
        State::Escape => sequence.ends_with(b"Z"),
        State::Intermediate => false,
        State::Csi => complete && Csi::parse(body).is_some_and(|csi| csi_asks(&csi)),
        State::Osc => {
            // Terminals pass over controls in it.
            let text: Vec<u8> = body.iter().copied().filter(|b| *b >= 0x20 && *b != 0x7f).collect();
            // A number without end is nobody's title.
            osc_asks(&text) || (!complete && !text.contains(&b';'))
        }
        State::Text => match sequence.iter().skip(1).find(|b| **b >= 0x20) {
            Some(b'P') => dcs_asks(body),
            Some(b'_') => graphics_asks(body),
            _ => false,
        },
    };
    if asks { Fate::Drop } else { Fate::Pass }
}

fn csi_asks(csi: &Csi) -> bool {
    match (csi.prefix, csi.intermediate, csi.last) {
        // Device attributes, status, cursor position, parameters.
        (0 | b'>' | b'=', 0, b'c') | (0 | b'?', 0, b'n') | (0, 0, b'x') => true,
        // Modes, version, keyboard, graphics limits.
        (0 | b'?', b'$', b'p') | (b'>', 0, b'q') | (b'?', 0, b'u' | b'm' | b'S') => true,
        // Checksum, presentation, terminal state, locator, user-preferred set, displayed extent, reports of XTPUSHSGR and colours.
        (_, b'*', b'y') | (0, b'$', b'w' | b'u') | (0, b'\'', b'|') | (0, b'&', b'u') | (0, b'"', b'v') => true,
        (0, b'#', b'|' | b'R') => true,
        (0, 0, b't') => matches!(csi.params.or(0, 0), 11 | 13..=16 | 18..=21),
        _ => false,
    }
}

/// Whether it is answered, or sets the clipboard.
fn osc_asks(text: &[u8]) -> bool {
    let mut parts = text.split(|b| *b == b';');
    let number = parts.next().unwrap_or(b"");
    let zeros = number.iter().take_while(|b| **b == b'0').count();
    match &number[zeros..] {
        b"4" | b"5" | b"10" | b"11" | b"12" | b"13" | b"14" | b"15" | b"16" | b"17" | b"18" | b"19" | b"50"
        | b"104" | b"105" => parts.any(|part| part == b"?"),
        // The clipboard, read or set.
        b"52" | b"5522" => true,
        b"21" => parts.any(|part| part.ends_with(b"?")),
        b"22" => parts.any(|part| part.starts_with(b"?")),
        b"60" | b"61" => true,
        b"99" => parts.any(|part| part.split(|b| *b == b':').any(|key| key == b"p=?")),
        b"1337" => {
            let asked = [&b"Report"[..], b"Request", b"Copy", b"EndCopy"];
            parts.any(|part| asked.iter().any(|word| part.starts_with(word)))
        }
        _ => false,
    }
}

fn dcs_asks(text: &[u8]) -> bool {
    let start = text.iter().position(|b| !b.is_ascii_digit() && *b != b';').unwrap_or(text.len());
    let text = &text[start..];
    text.starts_with(b"+q") || text.starts_with(b"$q")
}

fn graphics_asks(text: &[u8]) -> bool {
    let Some(text) = text.strip_prefix(b"G") else { return false };
    let control = text.split(|b| *b == b';').next().unwrap_or(b"");
    control.split(|b| *b == b',').any(|key| key == b"a=q")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gives_up(fed: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
        let (mut filter, mut out) = (QueryFilter::new(), Vec::new());
        filter.feed(fed, &mut out);
        (out, filter.give_up())
    }

    #[test]
    fn what_was_held_back_can_be_had_but_not_the_middle_of_what_was_dropped() {
        assert_eq!(gives_up(b"ab"), (b"ab".to_vec(), Some(vec![])));
        assert_eq!(gives_up(b"ab\x1b[6"), (b"ab".to_vec(), Some(b"\x1b[6".to_vec())));
        assert_eq!(gives_up(b"\x1b]11;?"), (vec![], Some(b"\x1b]11;?".to_vec())));
        let endless = |beginning: &[u8]| [beginning, &[b'x'; HELD_BYTES_MAX]].concat();
        assert_eq!(gives_up(&endless(b"\x1bP+q")), (vec![], None));
        let shown = endless(b"\x1b]0;");
        assert_eq!(gives_up(&shown), (shown, Some(vec![])), "what is passed on goes on");
    }
}
