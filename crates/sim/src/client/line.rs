//! The last row of the terminal, for a while, as in the client's `line`: when it is up, not what it says. Prompts are not here.

use super::Client;
use crate::ctx::Ctx;
use holdfast_abi::protocol::{PATTERNS_MAX, ToKeeper};

const NOTICE_MS: u64 = 5_000;

/// What the last row shows, and will.
#[derive(Debug, Default)]
pub(super) struct Row {
    next: bool,
    until: Option<u64>,
}

impl Row {
    pub fn is_up(&self) -> bool {
        self.until.is_some()
    }

    pub fn needs_terminal(&self) -> bool {
        self.is_up() || self.next
    }

    pub fn painted_over(&mut self) {
        self.until = None;
    }
}

impl Client {
    pub(super) fn say(&mut self) {
        self.row.next = true;
    }

    pub(super) fn hide_line(&mut self, ctx: &Ctx) {
        if self.row.until.is_none() {
            return;
        }
        if self.line.is_some() {
            self.row.until = None;
            self.wanted.get_or_insert(false);
        } else {
            self.row.until = Some(ctx.now);
        }
    }

    pub(super) fn show_line(&mut self, ctx: &mut Ctx) {
        if !self.row.next && self.row.until.is_some_and(|until| until <= ctx.now) {
            self.hide_line(ctx);
        }
        let painting = self.line.is_some() && self.wanted.is_some();
        if !self.row.next || painting || !self.take_keys_back(ctx) || !self.take_terminal(ctx) {
            return;
        }
        ctx.counts.notices += 1;
        self.row = Row { next: false, until: Some(ctx.now + NOTICE_MS) };
        self.quiet_keeper(ctx);
    }

    fn take_keys_back(&mut self, ctx: &mut Ctx) -> bool {
        if self.keys.is_read_by_keeper() {
            self.ask_keys_back(ctx);
        }
        self.keys.are_certainly_ours()
    }

    pub(super) fn take_terminal(&mut self, ctx: &mut Ctx) -> bool {
        let ours = self.baton || (!self.keys.keeper_paints && !self.baton_asked);
        if !ours {
            self.ask_for_baton(ctx);
        }
        ours
    }

    pub(super) fn keep_keeper_from_painting(&mut self, ctx: &mut Ctx) {
        if self.keys.keeper_paints && !self.answers && !self.keys.is_read_by_keeper() {
            self.paint_no_more(ctx);
        }
    }

    pub(super) fn quiet_keeper(&mut self, ctx: &mut Ctx) {
        let unwanted = self.keys.keeper_paints && (!self.answers || self.row.is_up());
        if unwanted && self.baton && self.keys.are_certainly_ours() {
            self.paint_no_more(ctx);
        }
    }

    fn paint_no_more(&mut self, ctx: &mut Ctx) {
        self.keys.keeper_paints = false;
        let path = (self.terminal as u64).to_le_bytes();
        self.tell_keeper(ctx, |_| ToKeeper::Tty { flags: 0, path: &path, patterns: [&[]; PATTERNS_MAX] });
    }
}
