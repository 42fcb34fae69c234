//! What the host knows of a session's screen, made only when somebody looks.
//!
//! The screen follows the ring lazily. Between looks it lies on disk as a keyframe at an offset with the history up to
//! there; looking means reading it back and feeding what the ring has since. Before the ring overwrites what was not fed,
//! the session catches up (`session` sees to that). So a crash at any moment costs nothing that the ring still has.
//!
//! Output that was overwritten before anybody could look is a gap: said, never papered over.

use crate::session::read_sizes;
use holdfast_abi::ring::{Base, Copied, Ring};
use holdfast_screen::{Mark, Reply, Screen};
use holdfast_session::may_tell_an_end;
use holdfast_store::Unreadable;
use holdfast_store::history::{History, Lines, Past, Wanted};
use holdfast_store::keyframe::{Keyframe, Remembered};
use holdfast_types::{Offset, Size};
use holdfast_wire::params::Gap;
use holdfast_wire::turns::HistoryPlace;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes fed between two looks at anything else: 2 ms of work at most.
const SLICE_BYTES: usize = 512 * 1024;

/// Output that does not rest for this long is a flood: most of its lines are replaced by newer ones before anybody could
/// read them.
const FLOOD_BYTES: u64 = 4 * 1024 * 1024;
/// In a flood history is written out this often: a tenth of a second, which is what a kill of the host can cost then.
const FLUSH_EVERY_BYTES: u64 = 8 * 1024 * 1024;

/// The screen of one session.
#[derive(Debug)]
pub struct Picture {
    dir: PathBuf,
    history_lines: u32,
    /// The size a screen starts with where no keyframe tells.
    size: Size,
    live: Option<Live>,
    /// Everything before this offset is in the keyframe on disk.
    saved: Offset,
    /// Log position from which the keyframe on disk needs the sizes.
    log_position: u64,
    /// Log position up to which the sizes were taken; unknown until the keyframe was read.
    log_taken: Option<u64>,
    resizes: VecDeque<Resize>,
    /// Something about the past that stays true.
    note: Option<String>,
    /// Why the last save failed.
    unsaved: Option<String>,
    /// The keyframe on disk is a later version's: it stays, and the screen is in memory alone.
    is_foreign: bool,
    /// How often the keyframe was written.
    saves: u64,
    /// What was read of the keyframe before it was needed.
    brought: Option<Brought>,
    /// Which counting of lines this is, and how many were drained in it.
    count: u64,
    drained: u64,
}

/// A keyframe that was read on another thread.
#[derive(Debug)]
pub struct Brought {
    /// It is the one on disk as long as no other was written.
    saves: u64,
    keyframe: Result<Option<Keyframe>, Unreadable>,
}

/// A keyframe to be read, on any thread.
#[derive(Debug)]
pub struct Cold {
    dir: PathBuf,
    saves: u64,
}

impl Cold {
    /// Reads it.
    #[must_use]
    pub fn read(&self) -> Brought {
        Brought { saves: self.saves, keyframe: Keyframe::load(&self.dir) }
    }
}

/// A size the screen does not have yet.
#[derive(Debug, Clone, Copy)]
struct Resize {
    at: Offset,
    size: Size,
    /// Its place in the log.
    logged: u64,
}

struct Live {
    screen: Screen,
    history: History,
    gap: Option<Gap>,
    dirty: bool,
    /// The offset at which output began to flow.
    since: Offset,
    /// The offset at which history was last written out.
    flushed: Offset,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live")
            .field("offset", &self.screen.offset())
            .field("dirty", &self.dirty)
            .finish_non_exhaustive()
    }
}

/// What one step of catching up gave.
#[derive(Debug, Default)]
pub struct Step {
    /// Answers to the session's queries, to be typed unless a terminal answers.
    pub replies: Vec<Reply>,
    /// What was told on the side, the newest 1024 of it.
    pub marks: Vec<Mark>,
    /// There is more to feed.
    pub more: bool,
}

impl Picture {
    /// A picture that starts from the session's files.
    pub fn new(dir: &Path, size: Size, history_lines: u32) -> Picture {
        Picture {
            dir: dir.to_owned(),
            history_lines,
            size,
            live: None,
            saved: 0,
            log_position: 0,
            log_taken: None,
            resizes: VecDeque::new(),
            note: None,
            unsaved: None,
            is_foreign: false,
            saves: 0,
            brought: None,
            count: random_count(),
            drained: 0,
        }
    }

