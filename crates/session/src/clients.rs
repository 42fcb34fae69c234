//! Who is attached to a session: which terminal sets its size, which one answers its queries.
//!
//! Sizes: a session has the size of the client that last typed; a client that comes alone sets it at once; one that only
//! watches never does. Queries: at most one attached terminal answers, the writer's, from an offset on: an answer is typed,
//! so nobody else could give it. What it has not seen when it leaves is answered by the host.

use holdfast_abi::protocol::Token;
use holdfast_screen::Reply;
use holdfast_types::{Actor, Fence, Offset, Size, TimeMs};
use holdfast_wire::params::{Answers, ClientView};
use std::collections::VecDeque;

/// Answers kept back while a terminal answers, in case it leaves before it has seen the query.
const WITHHELD_MAX: usize = 32;

/// Numbers of clients that were there before this host and have not reported back: above any operator's.
const NAMELESS_FROM: u32 = 1 << 31;

/// One attached client.
#[derive(Debug)]
pub struct Client {
    /// Its number in this session, the operator's; a very large one until it has reported back.
    pub id: u32,
    /// Who it is, once that is known.
    pub actor: Option<Actor>,
    /// Its process.
    pub pid: u32,
    /// Its terminal's name.
    pub tty: String,
    /// Its terminal's size; unknown until a client that outlived the last host has reported back.
    pub size: Option<Size>,
    /// It cannot write.
    pub read_only: bool,
    /// It reads and types through the host, and answers no queries.
    pub remote: bool,
    /// It draws the session itself, and answers no queries.
    pub draws: bool,
    /// Its window gives the session its size: it writes, and is a person's terminal.
    pub sizes: bool,
    /// Since when.
    pub since_ms: TimeMs,
    /// What it shows the keeper.
    pub token: Token,
    /// The keeper's number for it, once it is there.
    pub connection: Option<u32>,
    /// The number of its connection to this host, where events for it go.
    pub peer: Option<u64>,
    /// The fence under which it was told that it writes; none: it was told that it does not.
    pub told_writes: Option<Fence>,
    /// It outlived the last host, and has not reported back in time: nobody waits for its answers any more.
    pub late: bool,
}

impl Client {
    /// It outlived the last host and has not reported back: its terminal may answer queries.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.size.is_none() && !self.read_only && !self.late
    }
}

/// All clients of a session.
#[derive(Debug, Default)]
pub struct Clients {
    all: Vec<Client>,
    nameless: u32,
    /// Whose size the session was given last, and which.
    sized: Option<(u32, Size)>,
    answerer: Option<Answerer>,
    /// Queries up to here were answered before this host was there.
    answered: Offset,
    /// The keeper has not named all who are there yet: one of them may answer.
    unsettled: bool,
    withheld: VecDeque<Reply>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answerer {
    client: u32,
    from: Offset,
    /// Where the output stood when it lost the turn: what it answers from there on is typed no more.
    lost: Option<Offset>,
}

impl Clients {
    /// Adds a client.
    pub fn add(&mut self, client: Client) {
        self.all.push(client);
    }

    /// A number for a client that was there before this host.
    pub fn nameless(&mut self) -> u32 {
        self.nameless += 1;
        NAMELESS_FROM + self.nameless
    }

    /// A client that outlived the last host has reported back under its own number, or a new one.
    pub fn rename(&mut self, id: u32, new: u32) {
        self.sized = self.sized.map(|(sizer, size)| (if sizer == id { new } else { sizer }, size));
        if let Some(answerer) = self.answerer.as_mut().filter(|a| a.client == id) {
            answerer.client = new;
        }
        if let Some(client) = self.get(id) {
            client.id = new;
        }
    }

    /// All of them, to be told something.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Client> {
        self.all.iter_mut()
    }

    /// The keeper has named everybody who is there; gives the answers that are now due.
    pub fn settled(&mut self) -> Vec<Reply> {
        self.unsettled = false;
        self.release()
    }

    /// Whether the keeper may still have somebody to name.
    pub fn is_unsettled(&self) -> bool {
        self.unsettled
    }

    /// A keeper was found: it will name those who are there.
    pub fn unsettle(&mut self) {
        self.unsettled = true;
    }

