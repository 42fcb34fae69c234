//! What a host tells a keeper at its start, and what the keeper answers.
//!
//! The keeper is started with a stream socket as standard input. It reads one block: u32 length of what follows, then
//! the fields of [`Start`] in order (numbers little-endian; texts as u32 length and bytes; lists as u32 count and texts).
//! It answers with one [`Started`]: u8 stage, u32 errno, u32 keeper pid, u32 child pid; and closes the socket.
//! Unlike the protocol this is spoken between one build's two halves, so it may change with any version.

use crate::protocol::Token;
use crate::ring::Base;
use crate::take::Take;

/// Everything a keeper needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Start {
    /// The session's secret: proves the host.
    pub secret: Token,
    /// The ring file to make; absolute, as is the socket's path.
    pub ring_path: Vec<u8>,
    /// The socket to listen on.
    pub socket_path: Vec<u8>,
    /// Data bytes of the ring: a power of two, at least 256 KiB.
    pub ring_bytes: u64,
    /// Where the ring begins to count: zero for a new session, the heads of the life before for one that goes on. In the
    /// block: u64 output, u64 log.
    pub base: Base,
    /// Columns and rows.
    pub size: (u16, u16),
    /// File mode mask of the child.
    pub umask: u32,
    /// Soft limit of open files for the child; 0 leaves it.
    pub nofile: u64,
    /// Where the child starts.
    pub cwd: Vec<u8>,
    /// What to run; the first is looked up in the child's PATH.
    pub argv: Vec<Vec<u8>>,
    /// `argv[0]` the child sees where it differs (a login shell's `-bash`); empty: as in `argv`.
    pub argv0: Vec<u8>,
    /// The child's whole environment, `K=V`.
    pub env: Vec<Vec<u8>>,
    /// What the output begins with, before the child's first byte: a life that goes on says there what became of the one before.
    pub preface: Vec<u8>,
    /// Input streams of the life before, each with the last number that was taken: what is sent again is not written again. In the
    /// block: u32 count, then u64 stream and u64 seq each; the least recently used first.
    pub streams: Vec<(u64, u64)>,
    /// Until when the session may run, as a Lease frame says it; none: until its command ends. In the block: u8 count (0 or 1), then u64
    /// fence, u64 until, u8 flags and the directory's text.
    pub lease: Option<StartLease>,
}

/// A lease from the first moment on: a host that dies before it has connected leaves no session without an end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StartLease {
    /// The lease's fence.
    pub fence: u64,
    /// Until when, in ms of CLOCK_BOOTTIME.
    pub until_ms: u64,
    /// As in the frame.
    pub flags: u8,
    /// The directory of the cgroup that is frozen; empty: none.
    pub cgroup: Vec<u8>,
}

/// How far the start came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// The child runs.
    Running = 0,
    /// The block made no sense.
    Block = 1,
    /// The ring file could not be made.
    Ring = 2,
    /// No terminal could be had.
    Terminal = 3,
    /// The socket could not be bound.
    Socket = 4,
    /// The directory could not be entered.
    Directory = 5,
    /// The command could not be run.
    Command = 6,
}

/// The keeper's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// How far it came.
    pub stage: Stage,
    /// Why not further.
    pub errno: i32,
    /// The keeper's process.
    pub keeper_pid: u32,
    /// The child's process.
    pub child_pid: u32,
}

/// Size of an encoded [`Started`].
pub const STARTED_BYTES: usize = 13;
/// Largest block: environment and arguments of a command as large as the kernel takes them.
pub const START_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest preface: a few lines of text and a whole screen, and less than the smallest ring's guard.
pub const PREFACE_BYTES_MAX: usize = 48 * 1024;

