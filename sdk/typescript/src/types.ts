// Made by scripts/types.mjs from spec/schema.json. Do not edit: `npm run types` writes it anew.

/** Versions the client speaks, and what it is. */
export interface HelloParams {
  /** Protocol versions, any order. */
  versions: number[];
  /** Program and version, for the host's log. */
  program?: string;
}

/** The version both will speak. */
export interface HelloAnswer {
  /** The newest both know. */
  version: number;
  /** The host program's version. */
  program: string;
  /** What an actor signs to prove on this connection that it is itself (`identify`). */
  challenge: Challenge;
  /** Where the host found the process that connected, if that is no place of a person: no human is taken at its word there. */
  inside?: Inside | null;
  /** Addresses, as `NAME:PORT`, where the host can be reached without a relay: for devices of the whole host that came through one. */
  direct?: string[];
}

/** What a host asks a connection to sign. */
export type Challenge = string;

/** Where a process was found. Neither of the two: where it comes from is not known. */
export interface Inside {
  /** It runs inside this session; empty where it is none of this host's. */
  session?: string | null;
  /** This agent started it. */
  agent?: string | null;
}

/** Who speaks on this connection, proven. */
export interface IdentifyParams {
  /** Key and handle. */
  actor: Actor;
  /** Over the connection's challenge. */
  signature: Signature;
  /** Inside a session: ask the human to confirm it, and answer when they have. */
  confirm?: boolean;
}

/**
 * Who acts. The key is the identity; the handle is what people read, and what the actor says of itself: whether it may be
 * believed is the host's to say.
 */
export interface Actor {
  /** Its public key. */
  id: ActorId;
  /** Its handle. */
  handle: Handle;
}

/** An actor's identity: its Ed25519 public key. */
export type ActorId = string;

/** A class and a name: `human:ann`, `agent:claude`. */
export type Handle = string;

/** An Ed25519 signature. */
export type Signature = string;

/** For whom the host takes the connection. */
export interface IdentifyAnswer {
  /** Key and handle. */
  actor: Actor;
  /** The host knows this key under this handle; otherwise it holds what unknown actors hold. */
  known: boolean;
}

/** What to start. */
export interface NewParams {
  /** A name; the host picks one where none is given. */
  name?: SessionName | null;
  /** Command and arguments; left out: the shell of the host's user, or with a run that shell with the run's text. */
  command?: string[];
  /** `argv[0]` where it differs from the command (a login shell). */
  argv0?: string | null;
  /** Where it starts, from the root on; left out: the home directory of the host's user. */
  cwd?: string | null;
  /** Its whole environment, `K=V` each; left out: the host's, without what belongs to who started the host. */
  env?: string[] | null;
  /** Variables laid over that environment, `K=V` each. */
  env_add?: string[];
  /** Columns and rows. */
  size?: Size;
  /** Data bytes of the ring; rounded up to a power of two. */
  ring_bytes?: number | null;
  /** File mode mask. */
  umask?: number | null;
  /** Soft limit of open files. */
  nofile?: number | null;
  /** Start a shell with integration, so that it reports its commands; true by default. */
  integrate?: boolean | null;
  /** Run as this user of the machine, with a home and variables of its own; only where the host is root. `env`: terminal and language. */
  user?: string | null;
  /** A wall around its processes: what they can write and connect to. */
  wall?: Wall | null;
  /** Judge more than acts: with `exec`, every program that a process of the session starts. */
  gate?: Seam | null;
  /**
   * Make it so that checkpoints of its processes can be kept; only where the host is root. It has pids, terminals and shared memory of
   * its own, and its processes end with its command.
   */
  portable?: boolean;
  /**
   * For a portable session: a command for `/bin/sh` that is run in it whenever its processes come back from a checkpoint, or begin
   * as a branch. It tells programs that connections are cut, and that `$HOLDFAST_LIFE` has a new fence.
   */
  on_resume?: string | null;
  /** For a portable session: make a checkpoint this often, in milliseconds, where something happened in it since the last. */
  checkpoint_every_ms?: number | null;
  /**
   * Make its home a lease: it has at most one life among all hosts that share a store of leases, and stands still where this host
   * cannot renew its lease. Only where the host is configured with such a store.
   */
  lease?: Leasing | null;
  /** Whether it gets another life by itself where it is lost; left out: as the host is configured. */
  recover?: Recovery | null;
  /** Run the command again where it fails or the session is lost, at most this many times within ten minutes, later each time. */
  restart_on_failure?: number | null;
  /** How long it may be idle before it is reaped; left out: as the host is configured. */
  reap_after?: ReapAfter | null;
  /**
   * Start it ahead of need: nobody is shown it, and it is given to the next of your sessions that is asked for with this name and
   * all the same. It ends with your connection, and after ten minutes. A shell without a wall.
   */
  ahead?: boolean;
}

/** A name of one to 64 letters, digits, dots, underscores and hyphens. */
export type SessionName = string;

/** Columns by rows, always within the limits. */
export type Size = string;

/**
 * What the processes of a session can write and connect to, and nothing else. They also cannot signal processes outside, and get no
 * other rights by set-user-id programs (`sudo`). What they can read does not change.
 */
export interface Wall {
  /** Directories, from the root on. What lies in them can be written; and a temporary directory of the session's own (`$TMPDIR`). */
  write?: string[];
  /** Ports that TCP connections can be made to; left out: all. */
  connect?: number[] | null;
}

/** What of a session's processes is judged before it happens. */
export type Seam =
  /** Every program they start. */
  | "exec";

/** That a session is to have its home by a lease. */
export interface Leasing {
  /** Where the keeper cannot stop the session in time, because it is stopped itself, the kernel kills it. For portable sessions. */
  hard?: boolean;
}

/** Whether a session that was lost gets another life by itself. */
export type Recovery =
  /** Somebody asks for it. */
  | "manual"
  /** The host begins it, as often as its limit allows. */
  | "auto";

/** How long a session may be idle. */
export type ReapAfter =
  /** For as long as it likes: it is never reaped, whatever limits the host has. */
  | "never"
  /** For so many milliseconds. */
  | {
    idle: number;
  };

/** A session as clients see it. */
export interface SessionView {
  /** Identity. */
  id: SessionId;
  /** Human name. */
  name: SessionName;
  /** Whether it lives. */
  life: Life;
  /** How it ended. */
  exit?: Exit | null;
  /** Command and arguments. */
  command: string[];
  /** Where it started. */
  cwd: string;
  /** When it started. */
  created_ms: number;
  /** When it ended. */
  ended_ms?: number | null;
  /** The command's process. */
  pid: number;
  /** The keeper's process. */
  keeper_pid: number;
  /** The terminal's size. */
  size: Size;
  /** Offset of the next output byte. */
  head: number;
  /** Oldest offset `read` can still give. */
  oldest: number;
  /** Data bytes of the ring. */
  ring_bytes: number;
  /** The title its program set. */
  title?: string;
  /** Who is attached. */
  clients: ClientView[];
  /** Who may write. */
  turn: TurnView;
  /** How many questions wait for an answer. */
  asks?: number;
  /** The user it runs as, where that is not the host's. */
  user?: string | null;
  /** The wall around its processes. */
  wall?: Wall | null;
  /** What of its processes is judged before it happens. */
  gate?: Seam | null;
  /** Checkpoints of its processes can be kept. */
  portable?: boolean;
  /** How often the host makes a checkpoint of it by itself. */
  checkpoint_every_ms?: number | null;
  /** What it is a copy of, where it is a branch. */
  forked_from?: ForkedView | null;
  /** What this life began from, where that was a checkpoint. */
  restored?: RestoredView | null;
  /** Where it was moved: it lives there, and never here again unless it is moved back. */
  moved?: MovedView | null;
  /** Something a person should know (a damaged file, a gap in the screen). */
  note?: string | null;
  /** Records of its journal are missing: what, for people. Only humans act in it, and whom they granted something since. */
  damaged?: string | null;
  /** When bytes were typed last that no client of the host sent: a program of the same user reached the keeper by itself. */
  stranger_ms?: number | null;
  /** Which life of the session this is: 1, and one more with each recovery. */
  incarnation?: number;
  /** What was lost, where it is lost. */
  lost?: LostView | null;
  /** The shell that runs in place of its command, since a recovery that did not run the command again. */
  stand_in?: string | null;
  /** It gets another life by itself where it is lost. */
  recovers?: boolean;
  /** Its command is run again where it fails, at most this many times within ten minutes. */
  restart_on_failure?: number | null;
  /** When its next life begins by itself. */
  next_life_ms?: number | null;
  /** Its lease, where it has one. */
  lease?: LeaseView | null;
  /** Whether and when it is reaped, or by which policy it was; left out where none concerns it and nobody keeps it. */
  reap?: ReapView | null;
}

/** A session's identity for all time. */
export type SessionId = string;

/** Whether a session lives. */
export type Life =
  /** Its command runs. */
  | "running"
  /** Its command has ended. */
  | "ended"
  /** Its keeper is gone and with it its processes; `session.recover` gives it another life. */
  | "lost"
  /** Its keeper speaks a version this host does not know; it is left alone. */
  | "unknown"
  /** Its files cannot be read; nothing about it is known. */
  | "damaged";

/** How a session's command ended. */
export type Exit =
  /** It returned this status. */
  | {
    code: number;
  }
  /** A signal ended it. */
  | {
    signal: number;
  }
  /** The keeper is gone without a word: how the command ended cannot be known. */
  | "lost";

/** An attached client. */
export interface ClientView {
  /** Its number in this session. */
  id: number;
  /** Who; none until a client that outlived the last host has reported back. */
  actor?: Actor | null;
  /** Its process. */
  pid: number;
  /** Its terminal's name. */
  tty: string;
  /** Its terminal's size. */
  size: Size;
  /** It cannot write. */
  read_only: boolean;
  /** Since when. */
  since_ms: number;
}

/** Who may write now, and who waits. */
export interface TurnView {
  /** Who has it; none: it is free. */
  holder?: HolderView | null;
  /** The newest fence. */
  fence: Fence;
  /** Who waits, first in first. */
  queue?: Handle[];
  /** The tree stands still. */
  frozen?: FrozenView | null;
}

/** Who has the turn. */
export interface HolderView {
  /** Who. */
  actor: Actor;
  /** Through which attached client; none: by single requests. */
  client?: number | null;
  /** Since when. */
  since_ms: number;
  /** When it last wrote. */
  active_ms: number;
  /** When it will be free by itself. */
  ends_ms?: number | null;
  /** `wrote`, `asked`, `given` or `seized`. */
  how: string;
}

/** A number that grows with each change of turn or incarnation; a write with an old fence is dropped. */
export type Fence = number;

/** A frozen session. */
export interface FrozenView {
  /** By whom. */
  by: Actor;
  /** Since when. */
  since_ms: number;
}

/** What a branch is a copy of. */
export interface ForkedView {
  /** The session. */
  session: SessionId;
  /** Its name then. */
  name: SessionName;
  /** When. */
  at_ms: number;
  /** The number of the record in its journal by which the branch was asked for. */
  seq: number;
  /** That record's hash. */
  hash: Hash;
  /** Connections that were cut in the branch. */
  cut?: string[];
  /** It has a network of its own. */
  own_network?: boolean;
}

/** The BLAKE3 hash of a journal record, or of a question as it was read. */
export type Hash = string;

/** What a session's life began from. */
export interface RestoredView {
  /** The checkpoint. */
  checkpoint: string;
  /** When that was made. */
  made_ms: number;
  /** Connections that were cut. */
  cut?: string[];
}

/** Where a session was moved. */
export interface MovedView {
  /** The other host, as who moved it calls it. */
  host: string;
  /** When that became its home. */
  at_ms: number;
  /** It is known to live there. */
  arrived?: boolean;
}

/** What was lost, as far as the host knew. */
export interface LostView {
  /** When the host noticed. */
  at_ms: number;
  /** Why. */
  cause: Cause;
  /** The same for people, with what else is known. */
  why: string;
  /** Where its command was last. */
  cwd?: string | null;
  /** When the host last looked at its processes. */
  seen_ms?: number | null;
  /** Its processes then, at most 64. */
  processes?: LostProcess[];
  /** Where they listened, for example `tcp 127.0.0.1:5173`. */
  listened?: string[];
  /** Their connections to others, for example `tcp 10.0.0.2:5432`. Those are cut. */
  connected?: string[];
  /** Runs that were on. None is run again by itself. */
  runs?: RunId[];
  /** Its newest checkpoint: `restore` brings its processes back. */
  checkpoint?: string | null;
  /** Variables of its environment whose values are not kept. */
  withheld?: string[];
}

/** Why a session was lost. */
export type Cause =
  /** The machine was started anew since. */
  | {
    is: "reboot";
  }
  /** The kernel killed its keeper because memory ran out. */
  | {
    is: "out_of_memory";
  }
  /** Its keeper was killed by a signal. */
  | {
    is: "signal";
    /** The signal. */
    number: number;
  }
  /** It was stopped when a checkpoint of it was made. */
  | {
    is: "checkpoint";
  }
  /** Nothing says why. Its keeper is gone. */
  | {
    is: "unknown";
  };

/** A process of a session that was lost. */
export interface LostProcess {
  /** Its number. */
  pid: number;
  /** Its program, without arguments: those may be secret. */
  program: string;
  /** It still runs, without the session's terminal. */
  survives?: boolean;
}

/** A run's identity for all time: `run_` and 26 characters. */
export type RunId = string;

/** A session's lease, as clients see it. */
export interface LeaseView {
  /** How it stands. */
  state: LeaseState;
  /** The host that has it, as far as this one knows. */
  host: string;
  /** The number that grows with each change of home: no two lives of a session have the same. */
  fence: number;
  /** Until when the session runs if the lease is not renewed; left out where it does not run. */
  until_ms?: number | null;
  /** Its keeper stopped it because the lease was over, and this many milliseconds after that. */
  stopped_late_ms?: number | null;
  /** A keeper that cannot stop the session in time is killed. */
  hard?: boolean;
  /** Why it is not renewed, for people. */
  why?: string | null;
}

/** How a session's lease stands. */
export type LeaseState =
  /** This host has it: the session may run. */
  | "held"
  /** This host does not know whether it still has it: the session stands still, and goes on once the lease is renewed. */
  | "unknown"
  /** Another host has it: the life here is over. */
  | "claimed";

/** Whether and when a session is reaped. */
export interface ReapView {
  /** How long it may be idle; none: only the host's limits concern it, or nothing does. */
  after_ms?: number | null;
  /** It is never reaped, as whoever started it said. */
  never?: boolean;
  /** Since when it is idle, as the host saw it; none: it is not, or that is not known. */
  idle_since_ms?: number | null;
  /** When it is ended, if nobody uses or keeps it until then. */
  ends_ms?: number | null;
  /** Its users were warned, for this reason. */
  warned?: ReapWhy | null;
  /** Who keeps it. */
  kept?: KeptView | null;
  /** It was reaped, for this reason. */
  reaped?: ReapWhy | null;
}

/** Why a session is reaped. */
export type ReapWhy =
  /** It was idle for as long as it may be. */
  | "idle"
  /** The host has more sessions than it may have, and nobody has used this one for longest. */
  | "sessions"
  /** Its sessions take more memory than they may, and nobody has used this one for longest. */
  | "memory";

/** Somebody keeps a session. */
export interface KeptView {
  /** Who. */
  by: Handle;
  /** Until when; none: until somebody says otherwise. */
  until_ms?: number | null;
}

/** Which sessions. */
export interface ListParams {
  /** Ended ones too. */
  all?: boolean;
}

/** One session by name, id, or the beginning of its id. */
export interface SessionParams {
  /** Name or id. */
  session: string;
}

/** A terminal that wants to be attached. */
export interface AttachParams {
  /** Name or id. */
  session: string;
  /** The terminal's size. */
  size: Size;
  /** It will not write. */
  read_only?: boolean;
  /** The terminal's name. */
  tty?: string;
  /** The client's process. */
  pid?: number;
  /**
   * Variables of the client that a session follows (`TERM`, `SSH_AUTH_SOCK`, …), `K=V` each. The host takes over those it
   * names itself, and only from a human who may type, at a terminal of this machine that writes.
   */
  env?: string[];
  /** What this client still has, after its host went away. */
  resume?: Resume | null;
  /**
   * It types and reads through the host alone (`session.send`, `session.read`), shows the session in the session's own size,
   * and leaves terminal queries to the host. Clients over a network do.
   */
  remote?: boolean;
  /** With `remote`: it is a person's terminal, and its window gives the session its size as a local one's does. */
  sizes?: boolean;
  /** It draws the session from a keyframe, whatever its size, and leaves terminal queries to the host. */
  draws?: boolean;
}

/** What a client that goes on without its host still has. */
export interface Resume {
  /** Its number in the session. */
  client: number;
  /** The token it got when it attached: it alone has it. */
  token: ClientToken;
  /** It answers the session's queries. */
  answers: boolean;
}

