//! The keyframe: a screen's exact state as bytes.
//!
//! `HFKF`, a version byte, the body, and a checksum over all before it. A keyframe of another version is refused: the caller
//! then replays output, which is always right, only slower.

use crate::codec::{Reader, Writer};
use crate::history::{History, Open};
use crate::marks::TerminalColors;
use crate::parse::{Boundary, Decoded, ESC, State, decode};
use crate::screen::{SEQUENCE_BYTES_MAX, Screen};
use crate::vt::{Keyboard, Modes, Style, Vt, point};
use alacritty_terminal::grid::{Cursor, Dimensions, Grid};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::ansi::{CharsetIndex, StandardCharset};
use holdfast_types::Size;

const MAGIC: &[u8; 4] = b"HFKF";
const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 8;
const CHARSETS: [CharsetIndex; 4] = [CharsetIndex::G0, CharsetIndex::G1, CharsetIndex::G2, CharsetIndex::G3];

/// Why bytes are not a keyframe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyframeError {
    /// They start otherwise.
    #[error("not a keyframe")]
    NotAKeyframe,
    /// Another program version wrote it.
    #[error("a keyframe of version {0}, this program reads {VERSION}")]
    Version(u8),
    /// They were damaged.
    #[error("the checksum does not match")]
    Checksum,
    /// They end too early.
    #[error("the keyframe ends too early")]
    Truncated,
    /// They contradict themselves.
    #[error("not a possible state: {0}")]
    Invalid(&'static str),
}

impl Screen {
    /// The exact state as bytes, from which [`Screen::restore`] makes an equal screen. Marks and replies not yet taken are
    /// not part of it.
    #[must_use]
    pub fn keyframe(&self) -> Vec<u8> {
        let mut w = Writer::new();
        w.out.extend_from_slice(MAGIC);
        w.byte(VERSION);
        w.number(self.offset);
        w.number(self.vt.size.cols().into());
        w.number(self.vt.size.rows().into());
        w.bytes(&self.pending);
        w.byte(self.skipping.map_or(0, state_number));
        write_vt(&self.vt, &mut w);
        let sum = checksum(&w.out);
        w.out.extend_from_slice(&sum);
        w.out
    }

    /// The screen that [`Screen::keyframe`] was called on.
    ///
    /// # Errors
    ///
    /// The bytes are no keyframe, of another version, or damaged.
    pub fn restore(bytes: &[u8]) -> Result<Screen, KeyframeError> {
        let body = bytes.strip_prefix(MAGIC).ok_or(KeyframeError::NotAKeyframe)?;
        let (version, _) = body.split_first().ok_or(KeyframeError::Truncated)?;
        if *version != VERSION {
            return Err(KeyframeError::Version(*version));
        }
        let (content, sum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(KeyframeError::Truncated)?;
        if checksum(content) != *sum {
            return Err(KeyframeError::Checksum);
        }
        let mut r = Reader::new(content.get(MAGIC.len() + 1..).ok_or(KeyframeError::Truncated)?);
        let offset = r.number()?;
        let (cols, rows) = (r.number()?, r.number()?);
        let narrow = |n: u64| u16::try_from(n).map_err(|_| KeyframeError::Invalid("the size"));
        let size = Size::clamped(narrow(cols)?, narrow(rows)?);
        if u64::from(size.cols()) != cols || u64::from(size.rows()) != rows {
            return Err(KeyframeError::Invalid("the size"));
        }
        let mut screen = Screen::new(size, offset);
        screen.pending = r.bytes()?.to_vec();
        screen.boundary = pending_boundary(&screen.pending)?;
        screen.skipping = state_of(r.byte()?)?;
        read_vt(&mut screen.vt, &mut r)?;
        if r.is_empty() { Ok(screen) } else { Err(KeyframeError::Invalid("bytes follow the end")) }
    }
}

fn state_number(state: State) -> u8 {
    match state {
        State::Escape => 1,
        State::Intermediate => 2,
        State::Csi => 3,
        State::Osc => 4,
        State::Text => 5,
    }
}

fn state_of(number: u8) -> Result<Option<State>, KeyframeError> {
    Ok(Some(match number {
        0 => return Ok(None),
        1 => State::Escape,
        2 => State::Intermediate,
        3 => State::Csi,
        4 => State::Osc,
        5 => State::Text,
        _ => return Err(KeyframeError::Invalid("the parser's state")),
    }))
}

/// Searches pending bytes again for the end they must not have.
fn pending_boundary(pending: &[u8]) -> Result<Option<Boundary>, KeyframeError> {
    let wrong = Err(KeyframeError::Invalid("pending bytes that are complete"));
    match pending.first() {
        None => Ok(None),
        Some(&ESC) if pending.len() <= SEQUENCE_BYTES_MAX => {
            let mut boundary = Boundary::new();
            if boundary.find(pending).is_some() { wrong } else { Ok(Some(boundary)) }
        }
        Some(0x80..) if decode(pending) == Decoded::Incomplete => Ok(None),
        Some(_) => wrong,
    }
}

/// Puts the right checksum behind a body, for tests that damage one.
#[doc(hidden)]
#[must_use]
pub fn sign_keyframe_for_tests(mut body: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&body);
    body.extend_from_slice(&sum);
    body
}