    /// The keeper's connection broke; it will name those who are still there.
    pub fn unlinked(&mut self) {
        for client in &mut self.all {
            client.connection = None;
        }
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Client> {
        self.all.iter()
    }

    /// One by its number.
    pub fn get(&mut self, id: u32) -> Option<&mut Client> {
        self.all.iter_mut().find(|c| c.id == id)
    }

    /// One by the keeper's number for it.
    pub fn by_connection(&mut self, connection: u32) -> Option<&mut Client> {
        self.all.iter_mut().find(|c| c.connection == Some(connection))
    }

    /// One by its token.
    pub fn by_token(&mut self, token: &Token) -> Option<&mut Client> {
        self.all.iter_mut().find(|c| c.token == *token)
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Whether this client may set the size without having typed: it writes, and nobody else does.
    pub fn is_only_writer(&self, id: u32) -> bool {
        self.all.iter().all(|c| (c.id == id) == c.sizes)
    }

    /// Whether a change of this client's size is the session's.
    pub fn sizes(&self, id: u32) -> bool {
        self.sized.is_some_and(|(sizer, _)| sizer == id) || self.is_only_writer(id)
    }

    /// The size the session should take from this client, which writes now; none where it was taken already.
    pub fn wants_size(&self, id: u32) -> Option<Size> {
        let size = self.all.iter().find(|c| c.id == id && c.sizes)?.size?;
        (self.sized != Some((id, size))).then_some(size)
    }

    /// The size asked for last was not taken.
    pub fn not_sized(&mut self) {
        self.sized = None;
    }

    /// The session was given this client's size.
    pub fn sized(&mut self, id: u32, size: Size) {
        self.sized = Some((id, size));
    }

    /// Removes a client; gives the answers that are now due, because it had not seen the queries yet.
    pub fn remove(&mut self, id: u32, acked: Option<Offset>) -> Vec<Reply> {
        let doubtful = self.all.iter().any(|c| c.id == id && c.is_doubtful());
        self.all.retain(|c| c.id != id);
        self.sized = self.sized.filter(|(sizer, _)| *sizer != id);
        let last_hope = doubtful && !self.someone_answers();
        if last_hope || self.answers(id) {
            return self.stop_answering(acked.unwrap_or(0));
        }
        Vec::new()
    }

    /// Gives the answers kept back for a terminal that might have answered, once it is known that none does.
    pub fn release(&mut self) -> Vec<Reply> {
        if self.someone_answers() { Vec::new() } else { self.withheld.drain(..).collect() }
    }

    /// The writer, if it could answer now: nobody does, and its terminal has the session's size.
    pub fn candidate(&self, size: Size, writer: Option<u32>) -> Option<&Client> {
        if self.answerer.is_some() {
            return None;
        }
        let could = |c: &&Client| !c.read_only && !c.remote && !c.draws && c.size == Some(size) && c.peer.is_some();
        self.all.iter().filter(could).find(|c| Some(c.id) == writer)
    }

    /// Whether some attached terminal answers queries, or may: a client that outlived the last host and has not
    /// reported back is given the benefit of the doubt.
    pub fn someone_answers(&self) -> bool {
        self.unsettled || self.answerer.is_some() || self.all.iter().any(Client::is_doubtful)
    }

    /// Whether this client answers.
    pub fn answers(&self, id: u32) -> bool {
        self.answerer.is_some_and(|a| a.client == id)
    }

    /// The client that answers.
    pub fn answerer(&self) -> Option<&Client> {
        let answerer = self.answerer?.client;
        self.all.iter().find(|c| c.id == answerer)
    }

    /// Queries up to here were answered before this host was there, by a terminal that may be gone as well.
    pub fn answered_until(&mut self, offset: Offset) {
        self.answered = offset;
    }

    /// From `from` on this client answers, if it is still there and its terminal may: one that only watches never does.
    pub fn start_answering(&mut self, client: u32, from: Offset) {
        let may = |c: &Client| c.id == client && !c.read_only && !c.remote && !c.draws;
        if self.answerer.is_none() && self.all.iter().any(may) {
            self.answerer = Some(Answerer { client, from, lost: None });
        }
    }

    /// A terminal says from where on it answers, goes on to, or no longer does; gives the answers that are now due because
    /// it never saw the queries.
    pub fn answering(&mut self, client: u32, answers: Answers) -> Vec<Reply> {
        match (answers.on, self.answers(client)) {
            (true, false) => {
                self.start_answering(client, answers.from);
                Vec::new()
            }
            (true, true) => {
                let unseen = |reply: &Reply| answers.left < reply.at && reply.at <= answers.from;
                let (due, kept): (Vec<_>, Vec<_>) = self.withheld.drain(..).partition(unseen);
                self.withheld = kept.into();
                self.answerer = self.answerer.map(|answerer| Answerer { from: answers.from, ..answerer });
                due
            }
            (false, true) => self.stop_answering(answers.left),
            (false, false) => Vec::new(),
        }
    }

    /// The turn is this client's while the output stands at `head`; gives whether another one still answers, which should say that
    /// it no longer does.
    pub fn turn_is(&mut self, holder: Option<u32>, head: Offset) -> bool {
        let Some(answerer) = &mut self.answerer else { return false };
        answerer.lost = (Some(answerer.client) != holder).then_some(answerer.lost.unwrap_or(head));
        answerer.lost.is_some()
    }

    /// Where the output stood when the one that answers lost the turn.
    pub fn lost_turn(&self) -> Option<Offset> {
        self.answerer?.lost
    }

    /// Nobody waits any more for clients that outlived the last host and have not reported back; gives the answers that are now due.
    pub fn give_up_waiting(&mut self) -> Vec<Reply> {
        self.all.iter_mut().filter(|client| client.is_doubtful()).for_each(|client| client.late = true);
        self.release()
    }

    /// From `from` on nobody answers; gives the answers kept back that are now due.
    pub fn stop_answering(&mut self, from: Offset) -> Vec<Reply> {
        self.answerer = None;
        self.withheld.drain(..).filter(|reply| reply.at > from).collect()
    }

    /// Sorts answers: those due now are given back, those a terminal sees to are kept in case it leaves.
    pub fn sort(&mut self, mut replies: Vec<Reply>) -> Vec<Reply> {
        replies.retain(|reply| reply.at > self.answered);
        let from = match self.answerer {
            Some(answerer) => answerer.from,
            None if self.someone_answers() => 0,
            None => return replies,
        };
        let (covered, due): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.at > from);
        self.withheld.extend(covered);
        while self.withheld.len() > WITHHELD_MAX {
            self.withheld.pop_front();
        }
        due
    }

    /// As others see them.
    pub fn views(&self, session: Size) -> Vec<ClientView> {
        let view = |c: &Client| ClientView {
            id: c.id,
            actor: c.actor.clone(),
            pid: c.pid,
            tty: c.tty.clone(),
            size: c.size.unwrap_or(session),
            read_only: c.read_only,
            since_ms: c.since_ms,
        };
        self.all.iter().map(view).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients(sizes: &[(&str, bool)]) -> Clients {
        let mut clients = Clients::default();
        for (id, (size, read_only)) in (1..).zip(sizes) {
            clients.add(Client {
                id,
                actor: None,
                told_writes: None,
                late: false,
                pid: 0,
                tty: String::new(),
                size: size.parse().ok(),
                read_only: *read_only,
                remote: false,
                draws: false,
                sizes: !read_only,
                since_ms: 0,
                token: [id as u8; 16],
                connection: Some(id),
                peer: None,
            });
        }
        clients
    }

    fn reply(at: Offset) -> Reply {
        Reply { at, bytes: b"x".to_vec() }
    }

    #[test]
    fn a_lone_writer_sizes_the_session_and_a_second_one_only_by_typing() {
        let mut both = clients(&[("80x24", false), ("40x10", false)]);
        assert!(!both.sizes(1) && !both.sizes(2));
        let size = both.wants_size(2).unwrap();
        assert_eq!(Some(size), "40x10".parse().ok());
        both.sized(2, size);
        assert_eq!(both.wants_size(2), None, "no news");
        assert!(both.sizes(2) && !both.sizes(1));
        let watched = clients(&[("80x24", false), ("40x10", true)]);
        assert!(watched.sizes(1) && !watched.sizes(2));
    }

    #[test]
    fn every_query_is_answered_once_whoever_leaves() {
        let mut one = clients(&[("80x24", false)]);
        assert_eq!(one.sort(vec![reply(5)]).len(), 1, "nobody answers yet");
        one.start_answering(1, 10);
        let due = one.sort(vec![reply(8), reply(20), reply(30)]);
        assert_eq!(due.iter().map(|r| r.at).collect::<Vec<_>>(), [8], "before the client came");
        let due = one.remove(1, Some(20));
        assert_eq!(due.iter().map(|r| r.at).collect::<Vec<_>>(), [30], "the client never saw it");
        assert_eq!(one.sort(vec![reply(40)]).len(), 1);
    }

    #[test]
    fn what_was_kept_back_for_a_client_that_never_reported_back_is_answered_after_all() {
        let mut gone = clients(&[("", false)]);
        assert!(gone.sort(vec![reply(5), reply(9)]).is_empty(), "it may have answered");
        assert_eq!(gone.remove(1, Some(5)), [reply(9)]);
        let mut back = clients(&[("", false)]);
        back.sort(vec![reply(5)]);
        assert!(back.release().is_empty());
        back.get(1).unwrap().size = "40x10".parse().ok();
        assert_eq!(back.release(), [reply(5)]);
    }

    #[test]
    fn what_a_repaint_skipped_is_answered_by_the_host() {
        let mut one = clients(&[("80x24", false)]);
        one.start_answering(1, 10);
        one.sort(vec![reply(15), reply(25), reply(35)]);
        let due = one.answering(1, Answers { on: true, left: 20, from: 30 });
        assert_eq!(due.iter().map(|r| r.at).collect::<Vec<_>>(), [25], "between what it had seen and what was painted");
        let due = one.remove(1, Some(30));
        assert_eq!(due.iter().map(|r| r.at).collect::<Vec<_>>(), [35]);
    }

    #[test]
    fn a_client_of_another_size_or_one_that_only_watches_does_not_answer() {
        let size = "80x24".parse().unwrap();
        let both = clients(&[("40x10", false), ("80x24", true)]);
        assert!(both.candidate(size, Some(1)).is_none() && both.candidate(size, Some(2)).is_none());
    }
}
