//! Every file below the home: its form, how it is read, and how it is written.
//!
//! | shape | files | what tells damage |
//! |---|---|---|
//! | [sealed](mod@envelope): a line with kind, version and checksum, then the content | `spec`, `birth`, `life`, `idle`, `checkpoints/*/manifest`, `moved`, `passing`, `carried`, `arriving/*/parcel`, `keyframe`, `shell.key`, `hooks/*.json`, `runs/<key>.json`, `tokens.json`, `browsers.key`, `http.json`, `terminals/*`, `host.key`, `lease.json`, `relays.json`, `direct.json`, `devices.json`, `bots/*/*` | the checksum |
//! | [lines]: a line of JSON for each change | `runs`, `contracts`, `records`, `writes`, `questions`, `shell.jsonl`, `files/changes` | a checksum in each line |
//! | [segments]: numbered files of numbered lines | `journal.<n>` | the chain, which `authority` knows |
//! | [blocks](history): compressed lines | `history.<n>` | a checksum in each block |
//! | [a count and two ends](stderr) | `stderr` | nothing: what is missing was not written |
//! | plain, [replaced whole](replace) | `env`, `shell/*`, `shells/*`, `bin/*`, `actors/*`, `files/HASH` | nothing here: shells, the kernel and clients in other languages read them |
//!
//! What makes it safe:
//!
//! - A file that is replaced is the old one or the new one, whole, whenever its writer dies. What a dead writer left beside it is
//!   [swept](sweep) away.
//! - Damage is an answer ([`Unreadable::Damaged`]), never a panic and never another value. It costs that file's content.
//! - A file of a version this program does not know is an answer too ([`Unreadable::Newer`]), and is not written to: the version that
//!   wrote it finds it as it was.
//! - Files from before there were envelopes (version 1) are read. What is written is of the newest version.
//!
//! What is synced, and so survives a power cut, is said by whoever writes ([`Survives`]): a sync takes as long as the disk likes, and
//! the host's thread serves every session. Whatever ends with the power anyway (screens, what shells read) is not worth one.
//!
//! What is read is believed only where nobody else could have written it: see [`trust`].
//!
//! Not here: the ring, which its keeper writes and `abi` describes; `config.toml`, which a person writes; `host.log`, `host.lock` and
//! sockets, which are no formats.
//!
//! Encoding and decoding are pure functions. Knows nothing of what a run, a token or a session is.

pub mod envelope;
pub mod history;
pub mod keyframe;
pub mod lines;
pub mod packed;
pub mod pin;
pub mod segments;
pub mod stderr;
mod sum;
pub mod trust;
mod whole;

pub use envelope::{Format, Unreadable};
pub use sum::checksum;
pub use whole::{
    Survives, create, fill, get, get_json, make_dir, make_empty, put, put_json, replace, replace_as, seal_json, sweep,
};

/// A session: identity, name, command, how it ended.
pub const SPEC: Format = Format { kind: "spec", version: 2 };
/// What a session's command was started with.
pub const BIRTH: Format = Format { kind: "birth", version: 2 };
/// A session's keeper, and what was last seen of its processes.
pub const LIFE: Format = Format { kind: "life", version: 2 };
/// A checkpoint of a session's processes.
pub const CHECKPOINT: Format = Format { kind: "checkpoint", version: 2 };
/// That a session's home is another host.
pub const MOVED: Format = Format { kind: "moved", version: 2 };
/// That a leased session is about to be passed on to another host.
pub const PASSING: Format = Format { kind: "passing", version: 2 };
/// What arrives of a session from another host.
pub const ARRIVAL: Format = Format { kind: "arrival", version: 2 };
/// Since when a session is idle.
pub const IDLE: Format = Format { kind: "idle", version: 2 };
/// A screen at an offset: [`keyframe::Keyframe`].
pub const KEYFRAME: Format = Format { kind: "keyframe", version: 2 };
/// Older lines of output: [`history::History`].
pub const HISTORY: Format = Format { kind: "history", version: 2 };
/// A session's runs.
pub const RUNS: Format = Format { kind: "runs", version: 2 };
/// What a session's runs promise, and what they did.
pub const CONTRACTS: Format = Format { kind: "contracts", version: 2 };
/// How actors' runs under contracts came out.
pub const RECORDS: Format = Format { kind: "records", version: 2 };
/// A session's questions.
pub const QUESTIONS: Format = Format { kind: "questions", version: 2 };
/// Acts that wait for a human.
pub const APPROVALS: Format = Format { kind: "approvals", version: 2 };
/// Which actor wrote which file.
pub const WRITES: Format = Format { kind: "writes", version: 2 };
/// Writes to files through the host.
pub const FILES: Format = Format { kind: "files", version: 2 };
/// What a shell is made of, and who changed it.
pub const SHELL: Format = Format { kind: "shell", version: 2 };
/// What the hashes in a [`SHELL`] file are made with.
pub const SHELL_KEY: Format = Format { kind: "shell-key", version: 2 };
/// Who is told of a run's end.
pub const HOOK: Format = Format { kind: "hook", version: 2 };
/// Which run a key stands for.
pub const RUN_KEY: Format = Format { kind: "run-key", version: 2 };
/// Tokens, as hashes.
pub const TOKENS: Format = Format { kind: "tokens", version: 2 };
/// Hosts elsewhere.
pub const HOSTS: Format = Format { kind: "hosts", version: 2 };
/// What a terminal has seen of sessions.
pub const TERMINAL: Format = Format { kind: "terminal", version: 2 };
/// The host's own key.
pub const HOST_KEY: Format = Format { kind: "host-key", version: 2 };
/// The number of the host's lease.
pub const LEASE: Format = Format { kind: "lease", version: 2 };
/// Relays the host waits at.
pub const RELAYS: Format = Format { kind: "relays", version: 2 };
/// Where the host listens itself.
pub const DIRECT: Format = Format { kind: "direct", version: 2 };
/// Where a host elsewhere says it listens.
pub const DIRECT_KNOWN: Format = Format { kind: "direct-known", version: 2 };
/// Invites and devices.
pub const DEVICES: Format = Format { kind: "devices", version: 2 };
/// What browsers' logins are made with.
pub const BROWSERS_KEY: Format = Format { kind: "browsers-key", version: 2 };
/// A chat bot: its service, token and second factor.
pub const BOT: Format = Format { kind: "bot", version: 2 };
/// What a chat bot remembers: its users, what it acted on, what it has still to say.
pub const BOT_STATE: Format = Format { kind: "bot-state", version: 2 };
/// How a chat bot is.
pub const BOT_STATUS: Format = Format { kind: "bot-status", version: 2 };
/// What a code gives to whoever sends it to a chat bot.
pub const BOT_CODE: Format = Format { kind: "bot-code", version: 2 };
/// Where to listen for HTTP.
pub const HTTP: Format = Format { kind: "http", version: 2 };
