//! The session's program where it is a shell that tells of itself: prompts and commands with their marks, and the token that the
//! host leaves for the next command.
//!
//! The commands of runs are `run NNNN;`: whoever reads one knows which, and a part of one is another command. While a command
//! runs it prints marks of its own, as a program that pretends to be the shell would.

use crate::ctx::Ctx;
use crate::program::Token;

/// The process at the terminal, and a command that the shell started: which of them has the foreground.
pub(crate) const SHELL_PID: u32 = 1;
pub(crate) const COMMAND_PID: u32 = 2;

/// The command of a run.
pub(crate) fn command(number: u32) -> String {
    format!("run {number:04};")
}

/// What the shell does.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Doing {
    /// The prompt is being printed: its editor reads in so many turns.
    Prompting(u32),
    Reading,
    /// A command runs for so many turns.
    Running {
        token: String,
        turns: u32,
    },
}

/// The shell.
#[derive(Debug)]
pub(crate) struct Shell {
    doing: Doing,
    /// What stands at the prompt, and whose keys are among it.
    line: Vec<u8>,
    keys: Vec<Token>,
    /// How many of those came before the first plain key.
    before: usize,
}

impl Shell {
    /// A shell that prints its first prompt.
    pub fn new(saying: &mut impl Extend<u8>) -> Shell {
        saying.extend(PROMPT.iter().copied());
        Shell { doing: Doing::Prompting(3), line: Vec::new(), keys: Vec::new(), before: 0 }
    }

    /// Whether a command runs: at its prompt a shell prints nothing.
    pub fn is_running(&self) -> bool {
        matches!(self.doing, Doing::Running { .. })
    }

    /// A turn passes; gives what it prints.
    pub fn turn(&mut self, ctx: &mut Ctx, ends: bool) -> Vec<u8> {
        let printed = match &mut self.doing {
            Doing::Prompting(0) => {
                self.doing = Doing::Reading;
                Vec::new()
            }
            Doing::Prompting(left) => {
                *left -= 1;
                Vec::new()
            }
            Doing::Reading => Vec::new(),
            Doing::Running { token, turns: 0 } => {
                let (status, token) = (ctx.rng.i32(0..3), std::mem::take(token));
                ctx.command_ended(&token, status);
                self.doing = Doing::Prompting(ctx.rng.u32(..4));
                let mut printed = format!("\x1b]133;D;{status};hf={token}\x07").into_bytes();
                printed.extend_from_slice(PROMPT);
                printed
            }
            Doing::Running { turns, .. } => {
                *turns = if ends { 0 } else { *turns - 1 };
                if ctx.chance(20) { forged(ctx) } else { Vec::new() }
            }
        };
        ctx.pty.reads_lines = self.doing != Doing::Reading;
        ctx.pty.foreground = if self.is_running() { COMMAND_PID } else { SHELL_PID };
        printed
    }

    /// A key that is no token reached the terminal's reader; gives what is printed.
    pub fn key(&mut self, ctx: &mut Ctx, key: u8) -> Vec<u8> {
        if self.is_running() {
            if key != b'\r' {
                ctx.fail(format!("{:?} of a run was typed into a program", char::from(key)));
            }
            return Vec::new();
        }
        if key != b'\r' {
            if self.line.is_empty() {
                self.before = self.keys.len();
            }
            self.line.push(key);
            return vec![key];
        }
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        let keys = std::mem::take(&mut self.keys);
        if line.is_empty() && keys.is_empty() {
            self.doing = Doing::Prompting(ctx.rng.u32(..4));
            return [b"\r\n", PROMPT].concat();
        }
        // As the hooks do: the token is read once.
        let token = std::mem::take(&mut ctx.disk.token);
        ctx.command_starts(&line, &token, &keys[..self.before.min(keys.len())]);
        let started = format!("\r\n\x1b]133;C;hf={token}\x07").into_bytes();
        self.doing = Doing::Running { token, turns: ctx.rng.u32(..20) };
        started
    }

    /// A token reached it; gives what is printed.
    pub fn token(&mut self, token: Token) -> &'static [u8] {
        if self.is_running() {
            return b"";
        }
        self.keys.push(token);
        b"#"
    }
}

const PROMPT: &[u8] = b"\x1b]133;A;hf\x07$ \x1b]133;B;hf\x07";

/// What a program prints that pretends to be the shell.
fn forged(ctx: &mut Ctx) -> Vec<u8> {
    ctx.counts.marks_forged += 1;
    match ctx.rng.u32(..5) {
        0 => b"\x1b]133;D;0;hf=\x07".to_vec(),
        1 => b"\x1b]133;D;0;hf=00112233445566778899aabbccddeeff\x07".to_vec(),
        2 => PROMPT.to_vec(),
        3 => b"\x1b]133;C;hf=\x07".to_vec(),
        _ => [b"\x1b]133;D;0;hf=\x07", PROMPT].concat(),
    }
}
