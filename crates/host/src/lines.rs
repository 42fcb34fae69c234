//! Input in line: what a connection sends in one stream is typed in the order it was sent, however much of it is under way.
//!
//! Each message waits for the one before it. Where that was refused, those behind it that asked for it (`in_order`) are refused for
//! the same reason, until the refused one was sent again and typed. So nothing is ever typed out of order, and nothing behind a hole.

use crate::connection::internal;
use holdfast_wire::params::SendParams;
use holdfast_wire::{Call, Fault};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use tokio::sync::oneshot;

/// Streams a connection is remembered for. A client has one for each session it types into, and a new one behind a refusal.
const STREAMS_MAX: usize = 64;

/// The streams of one connection.
#[derive(Debug, Default)]
pub(crate) struct Lines(RefCell<HashMap<(String, u64), Line>>);

#[derive(Debug, Default)]
struct Line {
    /// Resolves when the last one in line is done.
    last: Option<oneshot::Receiver<()>>,
    state: Rc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Those in line.
    waiting: Cell<usize>,
    /// The number that was refused, and why.
    refused: RefCell<Option<(u64, Fault)>>,
}

impl Line {
    /// Nobody would notice if it were forgotten.
    fn is_idle(&self) -> bool {
        self.state.waiting.get() == 0 && self.state.refused.borrow().is_none()
    }
}

/// A message's place in its line; the next one's turn comes when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    before: Option<oneshot::Receiver<()>>,
    _done: oneshot::Sender<()>,
    state: Rc<State>,
    seq: u64,
    in_order: bool,
    is_answered: Cell<bool>,
}

impl Lines {
    /// A place for what is typed, in the order of these calls; none for what is not.
    pub fn place(&self, call: &Call) -> Option<Place> {
        let Call::Send(SendParams { session, stream, seq, in_order, .. }) = call else { return None };
        let mut lines = self.0.borrow_mut();
        let key = (session.clone(), *stream);
        if lines.len() >= STREAMS_MAX && !lines.contains_key(&key) {
            lines.retain(|_, line| !line.is_idle());
        }
        if lines.len() >= STREAMS_MAX && !lines.contains_key(&key) {
            // Of so many that were refused none is gone on with.
            lines.retain(|_, line| line.state.waiting.get() > 0);
        }
        let line = lines.entry(key).or_default();
        let (done, last) = oneshot::channel();
        line.state.waiting.set(line.state.waiting.get() + 1);
        let before = line.last.replace(last);
        let (state, is_answered) = (Rc::clone(&line.state), Cell::new(false));
        Some(Place { before, _done: done, state, seq: *seq, in_order: *in_order, is_answered })
    }
}

impl Place {
    /// Waits for those before; fails where it must not be typed behind them.
    pub async fn reached(&mut self) -> Result<(), Fault> {
        if let Some(before) = &mut self.before {
            // It is done, or was given up.
            let _ = before.await;
            self.before = None;
        }
        match &*self.state.refused.borrow() {
            Some((refused, why)) if self.in_order && self.seq > *refused => Err(why.clone()),
            Some(_) | None => Ok(()),
        }
    }

    /// What became of it.
    pub fn answered<T>(&self, answer: &Result<T, Fault>) {
        self.is_answered.set(true);
        let mut refused = self.state.refused.borrow_mut();
        match answer {
            // A hole before it stays one.
            Err(fault) if refused.as_ref().is_none_or(|(seq, _)| self.seq < *seq) => {
                *refused = Some((self.seq, fault.clone()));
            }
            Ok(_) if refused.as_ref().is_some_and(|(seq, _)| self.seq >= *seq) => *refused = None,
            Ok(_) | Err(_) => {}
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_answered.get() {
            // A fault of ours: nobody knows whether it was typed.
            self.answered::<()>(&Err(internal()));
        }
        self.state.waiting.set(self.state.waiting.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_wire::Code;
    use std::task::{Context, Poll, Waker};

    fn send(stream: u64, seq: u64, in_order: bool) -> Call {
        let session = "work".into();
        let (client, fence, secret, force) = (None, None, false, false);
        Call::Send(SendParams { session, stream, seq, client, fence, secret, force, in_order })
    }

    /// Takes a place, and gives what it is told when it is reached.
    async fn sent(lines: &Lines, seq: u64, in_order: bool, answer: Result<(), Fault>) -> Result<(), Fault> {
        let mut place = lines.place(&send(1, seq, in_order)).expect("it types");
        let answer = match place.reached().await {
            Ok(()) => answer,
            Err(fault) => Err(fault),
        };
        place.answered(&answer);
        answer
    }

    #[test]
    fn each_waits_for_the_one_before_it_in_its_stream_alone() {
        let lines = Lines::default();
        let place = |stream, seq| lines.place(&send(stream, seq, true)).unwrap();
        let is_reached = |place: &mut Place| {
            let reached = std::pin::pin!(place.reached()).poll(&mut Context::from_waker(Waker::noop()));
            matches!(reached, Poll::Ready(Ok(())))
        };
        let (mut first, mut other) = (place(1, 1), place(2, 1));
        assert!(is_reached(&mut first) && is_reached(&mut other));
        let mut second = place(1, 2);
        assert!(!is_reached(&mut second), "the first is under way");
        first.answered(&Ok(()));
        drop(first);
        assert!(is_reached(&mut second));
    }

    #[tokio::test]
    async fn behind_a_refusal_nothing_is_typed_until_the_refused_one_was() {
        let lines = Lines::default();
        let held = || Err(Fault::new(Code::TurnHeld, "human:ann has the turn"));
        let code = |answer: Result<(), Fault>| answer.err().map(|fault| fault.code);
        assert_eq!(code(sent(&lines, 1, true, Ok(())).await), None);
        assert_eq!(code(sent(&lines, 2, true, held()).await), Some(Code::TurnHeld));
        assert_eq!(code(sent(&lines, 3, true, Ok(())).await), Some(Code::TurnHeld));
        assert_eq!(code(sent(&lines, 4, true, Ok(())).await), Some(Code::TurnHeld));
        assert_eq!(code(sent(&lines, 2, true, Ok(())).await), None, "it was sent again");
        assert_eq!(code(sent(&lines, 3, true, Ok(())).await), None);
        assert_eq!(code(sent(&lines, 4, true, held()).await), Some(Code::TurnHeld));
        assert_eq!(
            code(sent(&lines, 5, false, Ok(())).await),
            None,
            "who does not ask for order waits for its answers"
        );
        assert_eq!(code(sent(&lines, 6, true, Ok(())).await), None);
    }

    #[tokio::test]
    async fn a_connection_forgets_streams_that_are_done() {
        let lines = Lines::default();
        for stream in 0..10 * STREAMS_MAX as u64 {
            let place = lines.place(&send(stream, 1, true)).unwrap();
            place.answered(&Ok(()));
        }
        assert!(lines.0.borrow().len() <= STREAMS_MAX);
    }
}