    /// The output offset that is safe on disk.
    #[must_use]
    pub fn saved(&self) -> Offset {
        self.saved
    }

    /// The output offset the screen has been fed to, as far as it is in memory or on disk.
    #[must_use]
    pub fn seen(&self) -> Offset {
        self.live.as_ref().map_or(self.saved, |live| live.screen.offset())
    }

    /// The same, but for the beginning of a sequence that may tell a command's end.
    #[must_use]
    pub fn seen_of_commands(&self) -> Offset {
        let unfinished = self.live.as_ref().map_or(&[][..], |live| live.screen.unfinished_sequence());
        let held_back = if may_tell_an_end(unfinished) { unfinished.len() } else { 0 };
        self.seen() - held_back as u64
    }

    /// Log position up to which the last host had seen what was typed, at least.
    pub fn log_position(&mut self) -> u64 {
        // A session that is new, or has said nothing, needs no screen yet.
        if self.live.is_some() || self.dir.join("keyframe").exists() {
            self.live();
        }
        self.log_position
    }

    /// What is to be read before the screen can be looked at; none where it is in memory.
    #[must_use]
    pub fn cold(&self) -> Option<Cold> {
        self.live.is_none().then(|| Cold { dir: self.dir.clone(), saves: self.saves })
    }

    /// Takes what was read, for the next look.
    pub fn bring(&mut self, brought: Brought) {
        self.brought = self.live.is_none().then_some(brought);
    }

    /// The screen is in memory.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Takes the sizes that came since the last look from the log; false where some were overwritten.
    pub fn take_sizes(&mut self, ring: &Ring) -> bool {
        let log_head = ring.log_head();
        let from = match self.log_taken {
            Some(taken) => taken,
            None => self.log_position(),
        };
        self.log_taken = Some(log_head);
        // What is older than the log is long may be overwritten, what is older than its base was in another file, and
        // records have no other beginning.
        let oldest = log_head.saturating_sub(ring.log_bytes()).max(ring.base().log);
        let whole = (oldest..=log_head).contains(&from);
        if whole && from < log_head {
            let sizes = read_sizes(ring, from, log_head);
            self.resizes.extend(sizes.into_iter().map(|(logged, at, size)| Resize { at, size, logged }));
        }
        whole
    }

    /// The terminal has this size where its output stands at `at`, whatever the log could not tell.
    pub fn resized(&mut self, at: Offset, size: Size) {
        let logged = self.log_taken.unwrap_or(self.log_position);
        self.resizes.push_back(Resize { at, size, logged });
    }

    /// Another life counts on from here. The screen stays as it is; what lies between, if anything, was never seen.
    pub fn begin_at(&mut self, base: Base) {
        let live = self.live();
        let from = live.screen.offset();
        if from < base.output {
            live.gap = Some(Gap { from: live.gap.map_or(from, |gap| gap.from.min(from)), to: base.output });
        }
        live.screen.count_from(base.output);
        live.dirty = true;
        self.resizes.clear();
        self.log_taken = Some(base.log);
        self.save(false);
    }