/** What an attached client alone knows: the host made it up for this client, and the keeper repeats it to the next host. */
export type ClientToken = string;

/** Everything an attached terminal needs to go on by itself. */
export interface AttachAnswer {
  /** The session. */
  session: SessionView;
  /** The client's number there. */
  client: number;
  /** What the bytes are. */
  painted: Painted;
  /** The ring file. */
  ring: string;
  /** The keeper's socket. */
  keeper: string;
  /** The client's token, hexadecimal: it opens the keeper's door once, and a later host knows the client by it. */
  token: string;
  /** The newest fence. */
  fence: Fence;
  /** This client has the turn and writes under that fence, directly to the keeper. */
  writes: boolean;
  /** This terminal answers the session's queries; the others filter them out. */
  answers: boolean;
  /** There are lines above the screen: ask for them by `session.paint`. */
  has_history: boolean;
}

/** What was painted. */
export interface Painted {
  /** Output goes on from here. */
  offset: number;
  /** The session's size there. */
  size: Size;
  /** What the bytes are. */
  form: Form;
  /** With a keyframe: how many of the bytes, at their front, are history lines for the terminal instead. */
  history_bytes?: number;
}

/** How the bytes of an answer describe the screen. */
export type Form =
  /** Escape sequences for a cleared terminal of the session's size. */
  | "repaint"
  /** A keyframe: for a client that draws the session's screen on a terminal of another size. */
  | "keyframe";

/** Asks for the screen again. */
export interface PaintParams {
  /** Name or id. */
  session: string;
  /** The terminal's size; decides the form. */
  size: Size;
  /** History too. */
  history?: boolean;
  /** The client with this number answers the session's queries from the painted offset, if no client does yet. */
  answers?: number | null;
  /** Paint for a terminal of the session's size, whatever `size` is. */
  remote?: boolean;
  /** Give a keyframe, whatever `size` is. */
  draws?: boolean;
  /** With `history`: the terminal has the lines before this place. Where the host does not know it, all lines come. */
  behind?: HistoryPlace | null;
}

/** A place in a session's history. It means something to the host that named it, and nothing to the next one. */
export interface HistoryPlace {
  /** Whose counting it is. */
  count: number;
  /** Lines before this place. */
  lines: number;
}

/** What changed at an attached terminal. */
export interface UpdateParams {
  /** Name or id. */
  session: string;
  /** The client's number. It attached by this connection. */
  client: number;
  /** Its terminal's new size. */
  size?: Size | null;
  /** From this offset on it answers queries (true) or no longer does (false). */
  answers?: Answers | null;
}

/** From where on a terminal answers queries, or no longer does. What lies between the two offsets it never saw. */
export interface Answers {
  /** It does, or goes on to after a paint. */
  on: boolean;
  /** Everything before this offset it has seen. */
  left: number;
  /** It answers from this offset on. */
  from: number;
}

/** What a terminal should know after its update. */
export interface UpdateAnswer {
  /** The session's size now. */
  size: Size;
}

/** An operator that lets go by itself. */
export interface LeaveParams {
  /** Name or id. */
  session: string;
  /** The client's number. */
  client: number;
  /** Everything before this offset is on its terminal: the answer says how much of the history that is. */
  shown?: number | null;
}

/** What a client that left may want to remember. */
export interface LeaveAnswer {
  /** How much of the history its terminal has, for the next `session.paint`. */
  history?: HistoryPlace | null;
}

/** Which view of the screen. */
export interface ScreenParams {
  /** Name or id. */
  session: string;
  /** With colours and attributes as escape sequences. */
  ansi?: boolean;
  /** This many lines of history before it. */
  history?: number;
}

/** Get the screen as text. */
export interface ScreenAnswer {
  /** Everything before this offset is in it. */
  offset: number;
  /** Columns and rows. */
  size: Size;
  /** The rows, top first. */
  rows: string[];
  /** History lines asked for, oldest first. */
  history: string[];
  /** Column and row of the cursor, from 0. */
  cursor: [number, number];
  /** A full-screen program is on. */
  alternate: boolean;
  /** The program wants cursor keys in their application form. */
  application_cursor?: boolean;
  /** The title. */
  title: string;
  /** Output the screen never saw: it was overwritten before a host could look. */
  gap?: Gap | null;
}

/** Output that is gone. */
export interface Gap {
  /** First offset lost. */
  from: number;
  /** First offset there is again. */
  to: number;
}

/** Which output. */
export interface ReadParams {
  /** Name or id. */
  session: string;
  /** First offset wanted; none: the oldest there is. */
  from?: number | null;
  /** At most this many bytes. */
  max?: number | null;
  /** Wait this long for the first byte. */
  wait_ms?: number;
}

/** The answer's bytes are output; this says where they stand. */
export interface ReadAnswer {
  /** What was asked for and is gone. */
  gap?: Gap | null;
  /** Offset of the first byte given. */
  from: number;
  /** Offset behind the last byte given: ask from here next. */
  to: number;
  /** Offset of the next byte to come. */
  head: number;
  /** The session has ended and everything was given. */
  end: boolean;
  /**
   * The session's size when they were written: bytes behind a change of it are given by the next answer. Where none are given,
   * its size now; a change ends a wait.
   */
  size?: Size;
}

/** Which output to follow. */
export interface FollowParams {
  /** Name or id. */
  session: string;
  /** The client's number for it, which the events carry; free on this connection. */
  follow: number;
  /** First offset wanted; none: the oldest there is. */
  from?: number | null;
  /** Bytes that may be sent; more are granted by `session.credit`. */
  credit?: number;
}

/** Neither asks nor answers anything. */
export type Nothing = Record<string, never>;

/** How much more may be sent. */
export interface CreditParams {
  /** The number given to `session.follow`. */
  follow: number;
  /** Bytes on top of what was granted before. */
  bytes: number;
}

/** Which output is no longer followed. */
export interface UnfollowParams {
  /** The number given to `session.follow`. */
  follow: number;
}

/** Where the message's bytes are typed. */
export interface SendParams {
  /** Name or id. */
  session: string;
  /** A random number of the sender's. */
  stream: number;
  /**
   * Grows by one with each message of the stream, from 1; a repeated message is not typed twice. A message of more than
   * 4096 bytes takes one number for each 4096 begun.
   */
  seq: number;
  /** The attached client that types. */
  client?: number | null;
  /** The fence the writer believes in: under another one nothing is typed. None: whatever it is now. */
  fence?: Fence | null;
  /** They are a secret: typed only while the terminal does not show what is typed, and recorded as a length. */
  secret?: boolean;
  /** Type the secret although the terminal may show it. */
  force?: boolean;
  /** Refuse it where a message before it in the stream was refused on this connection: for who has several under way. */
  in_order?: boolean;
}

/** What became of the bytes. */
export interface SendAnswer {
  /** Output offset at that moment. */
  at: number;
  /** They have reached the terminal; otherwise they are queued, because the program does not read now. */
  written: boolean;
  /** The fence they were typed under; for a repeat the newest. */
  fence: Fence;
}

/** What a session is doing, as clients see it. */
export type StateView = {
  /** Which session. */
  session: SessionId;
  /** Its name. */
  name: SessionName;
  /** The process that says so, if one does. */
  pid?: number | null;
  /** Since when the host has seen it so. It may have been so for longer if no client looked before. */
  since_ms: number;
  /** Where its output stood. */
  at: number;
} & (
  /** Its shell, or whatever it was started with, waits for a command. */
  | {
    state: "idle_prompt";
  }
  /** A process in the foreground works. */
  | {
    state: "running";
  }
  /** A program waits for input. */
  | {
    state: "waiting";
    /** For what. */
    kind: Kind;
    /** What the screen shows before the cursor. */
    prompt: string;
  }
  /** A program has the whole screen, and waits for keys. */
  | {
    state: "full_screen";
  }
  /** Every process waits for something other than the terminal: time, a child, a network. */
  | {
    state: "blocked_elsewhere";
  }
  /** The job in the foreground is stopped. */
  | {
    state: "stopped";
  }
  /** The whole tree was stopped by an actor. */
  | {
    state: "frozen";
    /** By whom. */
    by: Handle;
  }
  /** Its command has ended. */
  | {
    state: "ended";
    /** How. */
    exit: Exit;
  }
  /** No guess. */
  | {
    state: "unknown";
    /** Why. */
    why: Blind;
  }
);

/** What a client waits for. */
export type Kind =
  /** A line that shows while it is typed. */
  | "line"
  /** A line that does not. */
  | "password"
  /** Keys, on the main screen: a program with its own line editor. */
  | "repl"
  /** One of a few answers; only by [`Doing::with_screen`]. */
  | "choice";

/** Why nothing can be said. */
export type Blind =
  /** No live process has the terminal. */
  | "nobody"
  /**
   * The process is another user's, or hides itself (sudo, ssh-agent). If the terminal is canonical without echo, a
   * password is likely; the caller has the flags.
   */
  | "unreadable"
  /** What it waits for cannot be seen: io_uring, or a 32-bit program. */
  | "opaque"
  /** There is too much to look at, and what was looked at says nothing. */
  | "too_many"
  /** Its keeper does not answer, or is of a version this host does not know. */
  | "keeper"
  /** Its files cannot be read. */
  | "damaged";

/** Which events. */
export interface WatchParams {
  /** Name or id; none: every session the caller may observe. */
  session?: string | null;
  /** Those behind this number; none: those to come, and first of all what each session is doing. */
  after?: number | null;
  /** Wait this long for the first. */
  wait_ms?: number;
}

/** Events. */
export interface WatchAnswer {
  /** Oldest first. */
  events: SessionEvent[];
  /** Ask behind this one next. */
  to: number;
  /** Number of dropped events, of all sessions: the reader was too slow, or the host restarted. */
  lost?: number;
}

/** Something that happened in a session. */
export type SessionEvent = {
  /** Its number. */
  seq: number;
  /** When. */
  at_ms: number;
  /** Where. */
  session: SessionId;
  /** Its name then. */
  name: SessionName;
} & (
  /** A session is new. */
  | {
    event: "started";
    /** Who started it. */
    by: Handle;
  }
  /** It does something else than before. */
  | {
    event: "state";
    /** The process that says so. */
    pid?: number | null;
    /** Since when. */
    since_ms: number;
  } & (
    /** Its shell, or whatever it was started with, waits for a command. */
    | {
      state: "idle_prompt";
    }
    /** A process in the foreground works. */
    | {
      state: "running";
    }
    /** A program waits for input. */
    | {
      state: "waiting";
      /** For what. */
      kind: Kind;
      /** What the screen shows before the cursor. */
      prompt: string;
    }
    /** A program has the whole screen, and waits for keys. */
    | {
      state: "full_screen";
    }
    /** Every process waits for something other than the terminal: time, a child, a network. */
    | {
      state: "blocked_elsewhere";
    }
    /** The job in the foreground is stopped. */
    | {
      state: "stopped";
    }
    /** The whole tree was stopped by an actor. */
    | {
      state: "frozen";
      /** By whom. */
      by: Handle;
    }
    /** Its command has ended. */
    | {
      state: "ended";
      /** How. */
      exit: Exit;
    }
    /** No guess. */
    | {
      state: "unknown";
      /** Why. */
      why: Blind;
    }
  )
  /** Its command has ended. */
  | {
    event: "exit";
    /** How. */
    exit: Exit;
  }
  /** The turn has another holder, or none. */
  | {
    event: "turn";
    /** Who. */
    holder?: Handle | null;
  }
  /** An actor requests the turn. */
  | {
    event: "turn_requested";
    /** Who. */
    by: Handle;
  }
  /** An actor asks the humans a question. */
  | {
    event: "asked";
    /** The question. */
    question: QuestionId;
    /** Who. */
    by: Handle;
    /** What; of a long question the beginning. */
    text: string;
    /** What can be answered; none: any text. */
    options?: string[];
  }
  /** A human has answered. */
  | {
    event: "answered";
    /** The question. */
    question: QuestionId;
    /** Who. */
    by: Handle;
    /** What; of a long answer the beginning. */
    text: string;
    /** Which option that is, from 0. */
    option?: number | null;
  }
  /** A question is over without an answer. */
  | {
    event: "question_closed";
    /** The question. */
    question: QuestionId;
    /** `withdrawn` or `expired`. */
    state: QuestionState;
    /** Who withdrew it. */
    by?: Handle | null;
  }
  /** It was lost, or its command failed, and it has another life. */
  | {
    event: "recovered";
    /** Which. */
    incarnation: number;
    /** The checkpoint that its processes came back from. */
    checkpoint?: string | null;
    /** Connections of theirs that were cut. */
    cut?: string[];
  }
  /** An act is held until a human approves it. */
  | {
    event: "held";
    /** The approval. */
    approval: ApprovalId;
    /** Who wants it. */
    by: Handle;
    /** What; of a long command the beginning. */
    command: string;
    /** The rule that asks. */
    rule: string;
    /** What that rule asks. */
    why: string;
  }
  /** A held act was answered, or is over. */
  | {
    event: "held_closed";
    /** The approval. */
    approval: ApprovalId;
    /** `approved`, `done`, `failed`, `denied` or `expired`. */
    state: ApprovalState;
    /** Who answered. */
    by?: Handle | null;
    /** What they said to it. */
    reason?: string | null;
  }
  /** It is about to be reaped: nobody uses it. */
  | {
    event: "reap_soon";
    /** When, if nobody uses or keeps it until then. */
    ends_ms: number;
    /** Why. */
    why: ReapWhy;
  }
  /** It was about to be reaped, and is not: it was used or kept, or there is no reason any more. */
  | {
    event: "reap_averted";
  }
  /** It is reaped: the host ends it. */
  | {
    event: "reaped";
    /** Why. */
    why: ReapWhy;
  }
  /** It has another name, which is the one above. */
  | {
    event: "renamed";
    /** Who gave it. */
    by: Handle;
    /** The name before. */
    from: SessionName;
  }
  /** A run begins. */
  | {
    event: "run_started";
    /** The run. */
    run: RunId;
    /** Whose. */
    by: Handle;
    /** What; of a long command the beginning. */
    command: string;
    /** The act's number in the session's journal. */
    act?: number | null;
  }
  /** A run is over, in whatever way. */
  | {
    event: "run_ended";
    /** The run. */
    run: RunId;
    /** Whose. */
    by: Handle;
    /** What; of a long command the beginning. */
    command: string;
    /** `ended`, `cancelled` or `lost`. */
    state: RunState;
    /** Its status, where it is known. */
    exit_code?: number | null;
    /** The act's number in the session's journal. */
    act?: number | null;
  }
  /** Something takes connections, or datagrams, at a port. */
  | {
    event: "listen";
    /** The socket. */
    socket: SocketId;
    /** `stream` is TCP, `dgram` is UDP. */
    kind: SocketKind;
    /** Address and port. */
    address: string;
    /** The port alone. */
    port: number;
    /** The oldest process that holds it. */
    pid?: number | null;
    /** That one's words. */
    argv: string[];
    /** Whose act started it, where that is known. */
    by?: Handle | null;
    /** The act's number in the session's journal. */
    act?: number | null;
    /** How that is known. */
    known: Known;
  }
  /** Nothing does there any more. */
  | {
    event: "not_listening";
    /** The socket. */
    socket: SocketId;
    /** `stream` is TCP, `dgram` is UDP. */
    kind: SocketKind;
    /** Address and port. */
    address: string;
    /** The port alone. */
    port: number;
    /** The oldest process that holds it. */
    pid?: number | null;
    /** That one's words. */
    argv: string[];
    /** Whose act started it, where that is known. */
    by?: Handle | null;
    /** The act's number in the session's journal. */
    act?: number | null;
    /** How that is known. */
    known: Known;
  }
  /** A client is attached. */
  | {
    event: "attached";
    /** Whose. */
    by: Handle;
    /** Its number. */
    client: number;
  }
  /** A client is attached no more. */
  | {
    event: "detached";
    /** Whose. */
    by?: Handle | null;
    /** Its number. */
    client: number;
  }
);

/** A question's identity for all time: `que_` and 26 characters. */
export type QuestionId = string;

/** Where a question stands. */
export type QuestionState =
  /** It waits for an answer. */
  | "open"
  /** A human has answered. */
  | "answered"
  /** Its asker, or a human, withdrew it. */
  | "withdrawn"
  /** Its time is over, or its session is. */
  | "expired";

/** An approval's identity for all time: `apr_` and 26 characters. */
export type ApprovalId = string;

/** Where a held act stands. */
export type ApprovalState =
  /** It waits for a human. */
  | "open"
  /** A human approved it, and the host is about to do it. */
  | "approved"
  /** It was approved and done. For a run: it is in the shell. */
  | "done"
  /** It was approved, and could not be done. */
  | "failed"
  /** A human denied it. */
  | "denied"
  /** Nobody answered in time, or its session ended: it is denied. */
  | "expired";