/// Eight bytes at a time. Each step is a bijection, so damage within one word never goes unseen.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sum = bytes.len() as u64 ^ ODD;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        sum = (sum.rotate_left(5) ^ word).wrapping_mul(ODD);
    }
    for byte in words.remainder() {
        sum = (sum.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(ODD);
    }
    (sum ^ sum >> 32).to_le_bytes()
}

fn write_vt(vt: &Vt, w: &mut Writer) {
    w.byte(u8::from(vt.alternate));
    w.number(vt.modes.0.into());
    write_screen(&vt.grid, vt.region, vt.saved_charset, &vt.keyboard, w);
    if vt.alternate {
        write_screen(&vt.other, vt.other_region, vt.other_saved_charset, &vt.other_keyboard, w);
    }
    w.byte(vt.charset as u8);
    let default = crate::vt::default_tabs(vt.cols());
    let moved: Vec<usize> = (0..vt.cols()).filter(|at| vt.tabs[*at] != default[*at]).collect();
    w.number(moved.len() as u64);
    moved.iter().for_each(|at| w.number(*at as u64));
    w.char(vt.last_char.unwrap_or('\0'));
    w.byte(vt.cursor_style);
    w.bytes(vt.title.as_bytes());
    w.number(vt.title_stack.len() as u64);
    vt.title_stack.iter().for_each(|title| w.bytes(title.as_bytes()));
    w.bytes(vt.cwd.as_deref().unwrap_or("").as_bytes());
    w.number(vt.palette.len() as u64);
    for (index, color) in &vt.palette {
        w.number(u64::from(*index));
        w.out.extend_from_slice(color);
    }
    for color in [vt.colors.foreground, vt.colors.background, vt.colors.cursor] {
        w.byte(u8::from(color.is_some()));
        w.out.extend_from_slice(&color.unwrap_or_default());
    }
    w.bytes(&vt.history.bytes);
    w.byte(u8::from(vt.history.open.is_some()));
    if let Some(open) = &vt.history.open {
        w.number(open.start as u64);
        w.style(&open.style, open.style.flags);
    }
}

fn read_vt(vt: &mut Vt, r: &mut Reader<'_>) -> Result<(), KeyframeError> {
    vt.alternate = r.byte()? == 1;
    vt.modes = Modes(r.below(Modes::ALL.0 as usize, "modes")? as u32);
    (vt.region, vt.saved_charset, vt.keyboard) = read_screen(&mut vt.grid, r)?;
    if vt.alternate {
        vt.other = Grid::new(vt.rows(), vt.cols(), 0);
        (vt.other_region, vt.other_saved_charset, vt.other_keyboard) = read_screen(&mut vt.other, r)?;
    }
    vt.charset = read_charset(r)?;
    for _ in 0..r.below(vt.cols(), "tab stops")? {
        let at = r.below(vt.cols() - 1, "a tab stop")?;
        vt.tabs[at] = !vt.tabs[at];
    }
    vt.last_char = match r.byte_or_char()? {
        '\0' => None,
        c => Some(c),
    };
    vt.cursor_style = r.below(6, "the cursor's style")? as u8;
    vt.title = r.text()?.to_owned();
    for _ in 0..r.below(16, "titles")? {
        vt.title_stack.push(r.text()?.to_owned());
    }
    vt.cwd = Some(r.text()?.to_owned()).filter(|cwd| !cwd.is_empty());
    for _ in 0..r.below(259, "the palette")? {
        let index = r.below(258, "a palette entry")? as u16;
        vt.palette.insert(index, [r.byte()?, r.byte()?, r.byte()?]);
    }
    let mut color = || -> Result<Option<[u8; 3]>, KeyframeError> {
        let given = r.byte()? == 1;
        let color = [r.byte()?, r.byte()?, r.byte()?];
        Ok(given.then_some(color))
    };
    vt.colors = TerminalColors { foreground: color()?, background: color()?, cursor: color()? };
    vt.history = read_history(r)?;
    Ok(())
}