impl Start {
    /// The block, length first.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        let text = |out: &mut Vec<u8>, bytes: &[u8]| {
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        };
        out.extend_from_slice(&self.secret);
        text(&mut out, &self.ring_path);
        text(&mut out, &self.socket_path);
        for number in [self.ring_bytes, self.base.output, self.base.log] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.size.0.to_le_bytes());
        out.extend_from_slice(&self.size.1.to_le_bytes());
        out.extend_from_slice(&self.umask.to_le_bytes());
        out.extend_from_slice(&self.nofile.to_le_bytes());
        text(&mut out, &self.cwd);
        text(&mut out, &self.argv0);
        for list in [&self.argv, &self.env] {
            out.extend_from_slice(&(list.len() as u32).to_le_bytes());
            for item in list {
                text(&mut out, item);
            }
        }
        text(&mut out, &self.preface);
        out.extend_from_slice(&(self.streams.len() as u32).to_le_bytes());
        for (stream, seq) in &self.streams {
            out.extend_from_slice(&stream.to_le_bytes());
            out.extend_from_slice(&seq.to_le_bytes());
        }
        out.push(u8::from(self.lease.is_some()));
        if let Some(lease) = &self.lease {
            out.extend_from_slice(&lease.fence.to_le_bytes());
            out.extend_from_slice(&lease.until_ms.to_le_bytes());
            out.push(lease.flags);
            text(&mut out, &lease.cgroup);
        }
        let length = out.len() as u32 - 4;
        out[..4].copy_from_slice(&length.to_le_bytes());
        out
    }

    /// The fields of a block, without its length.
    #[must_use]
    pub fn decode(block: &[u8]) -> Option<Start> {
        fn text<'a>(take: &mut Take<'a>) -> Option<&'a [u8]> {
            let count = take.u32()? as usize;
            take.bytes(count)
        }
        fn list(take: &mut Take<'_>) -> Option<Vec<Vec<u8>>> {
            let count = take.u32()? as usize;
            // Each item takes at least its length field, so a lying count cannot make us allocate.
            if count > take.0.len() / 4 {
                return None;
            }
            (0..count).map(|_| text(take).map(<[u8]>::to_vec)).collect()
        }
        let mut take = Take(block);
        let secret = take.array()?;
        let (ring_path, socket_path) = (text(&mut take)?.to_vec(), text(&mut take)?.to_vec());
        let (ring_bytes, base) = (take.u64()?, Base { output: take.u64()?, log: take.u64()? });
        let size = (take.u16()?, take.u16()?);
        let (umask, nofile) = (take.u32()?, take.u64()?);
        let (cwd, argv0) = (text(&mut take)?.to_vec(), text(&mut take)?.to_vec());
        let (argv, env) = (list(&mut take)?, list(&mut take)?);
        let preface = text(&mut take)?.to_vec();
        let count = take.u32()? as usize;
        if count > take.0.len() / 16 {
            return None;
        }
        let streams = (0..count).map(|_| Some((take.u64()?, take.u64()?))).collect::<Option<_>>()?;
        let lease = match take.u8()? {
            0 => None,
            1 => Some(StartLease {
                fence: take.u64()?,
                until_ms: take.u64()?,
                flags: take.u8()?,
                cgroup: text(&mut take)?.to_vec(),
            }),
            _ => return None,
        };
        let sound = !argv.is_empty() && preface.len() <= PREFACE_BYTES_MAX && take.0.is_empty();
        sound.then_some(Start {
            secret,
            ring_path,
            socket_path,
            ring_bytes,
            base,
            size,
            umask,
            nofile,
            cwd,
            argv,
            argv0,
            env,
            preface,
            streams,
            lease,
        })
    }
}

impl Started {
    /// The answer's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; STARTED_BYTES] {
        let mut out = [0; STARTED_BYTES];
        out[0] = self.stage as u8;
        out[1..5].copy_from_slice(&self.errno.to_le_bytes());
        out[5..9].copy_from_slice(&self.keeper_pid.to_le_bytes());
        out[9..].copy_from_slice(&self.child_pid.to_le_bytes());
        out
    }

    /// Reads an answer.
    #[must_use]
    pub fn decode(bytes: &[u8; STARTED_BYTES]) -> Option<Started> {
        let stage = match bytes[0] {
            0 => Stage::Running,
            1 => Stage::Block,
            2 => Stage::Ring,
            3 => Stage::Terminal,
            4 => Stage::Socket,
            5 => Stage::Directory,
            6 => Stage::Command,
            _ => return None,
        };
        let mut take = Take(&bytes[1..]);
        Some(Started { stage, errno: take.u32()? as i32, keeper_pid: take.u32()?, child_pid: take.u32()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_block_reads_back_and_a_cut_one_does_not() {
        let start = Start {
            secret: [7; 16],
            ring_path: b"/r".to_vec(),
            socket_path: b"/s".to_vec(),
            ring_bytes: 1 << 20,
            base: Base { output: 5, log: 64 },
            size: (80, 24),
            umask: 0o22,
            nofile: 1024,
            cwd: b"/".to_vec(),
            argv: vec![b"sh".to_vec(), b"-c".to_vec()],
            argv0: vec![],
            env: vec![b"A=1".to_vec()],
            preface: b"again\r\n".to_vec(),
            streams: vec![(7, 9), (8, u64::MAX)],
            lease: Some(StartLease { fence: 4, until_ms: 9, flags: 1, cgroup: b"/c".to_vec() }),
        };
        let block = start.encode();
        assert_eq!(Start::decode(&block[4..]), Some(start));
        for cut in 4..block.len() {
            assert_eq!(Start::decode(&block[4..cut]), None, "cut at {cut}");
        }
        let long =
            Start { preface: vec![b'x'; PREFACE_BYTES_MAX + 1], ..Start::decode(&block[4..]).expect("it was read") };
        assert_eq!(Start::decode(&long.encode()[4..]), None);
    }
}
