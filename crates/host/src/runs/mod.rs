//! Runs on disk and as clients ask about them. What becomes of one is decided by [`holdfast_session::Tracker`].

mod answer;
pub(crate) use answer::gone_view;
pub mod index;
pub mod kept;

use holdfast_session::Run;

/// A run that gets a session of its own.
#[derive(Debug, Clone)]
pub(crate) struct OwnRun {
    pub run: Run,
    /// The session stays listed when it has ended.
    pub keep: bool,
    /// Its standard error is kept apart.
    pub separate_stderr: bool,
    /// What it promises.
    pub trace: Option<crate::contracts::Trace>,
}