fn read_history(r: &mut Reader<'_>) -> Result<History, KeyframeError> {
    let bytes = r.bytes()?.to_vec();
    let mut closed = bytes.len();
    let open = match r.byte()? {
        0 => None,
        _ => {
            closed = r.below(bytes.len(), "the open line")?;
            Some(Open { start: closed, style: r.style()? })
        }
    };
    if closed > 0 && bytes[closed - 1] != b'\n' || memchr::memchr(b'\n', &bytes[closed..]).is_some() {
        return Err(KeyframeError::Invalid("the open line"));
    }
    let lines = memchr::memchr_iter(b'\n', &bytes).count();
    Ok(History { bytes, lines, open, cleared: false })
}

fn write_screen(grid: &Grid<Cell>, region: (usize, usize), saved: CharsetIndex, keys: &Keyboard, w: &mut Writer) {
    for row in 0..grid.screen_lines() {
        w.row(&grid[Line(row as i32)]);
    }
    write_cursor(&grid.cursor, w);
    write_cursor(&grid.saved_cursor, w);
    w.number(region.0 as u64);
    w.number(region.1 as u64);
    w.byte(saved as u8);
    w.byte(keys.flags);
    w.byte(keys.modify_other);
    w.bytes(&keys.stack);
}

type ScreenParts = ((usize, usize), CharsetIndex, Keyboard);

fn read_screen(grid: &mut Grid<Cell>, r: &mut Reader<'_>) -> Result<ScreenParts, KeyframeError> {
    let rows = grid.screen_lines();
    for row in 0..rows {
        r.row(&mut grid[Line(row as i32)])?;
    }
    grid.cursor = read_cursor(grid.columns(), rows, r)?;
    grid.saved_cursor = read_cursor(grid.columns(), rows, r)?;
    let top = r.below(rows - 1, "the region")?;
    let bottom = r.below(rows - 1, "the region")?;
    if top > bottom || top == bottom && rows > 1 {
        return Err(KeyframeError::Invalid("the region"));
    }
    let saved = read_charset(r)?;
    let (flags, modify_other) = (r.byte()?, r.byte()?);
    let stack = r.bytes()?.to_vec();
    if stack.len() > Keyboard::STACK_MAX {
        return Err(KeyframeError::Invalid("the keyboard stack"));
    }
    Ok(((top, bottom), saved, Keyboard { flags, stack, modify_other }))
}

fn write_cursor(cursor: &Cursor<Cell>, w: &mut Writer) {
    w.number(cursor.point.column.0 as u64);
    w.number(cursor.point.line.0.max(0) as u64);
    let special = |index: &CharsetIndex| cursor.charsets[*index] == StandardCharset::SpecialCharacterAndLineDrawing;
    let sets = CHARSETS.iter().enumerate().fold(0, |bits, (at, index)| bits | u8::from(special(index)) << at);
    w.byte(sets << 1 | u8::from(cursor.input_needs_wrap));
    let style = Style::of(&cursor.template);
    let flags = style.flags;
    w.style(&style, flags);
}

fn read_cursor(cols: usize, rows: usize, r: &mut Reader<'_>) -> Result<Cursor<Cell>, KeyframeError> {
    let column = r.below(cols - 1, "the cursor")?;
    let row = r.below(rows - 1, "the cursor")?;
    let bits = r.byte()?;
    let mut cursor =
        Cursor { point: point(column, row), input_needs_wrap: bits & 1 != 0, template: r.pen()?, ..Cursor::default() };
    for (at, index) in CHARSETS.into_iter().enumerate() {
        if bits >> (at + 1) & 1 != 0 {
            cursor.charsets[index] = StandardCharset::SpecialCharacterAndLineDrawing;
        }
    }
    Ok(cursor)
}

fn read_charset(r: &mut Reader<'_>) -> Result<CharsetIndex, KeyframeError> {
    CHARSETS.get(usize::from(r.byte()?)).copied().ok_or(KeyframeError::Invalid("a character set"))
}
