//! The end of a run: nothing happens to anybody any more, everybody gets its turns, and then all must be as it should.

use crate::client::Client;
use crate::world::World;
use holdfast_abi::protocol::STALL_MS;
use holdfast_types::Size;

/// Rounds in which everybody has a turn, and what each takes: five seconds, longer than anybody waits. A host waits three for the
/// word of a run that its predecessor may have typed.
const ROUNDS_MAX: u32 = 1000;
const ROUND_MS: u64 = 5;
/// Rounds that are always had: the host saves what rests, and reads what was typed.
const ROUNDS_MIN: u32 = 100;

impl World {
    pub(crate) fn settle(&mut self) {
        self.ctx.note(format_args!("everything settles"));
        if self.keeper.is_none() {
            return self.settle_without_keeper();
        }
        self.host_back_at = self.ctx.now;
        for client in &mut self.clients {
            client.stuck_until = 0;
        }
        if let Some(host) = &mut self.host {
            host.set_fuse(None);
        }
        for round in 0..ROUNDS_MAX {
            if self.ctx.failure.is_some() {
                return;
            }
            if self.host_is_up() {
                self.with_host(crate::host::Host::thaw);
            }
            self.round();
            if round > ROUNDS_MIN && self.undone().is_none() {
                return self.judge();
            }
        }
        let undone = self.undone().unwrap_or("nothing");
        for client in &self.clients {
            self.ctx.note(format_args!("{}", client.describe()));
        }
        self.ctx.fail(format!("everybody has had its turns, and still there is {undone}"));
    }

    fn round(&mut self) {
        self.program.settle(&mut self.ctx);
        self.keeper_turn();
        self.start_host();
        self.with_host(|host, ctx| host.receive_turn(ctx));
        self.with_host(|host, ctx| host.tick(ctx));
        for _ in 0..4 {
            self.with_host(|host, ctx| host.serve_turn(ctx));
        }
        let up = self.host_is_up();
        for at in (0..self.clients.len()).rev() {
            self.clients[at].turn(&mut self.ctx, up);
            if self.clients[at].over {
                self.remove_client(at, true);
            }
        }
        for reader in &mut self.readers {
            reader.turn(&mut self.ctx, up);
        }
        for sender in &mut self.senders {
            sender.turn(&mut self.ctx, up, false);
        }
        for runner in &mut self.runners {
            runner.turn(&mut self.ctx, up, false);
        }
        self.ctx.now += ROUND_MS;
    }

    /// What somebody still has to do.
    fn undone(&self) -> Option<&'static str> {
        let keeper = self.keeper.as_ref()?;
        let head = keeper.head();
        let is_at_head = |client: &Client| client.is_attached() && self.ctx.terminals[client.terminal].at == head;
        let has_keys = |client: &Client| client.has_keys_to_send() || self.ctx.terminals[client.terminal].has_keys();
        let all: [(bool, &str); 10] = [
            (!self.host_is_up(), "no host"),
            (!self.program.is_silent() || !self.ctx.pty.out.is_empty(), "output the keeper has not read"),
            (!self.ctx.pty.input.is_empty() || !keeper.queue_is_empty(), "input the program has not read"),
            (!self.clients.iter().all(is_at_head), "a client that has not shown everything"),
            (self.clients.iter().any(has_keys), "a client with keys to send"),
            (!self.ctx.net.is_quiet(), "a frame on its way"),
            (self.readers.iter().any(|reader| reader.position != head), "a reader that has not read everything"),
            (self.senders.iter().any(|sender| !sender.is_done()), "a sender that has not sent everything"),
            (self.runners.iter().any(|runner| !runner.is_done()), "a run that is not entered"),
            (self.host.as_ref().is_some_and(|host| !host.has_entered_all()), "a run that may have been typed"),
        ];
        all.iter().find(|(is_so, _)| *is_so).map(|(_, what)| *what)
    }

    fn judge(&mut self) {
        self.with_host(|host, ctx| {
            host.look(ctx)?;
            host.compare(ctx, true);
            host.finish(ctx)
        });
        self.ctx.judge_journal(self.dir.path());
        self.judge_gap();
        self.judge_input();
        self.judge_size();
        self.ctx.judge_queries();
    }

    /// No gap without a reason: a host that is never away for long misses nothing.
    fn judge_gap(&mut self) {
        let gap = self.host.as_mut().and_then(crate::host::Host::gap);
        let away_ms = self.host_away_ms;
        if let Some(gap) = gap
            && away_ms < STALL_MS / 2
            && !self.ctx.oracle.unwatched
        {
            self.ctx.fail(format!("a host was away for {away_ms} ms at most, and its screen has a gap {gap:?}"));
        }
    }

    /// Invariant 2, in the end.
    fn judge_input(&mut self) {
        let mut all: Vec<(u8, u32)> = self.senders.iter().map(|sender| (sender.source, sender.last_token)).collect();
        for client in self.clients.iter().filter(|client| !client.is_read_only()) {
            let terminal = &self.ctx.terminals[client.terminal];
            all.push((terminal.source, terminal.last_token));
        }
        for (source, last) in all {
            if !self.ctx.oracle.rest_was_dropped(source, last) {
                let arrived = self.ctx.oracle.last_arrived(source);
                self.ctx.fail(format!("of source {source} {arrived} arrived, and {last} were typed"));
            }
        }
    }

    /// Invariant 7.
    fn judge_size(&mut self) {
        let (Some(host), Some(keeper)) = (&self.host, &self.keeper) else { return };
        let Some(writer) = host.writer() else { return };
        let Some(client) = self.clients.iter().find(|client| client.number() == Some(writer)) else { return };
        if client.is_read_only() || !client.is_attached() {
            return;
        }
        let size = self.ctx.terminals[client.terminal].size;
        let is = Size::clamped(keeper.size().0, keeper.size().1);
        self.ctx.counts.sizes_compared += 1;
        if is != size {
            self.ctx.fail(format!("client {writer} writes, at {size}, and the session has {is}"));
        }
    }

    /// The keeper is dead: what is in the ring is all there is, and all of it can be had.
    fn settle_without_keeper(&mut self) {
        if self.host_is_up() {
            self.with_host(|host, ctx| {
                host.set_fuse(None);
                host.receive_turn(ctx)?;
                host.look(ctx)?;
                host.compare(ctx, true);
                host.finish(ctx)
            });
            self.ctx.judge_journal(self.dir.path());
        }
    }
}