    /// Something about the files a person should know.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.unsaved.as_deref().or(self.note.as_deref())
    }

    /// Feeds one slice of what the ring has beyond the screen.
    pub fn step(&mut self, ring: &Ring, buffer: &mut Vec<u8>) -> Step {
        let head = ring.head();
        // After the head: the keeper logs a resize before it reads what comes behind it, so that nothing up to this head
        // is fed at a size that is no longer or not yet the terminal's.
        self.take_sizes(ring);
        let mut resizes = std::mem::take(&mut self.resizes);
        let live = self.live();
        let position = live.screen.offset();
        while let Some(resize) = resizes.pop_front_if(|resize| resize.at <= position) {
            live.screen.resize(resize.size);
            live.dirty = true;
        }
        let target = resizes.front().map_or(head, |resize| head.min(resize.at));
        let wanted = (target.saturating_sub(position) as usize).min(SLICE_BYTES);
        // Grown once: filling it with zeros for every slice would cost as much as reading the slice.
        if buffer.len() < wanted {
            buffer.resize(SLICE_BYTES, 0);
        }
        match ring.copy(position, &mut buffer[..wanted]) {
            Copied::Bytes(count) => {
                live.screen.feed(&buffer[..count]);
                live.dirty |= count > 0;
            }
            Copied::Lapped { oldest } => live.skip_to(oldest, position),
            // A keyframe from the future: the ring is not the one it was taken of. Start over with what is there.
            Copied::Ahead { newest } => live.skip_to(ring.oldest().min(newest), 0),
        }
        let cleared = live.screen.take_cleared();
        if cleared {
            // It came behind everything that was drained before.
            live.history.clear();
        }
        let drained = live.screen.drain_history(live.history.pending());
        live.history.settle();
        let offset = live.screen.offset();
        let more = offset < head || resizes.front().is_some_and(|resize| resize.at <= offset);
        let step = Step { replies: live.screen.take_replies(), marks: live.screen.take_marks(), more };
        if cleared {
            // What is above the screen now is no continuation of what was there.
            (self.count, self.drained) = (random_count(), 0);
        }
        self.drained += u64::from(drained);
        self.resizes = resizes;
        step
    }

    /// Writes the keyframe, so that everything fed is safe; lets the screen go too if asked.
    pub fn save(&mut self, let_go: bool) {
        // Sizes that were taken and not applied are only in memory: the next host must find them in the log.
        let taken = self.log_taken.unwrap_or(self.log_position);
        let log_position = self.resizes.front().map_or(taken, |resize| resize.logged);
        let Some(live) = &mut self.live else { return };
        let offset = live.screen.offset();
        if self.is_foreign {
            self.saved = offset;
            return;
        }
        // A screen that had to start over stands before where it stood.
        let flood =
            offset.saturating_sub(live.since) >= FLOOD_BYTES && offset.saturating_sub(live.flushed) < FLUSH_EVERY_BYTES;
        let flushed = if let_go || !flood { live.history.flush() } else { Ok(false) };
        let moved = matches!(flushed, Ok(true));
        if moved {
            live.flushed = offset;
        }
        let mut saved = flushed.map(|_| ());
        if live.dirty || moved || log_position != self.log_position {
            let keyframe = Keyframe {
                log_position,
                history: live.history.remember(),
                gap: live.gap.map_or((0, 0), |gap| (gap.from, gap.to)),
                screen: live.screen.keyframe(),
            };
            saved = saved.and_then(|()| keyframe.save(&self.dir));
            self.saves += 1;
        }
        let failed = saved.is_err();
        // Safe or not, the ring may go on: holding the session back would not make the disk larger.
        self.saved = offset;
        self.remember_failure(saved);
        if failed {
            return;
        }
        self.log_position = log_position;
        if let Some(live) = &mut self.live {
            live.dirty = false;
            if moved {
                live.history.forget_old();
            }
        }
        if let_go {
            self.live = None;
        }
    }

    /// The screen, caught up as far as the last [`Picture::step`] went.
    pub fn screen(&mut self) -> &Screen {
        &self.live().screen
    }

    /// What must be read from files for the newest lines of history, on another thread; none where memory has them.
    pub fn past(&mut self, count: u32) -> Option<Wanted> {
        let count = count.min(self.history_lines);
        self.live().history.wanted(count)
    }

    /// The newest lines of history that are no longer part of the screen's own state. Where lines have moved into files since the
    /// past was read, it is read again on the spot.
    pub fn history(&mut self, count: u32, past: Option<&Past>) -> Lines {
        let count = count.min(self.history_lines);
        let history = &self.live().history;
        history.tail_behind(count, past).unwrap_or_else(|| history.tail(count))
    }

    /// How many lines above the screen are behind a place, of those that were drained and of those that were not. All of them
    /// where the place is not of our counting.
    pub fn lines_behind(&mut self, place: Option<HistoryPlace>) -> (u32, usize) {
        let undrained = self.live().screen.undrained_lines() as u64;
        let Some(place) = place.filter(|place| place.count == self.count) else { return (u32::MAX, usize::MAX) };
        let new = (self.drained + undrained).saturating_sub(place.lines);
        let drained = u32::try_from(new.saturating_sub(undrained)).unwrap_or(u32::MAX);
        (drained, new.min(undrained) as usize)
    }

    /// Where the history stands, but for the lines that so many bytes of output may have brought.
    pub fn place_before(&mut self, bytes: u64) -> HistoryPlace {
        let screen = &self.live().screen;
        let (undrained, rows) = (screen.undrained_lines() as u64, screen.size().rows());
        // One byte scrolls a line at most; a sequence of a few scrolls a screen.
        let lines = bytes.saturating_mul(u64::from(rows));
        HistoryPlace { count: self.count, lines: (self.drained + undrained).saturating_sub(lines) }
    }

    /// There are lines above the screen.
    pub fn has_history(&mut self) -> bool {
        let live = self.live();
        !live.history.is_empty() || !live.screen.open_history().is_empty()
    }

    /// Output the screen never saw.
    pub fn gap(&mut self) -> Option<Gap> {
        self.live().gap
    }

    fn remember_failure(&mut self, result: io::Result<()>) {
        self.unsaved = result.err().map(|error| format!("cannot save screen and history: {error}"));
    }

    fn live(&mut self) -> &mut Live {
        if self.live.is_none() {
            let live = self.load();
            self.saved = live.screen.offset();
            self.live = Some(live);
        }
        self.live.as_mut().expect("just made")
    }

    fn load(&mut self) -> Live {
        let fresh_with = |picture: &Picture, history: History| Live {
            screen: Screen::new(picture.size, 0),
            history,
            gap: None,
            dirty: false,
            since: 0,
            flushed: 0,
        };
        let fresh = |picture: &Picture| {
            let history = History::resume(&picture.dir, picture.history_lines, Remembered::default());
            fresh_with(picture, history)
        };
        let brought = self.brought.take().filter(|brought| brought.saves == self.saves);
        let keyframe = match brought.map_or_else(|| Keyframe::load(&self.dir), |brought| brought.keyframe) {
            Ok(Some(keyframe)) => keyframe,
            Ok(None) => return fresh(self),
            Err(newer @ Unreadable::Newer { .. }) => {
                self.note = Some(format!("screen and history are in memory alone: {newer}"));
                self.is_foreign = true;
                // Its history is that version's too.
                return fresh_with(self, History::in_memory(self.history_lines));
            }
            Err(error) => {
                self.note = Some(format!("the screen was rebuilt from the ring: {error}"));
                return fresh(self);
            }
        };
        match Screen::restore(&keyframe.screen) {
            Ok(screen) => {
                self.log_position = keyframe.log_position;
                Live {
                    since: screen.offset(),
                    flushed: screen.offset(),
                    screen,
                    history: History::resume(&self.dir, self.history_lines, keyframe.history),
                    gap: (keyframe.gap.0 < keyframe.gap.1).then_some(Gap { from: keyframe.gap.0, to: keyframe.gap.1 }),
                    dirty: false,
                }
            }
            Err(error) => {
                self.note = Some(format!("the screen was rebuilt from the ring: {error}"));
                fresh(self)
            }
        }
    }
}

