//! A session's processes and what they hold: descriptors, pipes between them, sockets and ports, at one moment.
//!
//! What is not known (gone, another user's, another network) is `None`, or the node says `unknown`; nothing is guessed.
//! Text is as the programs gave it, control characters too: the code that shows it escapes it.
//!
//! Pure: `observe` takes the graph. Here two graphs are compared ([`diff()`]), and each process is bound to the act that
//! started it ([`bind()`]); [`render`] draws one.

mod bind;
mod diff;
mod id;
mod nodes;
pub mod render;

pub use bind::{Binding, Bound, Known, RECORD_LAG_MS, Spot, Spots, TICK_MS, WritingAct, bind};
pub use diff::{Exec, GraphDiff, diff};
pub use id::{NoId, PipeId, ProcessId, SocketId, Target};
pub use nodes::{
    ARGV_BYTES_MAX, Depth, End, FDS_MAX, Family, FdKind, FdNode, Graph, LOCKS_MAX, Lock, LockKind, PROCESSES_MAX,
    PipeEnd, PipeNode, Port, ProcessNode, SocketKind, SocketNode, SocketState, ports,
};