/** Where a run stands. */
export type RunState =
  /** Typed; the shell has not said yet that it runs. */
  | "starting"
  /** It runs. */
  | "running"
  /** It ended. */
  | "ended"
  /** It was interrupted, and ended. */
  | "cancelled"
  /** Its outcome is unknown, and it is not run again. `end` says whether the command can have started: `not_started` or `unknown`. */
  | "lost";

/** A socket: `s<inode>`. */
export type SocketId = string;

/** How a socket carries bytes. */
export type SocketKind =
  /** TCP, or a unix stream. */
  | "stream"
  /** UDP, or unix datagrams. */
  | "dgram"
  /** Unix packets over a connection. */
  | "seqpacket";

/** How a binding is known. */
export type Known =
  /** By the cgroup it was born in, which is one turn's or one run's. */
  | "cgroup"
  /** By who made it. */
  | "lineage"
  /** By when it was made. */
  | "time"
  /** It is not: the journal does not reach back so far, or has no name. */
  | "unknown";

/** Which session's shell, and how much of it. */
export interface EnvParams {
  /** Name or id. */
  session: string;
  /** Also what is as it was when the shell started. */
  all?: boolean;
}

/** What a session's shell is made of, against what it started with. */
export interface EnvAnswer {
  /** Whose. */
  session: SessionId;
  /** Its name. */
  name: SessionName;
  /** Its command is a shell that reports its names. */
  integration: boolean;
  /** When it first reported: later changes are compared with that. None: it has not. */
  since_ms?: number | null;
  /** It has more names than the host keeps: some changes may be missing. */
  partial?: boolean;
  /** By category and name. */
  entries: EnvEntry[];
}

/** One name. */
export interface EnvEntry {
  /** Its kind. */
  category: Category;
  /** Its name; `cwd` for the working directory. */
  name: string;
  /**
   * Of its value, under a key that only this session's files have: tells two values apart and nothing else. None: it is
   * gone.
   */
  hash?: string | null;
  /** It was there when the shell started, and is no more. */
  gone: boolean;
  /** Who made it what it is now. None: it is as it was when the shell started. */
  changed?: Changed | null;
}

/** What kind of thing a name stands for. */
export type Category =
  /** An exported variable, and those that shape a shell without being exported: `PS1`, `PROMPT_COMMAND`, `IFS`, `CDPATH`. */
  | "variable"
  /** An alias, or an abbreviation of fish. What fish calls an alias is a function. */
  | "alias"
  /** A function. */
  | "function"
  /** An option that is on; those of zsh are all there, with `on` or `off`. */
  | "option"
  /** The working directory; there is one. */
  | "cwd"
  /** A directory in `PATH`. */
  | "path"
  /** A trap. */
  | "trap"
  /** A key of the line editor that runs a command or types a text. */
  | "binding"
  /** A builtin that is switched off. */
  | "builtin"
  /** A name under which the shell remembers a program that is in no directory of `PATH` (`hash -p`). */
  | "hash"
  /** A limit: `umask`. */
  | "setting";

/** The act that changed something. */
export interface Changed {
  /** How that is known. */
  known: Known2;
  /** The act's number in the session's journal. */
  act?: number | null;
  /** The run it was done by. */
  run?: RunId | null;
  /** That run's key. */
  key?: string | null;
  /** Who. */
  actor?: Actor | null;
  /** When the shell reported it. */
  at_ms: number;
}

/** How it is known who changed something. */
export type Known2 =
  /** A run did it: the shell reported its end. */
  | "run"
  /** The last writer before the command started. */
  | "time"
  /** It is not: the journal does not reach back so far, or has no name. */
  | "unknown";

/** What others changed since the caller wrote last before they did, or since the session started. */
export interface HandoverAnswer {
  /** Which session. */
  session: SessionId;
  /** Its name. */
  name: SessionName;
  /** The caller's last act there; none: it never wrote. */
  since_act?: number | null;
  /** When that was, or when the session started. */
  since_ms: number;
  /** Who else wrote since. */
  from: Handle[];
  /**
   * What they changed, and what goes on: the shell's names, the directory, files that will be executed, text at the prompt,
   * processes in the background.
   */
  changed: HandoverChange[];
  /** All of it in a line; empty: nothing changed. */
  summary: string;
  /** What could not be looked at, or is not told. */
  missing?: string[];
}

/** One change. */
export interface HandoverChange {
  /** By what. */
  by: Channel;
  /** Its name, or path. */
  name: string;
  /** Who; none: it cannot be known. */
  actor?: Actor | null;
  /** By which act of the session's journal, where that is known and the session is this one. */
  act?: number | null;
  /** How that is known: `run`, `time`, `cgroup`, `lineage`, `log`, `kernel`, `written` or `unknown`. */
  known: string;
  /** When. */
  at_ms: number;
  /** It was there before, and is no more. */
  gone?: boolean;
}

/** By what somebody shapes what another actor runs. */
export type Channel =
  /** An alias, or an abbreviation of fish. */
  | "alias"
  /** A function of the shell. */
  | "function"
  /** A variable: `LD_PRELOAD`, `GIT_SSH_COMMAND`, `PROMPT_COMMAND`, or one that the line uses. */
  | "variable"
  /** A directory in `PATH` that has a program of that name. */
  | "path"
  /** A trap: `DEBUG`, `ERR`. */
  | "trap"
  /** A key of the line editor. */
  | "binding"
  /** A builtin that was switched off or on. */
  | "builtin"
  /** A program that the shell remembers under another path (`hash -p`). */
  | "hash"
  /** A limit of the shell's: its umask. */
  | "setting"
  /** A file that is executed: a script, a Makefile, a module, a git hook, an rc file. */
  | "file"
  /** Text that stood at the prompt already. */
  | "line"
  /** A process that goes on in the background. */
  | "job"
  /** The working directory. */
  | "directory"
  /** An option of the shell. */
  | "option";

/** How long to wait. */
export interface WaitParams {
  /** Name or id. */
  session: string;
  /** Give up after this long. */
  timeout_ms?: number | null;
  /** What to wait for; the command's end by default. */
  until?: Until;
}

/** What to wait for. */
export type Until =
  /** The command's end. */
  | "exit"
  /** The shell waits for a command. */
  | "idle"
  /** A program waits for input. */
  | "waiting"
  /** Something in the session's tree takes connections at this port. */
  | {
    port: number;
  };

/** What waiting gave. */
export interface WaitAnswer {
  /** How the command ended; none: it still runs. */
  exit?: Exit | null;
  /** The state that was waited for. */
  state?: StateView | null;
  /** Who takes connections at the port that was waited for. */
  listener?: Listener | null;
}

/** Who takes connections. */
export interface Listener {
  /** Its process. */
  pid: number;
  /** Where. */
  address: string;
}