impl Live {
    /// Goes on at `to` with an empty screen; what lies between is a gap, and a line of history says so.
    fn skip_to(&mut self, to: Offset, from: Offset) {
        // Half finished lines of the old screen are part of what is known: they go into the history first.
        self.screen.drain_history(self.history.pending());
        let pending = self.history.pending();
        pending.extend_from_slice(&self.screen.open_history());
        if !pending.is_empty() && pending.last() != Some(&b'\n') {
            pending.push(b'\n');
        }
        for row in self.screen.rows_ansi() {
            pending.extend_from_slice(&row);
            pending.push(b'\n');
        }
        let marker = format!("[holdfast: output from byte {from} to {to} was overwritten before it could be kept]\n");
        pending.extend_from_slice(marker.as_bytes());
        self.gap = Some(Gap { from: self.gap.map_or(from, |gap| gap.from.min(from)), to });
        self.screen = Screen::new(self.screen.size(), to);
        self.dirty = true;
    }
}

/// A number for a counting of lines. Of 52 bits: it goes through JSON.
fn random_count() -> u64 {
    u64::from_le_bytes(crate::random_token()[..8].try_into().expect("16 bytes")) >> 12
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring in a file of its own, with this output.
    fn ring(dir: &Path, name: &str, output: &[u8]) -> Ring {
        ring_at(dir, name, Base::default(), output)
    }

    fn ring_at(dir: &Path, name: &str, base: Base, output: &[u8]) -> Ring {
        let file = std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(dir.join(name)).unwrap();
        let ring = Ring::create(&file, 256 * 1024, base, 1, 0).unwrap();
        let at = holdfast_abi::ring::HEADER_BYTES + base.output % ring.capacity();
        std::os::unix::fs::FileExt::write_all_at(&file, output, at).unwrap();
        ring.publish(base.output + output.len() as u64);
        ring
    }

    fn picture(dir: &Path) -> Picture {
        Picture::new(dir, "20x5".parse().unwrap(), 100)
    }

    #[test]
    fn what_was_saved_is_there_again_without_the_output_that_made_it() {
        let dir = tempfile::tempdir().unwrap();
        let ring = ring(dir.path(), "ring", b"hello\r\nworld");
        let mut first = picture(dir.path());
        assert!(!first.step(&ring, &mut Vec::new()).more);
        first.save(true);
        assert!(!first.is_live() && first.saved() == 12);
        let mut second = picture(dir.path());
        assert_eq!(second.screen().rows_text()[..2], ["hello", "world"]);
        assert_eq!(second.seen(), 12);
    }

    #[test]
    fn a_later_versions_keyframe_and_history_stay_as_they_are_and_the_screen_is_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let newer = holdfast_store::Format { version: 3, ..holdfast_store::KEYFRAME }.seal(b"what nobody knows yet");
        std::fs::write(dir.path().join("keyframe"), &newer).unwrap();
        std::fs::write(dir.path().join("history.0"), b"its history").unwrap();
        let ring = ring(dir.path(), "ring", b"hello");
        let mut picture = picture(dir.path());
        picture.step(&ring, &mut Vec::new());
        picture.save(true);
        assert!(picture.note().unwrap().contains("version 3"), "{:?}", picture.note());
        assert_eq!((picture.screen().rows_text()[0].as_str(), picture.saved()), ("hello", 5));
        assert_eq!(std::fs::read(dir.path().join("keyframe")).unwrap(), newer);
        assert_eq!(std::fs::read(dir.path().join("history.0")).unwrap(), b"its history");
    }

    #[test]
    fn a_keyframe_that_was_read_before_is_used_unless_another_was_written_since() {
        let dir = tempfile::tempdir().unwrap();
        let ring = ring(dir.path(), "ring", b"hello");
        let mut picture = picture(dir.path());
        let early = picture.cold().unwrap().read();
        picture.step(&ring, &mut Vec::new());
        assert!(picture.cold().is_none());
        picture.save(true);
        picture.bring(early);
        assert_eq!(picture.screen().rows_text()[0], "hello", "there was none when it was read");
        picture.save(true);
        let late = picture.cold().unwrap().read();
        std::fs::remove_file(dir.path().join("keyframe")).unwrap();
        picture.bring(late);
        assert_eq!(picture.screen().rows_text()[0], "hello", "the file is not read again");
    }

    #[test]
    fn a_failing_save_is_told_until_the_next_one_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let ring = ring(dir.path(), "ring", b"hello");
        let mut picture = picture(dir.path());
        picture.step(&ring, &mut Vec::new());
        std::fs::create_dir_all(dir.path().join("keyframe/in-the-way")).unwrap();
        picture.save(false);
        assert!(picture.note().unwrap().contains("cannot save"), "{:?}", picture.note());
        std::fs::remove_dir_all(dir.path().join("keyframe")).unwrap();
        picture.save(true);
        assert_eq!(picture.note(), None);
    }

    #[test]
    fn a_keyframe_from_beyond_the_rings_head_makes_the_screen_start_over() {
        let dir = tempfile::tempdir().unwrap();
        let long = ring(dir.path(), "long", b"a long output");
        let mut first = picture(dir.path());
        first.step(&long, &mut Vec::new());
        first.save(true);
        let short = ring(dir.path(), "short", b"new");
        let mut second = picture(dir.path());
        while second.step(&short, &mut Vec::new()).more {}
        second.save(false);
        assert_eq!((second.seen(), second.screen().rows_text()[0].as_str()), (3, "new"));
    }

    #[test]
    fn a_life_that_goes_on_is_drawn_behind_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let before = ring(dir.path(), "before", b"hello\r\n");
        let mut first = picture(dir.path());
        while first.step(&before, &mut Vec::new()).more {}
        first.save(true);
        let base = Base { output: before.head(), log: before.log_head() };
        let after = ring_at(dir.path(), "after", base, b"world");
        let mut second = picture(dir.path());
        while second.step(&after, &mut Vec::new()).more {}
        assert_eq!(second.screen().rows_text()[..2], ["hello", "world"]);
        assert_eq!((second.seen(), second.gap()), (12, None));
    }

    #[test]
    fn what_was_before_the_base_and_in_no_keyframe_is_a_gap() {
        let dir = tempfile::tempdir().unwrap();
        let base = Base { output: 300_000, log: 800 };
        let ring = ring_at(dir.path(), "ring", base, b"world");
        let mut only = picture(dir.path());
        assert!(!only.take_sizes(&ring), "the sizes before the base are not in this log");
        while only.step(&ring, &mut Vec::new()).more {}
        assert_eq!(only.screen().rows_text()[0], "world");
        assert_eq!((only.seen(), only.gap()), (300_005, Some(Gap { from: 0, to: 300_000 })));
    }
}