/** Another size. */
export interface ResizeParams {
  /** Name or id. */
  session: string;
  /** Columns and rows. */
  size: Size;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** An actor's signature over one act. */
export interface Proof {
  /** Random, from the actor: the same act signed again is another one, and a copied one is found out. */
  nonce: Nonce;
  /** Over the act's content, as the authority spells it. */
  signature: Signature;
}

/** Random bytes that make each signed act unlike every other. */
export type Nonce = string;

/** Sends a signal. */
export interface SignalParams {
  /** Name or id. */
  session: string;
  /** Its number. */
  number: number;
  /** 0 the foreground group, 1 the command's group, 2 the whole tree. */
  target?: number;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** Another name. */
export interface RenameParams {
  /** Name or id. */
  session: string;
  /** The new name. */
  name: SessionName;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** Which session to keep. */
export interface KeepParams {
  /** Name or id. */
  session: string;
  /** Keep it this long; left out: until somebody says otherwise. */
  for_ms?: number | null;
  /** Keep it no longer. */
  off?: boolean;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** Whom to detach. */
export interface DetachParams {
  /** Name or id. */
  session: string;
  /** Clients by their numbers. */
  clients: number[];
  /** The actor's signature. */
  proof?: Proof | null;
}

/** Who was detached. */
export interface DetachAnswer {
  /** Their numbers. */
  clients: number[];
}

/** How to end. */
export interface EndParams {
  /** Name or id. */
  session: string;
  /** Time from SIGHUP to SIGKILL, 5 seconds by default; a frozen session is killed at once. */
  grace_ms?: number;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** Which session to give another life, and how. */
export interface RecoverParams {
  /** Name or id. */
  session: string;
  /**
   * Run the session's command again. Left out: a session whose command is a shell gets that shell, any other one a shell in its
   * place.
   */
  run?: boolean;
  /** Variables of the caller, `K=V` each. Used for those the session had whose values are not kept on disk, and for no others. */
  env?: string[];
  /** The actor's signature. */
  proof?: Proof | null;
}

/** A session with a life. */
export interface RecoverAnswer {
  /** The session. */
  session: SessionView;
  /** Its life began with this request; otherwise it was running already. */
  began: boolean;
}

/** Which session to restore. */
export interface RestoreParams {
  /** Name or id. */
  session: string;
  /** The checkpoint; left out: the newest. */
  checkpoint?: string | null;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** A session that was restored. */
export interface RestoreAnswer {
  /** The session. */
  session: SessionView;
  /** From what. */
  checkpoint: CheckpointView;
}

/** A checkpoint. */
export interface CheckpointView {
  /** Its id, `ckp_…`. */
  id: string;
  /** Of which session. */
  session: SessionId;
  /** The session's name then. */
  name: SessionName;
  /** When it was made. */
  at_ms: number;
  /** In which of the session's lives. */
  incarnation: number;
  /** The terminal's size then. */
  size: Size;
  /** What it takes up on disk. */
  bytes: number;
  /** How long the processes stood still for it. */
  still_ms: number;
  /** The programs in it, at most 64. */
  programs: string[];
  /** Connections that are cut once it is restored. */
  cut?: string[];
  /** Mounts of the machine that the session sees: they must be there when it is restored. */
  mounts: string[];
  /** The kernel it was made on. */
  kernel: string;
  /** The version of CRIU that made it. */
  criu: string;
  /** The host made it by itself, and replaces it by later ones. */
  automatic?: boolean;
  /** Why it cannot be used, where it cannot: damaged, or made by a later version. */
  damaged?: string | null;
}

/** Which session to fork. */
export interface ForkParams {
  /** Name or id. */
  session: string;
  /** How many branches, 1 to 8; left out: 2, or as many as names are given. */
  count?: number | null;
  /** Their names; left out: the session's name with a number. */
  names?: SessionName[];
  /**
   * The branches have the machine's network. Ports that the session listens on are taken, so this is for sessions without any. Left
   * out: each has a network of its own, with nothing but a loopback.
   */
  share_network?: boolean;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** Branches that run. */
export interface ForkAnswer {
  /** The branches. */
  branches: SessionView[];
  /** Connections that are cut in them. What was sent before the fork was sent. */
  cut?: string[];
  /** How long the session stood still for it. */
  still_ms: number;
}

/** A step of a move, at the host that has the session. */
export interface MoveParams {
  /** Name or id. */
  session: string;
  /** What to do. */
  step: MoveStep;
  /** The actor's signature, for `hold`. */
  proof?: Proof | null;
}

/** What the host that has a session is to do for its move. */
export type MoveStep =
  /** Say what it needs. Nothing is stopped. */
  | "offer"
  /** Stop it, and keep a copy. It goes on where the connection breaks before `commit`. */
  | {
    hold: {
      /** The other host, as who moves it calls it. */
      to: string;
      /** That host's lease, for a session that is leased. */
      home?: MoveHome | null;
    };
  }
  /** Bytes of a file. */
  | {
    read: {
      /** Its place in the list. */
      file: number;
      /** From where. */
      from: number;
    };
  }
  /** Its home is the other host: it never lives here again. */
  | "commit"
  /** It lives there. */
  | "done"
  /** It goes on here. */
  | "give_up";

/** The lease of a host, to which a leased session can be passed on. */
export interface MoveHome {
  /** What the host is called in records of leases. */
  host: string;
  /** The lease's number, in hexadecimal. */
  lease: string;
}

/** What came of a step. */
export interface MoveAnswer {
  /** `offer`: what it needs. */
  offer?: MoveOffer | null;
  /** `hold`: what is sent. */
  parcel?: MoveParcel | null;
  /** `commit`: the key for `finish`. */
  key?: string | null;
  /** Where it was moved, where it was. */
  moved?: MovedView | null;
}

/** What a session needs to go on elsewhere. */
export interface MoveOffer {
  /** Which session. */
  session: SessionId;
  /** Its name. */
  name: SessionName;
  /** Its life until now. */
  incarnation: number;
  /** The machine it comes from. */
  machine: string;
  /** Holdfast there. */
  version: string;
  /** CRIU there. */
  criu: string;
  /** How much room it takes at most. */
  bytes: number;
  /** How many processes. */
  processes: number;
  /** Connections that will be cut. */
  cut?: string[];
  /** Mounts that it sees. */
  mounts: string[];
  /** Where it sees its own directory. */
  own: string;
  /** Where it sees Holdfast's state directory. */
  state: string;
  /** Where it sees Holdfast's sockets. */
  run: string;
  /** The user it runs as, where that is not root. */
  user?: string | null;
  /** Keys with which it was moved before: who has one may have it back. */
  came_with?: string[];
  /** Its home is a lease, which is passed on with it. */
  leased?: boolean;
  /** The processor, as CRIU describes it: `cpuinfo.img` in hexadecimal. */
  processor: string;
  /** Files that it needs. */
  files: NeededFile[];
}

/** A file or directory that the processes have open or mapped, and must find. */
export interface NeededFile {
  /** As they see it. */
  path: string;
  /** Its mode, with its type. */
  mode: number;
  /** Of a regular file. */
  bytes?: number;
  /** Of a regular file: a checksum. */
  sum?: string;
}

/** A session that stands still, and what is sent of it. */
export interface MoveParcel {
  /** The move. */
  id: string;
  /** What it needs, as of now. */
  offer: MoveOffer;
  /** The checkpoint that is sent. */
  checkpoint: string;
  /** SHA-256 of the key without which nobody begins its next life, in hexadecimal. */
  lock: string;
  /** What is sent. */
  files: SentFile[];
}

/** A file that is sent. */
export interface SentFile {
  /** Its path below the session's directory. */
  path: string;
  /** Permissions. */
  mode: number;
  /** How long it is. */
  bytes: number;
  /** Its checksum. */
  sum: string;
}

/** A step of a move, at the host to which a session is moved. */
export interface ArriveParams {
  /** What to do. */
  step: ArriveStep;
}

/** What the host to which a session is moved is to do. */
export type ArriveStep =
  /** Say what would be in the way. */
  | {
    check: {
      /** What it needs. */
      offer: MoveOffer;
    };
  }
  /** Make room for it. */
  | {
    begin: {
      /** What will be sent. */
      parcel: MoveParcel;
    };
  }
  /** Bytes of a file, which come with the message. */
  | {
    write: {
      /** The session. */
      session: SessionId;
      /** The file's place in the list. */
      file: number;
      /** From where. */
      from: number;
    };
  }
  /** Look whether all of it is there, and as it was. */
  | {
    whole: {
      /** The session. */
      session: SessionId;
    };
  }
  /** It lives here now. */
  | {
    finish: {
      /** The session. */
      session: SessionId;
      /** The key. */
      key: string;
    };
  }
  /** Nothing comes of it. */
  | {
    give_up: {
      /** The session. */
      session: SessionId;
    };
  };

/** What came of it. */
export interface ArriveAnswer {
  /** `check`, `whole`: what is in the way. */
  refused?: string[];
  /** `check`: the lease of this host, for a session that is leased. */
  home?: MoveHome | null;
  /** `finish`: the session. */
  session?: SessionView | null;
  /** `finish`: connections that were cut. */
  cut?: string[];
}

/** Of which branch the changed files are wanted. */
export interface ForkDiffParams {
  /** Name or id of the branch. */
  session: string;
  /** Another branch to compare with; left out: the real files. */
  with?: string | null;
  /** Also what is in text files, as a unified diff. Needs the right `fork` in each branch. */
  patch?: boolean;
}

/** Files that differ. */
export interface ForkDiffAnswer {
  /** The files, by path. */
  changes: BranchChange[];
  /** There are more than are listed. */
  more?: boolean;
  /** The unified diff, for `patch -p1`. */
  patch?: string | null;
}

/** A file that differs. */
export interface BranchChange {
  /** Its path; that of a directory ends with a slash. */
  path: string;
  /** How. */
  how: HowChanged;
  /** Bytes of the new content. */
  bytes?: number;
}

/** How a file differs. */
export type HowChanged =
  /** It is there, and was not. */
  | "created"
  /** It has other content, another target or another kind. */
  | "changed"
  /** It has another mode or owner. */
  | "attributes"
  /** It is no longer there. */
  | "deleted";

/** Which branch's files to apply. */
export interface ForkKeepParams {
  /** Name or id of the branch. */
  session: string;
  /** Copy created and changed files below this directory, and touch nothing else; it must be empty, or not there. */
  into?: string | null;
  /** Of conflicting files, those of which the branch's version is taken. */
  take?: string[];
  /** Files that are left as they are. */
  leave?: string[];
  /** The actor's signature. */
  proof?: Proof | null;
}

/** What was applied of a branch. */
export interface ForkKeepAnswer {
  /** Files that were applied; none where some conflict. */
  applied: BranchChange[];
  /** Files that changed since the fork, for each of which a choice is needed: `take` or `leave`. */
  conflicts?: Conflict[];
}

/** A file that changed on both sides. */
export interface Conflict {
  /** Its path. */
  path: string;
  /** Why. */
  why: string;
}

/** A branch that nobody wants. */
export interface ForkDiscardParams {
  /** Name or id. */
  session: string;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** What a checkpoint of a session would refuse, cut and disturb now. */
export interface CheckAnswer {
  /** How many processes it has. */
  processes: number;
  /** Why there can be no checkpoint now. */
  refused?: Obstacle[];
  /** Connections that would be cut in the copy. */
  cut?: Obstacle[];
  /** What else a person should know. */
  noted?: Obstacle[];
}

/** Something that a checkpoint cannot keep. */
export interface Obstacle {
  /** The process. */
  pid: number;
  /** Its program. */
  program: string;
  /** The descriptor, where it is one. */
  fd?: number | null;
  /** What it is. */
  what: string;
}

/** Which session to make a checkpoint of. */
export interface CheckpointParams {
  /** Name or id. */
  session: string;
  /** The session goes on. Left out: it stops, until it is restored. That needs the right `end` too. */
  keep_running?: boolean;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** Whose checkpoints to list. */
export interface CheckpointListParams {
  /** Name or id; left out: of all sessions you may observe. */
  session?: string | null;
}

/** A checkpoint to remove. */
export interface CheckpointRemoveParams {
  /** Name or id of its session. */
  session: string;
  /** Its id. */
  checkpoint: string;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** Which part of a journal. */
export interface JournalParams {
  /** Name or id. */
  session: string;
  /** Records behind this number; 0: from the oldest kept. */
  after?: number;
  /** Only so many of the newest records behind `after`, counted when it is asked. */
  last?: number | null;
  /** Wait this long for the first. */
  wait_ms?: number;
}

/** The answer's bytes are whole lines of the journal, as they lie on disk; this says which. */
export interface JournalAnswer {
  /** Number of the first record given; none given: the next to come. */
  from: number;
  /** Ask behind this one next. */
  to: number;
  /** There is more now. */
  more: boolean;
  /** The session has ended and everything was given. */
  end: boolean;
  /** Number of the last record, as the host wrote it; none while more waits for the disk. */
  newest?: number | null;
  /** Its hash. */
  newest_hash?: Hash | null;
}

/** Of which sessions. */
export interface CostParams {
  /** Name or id; none: of every session the caller may observe that runs. */
  session?: string | null;
}

/** What a session takes up, and when somebody last used it. */
export interface CostView {
  /** Which session. */
  session: SessionId;
  /** Its name. */
  name: SessionName;
  /** Memory of its keeper and its processes. What is shared with others counts in parts, where the kernel tells. */
  memory_bytes: number;
  /** The kernel told of some processes only what they have resident, or nothing: the true number is another one. */
  memory_estimated?: boolean;
  /** Its processes, without the keeper. */
  processes: number;
  /** Blocks on disk of its ring, history, journal and other files. */
  disk_bytes: number;
  /** When it started. */
  created_ms: number;
  /** When somebody was attached last; none: nobody was, as far as the host knows. Somebody who is attached counts as now. */
  attached_ms?: number | null;
  /** When somebody last looked at its screen, its output or its journal. */
  looked_ms?: number | null;
}

/** Which session's graph, and how much of it. */
export interface GraphParams {
  /** Name or id. */
  session: string;
  /** How much is read; all of it where nothing is said. */
  depth?: Depth;
}

/** How much a snapshot reads; each includes the ones before. */
export type Depth =
  /** The processes: what `ps` shows. */
  | "processes"
  /** Their sockets too: what `ss -p` shows. Other descriptors are not listed. */
  | "sockets"
  /** All descriptors, with positions and locks: what `lsof` shows. */
  | "full";

/** A session's graph, its terminal, and whose act started what. */
export interface GraphAnswer {
  /** Whose. */
  session: SessionId;
  /** Its name. */
  name: SessionName;
  /** Its terminal. */
  terminal: TerminalView;
  /** What the session is doing, and which process says so. */
  doing?: Doing | null;
  /** When it was taken, in milliseconds since the Unix epoch. */
  at_ms: number;
  /** How much was read. */
  depth: Depth;
  /** Parents before their children. */
  processes: ProcessNode[];
  /** By inode. */
  sockets: SocketNode[];
  /** By inode. */
  pipes: PipeNode[];
  /** Something is missing that is there: a limit cut it, or we may not read it. Its node says which. */
  partial: boolean;
  /** The act that started each process and each socket, in the graph's order. */
  bindings: Binding[];
}

/** A session's terminal. What only its keeper knows is not there where that does not answer. */
export interface TerminalView {
  /** Columns and rows. */
  size: Size;
  /** The programs' output switched to the alternate screen. */
  alternate_screen: boolean;
  /** The process group that has the terminal. */
  foreground?: number | null;
  /** Its modes. */
  modes?: ModesView | null;
}

/** A terminal's modes: termios(3). */
export interface ModesView {
  /** Input comes by lines (`ICANON`). */
  canonical: boolean;
  /** What is typed shows (`ECHO`). */
  echo: boolean;
  /** `c_iflag`. */
  iflag: number;
  /** `c_oflag`. */
  oflag: number;
  /** `c_lflag`. */
  lflag: number;
  /** Bytes of input that no program has taken. */
  unread: number;
}

/** What a session is doing, and which process says so. */
export type Doing =
  /** The shell waits for a command. */
  | {
    doing: "idle_prompt";
    /** The shell. */
    pid: number;
  }
  /** A process in the foreground works. */
  | {
    doing: "running";
    /** One that does. */
    pid: number;
  }
  /** A program waits for input. */
  | {
    doing: "waiting";
    /** Who. */
    pid: number;
    /** For what. */
    kind: Kind;
  }
  /** A program has the whole screen, and waits for keys. */
  | {
    doing: "full_screen";
    /** Who. */
    pid: number;
  }
  /** Every process waits for something other than the terminal: time, a child, a network. */
  | {
    doing: "blocked_elsewhere";
    /** The first of them. */
    pid: number;
  }
  /** The job in the foreground is stopped or traced. */
  | {
    doing: "stopped";
    /** The first of them. */
    pid: number;
  }
  /** No guess. */
  | {
    doing: "unknown";
    /** Who cannot be seen. */
    pid?: number | null;
    /** Why. */
    why: Blind;
  };

/** One process. */
export interface ProcessNode {
  /** Who it is. */
  id: ProcessId;
  /** Its pid, as in the id. */
  pid: number;
  /** Its parent, unless that is the keeper. */
  parent?: ProcessId | null;
  /** The pid of its parent, the keeper's too. */
  parent_pid: number;
  /** Its process group. */
  group: number;
  /** Its kernel session. */
  session: number;
  /** Whether its group has the terminal; `None` if unknown. */
  foreground?: boolean | null;
  /** When it started, in milliseconds since the Unix epoch, to a clock tick. */
  started_ms: number;
  /** `R` runs, `S` sleeps, `D` is in the kernel, `T` is stopped, `t` is traced, `Z` is dead. */
  state: string;
  /** Its name: 15 bytes that it may change. */
  comm: string;
  /** Its words, lossily decoded; empty for a zombie. A program may overwrite them. */
  argv: string[];
  /** `argv` is only the first [`ARGV_BYTES_MAX`] bytes. */
  argv_cut?: boolean;
  /** Its program. The kernel appends ` (deleted)` to one that was replaced. */
  exe?: string | null;
  /** Its working directory. */
  cwd?: string | null;
  /** Processor time it has used, in the kernel and out of it. */
  cpu_ms: number;
  /** Memory it has resident; what is shared counts for each. */
  rss_bytes: number;
  /** Its threads. */
  threads: number;
  /** Its effective user. */
  uid?: number | null;
  /** Its cgroup in the unified hierarchy. */
  cgroup?: string | null;
  /** Its descriptors in ascending order, as far as [`Depth`] goes. */
  fds?: FdNode[];
  /** Descriptors there are beyond [`FDS_MAX`]. */
  more_fds?: number;
  /** We may not see its descriptors. */
  unknown?: boolean;
}

/** A process: `p<pid>-<start>`. The kernel gives the pid to another one later, but not with the same start. */
export type ProcessId = string;

/** One open descriptor of a process. */
export interface FdNode {
  /** Its number. */
  fd: number;
  /** What it is of. */
  kind: FdKind;
  /** Its path, or the kernel's name for what has none; nothing for sockets and unnamed pipes. */
  path?: string | null;
  /** The file has no name any more; its space goes when the last descriptor does. */
  deleted?: boolean;
  /** Where in a regular file it stands. */
  offset?: number | null;
  /** Open for reading. */
  read?: boolean | null;
  /** Open for writing. */
  write?: boolean | null;
  /** Writes go to the end; read for regular files only. */
  append?: boolean | null;
  /** Locks held through it, the first [`LOCKS_MAX`]. */
  locks?: Lock[];
  /** The socket or pipe. */
  target?: Target | null;
}

/** What a descriptor is of. */
export type FdKind =
  /** A regular file. */
  | "file"
  /** A directory. */
  | "dir"
  /** A pipe, named or not. */
  | "pipe"
  /** A socket. */
  | "socket"
  /** A terminal. */
  | "tty"
  /** A file in memory without a name. */
  | "memfd"
  /** Something of the kernel's: epoll, eventfd, pidfd. */
  | "anon"
  /** A device that is no terminal. */
  | "device"
  /** We may not know. */
  | "unknown";

/** A lock on a file. */
export interface Lock {
  /** Which kind. */
  kind: LockKind;
  /** Exclusive: a write lock. */
  exclusive: boolean;
  /** First byte. */
  start: number;
  /** Last byte; `None` is the end of the file, wherever that is. */
  end?: number | null;
}

/** Who made a lock, and what it belongs to. */
export type LockKind =
  /** By flock(2). */
  | "flock"
  /** By fcntl(2), of the process. */
  | "posix"
  /** By fcntl(2), of the open file. */
  | "ofd"
  /** A lease, or what else the kernel lists. */
  | "other";

/** What a descriptor leads to: the id of a socket or a pipe of the same graph. */
export type Target =
  /** A socket. */
  | SocketId
  /** A pipe. */
  | PipeId;

/** A pipe: `f<inode>`; one with a name in a file system has that file system's device too: `f<inode>@<major>:<minor>`. */
export type PipeId = string;

/** One socket and who of the session holds it. */
export interface SocketNode {
  /** Which one. */
  id: SocketId;
  /** Its family. */
  family?: Family | null;
  /** Its kind. */
  kind?: SocketKind | null;
  /** Its state. */
  state?: SocketState | null;
  /** The kernel's name for its protocol (`TCP`, `NETLINK`), known even where its state is not. */
  protocol?: string | null;
  /** Our address. */
  local?: string | null;
  /** The other side's. */
  remote?: string | null;
  /** The path of a unix socket; an abstract one starts with `@`. */
  path?: string | null;
  /** The other side, where it is a socket of this machine that is known. */
  peer?: SocketId | null;
  /** Who holds it, in the order of processes, each once. */
  holders: ProcessId[];
  /** It is in another network namespace, which we do not ask about. */
  elsewhere?: boolean;
  /**
   * The kernel did not tell its state: it is elsewhere, neither bound nor connected, or of a family that we do not
   * ask about.
   */
  unknown?: boolean;
}

/** A socket's address family. */
export type Family =
  /** IPv4. */
  | "inet"
  /** IPv6, which may take IPv4 too. */
  | "inet6"
  /** On this machine. */
  | "unix";

/** Where a connection stands. */
export type SocketState =
  /** Takes connections. */
  | "listening"
  /** Connected; a UDP socket with a fixed peer too. */
  | "established"
  /** Asked for a connection. */
  | "connecting"
  /** One side has closed, or both and the last packets are on their way. */
  | "closing"
  /** Neither: a UDP socket that takes from anyone, or a stream that is not connected. */
  | "unconnected";

/** A pipe and who of the session holds its ends. Others may hold it too. */
export interface PipeNode {
  /** Which one. */
  id: PipeId;
  /** Its ends, in the order of processes. */
  ends: PipeEnd[];
}

/** One descriptor on a pipe. */
export interface PipeEnd {
  /** Whose. */
  process: ProcessId;
  /** Which of its descriptors. */
  fd: number;
  /** Which end; `None` if we may not know. */
  end?: End | null;
}

/** An end of a pipe. */
export type End =
  /** What is written comes out here. */
  | "read"
  /** What is written goes in here. */
  | "write"
  /** A named pipe that was opened for both. */
  | "both";

/** A process or socket, and the act that started it. */
export interface Binding {
  /** What. */
  of: Bound;
  /** How that is known. */
  by: Known;
  /** The act's number in the session's journal. */
  act?: number | null;
  /** Who did it. */
  actor?: Actor | null;
  /** When it was recorded. */
  at_ms?: number | null;
}

/** What is bound. */
export type Bound =
  /** A process. */
  | ProcessId
  /** A socket: its oldest holder's act. */
  | SocketId;

/** Whose ports. */
export interface PortsParams {
  /** Name or id; none: those of every live session the caller may observe. */
  session?: string | null;
}

/** A listening port. */
export interface PortView {
  /** In which session. */
  session: SessionId;
  /** Its name. */
  name: SessionName;
  /** The socket. */
  socket: SocketId;
  /** `stream` is TCP, `dgram` is UDP. */
  kind: SocketKind;
  /** Address and port. */
  address: string;
  /** Who holds the socket. */
  holders: ProcessId[];
  /** The oldest process that holds it. */
  process?: ProcessId | null;
  /** That one's words. */
  argv: string[];
  /** Since when that process is there: the port is open since then or later, which the kernel does not tell. */
  since_ms?: number | null;
  /** Whose act started it. */
  actor?: Actor | null;
  /** The act's number in the session's journal. */
  act?: number | null;
  /** How that is known. */
  by: Known;
}

/** What happens to a session's processes. */
export interface WatchGraphParams {
  /** Name or id. */
  session: string;
  /** The `to` of the answer before; none: from now on, which is answered at once. */
  after?: number | null;
  /** How long to wait for an event, at most. */
  wait_ms?: number;
}

/** What happened since. */
export interface WatchGraphAnswer {
  /** Oldest first. */
  events: GraphEvent[];
  /** Ask after this one next. */
  to: number;
  /** Some events between the two are missing: the reader or the host was too slow, or no client watched. Take a new graph. */
  lost?: boolean;
  /** How they are come by. */
  how: HowWatched;
  /** The session has ended: nothing follows. */
  end?: boolean;
}

/** One thing that happened. */
export type GraphEvent = {
  /** Its number; grows, over hosts too. */
  seq: number;
  /** When the host learnt of it. */
  at_ms: number;
} & (
  /** A process was made. */
  | {
    event: "fork";
    /** The new one. */
    pid: number;
    /** Who made it. */
    parent: number;
  }
  /** A process became another program. */
  | {
    event: "exec";
    /** Who. */
    pid: number;
    /** Its words now; empty where it was gone before they could be read. */
    argv: string[];
  }
  /** A process ended. */
  | {
    event: "exit";
    /** Who. */
    pid: number;
    /** Its status; none if the shell did not report it. */
    code?: number | null;
    /** The signal that ended it. */
    signal?: number | null;
  }
  /** A port is open. */
  | {
    event: "listen";
    /** The socket. */
    socket: SocketId;
    /** `stream` is TCP, `dgram` is UDP. */
    kind: SocketKind;
    /** Address and port. */
    address: string;
    /** Who holds the socket. */
    holders: ProcessId[];
  }
  /** A connection is there. */
  | {
    event: "connect";
    /** `stream` is TCP, `dgram` is UDP. */
    kind: SocketKind;
    /** Our address. */
    local: string;
    /** The other side's. */
    remote: string;
    /** Who holds the socket. */
    holders: ProcessId[];
  }
  /** A port is not open any more. */
  | {
    event: "not_listening";
    /** The socket. */
    socket: SocketId;
    /** `stream` is TCP, `dgram` is UDP. */
    kind: SocketKind;
    /** Address and port. */
    address: string;
    /** Who holds the socket. */
    holders: ProcessId[];
  }
  /** A connection is over. */
  | {
    event: "closed";
    /** `stream` is TCP, `dgram` is UDP. */
    kind: SocketKind;
    /** Our address. */
    local: string;
    /** The other side's. */
    remote: string;
    /** Who holds the socket. */
    holders: ProcessId[];
  }
);

/** How events are come by. */
export type HowWatched =
  /** The kernel tells of forks, execs and exits as they happen; sockets are looked for from time to time. */
  | "connector"
  /** Everything is looked for from time to time, more rarely while nothing happens: short lives are missed. */
  | "polling";

/** Which directory to list. */
export interface FilesListParams {
  /** Name or id. */
  session: string;
  /** A path from the session's live working directory on, or an absolute one; left out: that directory. */
  path?: string | null;
  /** `next` of the page before. */
  after?: string | null;
  /** Entries of this page, at most 1000. */
  limit?: number | null;
}

/** A page of a directory, in the order of the names' bytes; for a file, its one entry. */
export interface FilesListAnswer {
  /** The directory, or the file, without links. */
  path: string;
  /** The top of the working tree: nothing above it can be reached. */
  root: string;
  /** The session's live working directory, where it is in that tree. */
  cwd: string;
  /** It is a directory. */
  is_dir: boolean;
  /** This page. */
  entries: FileEntry[];
  /** Where the next page begins; absent: this is the last. */
  next?: string | null;
}

/** A file or directory. */
export interface FileEntry {
  /** Its name; where that is not UTF-8, the nearest text. */
  name: string;
  /** What it is. */
  kind: FileKind;
  /** Bytes in it. */
  size: number;
  /** When it last changed. */
  modified_ms: number;
  /** Its permissions, as in chmod(1). */
  mode: number;
  /** Where a link points. */
  target?: string | null;
}

/** What an entry is. */
export type FileKind =
  /** A file. */
  | "file"
  /** A directory. */
  | "dir"
  /** A symbolic link. */
  | "link"
  /** A pipe, a socket or a device, which is never opened. */
  | "special";

/** Which part of a file to read. */
export interface FilesReadParams {
  /** Name or id. */
  session: string;
  /** A path from the session's live working directory on, or an absolute one. */
  path: string;
  /** The first byte. */
  offset?: number;
  /** Bytes of this piece, at most 4 MiB; left out: as many as that. 0 tells size and etag alone. */
  max?: number | null;
  /** The file as it was read before; where it is another by now, the answer is `file_changed`. */
  etag?: string | null;
}

/** A piece of a file; its bytes belong to the answer. */
export interface FilesReadAnswer {
  /** The file, without links. */
  path: string;
  /** Bytes in the whole file. */
  size: number;
  /** When it last changed. */
  modified_ms: number;
  /** Its permissions, as in chmod(1). */
  mode: number;
  /** Changes whenever the file does. */
  etag: string;
  /** The first byte of this piece. */
  offset: number;
  /** The file ends with this piece. */
  end: boolean;
}

/** A file to write, whole; its bytes belong to the question. */
export interface FilesWriteParams {
  /** Name or id. */
  session: string;
  /** A path from the session's live working directory on, or an absolute one. */
  path: string;
  /** The permissions of a new file, as in chmod(1); left out: 0644. A file that exists keeps its own. */
  mode?: number | null;
  /** Write only while the file has this etag, from `files.read`. */
  etag?: string | null;
  /** Write only where there is no file yet. */
  new?: boolean;
}

/** A write to a file through the host. */
export interface FileChange {
  /** Its number in the session. */
  id: number;
  /** The file, without links. */
  path: string;
  /** Who wrote it. */
  by: Handle;
  /** When. */
  at_ms: number;
  /** The hash before; absent: there was no file. */
  before?: Hash | null;
  /** How that was hashed; absent: SHA-256. */
  before_kind?: HashKind;
  /** The hash after; absent: there is no file. */
  after?: Hash | null;
  /** How that was hashed; absent: SHA-256. */
  after_kind?: HashKind;
  /** Bytes in the file after. */
  size: number;
  /** The bytes before are kept: it can be undone. */
  can_undo: boolean;
  /** The bytes before and after are kept: it can be shown as a diff. */
  can_diff: boolean;
  /** The number of the write that this one undid. */
  undoes?: number | null;
}

/** How a file was hashed. */
export type HashKind =
  /** SHA-256: files of at most 64 MiB. */
  | "sha256"
  /** BLAKE3, with 32 bytes: larger files, whose SHA-256 takes longer than all the rest of a transfer. */
  | "blake3";

/** What to replace in a file. */
export interface FilesEditParams {
  /** Name or id. */
  session: string;
  /** A path from the session's live working directory on, or an absolute one. */
  path: string;
  /** The text that is there now. It must be there exactly once. */
  old: string;
  /** What stands there after. */
  new: string;
}

/** What an edit came to. */
export interface FilesEditAnswer {
  /** The write. */
  change: FileChange;
  /** What it changed, as a unified diff. */
  diff: string;
}

/**
 * A piece of an upload; its bytes belong to the question. The same session, path, size and tag are the same upload: whoever was cut
 * off asks without bytes where it stands, and goes on from there.
 */
export interface FilesUploadParams {
  /** Name or id. */
  session: string;
  /** A path from the session's live working directory on, or an absolute one. */
  path: string;
  /** Bytes in the whole file. */
  size: number;
  /** What tells this content from another of the same size: 1 to 64 letters and digits of the caller's choice. */
  tag: string;
  /** Where this piece begins; left out: tell how far the upload is. */
  offset?: number | null;
  /** A descriptor of the asking process, from which the host takes the piece itself. For clients at the host's own socket. */
  descriptor?: number | null;
  /** Everything was sent: put the file in its place. */
  finish?: boolean;
  /** The SHA-256 of the whole file. Where what arrived has another, it is thrown away. A file of more than 64 MiB is read once more for it. */
  hash?: Hash | null;
  /** The permissions of a new file, as in chmod(1); left out: 0644. A file that exists keeps its own. */
  mode?: number | null;
}

/** How far an upload is. */
export interface FilesUploadAnswer {
  /** Bytes that arrived: the next piece begins here. */
  offset: number;
  /** The write, once it was finished. */
  change?: FileChange | null;
}

/** Whose last write to undo. */
export interface FilesUndoParams {
  /** Name or id. */
  session: string;
  /** The file; left out: the one you wrote last. */
  path?: string | null;
}

/** Which writes to list. */
export interface FilesChangesParams {
  /** Name or id. */
  session: string;
}

/** Which write to show. */
export interface FilesDiffParams {
  /** Name or id. */
  session: string;
  /** Its number. */
  change: number;
}

/** What a write changed. */
export interface FilesDiffAnswer {
  /** The write. */
  change: FileChange;
  /** What it changed, as a unified diff; absent: the bytes are not kept, or are no text. */
  diff?: string | null;
}

/** What to run. */
export interface RunStartParams {
  /** Name or id of the session whose shell runs it. */
  session?: string | null;
  /**
   * In place of a session: the one that is made for it, with the command as it is; where that has none, the shell of the
   * host's user executes the text in `command`.
   */
  new?: NewParams | null;
  /** With `new`: the session stays listed when it has ended. */
  keep?: boolean;
  /** With `new`: what it writes to its standard error does not go to the terminal; the answer has it as `stderr`. */
  separate_stderr?: boolean;
  /** The same key runs once. Keys are each actor's own. */
  key?: string | null;
  /** The key is everybody's: whoever uses it with the same command finds the same run. */
  shared?: boolean;
  /**
   * The id it shall have, drawn at random: asked again with the same one after an answer was lost, in the same session, it
   * is not run again.
   */
  run?: RunId | null;
  /** What the shell is to execute; with a command in `new` it is left out. */
  command?: string;
  /** Answer when it has ended, at the latest after this long. */
  wait_ms?: number;
  /** Where a human must approve it: wait for the answer for so long before `approval_needed`. */
  approval_wait_ms?: number;
  /** Why it is to be run, in a sentence: for policies, and for the human who is asked. */
  intent?: string | null;
  /** What it promises. With one its effects are measured, and held against it. */
  contract?: Contract | null;
  /** How to detect its end if the shell does not report it. */
  detect?: Detect | null;
  /** Where to post its outcome; for an existing run, what was given at its start applies. */
  on_exit?: OnExit | null;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** What a run promises. */
export interface Contract {
  /** Why it is run, in a sentence. */
  intent?: string | null;
  /** What it may do. What is left out is not promised. */
  expect?: Expectations;
  /** Running it twice does no more than running it once. */
  idempotent?: boolean;
  /** How often it is run again after it failed, at most 10; only where it is idempotent. */
  retries?: number;
  /** The pause before the first retry, in milliseconds (1000); it doubles with each. */
  backoff_ms?: number | null;
}

/** What a run may do. */
export interface Expectations {
  /** Exit statuses that count as success; empty: 0. */
  exit?: number[];
  /**
   * Files it may create, change, delete or move: patterns relative to its directory, or absolute. `*` stands for part of a name,
   * `**` for any directories. Empty: none.
   */
  may_change?: string[] | null;
  /** Ports it may listen on. Empty: none. */
  ports?: number[] | null;
  /** How many processes it may leave running. */
  processes?: number | null;
  /** Where it may connect to beyond this machine: patterns of `ADDRESS:PORT`, such as `*:443`. Empty: nowhere. */
  network?: string[] | null;
}

/** How to detect the end in a shell that does not report it. */
export type Detect =
  /** No output for this long, in milliseconds. */
  | {
    quiet: number;
  }
  /** The last line fits this regular expression. */
  | {
    prompt: string;
  };

/** Where to post the outcome of a run. */
export interface OnExit {
  /** Where to: `http://` or `https://`. */
  url: string;
  /** What it is signed with. */
  secret?: string | null;
}

/** A run, and what it printed. */
export interface RunAnswer {
  /** Identity. */
  id: RunId;
  /** Its session. */
  session: SessionId;
  /** That session's name. */
  name: SessionName;
  /** Its key. */
  key?: string | null;
  /** What was entered. */
  command: string;
  /** Who. */
  actor: Actor;
  /** The act's number in the session's journal. */
  act?: number | null;
  /** Where it stands. */
  state: RunState;
  /** Its status, where it is known. */
  exit_code?: number | null;
  /** How the end is known. */
  end?: RunEnd | null;
  /** When it was entered. */
  started_ms: number;
  /** When it ended, as the host noticed. */
  ended_ms?: number | null;
  /** How long it took so far. */
  duration_ms: number;
  /** Offset of its first output byte. Until the shell has said where that is, there is no output, and it may lie further on. */
  from: number;
  /** Offset behind its last output byte, or behind the last one so far. */
  to: number;
  /** The shell's directory before. */
  cwd_before?: string | null;
  /** And after it. */
  cwd?: string | null;
  /** It is its session's own command. */
  own_session?: boolean;
  /** How it came out against its contract, once it is over; `run.trace` has the effects. */
  outcome?: Outcome | null;
  /** Of a run with retries: which attempt this is, from 1 on. It is over when its last attempt is. */
  attempt?: number | null;
  /** It was there before, and nothing was started: the key, or the id, was used. */
  existing?: boolean;
  /** Its output as text without escape sequences; of a long one the beginning and the end. */
  output: string;
  /** The output is longer than what is shown, or part of it is no longer kept. */
  truncated: boolean;
  /** What is not shown. */
  omitted?: Gap | null;
  /** What it wrote to its standard error, where that was asked to be separate: as text, of a long one the beginning and the end. */
  stderr?: string | null;
}

/** How the end is known. */
export type RunEnd =
  /** The shell said so under the run's token, or the session's command was the run and ended. */
  | "exact"
  /** Taken from what the terminal showed: there is no status. */
  | "inferred"
  /** It did not start: the shell did not accept it as a command (a syntax error), or its host was gone before it was typed. */
  | "not_started"
  /** It has ended, and its status is unknown. */
  | "unknown";

/** A run held against its contract. */
export interface Outcome {
  /** Whether its effects stayed within it. */
  validity: Validity;
  /** It ended with an exit status that was expected. */
  success: boolean;
  /** Effects beyond the contract; of many the first. */
  unexpected?: Unexpected[];
  /** How many there are. */
  unexpected_count?: number;
  /** What it promises and could not be told: `files`, `network`, … */
  untold?: string[];
}

/** Whether effects stayed within the contract. */
export type Validity =
  /** They did. */
  | "valid"
  /** Some are beyond it. */
  | "invalid"
  /** None was seen beyond it, and something it promises could not be measured completely. */
  | "unknown";

/** An effect beyond the contract. */
export interface Unexpected {
  /** `file`, `port`, `process` or `network`. */
  kind: string;
  /** Which. */
  what: string;
}

/** Which run. */
export interface RunParams {
  /** Its id, or its key. */
  run: RunRef;
  /** Answer when it has ended, at the latest after this long. */
  wait_ms?: number;
}

/** Which run is meant: its id, or the key it was started under. What reads as an id is one. */
export type RunRef = string;

/** Which part of a run's output. */
export interface RunOutputParams {
  /** Its id, or its key. */
  run: RunRef;
  /** First offset wanted; none: the run's first. */
  from?: number | null;
  /** At most this many bytes. */
  max?: number | null;
  /** Wait this long for the first byte, or the run's end. */
  wait_ms?: number;
}

/** The answer's bytes are output; this says where they stand. */
export interface RunOutputAnswer {
  /** What was asked for and is gone. */
  gap?: Gap | null;
  /** Offset of the first byte given. */
  from: number;
  /** Offset behind the last byte given: ask from here next. */
  to: number;
  /** The run is over and everything was given. */
  end: boolean;
}

/** Which runs. */
export interface RunListParams {
  /** Those of one session; none: of all sessions the caller may observe. The newest 1,000. */
  session?: string | null;
}

/** A run as clients see it. */
export interface RunView {
  /** Identity. */
  id: RunId;
  /** Its session. */
  session: SessionId;
  /** That session's name. */
  name: SessionName;
  /** Its key. */
  key?: string | null;
  /** What was entered. */
  command: string;
  /** Who. */
  actor: Actor;
  /** The act's number in the session's journal. */
  act?: number | null;
  /** Where it stands. */
  state: RunState;
  /** Its status, where it is known. */
  exit_code?: number | null;
  /** How the end is known. */
  end?: RunEnd | null;
  /** When it was entered. */
  started_ms: number;
  /** When it ended, as the host noticed. */
  ended_ms?: number | null;
  /** How long it took so far. */
  duration_ms: number;
  /** Offset of its first output byte. Until the shell has said where that is, there is no output, and it may lie further on. */
  from: number;
  /** Offset behind its last output byte, or behind the last one so far. */
  to: number;
  /** The shell's directory before. */
  cwd_before?: string | null;
  /** And after it. */
  cwd?: string | null;
  /** It is its session's own command. */
  own_session?: boolean;
  /** How it came out against its contract, once it is over; `run.trace` has the effects. */
  outcome?: Outcome | null;
  /** Of a run with retries: which attempt this is, from 1 on. It is over when its last attempt is. */
  attempt?: number | null;
}

/** Which run to interrupt. */
export interface RunCancelParams {
  /** Its id, or its key. */
  run: RunRef;
  /** Answer when it has ended, at the latest after this long. */
  wait_ms?: number;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** Which run. */
export interface TraceParams {
  /** Its id, or its key. */
  run: RunRef;
}

/** Everything that is known of a run. */
export interface TraceView {
  /** Identity. */
  id: RunId;
  /** Its session. */
  session: SessionId;
  /** That session's name. */
  name: SessionName;
  /** Its key. */
  key?: string | null;
  /** What was entered. */
  command: string;
  /** Who. */
  actor: Actor;
  /** The act's number in the session's journal. */
  act?: number | null;
  /** Where it stands. */
  state: RunState;
  /** Its status, where it is known. */
  exit_code?: number | null;
  /** How the end is known. */
  end?: RunEnd | null;
  /** When it was entered. */
  started_ms: number;
  /** When it ended, as the host noticed. */
  ended_ms?: number | null;
  /** How long it took so far. */
  duration_ms: number;
  /** Offset of its first output byte. Until the shell has said where that is, there is no output, and it may lie further on. */
  from: number;
  /** Offset behind its last output byte, or behind the last one so far. */
  to: number;
  /** The shell's directory before. */
  cwd_before?: string | null;
  /** And after it. */
  cwd?: string | null;
  /** It is its session's own command. */
  own_session?: boolean;
  /** And what that says. */
  outcome?: Outcome | null;
  /** Of a run with retries: which attempt this is, from 1 on. It is over when its last attempt is. */
  attempt?: number | null;
  /** What it promised; none: it ran without a contract, and nothing was measured. */
  contract?: Contract | null;
  /** By which rule it was let through, where the host remembers. */
  decision?: Decision | null;
  /** All its attempts, the first one first. */
  attempts?: Attempt[];
  /** What it did, once it is over. */
  effects?: Effects | null;
}

/** By which rule a run was let through. */
export interface Decision {
  /** `allow`, or `off` where nothing is judged. */
  outcome: string;
  /** The rule. */
  rule?: string | null;
  /** What a human approved. */
  approval?: string | null;
  /** How long the decision took, facts and all, in microseconds. */
  took_us: number;
}

/** One attempt of a run that may be retried. */
export interface Attempt {
  /** The run. */
  run: RunId;
  /** When it began. */
  started_ms: number;
  /** When it was over. */
  ended_ms?: number | null;
  /** Its status. */
  exit_code?: number | null;
  /** Why there was none, where it could not be begun. */
  error?: string | null;
}

/** What a run did. */
export interface Effects {
  /** To files. */
  files: FileEffects;
  /** Processes it left behind. */
  processes: LeftProcess[];
  /** Ports it listens on at its end, or was seen to listen on before. */
  ports: number[];
  /** Connections beyond this machine, as `ADDRESS:PORT`. */
  connections: string[];
  /** How files were measured. */
  files_measured: Measure;
  /** How processes were. */
  processes_measured: Measure;
  /** How ports were: those at its end. */
  ports_measured: Measure;
  /** How connections were. */
  network_measured: Measure;
}

/** What became of files. Of long lists the beginning. */
export interface FileEffects {
  /** New ones. */
  created?: string[];
  /** Written to, replaced, or with other attributes. */
  changed?: string[];
  /** Gone. */
  deleted?: string[];
  /** Under another name. */
  moved?: Moved[];
  /** How many in all. */
  count?: number;
  /** Created and deleted again; not in the lists. */
  passing?: number;
}

/** A file that was moved. */
export interface Moved {
  /** Where it was. */
  from: string;
  /** Where it is. */
  to: string;
}

/** A process that a run left behind. */
export interface LeftProcess {
  /** Its pid. */
  pid: number;
  /** Its words. */
  argv: string[];
}

/** Whether what was measured is all there was, and by what it was measured. */
export interface Measure {
  /** Everything of this kind was seen, and nothing of others. */
  complete: boolean;
  /** `fanotify`, `ctime`, `lineage`, `graph`, `counters`, `samples`; `none`: not measured. */
  by: string;
  /** What may be missing or foreign. */
  why?: string | null;
}

/** What to ask. */
export interface QuestionAskParams {
  /** Name or id of the session it is about, whose humans are asked. */
  session: string;
  /** The question. */
  text: string;
  /** What can be answered; none: any text. */
  options?: string[];
  /** Answer when it is no longer open, at the latest after this long. */
  wait_ms?: number;
  /**
   * A key of the asker's own, drawn at random, at most 64 bytes: asked again with the same one after an answer was lost, it is not
   * asked twice.
   */
  key?: string | null;
  /** Close the question after this long; none: it is open as long as its session lives. */
  expires_ms?: number | null;
}

/** A question as clients see it. */
export interface QuestionView {
  /** Identity. */
  id: QuestionId;
  /** Its session. */
  session: SessionId;
  /** That session's name. */
  name: SessionName;
  /** Who asks. */
  by: Actor;
  /** The question, as it was written: what shows it makes it harmless first. */
  text: string;
  /** What can be answered; none: any text. */
  options: string[];
  /** The hash of text and options, which an answer carries. */
  hash: Hash;
  /** When it was asked. */
  asked_ms: number;
  /** When the question closes. */
  expires_at_ms?: number | null;
  /** Where it stands. */
  state: QuestionState;
  /** The answer. */
  answer?: QuestionAnswer | null;
  /** Who took it back. */
  withdrawn_by?: Actor | null;
}

/** An answer. */
export interface QuestionAnswer {
  /** What was answered. */
  text: string;
  /** Which option that is, from 0. */
  option?: number | null;
  /** Who answered. */
  by: Actor;
  /** When. */
  at_ms: number;
}

/** Which question. */
export interface QuestionParams {
  /** Its id. */
  question: QuestionId;
  /** Answer when it is no longer open, at the latest after this long. */
  wait_ms?: number;
}

/** Which questions. */
export interface QuestionListParams {
  /** Those of one session; none: of all sessions the caller may observe. */
  session?: string | null;
  /** Those that are no longer open too, as far as they are remembered. */
  all?: boolean;
}

/** What to answer. */
export interface QuestionAnswerParams {
  /** The question's id. */
  question: QuestionId;
  /** The `hash` of the question that was read: an answer to another text is refused. */
  seen: Hash;
  /** The answer; where there are options, one of them. */
  text?: string | null;
  /** In place of a text: the number of an option, from 0. */
  option?: number | null;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** Which question to take back. */
export interface QuestionWithdrawParams {
  /** Its id. */
  question: QuestionId;
}

/** What to answer. */
export interface ApprovalAnswerParams {
  /** The approval's id. */
  approval: ApprovalId;
  /** The `hash` of what was read: an answer to something else is refused. */
  seen: Hash;
  /** True: it may happen. False: it does not. */
  approve: boolean;
  /** What the actor that asked is to read. */
  reason?: string | null;
  /** With an approval: the same actor may do the same again under the same rule for so many minutes, at most 480. */
  minutes?: number | null;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** A held act as clients see it. */
export interface ApprovalView {
  /** Identity. */
  id: ApprovalId;
  /** Its session; none where the act would start one. */
  session?: SessionId | null;
  /** That session's name. */
  name?: SessionName | null;
  /** Who wants it. */
  by: Actor;
  /** What kind of act: `run`, `start`, `signal`, `end`, `exec`. */
  act: string;
  /** The command line, as it was written: what shows it makes it harmless first. */
  command: string;
  /** Where it would run. */
  cwd: string;
  /** The rule that asks. */
  rule: string;
  /** What the rule asks. */
  why: string;
  /** What the command risks, in the words of policies. */
  risks: string[];
  /** Paths it would write; `?` stands for what is not known. */
  writes: string[];
  /** Paths it would delete; likewise. */
  deletes: string[];
  /** Who else shaped what it would run, and by what. */
  shapers?: Shaper[];
  /** The hash of all that, which an answer carries. */
  hash: Hash;
  /** It was approved before, and what it was about has changed since. */
  again: boolean;
  /** When it was asked for. */
  asked_ms: number;
  /** When it is denied without an answer. */
  expires_at_ms: number;
  /** Where it stands. */
  state: ApprovalState;
  /** Who answered. */
  answered_by?: Actor | null;
  /** When. */
  answered_ms?: number | null;
  /** What the human said to it. */
  reason?: string | null;
  /** Until when the same actor may do the same again under the same rule without being asked. */
  until_ms?: number | null;
  /** For a run: its id, which it has once it is done. */
  run?: RunId | null;
  /** Why it failed. */
  error?: string | null;
}

/** One thing that shapes what is run, and who made it so. */
export interface Shaper {
  /** By what. */
  by: Channel;
  /** Its name, or path. */
  name: string;
  /** Who; none: it cannot be known. */
  actor?: Actor | null;
  /** By which act of the session's journal, where that is known and the session is this one. */
  act?: number | null;
  /** How that is known: `run`, `time`, `cgroup`, `lineage`, `log`, `kernel`, `written` or `unknown`. */
  known: string;
  /** When. */
  at_ms: number;
}

/** Which held act. */
export interface ApprovalParams {
  /** Its id. */
  approval: ApprovalId;
  /** Answer when it stands otherwise than now, or nothing more will become of it; at the latest after this long. */
  wait_ms?: number;
}

/** Which held acts. */
export interface ApprovalListParams {
  /** Those of one session; none: of all sessions the caller may observe, and its own. */
  session?: string | null;
  /** Those that are over too, as far as they are remembered. */
  all?: boolean;
}

/** The policy in force. */
export interface PolicyView {
  /** `solo`, `careful`, `locked` or `off`. */
  policy: string;
  /** The directory of files of one's own. */
  dir: string;
  /** Those of them that are in force. */
  files: string[];
  /** The rules in force. */
  rules: RuleView[];
  /** Why newer files are not in force; empty where all are. */
  problems: string[];
  /** Runs judged since the host began, and how many of them asked a human. */
  judged: number;
  /** Acts that were held. */
  asked: number;
  /** Acts that were denied by a rule. */
  denied: number;
}

/** A rule. */
export interface RuleView {
  /** Its name. */
  id: string;
  /** `permit`, `ask` or `forbid`. */
  kind: string;
  /** What it asks, or why it denies. */
  why: string;
  /** The file it is in. */
  file: string;
  /** Where in it. */
  line: number;
  /** Its text in Cedar. */
  text: string;
}

/** What is to be judged, without doing it. */
export interface MayParams {
  /** The command line. */
  command: string;
  /** In which session's shell; none: in a session of its own. */
  session?: string | null;
  /** In which directory; none: the session's, or the home directory. */
  cwd?: string | null;
  /** For which actor; none: the caller. */
  actor?: Handle | null;
}

/** What the policy says of a command. */
export interface MayAnswer {
  /** `allow`, `ask` or `deny`. */
  outcome: string;
  /** The rule that decides. */
  rule: string;
  /** What that rule says; empty for an allow. */
  why: string;
  /** What would be allowed instead, in sentences. */
  instead: string[];
  /** Where it was judged. */
  cwd: string;
  /** The command line was understood. */
  parsed: boolean;
  /** What only the live shell knows. */
  opaque: string[];
  /** The commands in it. */
  names: string[];
  /** What it risks. */
  risks: string[];
  /** Paths it would write; `?` stands for what is not known. */
  writes: string[];
  /** Paths it would delete; likewise. */
  deletes: string[];
  /** Who else shaped what it would run, and by what. */
  shapers?: Shaper[];
}

/** What is started. */
export interface FlowStartParams {
  /** A definition in YAML; or else a name. */
  definition?: string | null;
  /** The name of a flow in code, which a worker of the same actor decides about. */
  name?: string | null;
  /** Its id; the same id, code and input find the flow that was started before. None: its name and a number. */
  flow?: string | null;
  /** What it is given, as JSON. */
  input?: unknown;
  /** Where its new sessions start. */
  cwd?: string | null;
  /** It does not wait for its timers: somebody tries it out. */
  skip_timers?: boolean;
}

/** A flow. */
export interface FlowView {
  /** Its id. */
  id: string;
  /** What kind of flow it is. */
  name: string;
  /** Who started it. */
  by: string;
  /** When. */
  started_ms: number;
  /** When it ended. */
  ended_ms?: number | null;
  /** `deciding`, `waiting`, `blocked`, `undoing`, `completed`, `failed`, `cancelled` or `continued`. */
  state: string;
  /** The same for people, with what it waits for. */
  status: string;
  /** What it gave, or why it failed. */
  value?: unknown;
  /** Why it is blocked. */
  why?: string | null;
  /** How many events its history has. */
  events: number;
  /** Grows with each change of any flow; a question for what is new names the largest. */
  changed?: number;
  /** Which history under this id it is, from 1. */
  generation?: number;
  /** The flow whose step started it. */
  parent?: string | null;
  /** It was there before, and nothing was started. */
  existing?: boolean;
  /** What it waits for. */
  waits_for?: FlowWait[];
  /** Flows that its steps started. */
  children?: FlowChild[];
  /** Events of its history, as `spec/flows.md` has them. */
  history?: Array<Record<string, unknown>>;
}

/** One thing that a flow waits for. */
export interface FlowWait {
  /** The command's number, from 0. */
  n: number;
  /** The step's name. */
  name: string;
  /** `run`, `sleep`, `until`, `ask`, `signal`, `wait` or `child`. */
  kind: string;
  /** Since when. */
  since_ms: number;
  /** When it ends by itself. */
  until_ms?: number | null;
  /** Which attempt, from 1. */
  attempt?: number;
  /** What only a human can decide. */
  stuck?: string | null;
  /** The question. */
  question?: string | null;
  /** What can be answered. */
  options?: string[];
  /** The session it runs in. */
  session?: string | null;
  /** The flow that the step started. */
  flow?: string | null;
  /** Why it does not go on for the moment. */
  held_up?: string | null;
}

/** A flow that a step started. */
export interface FlowChild {
  /** The step's number, from 0. */
  n: number;
  /** The flow. */
  id: string;
  /** What kind of flow it is. */
  name: string;
  /** What it is doing. */
  status: string;
}

/** Which flows. */
export interface FlowListParams {
  /** Those that have ended too. */
  all?: boolean;
  /** Only those that changed later than this: the largest `changed` that is known. */
  after?: number;
  /** Answer once there are some; at the latest after this long, a minute at most. */
  wait_ms?: number;
}

/** Which flow, and how much of its history. */
export interface FlowGetParams {
  /** Its id. */
  flow: string;
  /** Events of its history that are known already. */
  after?: number;
  /** Answer once there are more than that, or it has ended; at the latest after this long, a minute at most. */
  wait_ms?: number;
  /** Which of its histories, from 1; by default the one that goes on. */
  generation?: number | null;
}

/** A signal. */
export interface FlowSignalParams {
  /** To which flow. */
  flow: string;
  /** Its name. */
  name: string;
  /** What it says, as JSON. */
  value?: unknown;
  /** The same id counts once. */
  id?: string;
}

/** An answer to a flow's question. */
export interface FlowAnswerParams {
  /** Of which flow. */
  flow: string;
  /** The step that asks, from 1; none: the only one that does. */
  step?: number | null;
  /** The answer. */
  text: string;
}

/** Which flow, and why. */
export interface FlowCancelParams {
  /** Its id. */
  flow: string;
  /** Why. */
  reason?: string;
}

/** Which flow, and what is decided about it. */
export interface FlowRetryParams {
  /** Its id. */
  flow: string;
  /** About a stuck step: `again` (the default), `failed` or `done`. */
  verdict?: string;
  /** With `done`: what the step gave, as JSON. */
  value?: unknown;
}

/** Something an actor does about the turn. */
export interface TurnParams {
  /** Name or id. */
  session: string;
  /** The attached client through which it will write. */
  client?: number | null;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** What came of it. */
export interface TurnAnswer {
  /** The caller has the turn, under this fence. */
  fence?: Fence | null;
  /** The caller waits behind so many. */
  before?: number | null;
  /** How it stands now. */
  turn: TurnView;
  /** What others changed since the caller wrote last, in a line; `session.handover` tells all of it. */
  handover?: string | null;
}

/** Hands the turn over. */
export interface GiveParams {
  /** Name or id. */
  session: string;
  /** The giver's attached client. */
  client?: number | null;
  /** To whom. */
  to: Actor;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** Takes the turn whatever its holder does. */
export interface SeizeParams {
  /** Name or id. */
  session: string;
  /** The attached client through which it will write. */
  client?: number | null;
  /** The whole tree stands still. */
  freeze?: boolean;
  /** The reason, for the journal and for the holder that loses the turn. */
  reason: string;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** What a seizure did. */
export interface SeizeAnswer {
  /** The fence under which the caller has the turn. */
  fence: Fence;
  /** Microseconds from the request until nothing more of the old holder could reach the terminal. */
  cut_us: number;
  /** What froze, where that was asked for. */
  froze?: FrozeView | null;
  /** How it stands now. */
  turn: TurnView;
}

/** A tree that was stopped. */
export interface FrozeView {
  /** `cgroup` or `signals`. */
  how: string;
  /** So many processes. */
  processes: number;
  /** These refused to be stopped: they run with other rights than the host. */
  refused?: number[];
  /** Microseconds from the request. */
  us: number;
}

/** What was granted, and what classes hold by themselves. */
export interface GrantsAnswer {
  /** Live grants, oldest first. */
  grants: GrantView[];
  /** Actors that no longer have the rights of their class. */
  barred?: ActorId[];
  /** What each class holds here without a grant. */
  defaults: Defaults;
  /** Who asked. */
  you: Actor;
  /** What it may do now. */
  yours: Rights;
}

/** A live grant. */
export interface GrantView {
  /** Its number in the session. */
  id: number;
  /** To whom. */
  to: Actor;
  /** By whom; none: made when the session started. */
  by?: Actor | null;
  /** What. */
  rights: Rights;
  /** Until when. */
  until_ms?: number | null;
  /** When it was made. */
  at_ms: number;
}

/** A set of rights; its text form is `observe,run`. */
export type Rights = string;

/** What actors hold in a session before anything is granted or revoked. */
export interface Defaults {
  /** The first grant, to the actor that starts a session. */
  spawner?: Rights;
  /** Humans the host vouches for. */
  human?: Rights;
  /** Agents. */
  agent?: Rights;
  /** Services. */
  service?: Rights;
  /** Devices. */
  device?: Rights;
  /** Actors that the host does not know, whatever their handle. */
  unknown?: Rights;
}

/** Passes rights on. */
export interface GrantParams {
  /** Name or id. */
  session: string;
  /** To whom. */
  to: Actor;
  /** What. */
  rights: Rights;
  /** Until when; none: as long as the giver holds them. */
  until_ms?: number | null;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** Takes rights back: one grant, or everything an actor holds. */
export interface RevokeParams {
  /** Name or id. */
  session: string;
  /** One grant. */
  grant?: number | null;
  /** Everything this actor holds. */
  actor?: ActorId | null;
  /** The actor's signature. */
  proof?: Proof | null;
}

/** What fell. */
export interface RevokeAnswer {
  /** The grants that are no more, what was passed on too. */
  grants: number[];
}

/** What the token shall be. */
export interface TokenNewParams {
  /** The actor it acts as. An unknown handle becomes an actor that has tokens and no key. */
  actor: Handle;
  /** The token's rights; none: all rights of its actor. */
  can?: Rights | null;
  /** How long it is good, in milliseconds; none: 30 days. One that is made with a token does not outlast that. */
  for_ms?: number | null;
  /** What it is for, in the maker's words. */
  note?: string;
}

/** A new token. */
export interface TokenNewAnswer {
  /** Its text: it is not shown again. */
  text: string;
  /** What it is. */
  token: TokenView;
}

/** A token as it is listed. */
export interface TokenView {
  /** Identity: no secret. */
  id: string;
  /** Who shows it. */
  actor: Handle;
  /** The token's rights; none: all rights of its actor. */
  can?: Rights | null;
  /** Who made it. */
  by: Handle;
  /** When. */
  created_ms: number;
  /** When it ends. */
  until_ms: number;
  /** What it is for. */
  note?: string;
  /** The token with which it was made: it ends with that one. */
  parent?: string | null;
}

/** Which token. */
export interface TokenParams {
  /** Its id. */
  token: string;
}

/** A code that a browser exchanges for a token of the asker. */
export interface LoginAnswer {
  /** It serves once, at `/v1/login`. */
  code: string;
  /** And not after this. */
  until_ms: number;
}

/** Who asks. */
export interface MeAnswer {
  /** Who. */
  actor: Actor;
  /** The host knows this actor. */
  known: boolean;
  /** The token that says so, where one does. */
  token?: TokenView | null;
}

/** An actor the host knows. */
export interface ActorView {
  /** Key and handle. */
  actor: Actor;
  /** Sessions it is attached to now. */
  sessions?: string[];
  /** Its runs that are on and what its open requests wait for, in sessions the caller may observe; oldest first. */
  doing?: Doing2[];
  /** Its connections to the host. */
  connected?: Connected[];
}

/** What an actor is doing in a session. */
export interface Doing2 {
  /** Which session. */
  session: SessionId;
  /** Its name. */
  name: SessionName;
  /** For people: `run: make`, `waits for port 80`. */
  text: string;
  /** Since when. */
  since_ms: number;
}

/** A connection of an actor's. */
export interface Connected {
  /** The program and its version, as it says itself; may be empty. */
  program: string;
  /** Since when. */
  since_ms: number;
}

/** Whose record. */
export interface RecordParams {
  /** The actor. */
  handle: Handle;
  /** Only runs of this command, such as `make`. */
  action?: string | null;
}

/** An actor's record: of its newest runs under contracts. */
export interface RecordView {
  /** Whose. */
  actor: Actor;
  /** Those that promised something about their effects. */
  runs: number;
  /** Those that stayed within what they promised. */
  valid: number;
  /** Those that ended with an exit status that was expected. */
  succeeded: number;
  /** Those with effects beyond the contract. */
  unexpected: number;
  /** Those of which it is not known. */
  unknown: number;
  /** When the oldest of these runs was over. */
  since_ms?: number | null;
  /** By command. */
  actions?: ActionCounts[];
}

/** The counts of one command. */
export interface ActionCounts {
  /** The command, such as `make`. */
  action: string;
  /** Those that promised something about their effects. */
  runs: number;
  /** Those that stayed within what they promised. */
  valid: number;
  /** Those that ended with an exit status that was expected. */
  succeeded: number;
  /** Those with effects beyond the contract. */
  unexpected: number;
  /** Those of which it is not known. */
  unknown: number;
  /** The last run with effects beyond its contract, and the first of them. */
  last_unexpected?: LastUnexpected | null;
}

/** A run with effects beyond its contract. */
export interface LastUnexpected {
  /** Which. */
  run: RunId;
  /** When it was over. */
  at_ms: number;
  /** The first of its unexpected effects. */
  what: string;
}

/** An actor by its handle. */
export interface ActorParams {
  /** Class and name. */
  handle: Handle;
}

/** Which relay. */
export interface RelayParams {
  /** Where it is: `https://NAME` or `https://NAME:PORT`. */
  url: string;
}

/** What a host is called and known by. */
export interface RelaysAnswer {
  /** The host's key: what clients know it by. */
  key: HostKey;
  /** What it calls itself. */
  name: string;
  /** Its relays. */
  relays: RelayView[];
  /** Where it listens itself. */
  direct?: DirectView | null;
}

/** A host's identity: its Ed25519 public key. */
export type HostKey = string;

/** A relay as it is listed. */
export interface RelayView {
  /** Where it is. */
  url: string;
  /** Clients find this host there. */
  up: boolean;
  /** Since when it is so. */
  since_ms: number;
  /** Why it is not up. */
  why?: string | null;
}

/** Where a host listens itself. */
export interface DirectView {
  /** `IP:PORT`. */
  listen: string;
  /** Where its devices are told to find it. */
  addresses: string[];
  /** It listens. */
  up: boolean;
  /** Why it does not. */
  why?: string | null;
}

/** Where a host shall listen itself. */
export interface DirectParams {
  /** `IP:PORT`; none: nowhere. */
  listen?: string | null;
  /** Where others find it, as `NAME:PORT`; none: at the machine's own address. */
  addresses?: string[];
}

/** What an invite shall be. */
export interface InviteNewParams {
  /** The session it is for; none: the whole host, which only a human may share. */
  session?: string | null;
  /** The most its guests may do; none: to observe a session, or all that you may do on the host. */
  can?: Rights | null;
  /** How long it can be accepted, in milliseconds; none: an hour. */
  for_ms?: number | null;
  /** How often it can be accepted; none: once. */
  uses?: number | null;
  /** How long a guest's access lasts once it has accepted, in milliseconds; none: until it is revoked. */
  access_ms?: number | null;
}

/** A new invite. */
export interface InviteNewAnswer {
  /** The link: a secret, and not shown again. */
  link: string;
  /** What it is. */
  invite: InviteView;
}

/** An invite as it is listed. */
export interface InviteView {
  /** Identity: no secret. */
  id: string;
  /** How it stands. */
  state: InviteState;
  /** The session it is for; none: the whole host. */
  session?: SessionId | null;
  /** The most its guests may do. */
  can: Rights;
  /** Who made it. */
  by: Handle;
  /** When. */
  created_ms: number;
  /** Until when it can be accepted. */
  until_ms: number;
  /** How often it can be accepted in all. */
  uses: number;
  /** How often it was. */
  used: number;
}

/** How an invite stands. */
export type InviteState =
  /** It can be accepted. */
  | "open"
  /** It was accepted as often as it can be. */
  | "used"
  /** Its time is over. */
  | "expired"
  /** It was revoked. */
  | "revoked";

/** Which invite. */
export interface InviteParams {
  /** Its id. */
  invite: string;
}

/** A guest of an invite says who it is. */
export interface InviteAcceptParams {
  /** Its key, and the handle it would like. */
  actor: Actor;
  /** As in `identify`, over the challenge and the channel's binding. */
  signature: Signature;
}

/** A guest is enrolled. */
export interface InviteAcceptAnswer {
  /** Its key, and the handle by which the host knows it. */
  actor: Actor;
  /** What the host calls itself. */
  host: string;
  /** Where else the host can be reached. */
  relays: string[];
  /** The name of the session it was invited to; none: the whole host. */
  session?: string | null;
  /** The most it may do. */
  can: Rights;
}

/** A device as it is listed. */
export interface DeviceView {
  /** Identity: no secret. */
  id: string;
  /** Its actor. */
  actor: Actor;
  /** The session it was invited to; none: the whole host. */
  session?: SessionId | null;
  /** The most it may do. */
  can: Rights;
  /** Who invited it. */
  by: Handle;
  /** When it was enrolled. */
  created_ms: number;
  /** When its access ends; none: when it is revoked. */
  until_ms?: number | null;
  /** How many connections it has now. */
  connections: number;
}

/** Which device. */
export interface DeviceParams {
  /** Its id, or its actor's handle. */
  device: string;
}

/** Which page a browser has already. */
export interface PageGetParams {
  /** The signature of the page it has: the files of that one are not sent again. */
  have?: Signature | null;
}

/** The page, signed: what a browser runs that came through a relay. */
export interface PageView {
  /** The version of the program it belongs to. */
  version: string;
  /** Its files, in the order in which their bytes follow the answer. */
  files: PageFile[];
  /** The host's, over the version and the files' names and digests. */
  signature: Signature;
}

/** A file of the page. */
export interface PageFile {
  /** Its name; `.gz` is packed. */
  name: string;
  /** SHA-256 of its bytes. */
  digest: string;
  /** How many bytes it has. */
  bytes: number;
}

/** The host's counters. */
export interface MetricsAnswer {
  /** In the Prometheus text format. */
  text: string;
}

/** The host. A guest, a device that was invited to one session, is told the version alone: numbers are 0 and texts empty. */
export interface HostStatus {
  /** Its process. */
  pid: number;
  /** Its version. */
  version: string;
  /** Since when. */
  started_ms: number;
  /** Where its sessions lie. */
  state: string;
  /** Its socket. */
  socket: string;
  /** Live sessions. */
  running: number;
  /** Ended ones still shown. */
  ended: number;
  /** Attached clients. */
  clients: number;
  /** Where it listens for HTTP, as a URL. */
  http?: string | null;
  /** Why it does not, although it should. */
  http_error?: string | null;
}

/** Event `detached`: the host asks a client to leave its terminal. */
export interface DetachedEvent {
  /** The client's number. */
  client: number;
}

/** Event `writes`: whether an attached client is the one that writes now, and under which fence. */
export interface WritesEvent {
  /** The client's number. */
  client: number;
  /** It writes: it may speak to the keeper directly. */
  writes: boolean;
  /** The newest fence. */
  fence: Fence;
}

/** Event `notice`: news for an operator. */
export interface NoticeEvent {
  /** The client's number. */
  client: number;
  /** What. */
  notice: Notice;
}

/** News for operators. */
export type Notice =
  /** The turn has another holder, or none. */
  | {
    kind: "turn";
    /** Who. */
    holder?: Handle | null;
  }
  /** An actor requests the turn. */
  | {
    kind: "requested";
    /** Who. */
    by: Handle;
  }
  /** The turn was seized. */
  | {
    kind: "seized";
    /** By whom. */
    by: Handle;
    /** From whom. */
    from?: Handle | null;
    /** Why. */
    reason: string;
  }
  /** The tree stands still. */
  | {
    kind: "frozen";
    /** By whom. */
    by: Handle;
  }
  /** The tree goes on. */
  | {
    kind: "thawed";
    /** By whom. */
    by: Handle;
  }
  /** An actor asks the humans a question. */
  | {
    kind: "asked";
    /** The question's id. */
    question: string;
    /** Who. */
    by: Handle;
    /** What; of a long question the beginning. */
    text: string;
    /** What can be answered; none: any text. */
    options: string[];
  }
  /** An act is held until a human approves it. */
  | {
    kind: "held";
    /** The approval's id. */
    approval: string;
    /** Who wants it. */
    by: Handle;
    /** What; of a long command the beginning. */
    command: string;
    /** What the policy asks. */
    why: string;
  }
  /** What others changed before this operator took the turn. */
  | {
    kind: "handover";
    /** Who took it. */
    to: Handle;
    /** What they changed, in a line. */
    text: string;
  }
  /** The operator's rights are now these. */
  | {
    kind: "rights";
    /** What it may do. */
    rights: Rights;
  };

/** Event `ring`: an attached terminal shall catch its person's attention. */
export interface RingEvent {
  /** The client's number. */
  client: number;
  /** What to say. */
  text: string;
}

/**
 * Event `answer`: this terminal shall answer the session's queries from an offset on. What it has already drawn beyond it,
 * it leaves to the host: it reports where it really begins (`session.update`).
 */
export interface AnswerEvent {
  /** The client's number. */
  client: number;
  /** Queries before this offset are the host's. */
  from: number;
}

/** The event's bytes are output; this says where they stand. */
export interface OutputEvent {
  /** The number given to `session.follow`. */
  follow: number;
  /** Output before `from` that is no longer kept. */
  gap?: Gap | null;
  /** Offset of the first byte given. */
  from: number;
  /** Offset behind the last byte given. */
  to: number;
  /** The session's size when they were written. An event without bytes tells another size, a gap or an end. */
  size: Size;
  /** The session has ended and everything was given: no event follows. */
  end: boolean;
  /** Why it ends before that; no event follows. */
  fault?: Fault | null;
}

/** A refusal or failure as it is sent. */
export interface Fault {
  /** For programs. */
  code: Code;
  /** For people: lower case, no full stop. */
  message: string;
  /** What to do about it; may be empty. */
  hint?: string;
  /** What belongs to the code: who has the turn, which right is missing. Apart, since every refusal that is passed on is this large. */
  details?: unknown;
}

/** What went wrong, for programs. Codes are never renamed. */
export type Code =
  /** The message is not JSON-RPC, or its parameters do not fit the operation. */
  | "bad_request"
  /** There is no such operation. */
  | "unknown_operation"
  /** No protocol version both sides speak. */
  | "version"
  /** No session has that name or id. */
  | "not_found"
  /** An id prefix fits several sessions. */
  | "ambiguous"
  /** A live session has that name already. */
  | "name_taken"
  /** The session has ended. */
  | "ended"
  /** The session was lost; it can be recovered. */
  | "lost"
  /** The session's keeper speaks a version this host does not know. */
  | "unknown_keeper"
  /** The host could not start the command, enter its directory, or create the session's files. */
  | "cannot_start"
  /** The offset asked for does not exist yet. */
  | "ahead"
  /** The terminal takes no more input now. */
  | "busy"
  /** A file of the session is damaged. */
  | "damaged"
  /** The connection has not proven who speaks, or the proof does not hold. */
  | "unidentified"
  /** The process runs inside a session or was started by an agent, and the human has not confirmed that it is theirs. */
  | "unconfirmed"
  /** A signature over an act does not fit it. */
  | "bad_proof"
  /** The host knows no such actor. */
  | "no_such_actor"
  /** Another actor has the turn. */
  | "turn_held"
  /** The turn has changed since this was written. */
  | "fence_stale"
  /** The actor may not do that. */
  | "denied"
  /** The session is frozen. */
  | "frozen"
  /** The session is not frozen. */
  | "not_frozen"
  /** Only the holder of the turn can do that. */
  | "not_holder"
  /** The client is not attached, or is another actor's. */
  | "not_attached"
  /** There is no such grant now. */
  | "no_such_grant"
  /** A grant wider than its giver's envelope. */
  | "too_wide"
  /** A grant that would outlast its giver's envelope. */
  | "too_long"
  /** A grant of nothing. */
  | "empty_grant"
  /** A bound of the session is reached. */
  | "too_many"
  /** A secret would be shown: the terminal's echo is on. */
  | "echo_on"
  /** The session's shell is not at an idle prompt, or the host cannot know. */
  | "shell_busy"
  /** The key of a run was used for something else. */
  | "key_conflict"
  /** There is no such run. */
  | "no_such_run"
  /** There is no such token. */
  | "no_such_token"
  /** There is no such invite. */
  | "no_such_invite"
  /** The invite was used, has expired, or was revoked. */
  | "invite_over"
  /** There is no such device. */
  | "no_such_device"
  /** There is no such relay, or none at all. */
  | "no_such_relay"
  /** Too many requests in this time. */
  | "too_fast"
  /** The request is too large. */
  | "too_large"
  /** The host is stopping; its sessions keep running. */
  | "stopping"
  /** There is no such question. */
  | "no_such_question"
  /** The question was answered, withdrawn, or is over. */
  | "question_closed"
  /** A human must approve this first: it is held under the approval in the details. */
  | "approval_needed"
  /** There is no such approval. */
  | "no_such_approval"
  /** The approval was answered, or is over. */
  | "approval_closed"
  /** There is no such file or directory, or nothing to undo. */
  | "no_such_file"
  /** The path leaves the session's working tree, or is Holdfast's own. */
  | "outside_root"
  /** It is not a file that can be read or written so: a directory, a device, a pipe. */
  | "not_a_file"
  /** The file is not as the caller expected it. */
  | "file_changed"
  /** The host cannot record the act, so it does not perform it. */
  | "unrecorded"
  /** Unexpected error in the host. */
  | "internal";

/** Every operation: what it is asked with, and what it answers. */
export interface Operations {
  /** Agree on a protocol version; the first message of every connection. */
  "hello": { params: HelloParams; answer: HelloAnswer };
  /** Prove which actor this connection belongs to. */
  "identify": { params: IdentifyParams; answer: IdentifyAnswer };
  /** Start a session. */
  "session.new": { params: NewParams; answer: SessionView };
  /** List sessions. */
  "session.list": { params: ListParams; answer: SessionView[] };
  /** Show one session. */
  "session.get": { params: SessionParams; answer: SessionView };
  /** Attach a terminal; the answer's bytes paint the session's state at an offset. */
  "session.attach": { params: AttachParams; answer: AttachAnswer };
  /** Repaint an attached terminal, with or without history. */
  "session.paint": { params: PaintParams; answer: Painted };
  /** Report changes of an attached terminal: its size, whether it answers queries. */
  "session.update": { params: UpdateParams; answer: UpdateAnswer };
  /** Leave a session that this connection is attached to. */
  "session.leave": { params: LeaveParams; answer: LeaveAnswer };
  /** Get the screen as text. */
  "session.screen": { params: ScreenParams; answer: ScreenAnswer };
  /** Read output bytes from an offset; can wait for more. */
  "session.read": { params: ReadParams; answer: ReadAnswer };
  /** Have output pushed from an offset on, as far as bytes are granted. */
  "session.follow": { params: FollowParams; answer: Nothing };
  /** Grant more bytes to output that is followed. */
  "session.credit": { params: CreditParams; answer: Nothing };
  /** No longer follow output. */
  "session.unfollow": { params: UnfollowParams; answer: Nothing };
  /** Type the message's bytes into the session; exactly once per stream and seq. */
  "session.send": { params: SendParams; answer: SendAnswer };
  /** Get what the session is doing: working, waiting for input, or at its prompt. */
  "session.state": { params: SessionParams; answer: StateView };
  /** Get events of a session, or of all sessions you may observe; can wait for them. */
  "session.watch": { params: WatchParams; answer: WatchAnswer };
  /** Get the names in the session's shell and who changed them: names and hashes, never values. */
  "session.env": { params: EnvParams; answer: EnvAnswer };
  /** Get what others changed since you wrote in the session last: names, files, text at the prompt, jobs. */
  "session.handover": { params: SessionParams; answer: HandoverAnswer };
  /** Wait until the session's command ends, or for another event. */
  "session.wait": { params: WaitParams; answer: WaitAnswer };
  /** Resize the session's terminal. */
  "session.resize": { params: ResizeParams; answer: Nothing };
  /** Send a signal to the session's processes. */
  "session.signal": { params: SignalParams; answer: Nothing };
  /** Rename the session. */
  "session.rename": { params: RenameParams; answer: SessionView };
  /** Keep a session from being reaped, for a time or until further notice; or no longer. */
  "session.keep": { params: KeepParams; answer: SessionView };
  /** Detach clients from a session; the session keeps running. */
  "session.detach": { params: DetachParams; answer: DetachAnswer };
  /** End a session and its whole process tree: SIGHUP, then SIGKILL after a grace period. */
  "session.end": { params: EndParams; answer: SessionView };
  /** Give a lost session another life: the same identity, journal, history, directory and environment, new processes. */
  "session.recover": { params: RecoverParams; answer: RecoverAnswer };
  /** Give a portable session that does not run its processes back, from a checkpoint: the same identity, the next life. */
  "session.restore": { params: RestoreParams; answer: RestoreAnswer };
  /** Start copies of a portable session, each with its own identity, files and network; the session itself goes on. */
  "session.fork": { params: ForkParams; answer: ForkAnswer };
  /** Move a portable session to another host, step by step, at the host that has it: needs the right `end` too. */
  "session.move": { params: MoveParams; answer: MoveAnswer };
  /** Take a session in that is moved here, step by step; only humans may, by a path that narrows nothing. */
  "session.arrive": { params: ArriveParams; answer: ArriveAnswer };
  /** List the files that differ between a branch and the files it was forked over, or between two branches; as a patch, with the right `fork`. */
  "fork.diff": { params: ForkDiffParams; answer: ForkDiffAnswer };
  /** Apply a branch's changed files to the real ones, or copy them elsewhere; only humans may. Nothing is applied while files conflict. */
  "fork.keep": { params: ForkKeepParams; answer: ForkKeepAnswer };
  /** End a branch and remove its files and checkpoints. */
  "fork.discard": { params: ForkDiscardParams; answer: SessionView };
  /** Get what a checkpoint of the session would refuse and cut now, by process and descriptor. */
  "checkpoint.check": { params: SessionParams; answer: CheckAnswer };
  /** Keep a copy of a portable session's live processes; the session stops unless it is to keep running. */
  "checkpoint.make": { params: CheckpointParams; answer: CheckpointView };
  /** List checkpoints of a session, or of all sessions you may observe, oldest first. */
  "checkpoint.list": { params: CheckpointListParams; answer: CheckpointView[] };
  /** Remove a checkpoint. */
  "checkpoint.remove": { params: CheckpointRemoveParams; answer: Nothing };
  /** Read the session's journal, line by line as written. */
  "session.journal": { params: JournalParams; answer: JournalAnswer };
  /** Get what a session, or each session, takes up: memory, processes, disk; and when somebody last used it. */
  "session.cost": { params: CostParams; answer: CostView[] };
  /** Get the session's processes, their files and sockets, and the act that started each. */
  "graph.get": { params: GraphParams; answer: GraphAnswer };
  /** List listening ports of a session, or of all sessions. */
  "graph.ports": { params: PortsParams; answer: PortView[] };
  /** Get events of the session's processes; can wait for them. */
  "graph.watch": { params: WatchGraphParams; answer: WatchGraphAnswer };
  /** List a directory of the session's working tree, page by page. */
  "files.list": { params: FilesListParams; answer: FilesListAnswer };
  /** Read a file of the session's working tree, from an offset on. */
  "files.read": { params: FilesReadParams; answer: FilesReadAnswer };
  /** Write a file of the session's working tree, whole and at once. */
  "files.write": { params: FilesWriteParams; answer: FileChange };
  /** Replace a text in a file of the session's working tree; it must be there once. */
  "files.edit": { params: FilesEditParams; answer: FilesEditAnswer };
  /** Upload a file to the session's working tree in pieces, which can be resumed. */
  "files.upload": { params: FilesUploadParams; answer: FilesUploadAnswer };
  /** Undo your last write to a file, where the bytes before it are kept. */
  "files.undo": { params: FilesUndoParams; answer: FileChange };
  /** List the last writes to files through the host, newest first. */
  "files.changes": { params: FilesChangesParams; answer: FileChange[] };
  /** Get what a write changed, as a diff, where the bytes are kept. */
  "files.diff": { params: FilesDiffParams; answer: FilesDiffAnswer };
  /** Run a command in a session's shell or in a new session; once per key. */
  "run.start": { params: RunStartParams; answer: RunAnswer };
  /** Get a run and its output; can wait for its end. */
  "run.get": { params: RunParams; answer: RunAnswer };
  /** A run's output bytes, from an offset on; waits for some if asked to. */
  "run.output": { params: RunOutputParams; answer: RunOutputAnswer };
  /** List the runs of a session, or of all sessions you may observe. */
  "run.list": { params: RunListParams; answer: RunView[] };
  /** Interrupt a run. */
  "run.cancel": { params: RunCancelParams; answer: RunAnswer };
  /** Get everything that is known of a run: its contract, decision, attempts, effects and outcome. */
  "run.trace": { params: TraceParams; answer: TraceView };
  /** Ask the humans of a session a question; can wait for the answer. */
  "question.ask": { params: QuestionAskParams; answer: QuestionView };
  /** Get a question and its answer; can wait for it. */
  "question.get": { params: QuestionParams; answer: QuestionView };
  /** List the questions of a session, or of all sessions you may observe. */
  "question.list": { params: QuestionListParams; answer: QuestionView[] };
  /** Answer a question; only humans may. */
  "question.answer": { params: QuestionAnswerParams; answer: QuestionView };
  /** Withdraw a question; only its asker or a human may. */
  "question.withdraw": { params: QuestionWithdrawParams; answer: QuestionView };
  /** Approve or deny a held act; only humans may, and never the actor that asked for it. */
  "approval.answer": { params: ApprovalAnswerParams; answer: ApprovalView };
  /** Get a held act; can wait until its state changes. */
  "approval.get": { params: ApprovalParams; answer: ApprovalView };
  /** List acts that wait for a human: of a session, or of all sessions you may observe. */
  "approval.list": { params: ApprovalListParams; answer: ApprovalView[] };
  /** Get the policy in force: its rules, and what is wrong in files that are not. */
  "policy.get": { params: Nothing; answer: PolicyView };
  /** Ask what the policy says of a command, without running it. */
  "policy.may": { params: MayParams; answer: MayAnswer };
  /** Start a durable flow: a definition in YAML, or a flow whose code a worker has. */
  "flow.start": { params: FlowStartParams; answer: FlowView };
  /** List flows, the newest first: your own, or all if you are a human. */
  "flow.list": { params: FlowListParams; answer: FlowView[] };
  /** Get a flow, what it waits for and its history; can wait for more of it. */
  "flow.get": { params: FlowGetParams; answer: FlowView };
  /** Send a signal to a flow; once per id. */
  "flow.signal": { params: FlowSignalParams; answer: FlowView };
  /** Answer a flow's question; only humans may. */
  "flow.answer": { params: FlowAnswerParams; answer: FlowView };
  /** Cancel a flow: stop what runs, then undo what was done. */
  "flow.cancel": { params: FlowCancelParams; answer: FlowView };
  /** Let a blocked flow go on, or decide about a stuck step, which only humans may. */
  "flow.retry": { params: FlowRetryParams; answer: FlowView };
  /** Get who has the turn, and who waits for it. */
  "turn.get": { params: SessionParams; answer: TurnView };
  /** Take the turn if it is free. */
  "turn.take": { params: TurnParams; answer: TurnAnswer };
  /** Request the turn; you get it when its holder releases it or is idle. */
  "turn.request": { params: TurnParams; answer: TurnAnswer };
  /** Withdraw a request for the turn. */
  "turn.withdraw": { params: TurnParams; answer: TurnAnswer };
  /** Give the turn to another actor. */
  "turn.give": { params: GiveParams; answer: TurnAnswer };
  /** Release the turn. */
  "turn.release": { params: TurnParams; answer: TurnAnswer };
  /** Seize the turn, whatever its holder does; can freeze the process tree. */
  "turn.seize": { params: SeizeParams; answer: SeizeAnswer };
  /** Resume a frozen process tree. */
  "turn.thaw": { params: TurnParams; answer: TurnAnswer };
  /** List the grants in a session. */
  "grant.list": { params: SessionParams; answer: GrantsAnswer };
  /** Grant rights in a session to an actor. */
  "grant.add": { params: GrantParams; answer: GrantView };
  /** Revoke rights, and all grants made from them. */
  "grant.revoke": { params: RevokeParams; answer: RevokeAnswer };
  /** Create a token for HTTP: it acts as one actor, with at most these rights. */
  "token.new": { params: TokenNewParams; answer: TokenNewAnswer };
  /** List valid tokens: your own, or all if you are a human. */
  "token.list": { params: Nothing; answer: TokenView[] };
  /** Revoke a token at once. */
  "token.revoke": { params: TokenParams; answer: TokenView };
  /** Create a code that logs a browser in as you, once. */
  "login.new": { params: Nothing; answer: LoginAnswer };
  /** Get which actor you are, and by which token. */
  "actor.me": { params: Nothing; answer: MeAnswer };
  /** List the actors that the host knows. */
  "actor.list": { params: Nothing; answer: ActorView[] };
  /** Get an actor's track record: its runs under contracts, and how many kept them. */
  "actor.record": { params: RecordParams; answer: RecordView };
  /** Remove an actor and revoke its key. */
  "actor.remove": { params: ActorParams; answer: Nothing };
  /** Wait at a relay, so that clients can reach this host through it. */
  "relay.add": { params: RelayParams; answer: RelaysAnswer };
  /** Listen for devices that reach this host without a relay, or stop. */
  "relay.direct": { params: DirectParams; answer: RelaysAnswer };
  /** List the relays this host waits at, where it listens itself, and get the host's key. */
  "relay.list": { params: Nothing; answer: RelaysAnswer };
  /** Wait at a relay no longer. */
  "relay.remove": { params: RelayParams; answer: RelaysAnswer };
  /** Create a link by which others get access to a session, or to the host, through a relay. */
  "invite.new": { params: InviteNewParams; answer: InviteNewAnswer };
  /** List invites: your own, or all if you are a human. */
  "invite.list": { params: Nothing; answer: InviteView[] };
  /** Revoke an invite; devices that accepted it stay. */
  "invite.revoke": { params: InviteParams; answer: InviteView };
  /** Accept the invite by which this connection came: enrol an actor's key. */
  "invite.accept": { params: InviteAcceptParams; answer: InviteAcceptAnswer };
  /** List the devices that may reach this host through a relay. */
  "device.list": { params: Nothing; answer: DeviceView[] };
  /** Revoke a device at once: its connections and its grants end. */
  "device.revoke": { params: DeviceParams; answer: DeviceView };
  /** Get the page for a browser that comes through a relay, signed by the host; the answer's bytes are its files. */
  "page.get": { params: PageGetParams; answer: PageView };
  /** Get the host's metrics in the Prometheus text format. */
  "host.metrics": { params: Nothing; answer: MetricsAnswer };
  /** Get the host's version and status. */
  "host.status": { params: Nothing; answer: HostStatus };
  /** Stop the host; sessions keep running. */
  "host.stop": { params: Nothing; answer: Nothing };
}

/** What a host sends without being asked, to a client that is attached. */
export interface HostEvents {
  /** Leave the terminal; the session keeps running. */
  "detached": DetachedEvent;
  /** Whether this client has the turn to write; only then may it write to the keeper directly. */
  "writes": WritesEvent;
  /** News for the operator: the turn, a request, a seizure, its rights. */
  "notice": NoticeEvent;
  /** Catch the person's attention: a bell, and the text as a notification. */
  "ring": RingEvent;
  /** Answer the session's terminal queries after an offset, and report with `session.update` where that really began. */
  "answer": AnswerEvent;
  /** Output that is followed; the bytes stand behind the JSON. */
  "output": OutputEvent;
}

/** Operations that are asked with bytes beside their parameters. */
export type SendsBytes = "session.send" | "session.arrive" | "files.write" | "files.upload";

/** Operations that answer with bytes beside their answer. */
export type GivesBytes = (typeof GIVES_BYTES)[number];

/** The same, to look at. */
export const GIVES_BYTES = [
  "session.attach",
  "session.paint",
  "session.read",
  "session.move",
  "session.journal",
  "files.read",
  "run.output",
  "page.get",
] as const;

/** The names of all operations. */
export const OPERATION_NAMES: ReadonlyArray<keyof Operations> = [
  "hello",
  "identify",
  "session.new",
  "session.list",
  "session.get",
  "session.attach",
  "session.paint",
  "session.update",
  "session.leave",
  "session.screen",
  "session.read",
  "session.follow",
  "session.credit",
  "session.unfollow",
  "session.send",
  "session.state",
  "session.watch",
  "session.env",
  "session.handover",
  "session.wait",
  "session.resize",
  "session.signal",
  "session.rename",
  "session.keep",
  "session.detach",
  "session.end",
  "session.recover",
  "session.restore",
  "session.fork",
  "session.move",
  "session.arrive",
  "fork.diff",
  "fork.keep",
  "fork.discard",
  "checkpoint.check",
  "checkpoint.make",
  "checkpoint.list",
  "checkpoint.remove",
  "session.journal",
  "session.cost",
  "graph.get",
  "graph.ports",
  "graph.watch",
  "files.list",
  "files.read",
  "files.write",
  "files.edit",
  "files.upload",
  "files.undo",
  "files.changes",
  "files.diff",
  "run.start",
  "run.get",
  "run.output",
  "run.list",
  "run.cancel",
  "run.trace",
  "question.ask",
  "question.get",
  "question.list",
  "question.answer",
  "question.withdraw",
  "approval.answer",
  "approval.get",
  "approval.list",
  "policy.get",
  "policy.may",
  "flow.start",
  "flow.list",
  "flow.get",
  "flow.signal",
  "flow.answer",
  "flow.cancel",
  "flow.retry",
  "turn.get",
  "turn.take",
  "turn.request",
  "turn.withdraw",
  "turn.give",
  "turn.release",
  "turn.seize",
  "turn.thaw",
  "grant.list",
  "grant.add",
  "grant.revoke",
  "token.new",
  "token.list",
  "token.revoke",
  "login.new",
  "actor.me",
  "actor.list",
  "actor.record",
  "actor.remove",
  "relay.add",
  "relay.direct",
  "relay.list",
  "relay.remove",
  "invite.new",
  "invite.list",
  "invite.revoke",
  "invite.accept",
  "device.list",
  "device.revoke",
  "page.get",
  "host.metrics",
  "host.status",
  "host.stop",
];
