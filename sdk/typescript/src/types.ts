// Made by scripts/types.mjs from spec/schema.json. Do not edit: `npm run types` writes it anew.

/**
 * Who acts. The key is the identity; the handle is what people read, and what the actor says of itself: whether it may be
 * believed is the host's to say.
 */
export interface Actor {
  /** Its handle. */
  handle: Handle;
  /** Its public key. */
  id: ActorId;
}

/** An actor's identity: its Ed25519 public key. */
export type ActorId = string;

/** An actor by its handle. */
export interface ActorParams {
  /** Class and name. */
  handle: Handle;
}

/** An actor the host knows. */
export interface ActorView {
  /** Key and handle. */
  actor: Actor;
  /** Its connections to the host. */
  connected?: Connected[];
  /** Its runs that are on and what its open requests wait for, in sessions the caller may observe; oldest first. */
  doing?: Doing2[];
  /** Sessions it is attached to now. */
  sessions?: string[];
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

/** From where on a terminal answers queries, or no longer does. What lies between the two offsets it never saw. */
export interface Answers {
  /** It answers from this offset on. */
  from: number;
  /** Everything before this offset it has seen. */
  left: number;
  /** It does, or goes on to after a paint. */
  on: boolean;
}

/** Everything an attached terminal needs to go on by itself. */
export interface AttachAnswer {
  /** This terminal answers the session's queries; the others filter them out. */
  answers: boolean;
  /** The client's number there. */
  client: number;
  /** The newest fence. */
  fence: Fence;
  /** There are lines above the screen: ask for them by `session.paint`. */
  has_history: boolean;
  /** The keeper's socket. */
  keeper: string;
  /** What the bytes are. */
  painted: Painted;
  /** The ring file. */
  ring: string;
  /** The session. */
  session: SessionView;
  /** The client's token, hexadecimal: it opens the keeper's door once, and a later host knows the client by it. */
  token: string;
  /** This client has the turn and writes under that fence, directly to the keeper. */
  writes: boolean;
}

/** A terminal that wants to be attached. */
export interface AttachParams {
  /** It draws the session from a keyframe, whatever its size, and leaves terminal queries to the host. */
  draws?: boolean;
  /**
   * Variables of the client that a session follows (`TERM`, `SSH_AUTH_SOCK`, …), `K=V` each. The host takes over those it
   * names itself, and only from a human who may type, at a terminal of this machine that writes.
   */
  env?: string[];
  /** The client's process. */
  pid?: number;
  /** It will not write. */
  read_only?: boolean;
  /**
   * It types and reads through the host alone (`session.send`, `session.read`), shows the session in the session's own size,
   * and leaves terminal queries to the host. Clients over a network do.
   */
  remote?: boolean;
  /** What this client still has, after its host went away. */
  resume?: Resume | null;
  /** Name or id. */
  session: string;
  /** The terminal's size. */
  size: Size;
  /** With `remote`: it is a person's terminal, and its window gives the session its size as a local one's does. */
  sizes?: boolean;
  /** The terminal's name. */
  tty?: string;
}

/** A process or socket, and the act that started it. */
export interface Binding {
  /** The act's number in the session's journal. */
  act?: number | null;
  /** Who did it. */
  actor?: Actor | null;
  /** When it was recorded. */
  at_ms?: number | null;
  /** How that is known. */
  by: Known;
  /** What. */
  of: Bound;
}

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

/** What is bound. */
export type Bound =
  /** A process. */
  | ProcessId
  /** A socket: its oldest holder's act. */
  | SocketId;

/** What kind of thing a name stands for. */
export type Category =
  /** An exported variable. */
  | "variable"
  /** An alias, or an abbreviation of fish. What fish calls an alias is a function. */
  | "alias"
  /** A function. */
  | "function"
  /** An option that is on; those of zsh are all there, with `on` or `off`. */
  | "option"
  /** The working directory; there is one. */
  | "cwd";

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
  /** Nothing says why. Its keeper is gone. */
  | {
    is: "unknown";
  };

/** What a host asks a connection to sign. */
export type Challenge = string;

/** The act that changed something. */
export interface Changed {
  /** The act's number in the session's journal. */
  act?: number | null;
  /** Who. */
  actor?: Actor | null;
  /** When the shell reported it. */
  at_ms: number;
  /** That run's key. */
  key?: string | null;
  /** How that is known. */
  known: Known2;
  /** The run it was done by. */
  run?: RunId | null;
}

/** What an attached client alone knows: the host made it up for this client, and the keeper repeats it to the next host. */
export type ClientToken = string;

/** An attached client. */
export interface ClientView {
  /** Who; none until a client that outlived the last host has reported back. */
  actor?: Actor | null;
  /** Its number in this session. */
  id: number;
  /** Its process. */
  pid: number;
  /** It cannot write. */
  read_only: boolean;
  /** Since when. */
  since_ms: number;
  /** Its terminal's size. */
  size: Size;
  /** Its terminal's name. */
  tty: string;
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
  /** The host cannot record the act, so it does not perform it. */
  | "unrecorded"
  /** Unexpected error in the host. */
  | "internal";

/** A connection of an actor's. */
export interface Connected {
  /** The program and its version, as it says itself; may be empty. */
  program: string;
  /** Since when. */
  since_ms: number;
}

/** How much more may be sent. */
export interface CreditParams {
  /** Bytes on top of what was granted before. */
  bytes: number;
  /** The number given to `session.follow`. */
  follow: number;
}

/** What actors hold in a session before anything is granted or revoked. */
export interface Defaults {
  /** Agents. */
  agent?: Rights;
  /** Devices. */
  device?: Rights;
  /** Humans the host vouches for. */
  human?: Rights;
  /** Services. */
  service?: Rights;
  /** The first grant, to the actor that starts a session. */
  spawner?: Rights;
  /** Actors that the host does not know, whatever their handle. */
  unknown?: Rights;
}

/** How much a snapshot reads; each includes the ones before. */
export type Depth =
  /** The processes: what `ps` shows. */
  | "processes"
  /** Their sockets too: what `ss -p` shows. Other descriptors are not listed. */
  | "sockets"
  /** All descriptors, with positions and locks: what `lsof` shows. */
  | "full";

/** Who was detached. */
export interface DetachAnswer {
  /** Their numbers. */
  clients: number[];
}

/** Whom to detach. */
export interface DetachParams {
  /** Clients by their numbers. */
  clients: number[];
  /** The actor's signature. */
  proof?: Proof | null;
  /** Name or id. */
  session: string;
}

/** Event `detached`: the host asks a client to leave its terminal. */
export interface DetachedEvent {
  /** The client's number. */
  client: number;
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

/** Which device. */
export interface DeviceParams {
  /** Its id, or its actor's handle. */
  device: string;
}

/** A device as it is listed. */
export interface DeviceView {
  /** Its actor. */
  actor: Actor;
  /** Who invited it. */
  by: Handle;
  /** The most it may do. */
  can: Rights;
  /** How many connections it has now. */
  connections: number;
  /** When it was enrolled. */
  created_ms: number;
  /** Identity: no secret. */
  id: string;
  /** The session it was invited to; none: the whole host. */
  session?: SessionId | null;
  /** When its access ends. */
  until_ms: number;
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
    /** For what. */
    kind: Kind;
    /** Who. */
    pid: number;
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

/** What an actor is doing in a session. */
export interface Doing2 {
  /** Its name. */
  name: SessionName;
  /** Which session. */
  session: SessionId;
  /** Since when. */
  since_ms: number;
  /** For people: `run: make`, `waits for port 80`. */
  text: string;
}

/** An end of a pipe. */
export type End =
  /** What is written comes out here. */
  | "read"
  /** What is written goes in here. */
  | "write"
  /** A named pipe that was opened for both. */
  | "both";

/** How to end. */
export interface EndParams {
  /** Time from SIGHUP to SIGKILL, 5 seconds by default; a frozen session is killed at once. */
  grace_ms?: number;
  /** The actor's signature. */
  proof?: Proof | null;
  /** Name or id. */
  session: string;
}

/** What a session's shell is made of, against what it started with. */
export interface EnvAnswer {
  /** By category and name. */
  entries: EnvEntry[];
  /** Its command is a shell that reports its names. */
  integration: boolean;
  /** Its name. */
  name: SessionName;
  /** It has more names than the host keeps: some changes may be missing. */
  partial?: boolean;
  /** Whose. */
  session: SessionId;
  /** When it first reported: later changes are compared with that. None: it has not. */
  since_ms?: number | null;
}

/** One name. */
export interface EnvEntry {
  /** Its kind. */
  category: Category;
  /** Who made it what it is now. None: it is as it was when the shell started. */
  changed?: Changed | null;
  /** It was there when the shell started, and is no more. */
  gone: boolean;
  /**
   * Of its value, under a key that only this session's files have: tells two values apart and nothing else. None: it is
   * gone.
   */
  hash?: string | null;
  /** Its name; `cwd` for the working directory. */
  name: string;
}

/** Which session's shell, and how much of it. */
export interface EnvParams {
  /** Also what is as it was when the shell started. */
  all?: boolean;
  /** Name or id. */
  session: string;
}

/** Something that happened in a session. */
export type SessionEvent = {
  /** When. */
  at_ms: number;
  /** Its name then. */
  name: SessionName;
  /** Its number. */
  seq: number;
  /** Where. */
  session: SessionId;
} & (
  /** A session is new. */
  | {
    /** Who started it. */
    by: Handle;
    event: "started";
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
      /** For what. */
      kind: Kind;
      /** What the screen shows before the cursor. */
      prompt: string;
      state: "waiting";
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
      /** By whom. */
      by: Handle;
      state: "frozen";
    }
    /** Its command has ended. */
    | {
      /** How. */
      exit: Exit;
      state: "ended";
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
    /** Who. */
    by: Handle;
    event: "turn_requested";
  }
  /** An actor asks the humans a question. */
  | {
    /** Who. */
    by: Handle;
    event: "asked";
    /** What can be answered; none: any text. */
    options?: string[];
    /** The question. */
    question: QuestionId;
    /** What; of a long question the beginning. */
    text: string;
  }
  /** A human has answered. */
  | {
    /** Who. */
    by: Handle;
    event: "answered";
    /** Which option that is, from 0. */
    option?: number | null;
    /** The question. */
    question: QuestionId;
    /** What; of a long answer the beginning. */
    text: string;
  }
  /** A question is over without an answer. */
  | {
    /** Who withdrew it. */
    by?: Handle | null;
    event: "question_closed";
    /** The question. */
    question: QuestionId;
    /** `withdrawn` or `expired`. */
    state: QuestionState;
  }
  /** It was lost, or its command failed, and it has another life. */
  | {
    event: "recovered";
    /** Which. */
    incarnation: number;
  }
  /** It has another name, which is the one above. */
  | {
    /** Who gave it. */
    by: Handle;
    event: "renamed";
    /** The name before. */
    from: SessionName;
  }
  /** A run begins. */
  | {
    /** The act's number in the session's journal. */
    act?: number | null;
    /** Whose. */
    by: Handle;
    /** What; of a long command the beginning. */
    command: string;
    event: "run_started";
    /** The run. */
    run: RunId;
  }
  /** A run is over, in whatever way. */
  | {
    /** The act's number in the session's journal. */
    act?: number | null;
    /** Whose. */
    by: Handle;
    /** What; of a long command the beginning. */
    command: string;
    event: "run_ended";
    /** Its status, where it is known. */
    exit_code?: number | null;
    /** The run. */
    run: RunId;
    /** `ended`, `cancelled` or `lost`. */
    state: RunState;
  }
  /** Something takes connections, or datagrams, at a port. */
  | {
    /** The act's number in the session's journal. */
    act?: number | null;
    /** Address and port. */
    address: string;
    /** That one's words. */
    argv: string[];
    /** Whose act started it, where that is known. */
    by?: Handle | null;
    event: "listen";
    /** `stream` is TCP, `dgram` is UDP. */
    kind: SocketKind;
    /** How that is known. */
    known: Known;
    /** The oldest process that holds it. */
    pid?: number | null;
    /** The port alone. */
    port: number;
    /** The socket. */
    socket: SocketId;
  }
  /** Nothing does there any more. */
  | {
    /** The act's number in the session's journal. */
    act?: number | null;
    /** Address and port. */
    address: string;
    /** That one's words. */
    argv: string[];
    /** Whose act started it, where that is known. */
    by?: Handle | null;
    event: "not_listening";
    /** `stream` is TCP, `dgram` is UDP. */
    kind: SocketKind;
    /** How that is known. */
    known: Known;
    /** The oldest process that holds it. */
    pid?: number | null;
    /** The port alone. */
    port: number;
    /** The socket. */
    socket: SocketId;
  }
  /** A client is attached. */
  | {
    /** Whose. */
    by: Handle;
    /** Its number. */
    client: number;
    event: "attached";
  }
  /** A client is attached no more. */
  | {
    /** Whose. */
    by?: Handle | null;
    /** Its number. */
    client: number;
    event: "detached";
  }
);

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

/** A socket's address family. */
export type Family =
  /** IPv4. */
  | "inet"
  /** IPv6, which may take IPv4 too. */
  | "inet6"
  /** On this machine. */
  | "unix";

/** A refusal or failure as it is sent. */
export interface Fault {
  /** For programs. */
  code: Code;
  /** What belongs to the code: who has the turn, which right is missing. */
  details?: unknown;
  /** What to do about it; may be empty. */
  hint?: string;
  /** For people: lower case, no full stop. */
  message: string;
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

/** One open descriptor of a process. */
export interface FdNode {
  /** Writes go to the end; read for regular files only. */
  append?: boolean | null;
  /** The file has no name any more; its space goes when the last descriptor does. */
  deleted?: boolean;
  /** Its number. */
  fd: number;
  /** What it is of. */
  kind: FdKind;
  /** Locks held through it, the first [`LOCKS_MAX`]. */
  locks?: Lock[];
  /** Where in a regular file it stands. */
  offset?: number | null;
  /** Its path, or the kernel's name for what has none; nothing for sockets and unnamed pipes. */
  path?: string | null;
  /** Open for reading. */
  read?: boolean | null;
  /** The socket or pipe. */
  target?: Target | null;
  /** Open for writing. */
  write?: boolean | null;
}

/** A number that grows with each change of turn or incarnation; a write with an old fence is dropped. */
export type Fence = number;

/** Which output to follow. */
export interface FollowParams {
  /** Bytes that may be sent; more are granted by `session.credit`. */
  credit?: number;
  /** The client's number for it, which the events carry; free on this connection. */
  follow: number;
  /** First offset wanted; none: the oldest there is. */
  from?: number | null;
  /** Name or id. */
  session: string;
}

/** How the bytes of an answer describe the screen. */
export type Form =
  /** Escape sequences for a cleared terminal of the session's size. */
  | "repaint"
  /** A keyframe: for a client that draws the session's screen on a terminal of another size. */
  | "keyframe";

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

/** A frozen session. */
export interface FrozenView {
  /** By whom. */
  by: Actor;
  /** Since when. */
  since_ms: number;
}

/** Output that is gone. */
export interface Gap {
  /** First offset lost. */
  from: number;
  /** First offset there is again. */
  to: number;
}

/** Hands the turn over. */
export interface GiveParams {
  /** The giver's attached client. */
  client?: number | null;
  /** The actor's signature. */
  proof?: Proof | null;
  /** Name or id. */
  session: string;
  /** To whom. */
  to: Actor;
}

/** Passes rights on. */
export interface GrantParams {
  /** The actor's signature. */
  proof?: Proof | null;
  /** What. */
  rights: Rights;
  /** Name or id. */
  session: string;
  /** To whom. */
  to: Actor;
  /** Until when; none: as long as the giver holds them. */
  until_ms?: number | null;
}

/** A live grant. */
export interface GrantView {
  /** When it was made. */
  at_ms: number;
  /** By whom; none: made when the session started. */
  by?: Actor | null;
  /** Its number in the session. */
  id: number;
  /** What. */
  rights: Rights;
  /** To whom. */
  to: Actor;
  /** Until when. */
  until_ms?: number | null;
}

/** What was granted, and what classes hold by themselves. */
export interface GrantsAnswer {
  /** Actors that no longer have the rights of their class. */
  barred?: ActorId[];
  /** What each class holds here without a grant. */
  defaults: Defaults;
  /** Live grants, oldest first. */
  grants: GrantView[];
  /** Who asked. */
  you: Actor;
  /** What it may do now. */
  yours: Rights;
}

/** A session's graph, its terminal, and whose act started what. */
export interface GraphAnswer {
  /** When it was taken, in milliseconds since the Unix epoch. */
  at_ms: number;
  /** The act that started each process and each socket, in the graph's order. */
  bindings: Binding[];
  /** How much was read. */
  depth: Depth;
  /** What the session is doing, and which process says so. */
  doing?: Doing | null;
  /** Its name. */
  name: SessionName;
  /** Something is missing that is there: a limit cut it, or we may not read it. Its node says which. */
  partial: boolean;
  /** By inode. */
  pipes: PipeNode[];
  /** Parents before their children. */
  processes: ProcessNode[];
  /** Whose. */
  session: SessionId;
  /** By inode. */
  sockets: SocketNode[];
  /** Its terminal. */
  terminal: TerminalView;
}

/** One thing that happened. */
export type GraphEvent = {
  /** When the host learnt of it. */
  at_ms: number;
  /** Its number; grows, over hosts too. */
  seq: number;
} & (
  /** A process was made. */
  | {
    event: "fork";
    /** Who made it. */
    parent: number;
    /** The new one. */
    pid: number;
  }
  /** A process became another program. */
  | {
    /** Its words now; empty where it was gone before they could be read. */
    argv: string[];
    event: "exec";
    /** Who. */
    pid: number;
  }
  /** A process ended. */
  | {
    /** Its status; none if the shell did not report it. */
    code?: number | null;
    event: "exit";
    /** Who. */
    pid: number;
    /** The signal that ended it. */
    signal?: number | null;
  }
  /** A port is open. */
  | {
    /** Address and port. */
    address: string;
    event: "listen";
    /** Who holds the socket. */
    holders: ProcessId[];
    /** `stream` is TCP, `dgram` is UDP. */
    kind: SocketKind;
    /** The socket. */
    socket: SocketId;
  }
  /** A connection is there. */
  | {
    event: "connect";
    /** Who holds the socket. */
    holders: ProcessId[];
    /** `stream` is TCP, `dgram` is UDP. */
    kind: SocketKind;
    /** Our address. */
    local: string;
    /** The other side's. */
    remote: string;
  }
  /** A port is not open any more. */
  | {
    /** Address and port. */
    address: string;
    event: "not_listening";
    /** Who holds the socket. */
    holders: ProcessId[];
    /** `stream` is TCP, `dgram` is UDP. */
    kind: SocketKind;
    /** The socket. */
    socket: SocketId;
  }
  /** A connection is over. */
  | {
    event: "closed";
    /** Who holds the socket. */
    holders: ProcessId[];
    /** `stream` is TCP, `dgram` is UDP. */
    kind: SocketKind;
    /** Our address. */
    local: string;
    /** The other side's. */
    remote: string;
  }
);

/** Which session's graph, and how much of it. */
export interface GraphParams {
  /** How much is read; all of it where nothing is said. */
  depth?: Depth;
  /** Name or id. */
  session: string;
}

/** A class and a name: `human:ann`, `agent:claude`. */
export type Handle = string;

/** The BLAKE3 hash of a journal record, or of a question as it was read. */
export type Hash = string;

/** The version both will speak. */
export interface HelloAnswer {
  /** What an actor signs to prove on this connection that it is itself (`identify`). */
  challenge: Challenge;
  /** Where the host found the process that connected, if that is no place of a person: no human is taken at its word there. */
  inside?: Inside | null;
  /** The host program's version. */
  program: string;
  /** The newest both know. */
  version: number;
}

/** Versions the client speaks, and what it is. */
export interface HelloParams {
  /** Program and version, for the host's log. */
  program?: string;
  /** Protocol versions, any order. */
  versions: number[];
}

/** A place in a session's history. It means something to the host that named it, and nothing to the next one. */
export interface HistoryPlace {
  /** Whose counting it is. */
  count: number;
  /** Lines before this place. */
  lines: number;
}

/** Who has the turn. */
export interface HolderView {
  /** When it last wrote. */
  active_ms: number;
  /** Who. */
  actor: Actor;
  /** Through which attached client; none: by single requests. */
  client?: number | null;
  /** When it will be free by itself. */
  ends_ms?: number | null;
  /** `wrote`, `asked`, `given` or `seized`. */
  how: string;
  /** Since when. */
  since_ms: number;
}

/** A host's identity: its Ed25519 public key. */
export type HostKey = string;

/** The host. */
export interface HostStatus {
  /** Attached clients. */
  clients: number;
  /** Ended ones still shown. */
  ended: number;
  /** Where it listens for HTTP, as a URL. */
  http?: string | null;
  /** Why it does not, although it should. */
  http_error?: string | null;
  /** Its process. */
  pid: number;
  /** Live sessions. */
  running: number;
  /** Its socket. */
  socket: string;
  /** Since when. */
  started_ms: number;
  /** Where its sessions lie. */
  state: string;
  /** Its version. */
  version: string;
}

/** How events are come by. */
export type HowWatched =
  /** The kernel tells of forks, execs and exits as they happen; sockets are looked for from time to time. */
  | "connector"
  /** Everything is looked for from time to time, more rarely while nothing happens: short lives are missed. */
  | "polling";

/** For whom the host takes the connection. */
export interface IdentifyAnswer {
  /** Key and handle. */
  actor: Actor;
  /** The host knows this key under this handle; otherwise it holds what unknown actors hold. */
  known: boolean;
}

/** Who speaks on this connection, proven. */
export interface IdentifyParams {
  /** Key and handle. */
  actor: Actor;
  /** Inside a session: ask the human to confirm it, and answer when they have. */
  confirm?: boolean;
  /** Over the connection's challenge. */
  signature: Signature;
}

/** Where a process was found. Neither of the two: where it comes from is not known. */
export interface Inside {
  /** This agent started it. */
  agent?: string | null;
  /** It runs inside this session; empty where it is none of this host's. */
  session?: string | null;
}

/** A guest is enrolled. */
export interface InviteAcceptAnswer {
  /** Its key, and the handle by which the host knows it. */
  actor: Actor;
  /** The most it may do. */
  can: Rights;
  /** What the host calls itself. */
  host: string;
  /** Where else the host can be reached. */
  relays: string[];
  /** The name of the session it was invited to; none: the whole host. */
  session?: string | null;
}

/** A guest of an invite says who it is. */
export interface InviteAcceptParams {
  /** Its key, and the handle it would like. */
  actor: Actor;
  /** As in `identify`, over the challenge and the channel's binding. */
  signature: Signature;
}

/** A new invite. */
export interface InviteNewAnswer {
  /** What it is. */
  invite: InviteView;
  /** The link: a secret, and not shown again. */
  link: string;
}

/** What an invite shall be. */
export interface InviteNewParams {
  /** How long a guest's access lasts once it has accepted, in milliseconds; none: until it is revoked. */
  access_ms?: number | null;
  /** The most its guests may do; none: to observe a session, or all that you may do on the host. */
  can?: Rights | null;
  /** How long it can be accepted, in milliseconds; none: an hour. */
  for_ms?: number | null;
  /** The session it is for; none: the whole host, which only a human may share. */
  session?: string | null;
  /** How often it can be accepted; none: once. */
  uses?: number | null;
}

/** Which invite. */
export interface InviteParams {
  /** Its id. */
  invite: string;
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

/** An invite as it is listed. */
export interface InviteView {
  /** Who made it. */
  by: Handle;
  /** The most its guests may do. */
  can: Rights;
  /** When. */
  created_ms: number;
  /** Identity: no secret. */
  id: string;
  /** The session it is for; none: the whole host. */
  session?: SessionId | null;
  /** How it stands. */
  state: InviteState;
  /** Until when it can be accepted. */
  until_ms: number;
  /** How often it was. */
  used: number;
  /** How often it can be accepted in all. */
  uses: number;
}

/** The answer's bytes are whole lines of the journal, as they lie on disk; this says which. */
export interface JournalAnswer {
  /** The session has ended and everything was given. */
  end: boolean;
  /** Number of the first record given; none given: the next to come. */
  from: number;
  /** There is more now. */
  more: boolean;
  /** Number of the last record, as the host wrote it; none while more waits for the disk. */
  newest?: number | null;
  /** Its hash. */
  newest_hash?: Hash | null;
  /** Ask behind this one next. */
  to: number;
}

/** Which part of a journal. */
export interface JournalParams {
  /** Records behind this number; 0: from the oldest kept. */
  after?: number;
  /** Only so many of the newest records behind `after`, counted when it is asked. */
  last?: number | null;
  /** Name or id. */
  session: string;
  /** Wait this long for the first. */
  wait_ms?: number;
}

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

/** How it is known who changed something. */
export type Known2 =
  /** A run did it: the shell reported its end. */
  | "run"
  /** The last writer before the command started. */
  | "time"
  /** It is not: the journal does not reach back so far, or has no name. */
  | "unknown";

/** What a client that left may want to remember. */
export interface LeaveAnswer {
  /** How much of the history its terminal has, for the next `session.paint`. */
  history?: HistoryPlace | null;
}

/** An operator that lets go by itself. */
export interface LeaveParams {
  /** The client's number. */
  client: number;
  /** Name or id. */
  session: string;
  /** Everything before this offset is on its terminal: the answer says how much of the history that is. */
  shown?: number | null;
}

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

/** Which sessions. */
export interface ListParams {
  /** Ended ones too. */
  all?: boolean;
}

/** Who takes connections. */
export interface Listener {
  /** Where. */
  address: string;
  /** Its process. */
  pid: number;
}

/** A lock on a file. */
export interface Lock {
  /** Last byte; `None` is the end of the file, wherever that is. */
  end?: number | null;
  /** Exclusive: a write lock. */
  exclusive: boolean;
  /** Which kind. */
  kind: LockKind;
  /** First byte. */
  start: number;
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

/** A code that a browser exchanges for a token of the asker. */
export interface LoginAnswer {
  /** It serves once, at `/v1/login`. */
  code: string;
  /** And not after this. */
  until_ms: number;
}

/** A process of a session that was lost. */
export interface LostProcess {
  /** Its number. */
  pid: number;
  /** Its program, without arguments: those may be secret. */
  program: string;
  /** It still runs, without the session's terminal. */
  survives?: boolean;
}

/** What was lost, as far as the host knew. */
export interface LostView {
  /** When the host noticed. */
  at_ms: number;
  /** Why. */
  cause: Cause;
  /** Their connections to others, for example `tcp 10.0.0.2:5432`. Those are cut. */
  connected?: string[];
  /** Where its command was last. */
  cwd?: string | null;
  /** Where they listened, for example `tcp 127.0.0.1:5173`. */
  listened?: string[];
  /** Its processes then, at most 64. */
  processes?: LostProcess[];
  /** Runs that were on. None is run again by itself. */
  runs?: RunId[];
  /** When the host last looked at its processes. */
  seen_ms?: number | null;
  /** The same for people, with what else is known. */
  why: string;
  /** Variables of its environment whose values are not kept. */
  withheld?: string[];
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

/** The host's counters. */
export interface MetricsAnswer {
  /** In the Prometheus text format. */
  text: string;
}

/** A terminal's modes: termios(3). */
export interface ModesView {
  /** Input comes by lines (`ICANON`). */
  canonical: boolean;
  /** What is typed shows (`ECHO`). */
  echo: boolean;
  /** `c_iflag`. */
  iflag: number;
  /** `c_lflag`. */
  lflag: number;
  /** `c_oflag`. */
  oflag: number;
  /** Bytes of input that no program has taken. */
  unread: number;
}

/** What to start. */
export interface NewParams {
  /** `argv[0]` where it differs from the command (a login shell). */
  argv0?: string | null;
  /** Command and arguments; left out: the shell of the host's user, or with a run that shell with the run's text. */
  command?: string[];
  /** Where it starts, from the root on; left out: the home directory of the host's user. */
  cwd?: string | null;
  /** Its whole environment, `K=V` each; left out: the host's, without what belongs to who started the host. */
  env?: string[] | null;
  /** Variables laid over that environment, `K=V` each. */
  env_add?: string[];
  /** Start a shell with integration, so that it reports its commands; true by default. */
  integrate?: boolean | null;
  /** A name; the host picks one where none is given. */
  name?: SessionName | null;
  /** Soft limit of open files. */
  nofile?: number | null;
  /** Whether it gets another life by itself where it is lost; left out: as the host is configured. */
  recover?: Recovery | null;
  /** Run the command again where it fails or the session is lost, at most this many times within ten minutes, later each time. */
  restart_on_failure?: number | null;
  /** Data bytes of the ring; rounded up to a power of two. */
  ring_bytes?: number | null;
  /** Columns and rows. */
  size?: Size;
  /** File mode mask. */
  umask?: number | null;
  /** Run as this user of the machine, with a home and variables of its own; only where the host is root. `env`: terminal and language. */
  user?: string | null;
}

/** Random bytes that make each signed act unlike every other. */
export type Nonce = string;

/** Neither asks nor answers anything. */
export type Nothing = Record<string, never>;

/** News for operators. */
export type Notice =
  /** The turn has another holder, or none. */
  | {
    /** Who. */
    holder?: Handle | null;
    kind: "turn";
  }
  /** An actor requests the turn. */
  | {
    /** Who. */
    by: Handle;
    kind: "requested";
  }
  /** The turn was seized. */
  | {
    /** By whom. */
    by: Handle;
    /** From whom. */
    from?: Handle | null;
    kind: "seized";
    /** Why. */
    reason: string;
  }
  /** The tree stands still. */
  | {
    /** By whom. */
    by: Handle;
    kind: "frozen";
  }
  /** The tree goes on. */
  | {
    /** By whom. */
    by: Handle;
    kind: "thawed";
  }
  /** An actor asks the humans a question. */
  | {
    /** Who. */
    by: Handle;
    kind: "asked";
    /** What can be answered; none: any text. */
    options: string[];
    /** The question's id. */
    question: string;
    /** What; of a long question the beginning. */
    text: string;
  }
  /** The operator's rights are now these. */
  | {
    kind: "rights";
    /** What it may do. */
    rights: Rights;
  };

/** Event `notice`: news for an operator. */
export interface NoticeEvent {
  /** The client's number. */
  client: number;
  /** What. */
  notice: Notice;
}

/** Where to post the outcome of a run. */
export interface OnExit {
  /** What it is signed with. */
  secret?: string | null;
  /** Where to: `http://` or `https://`. */
  url: string;
}

/** The event's bytes are output; this says where they stand. */
export interface OutputEvent {
  /** The session has ended and everything was given: no event follows. */
  end: boolean;
  /** Why it ends before that; no event follows. */
  fault?: Fault | null;
  /** The number given to `session.follow`. */
  follow: number;
  /** Offset of the first byte given. */
  from: number;
  /** Output before `from` that is no longer kept. */
  gap?: Gap | null;
  /** The session's size when they were written. An event without bytes tells another size, a gap or an end. */
  size: Size;
  /** Offset behind the last byte given. */
  to: number;
}

/** Asks for the screen again. */
export interface PaintParams {
  /** The client with this number answers the session's queries from the painted offset, if no client does yet. */
  answers?: number | null;
  /** With `history`: the terminal has the lines before this place. Where the host does not know it, all lines come. */
  behind?: HistoryPlace | null;
  /** Give a keyframe, whatever `size` is. */
  draws?: boolean;
  /** History too. */
  history?: boolean;
  /** Paint for a terminal of the session's size, whatever `size` is. */
  remote?: boolean;
  /** Name or id. */
  session: string;
  /** The terminal's size; decides the form. */
  size: Size;
}

/** What was painted. */
export interface Painted {
  /** What the bytes are. */
  form: Form;
  /** With a keyframe: how many of the bytes, at their front, are history lines for the terminal instead. */
  history_bytes?: number;
  /** Output goes on from here. */
  offset: number;
  /** The session's size there. */
  size: Size;
}

/** One descriptor on a pipe. */
export interface PipeEnd {
  /** Which end; `None` if we may not know. */
  end?: End | null;
  /** Which of its descriptors. */
  fd: number;
  /** Whose. */
  process: ProcessId;
}

/** A pipe: `f<inode>`; one with a name in a file system has that file system's device too: `f<inode>@<major>:<minor>`. */
export type PipeId = string;

/** A pipe and who of the session holds its ends. Others may hold it too. */
export interface PipeNode {
  /** Its ends, in the order of processes. */
  ends: PipeEnd[];
  /** Which one. */
  id: PipeId;
}

/** A listening port. */
export interface PortView {
  /** The act's number in the session's journal. */
  act?: number | null;
  /** Whose act started it. */
  actor?: Actor | null;
  /** Address and port. */
  address: string;
  /** That one's words. */
  argv: string[];
  /** How that is known. */
  by: Known;
  /** Who holds the socket. */
  holders: ProcessId[];
  /** `stream` is TCP, `dgram` is UDP. */
  kind: SocketKind;
  /** Its name. */
  name: SessionName;
  /** The oldest process that holds it. */
  process?: ProcessId | null;
  /** In which session. */
  session: SessionId;
  /** Since when that process is there: the port is open since then or later, which the kernel does not tell. */
  since_ms?: number | null;
  /** The socket. */
  socket: SocketId;
}

/** Whose ports. */
export interface PortsParams {
  /** Name or id; none: those of every live session the caller may observe. */
  session?: string | null;
}

/** A process: `p<pid>-<start>`. The kernel gives the pid to another one later, but not with the same start. */
export type ProcessId = string;

/** One process. */
export interface ProcessNode {
  /** Its words, lossily decoded; empty for a zombie. A program may overwrite them. */
  argv: string[];
  /** `argv` is only the first [`ARGV_BYTES_MAX`] bytes. */
  argv_cut?: boolean;
  /** Its cgroup in the unified hierarchy. */
  cgroup?: string | null;
  /** Its name: 15 bytes that it may change. */
  comm: string;
  /** Processor time it has used, in the kernel and out of it. */
  cpu_ms: number;
  /** Its working directory. */
  cwd?: string | null;
  /** Its program. The kernel appends ` (deleted)` to one that was replaced. */
  exe?: string | null;
  /** Its descriptors in ascending order, as far as [`Depth`] goes. */
  fds?: FdNode[];
  /** Whether its group has the terminal; `None` if unknown. */
  foreground?: boolean | null;
  /** Its process group. */
  group: number;
  /** Who it is. */
  id: ProcessId;
  /** Descriptors there are beyond [`FDS_MAX`]. */
  more_fds?: number;
  /** Its parent, unless that is the keeper. */
  parent?: ProcessId | null;
  /** The pid of its parent, the keeper's too. */
  parent_pid: number;
  /** Its pid, as in the id. */
  pid: number;
  /** Memory it has resident; what is shared counts for each. */
  rss_bytes: number;
  /** Its kernel session. */
  session: number;
  /** When it started, in milliseconds since the Unix epoch, to a clock tick. */
  started_ms: number;
  /** `R` runs, `S` sleeps, `D` is in the kernel, `T` is stopped, `t` is traced, `Z` is dead. */
  state: string;
  /** Its threads. */
  threads: number;
  /** Its effective user. */
  uid?: number | null;
  /** We may not see its descriptors. */
  unknown?: boolean;
}

/** An actor's signature over one act. */
export interface Proof {
  /** Random, from the actor: the same act signed again is another one, and a copied one is found out. */
  nonce: Nonce;
  /** Over the act's content, as the authority spells it. */
  signature: Signature;
}

/** An answer. */
export interface QuestionAnswer {
  /** When. */
  at_ms: number;
  /** Who answered. */
  by: Actor;
  /** Which option that is, from 0. */
  option?: number | null;
  /** What was answered. */
  text: string;
}

/** What to answer. */
export interface QuestionAnswerParams {
  /** In place of a text: the number of an option, from 0. */
  option?: number | null;
  /** The actor's signature. */
  proof?: Proof | null;
  /** The question's id. */
  question: QuestionId;
  /** The `hash` of the question that was read: an answer to another text is refused. */
  seen: Hash;
  /** The answer; where there are options, one of them. */
  text?: string | null;
}

/** What to ask. */
export interface QuestionAskParams {
  /** Close the question after this long; none: it is open as long as its session lives. */
  expires_ms?: number | null;
  /**
   * A key of the asker's own, drawn at random, at most 64 bytes: asked again with the same one after an answer was lost, it is not
   * asked twice.
   */
  key?: string | null;
  /** What can be answered; none: any text. */
  options?: string[];
  /** Name or id of the session it is about, whose humans are asked. */
  session: string;
  /** The question. */
  text: string;
  /** Answer when it is no longer open, at the latest after this long. */
  wait_ms?: number;
}

/** A question's identity for all time: `que_` and 26 characters. */
export type QuestionId = string;

/** Which questions. */
export interface QuestionListParams {
  /** Those that are no longer open too, as far as they are remembered. */
  all?: boolean;
  /** Those of one session; none: of all sessions the caller may observe. */
  session?: string | null;
}

/** Which question. */
export interface QuestionParams {
  /** Its id. */
  question: QuestionId;
  /** Answer when it is no longer open, at the latest after this long. */
  wait_ms?: number;
}

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

/** A question as clients see it. */
export interface QuestionView {
  /** The answer. */
  answer?: QuestionAnswer | null;
  /** When it was asked. */
  asked_ms: number;
  /** Who asks. */
  by: Actor;
  /** When the question closes. */
  expires_at_ms?: number | null;
  /** The hash of text and options, which an answer carries. */
  hash: Hash;
  /** Identity. */
  id: QuestionId;
  /** That session's name. */
  name: SessionName;
  /** What can be answered; none: any text. */
  options: string[];
  /** Its session. */
  session: SessionId;
  /** Where it stands. */
  state: QuestionState;
  /** The question, as it was written: what shows it makes it harmless first. */
  text: string;
  /** Who took it back. */
  withdrawn_by?: Actor | null;
}

/** Which question to take back. */
export interface QuestionWithdrawParams {
  /** Its id. */
  question: QuestionId;
}

/** The answer's bytes are output; this says where they stand. */
export interface ReadAnswer {
  /** The session has ended and everything was given. */
  end: boolean;
  /** Offset of the first byte given. */
  from: number;
  /** What was asked for and is gone. */
  gap?: Gap | null;
  /** Offset of the next byte to come. */
  head: number;
  /**
   * The session's size when they were written: bytes behind a change of it are given by the next answer. Where none are given,
   * its size now; a change ends a wait.
   */
  size?: Size;
  /** Offset behind the last byte given: ask from here next. */
  to: number;
}

/** Which output. */
export interface ReadParams {
  /** First offset wanted; none: the oldest there is. */
  from?: number | null;
  /** At most this many bytes. */
  max?: number | null;
  /** Name or id. */
  session: string;
  /** Wait this long for the first byte. */
  wait_ms?: number;
}

/** A session with a life. */
export interface RecoverAnswer {
  /** Its life began with this request; otherwise it was running already. */
  began: boolean;
  /** The session. */
  session: SessionView;
}

/** Which session to give another life, and how. */
export interface RecoverParams {
  /** Variables of the caller, `K=V` each. Used for those the session had whose values are not kept on disk, and for no others. */
  env?: string[];
  /** The actor's signature. */
  proof?: Proof | null;
  /**
   * Run the session's command again. Left out: a session whose command is a shell gets that shell, any other one a shell in its
   * place.
   */
  run?: boolean;
  /** Name or id. */
  session: string;
}

/** Whether a session that was lost gets another life by itself. */
export type Recovery =
  /** Somebody asks for it. */
  | "manual"
  /** The host begins it, as often as its limit allows. */
  | "auto";

/** Which relay. */
export interface RelayParams {
  /** Where it is: `https://NAME` or `https://NAME:PORT`. */
  url: string;
}

/** A relay as it is listed. */
export interface RelayView {
  /** Since when it is so. */
  since_ms: number;
  /** Clients find this host there. */
  up: boolean;
  /** Where it is. */
  url: string;
  /** Why it is not up. */
  why?: string | null;
}

/** What a host is called and known by. */
export interface RelaysAnswer {
  /** The host's key: what clients know it by. */
  key: HostKey;
  /** What it calls itself. */
  name: string;
  /** Its relays. */
  relays: RelayView[];
}

/** Another name. */
export interface RenameParams {
  /** The new name. */
  name: SessionName;
  /** The actor's signature. */
  proof?: Proof | null;
  /** Name or id. */
  session: string;
}

/** Another size. */
export interface ResizeParams {
  /** The actor's signature. */
  proof?: Proof | null;
  /** Name or id. */
  session: string;
  /** Columns and rows. */
  size: Size;
}

/** What a client that goes on without its host still has. */
export interface Resume {
  /** It answers the session's queries. */
  answers: boolean;
  /** Its number in the session. */
  client: number;
  /** The token it got when it attached: it alone has it. */
  token: ClientToken;
}

/** What fell. */
export interface RevokeAnswer {
  /** The grants that are no more, what was passed on too. */
  grants: number[];
}

/** Takes rights back: one grant, or everything an actor holds. */
export interface RevokeParams {
  /** Everything this actor holds. */
  actor?: ActorId | null;
  /** One grant. */
  grant?: number | null;
  /** The actor's signature. */
  proof?: Proof | null;
  /** Name or id. */
  session: string;
}

/** A set of rights; its text form is `observe,run`. */
export type Rights = string;

/** Event `ring`: an attached terminal shall catch its person's attention. */
export interface RingEvent {
  /** The client's number. */
  client: number;
  /** What to say. */
  text: string;
}

/** A run, and what it printed. */
export interface RunAnswer {
  /** The act's number in the session's journal. */
  act?: number | null;
  /** Who. */
  actor: Actor;
  /** What was entered. */
  command: string;
  /** And after it. */
  cwd?: string | null;
  /** The shell's directory before. */
  cwd_before?: string | null;
  /** How long it took so far. */
  duration_ms: number;
  /** How the end is known. */
  end?: RunEnd | null;
  /** When it ended, as the host noticed. */
  ended_ms?: number | null;
  /** It was there before, and nothing was started: the key, or the id, was used. */
  existing?: boolean;
  /** Its status, where it is known. */
  exit_code?: number | null;
  /** Offset of its first output byte. Until the shell has said where that is, there is no output, and it may lie further on. */
  from: number;
  /** Identity. */
  id: RunId;
  /** Its key. */
  key?: string | null;
  /** That session's name. */
  name: SessionName;
  /** What is not shown. */
  omitted?: Gap | null;
  /** Its output as text without escape sequences; of a long one the beginning and the end. */
  output: string;
  /** It is its session's own command. */
  own_session?: boolean;
  /** Its session. */
  session: SessionId;
  /** When it was entered. */
  started_ms: number;
  /** Where it stands. */
  state: RunState;
  /** Offset behind its last output byte, or behind the last one so far. */
  to: number;
  /** The output is longer than what is shown, or part of it is no longer kept. */
  truncated: boolean;
}

/** Which run to interrupt. */
export interface RunCancelParams {
  /** The actor's signature. */
  proof?: Proof | null;
  /** Its id, or its key. */
  run: RunRef;
  /** Answer when it has ended, at the latest after this long. */
  wait_ms?: number;
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

/** A run's identity for all time: `run_` and 26 characters. */
export type RunId = string;

/** Which runs. */
export interface RunListParams {
  /** Those of one session; none: of all sessions the caller may observe. The newest 1,000. */
  session?: string | null;
}

/** The answer's bytes are output; this says where they stand. */
export interface RunOutputAnswer {
  /** The run is over and everything was given. */
  end: boolean;
  /** Offset of the first byte given. */
  from: number;
  /** What was asked for and is gone. */
  gap?: Gap | null;
  /** Offset behind the last byte given: ask from here next. */
  to: number;
}

/** Which part of a run's output. */
export interface RunOutputParams {
  /** First offset wanted; none: the run's first. */
  from?: number | null;
  /** At most this many bytes. */
  max?: number | null;
  /** Its id, or its key. */
  run: RunRef;
  /** Wait this long for the first byte, or the run's end. */
  wait_ms?: number;
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

/** What to run. */
export interface RunStartParams {
  /** What the shell is to execute; with a command in `new` it is left out. */
  command?: string;
  /** How to detect its end if the shell does not report it. */
  detect?: Detect | null;
  /** With `new`: the session stays listed when it has ended. */
  keep?: boolean;
  /** The same key runs once. Keys are each actor's own. */
  key?: string | null;
  /**
   * In place of a session: the one that is made for it, with the command as it is; where that has none, the shell of the
   * host's user executes the text in `command`.
   */
  new?: NewParams | null;
  /** Where to post its outcome; for an existing run, what was given at its start applies. */
  on_exit?: OnExit | null;
  /** The actor's signature. */
  proof?: Proof | null;
  /**
   * The id it shall have, drawn at random: asked again with the same one after an answer was lost, in the same session, it
   * is not run again.
   */
  run?: RunId | null;
  /** Name or id of the session whose shell runs it. */
  session?: string | null;
  /** The key is everybody's: whoever uses it with the same command finds the same run. */
  shared?: boolean;
  /** Answer when it has ended, at the latest after this long. */
  wait_ms?: number;
}

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

/** A run as clients see it. */
export interface RunView {
  /** The act's number in the session's journal. */
  act?: number | null;
  /** Who. */
  actor: Actor;
  /** What was entered. */
  command: string;
  /** And after it. */
  cwd?: string | null;
  /** The shell's directory before. */
  cwd_before?: string | null;
  /** How long it took so far. */
  duration_ms: number;
  /** How the end is known. */
  end?: RunEnd | null;
  /** When it ended, as the host noticed. */
  ended_ms?: number | null;
  /** Its status, where it is known. */
  exit_code?: number | null;
  /** Offset of its first output byte. Until the shell has said where that is, there is no output, and it may lie further on. */
  from: number;
  /** Identity. */
  id: RunId;
  /** Its key. */
  key?: string | null;
  /** That session's name. */
  name: SessionName;
  /** It is its session's own command. */
  own_session?: boolean;
  /** Its session. */
  session: SessionId;
  /** When it was entered. */
  started_ms: number;
  /** Where it stands. */
  state: RunState;
  /** Offset behind its last output byte, or behind the last one so far. */
  to: number;
}

/** Get the screen as text. */
export interface ScreenAnswer {
  /** A full-screen program is on. */
  alternate: boolean;
  /** The program wants cursor keys in their application form. */
  application_cursor?: boolean;
  /** Column and row of the cursor, from 0. */
  cursor: [number, number];
  /** Output the screen never saw: it was overwritten before a host could look. */
  gap?: Gap | null;
  /** History lines asked for, oldest first. */
  history: string[];
  /** Everything before this offset is in it. */
  offset: number;
  /** The rows, top first. */
  rows: string[];
  /** Columns and rows. */
  size: Size;
  /** The title. */
  title: string;
}

/** Which view of the screen. */
export interface ScreenParams {
  /** With colours and attributes as escape sequences. */
  ansi?: boolean;
  /** This many lines of history before it. */
  history?: number;
  /** Name or id. */
  session: string;
}

/** What a seizure did. */
export interface SeizeAnswer {
  /** Microseconds from the request until nothing more of the old holder could reach the terminal. */
  cut_us: number;
  /** The fence under which the caller has the turn. */
  fence: Fence;
  /** What froze, where that was asked for. */
  froze?: FrozeView | null;
  /** How it stands now. */
  turn: TurnView;
}

/** Takes the turn whatever its holder does. */
export interface SeizeParams {
  /** The attached client through which it will write. */
  client?: number | null;
  /** The whole tree stands still. */
  freeze?: boolean;
  /** The actor's signature. */
  proof?: Proof | null;
  /** The reason, for the journal and for the holder that loses the turn. */
  reason: string;
  /** Name or id. */
  session: string;
}

/** What became of the bytes. */
export interface SendAnswer {
  /** Output offset at that moment. */
  at: number;
  /** The fence they were typed under; for a repeat the newest. */
  fence: Fence;
  /** They have reached the terminal; otherwise they are queued, because the program does not read now. */
  written: boolean;
}

/** Where the message's bytes are typed. */
export interface SendParams {
  /** The attached client that types. */
  client?: number | null;
  /** The fence the writer believes in: under another one nothing is typed. None: whatever it is now. */
  fence?: Fence | null;
  /** Type the secret although the terminal may show it. */
  force?: boolean;
  /** Refuse it where a message before it in the stream was refused on this connection: for who has several under way. */
  in_order?: boolean;
  /** They are a secret: typed only while the terminal does not show what is typed, and recorded as a length. */
  secret?: boolean;
  /**
   * Grows by one with each message of the stream, from 1; a repeated message is not typed twice. A message of more than
   * 4096 bytes takes one number for each 4096 begun.
   */
  seq: number;
  /** Name or id. */
  session: string;
  /** A random number of the sender's. */
  stream: number;
}

/** A session's identity for all time. */
export type SessionId = string;

/** A name of one to 64 letters, digits, dots, underscores and hyphens. */
export type SessionName = string;

/** One session by name, id, or the beginning of its id. */
export interface SessionParams {
  /** Name or id. */
  session: string;
}

/** A session as clients see it. */
export interface SessionView {
  /** How many questions wait for an answer. */
  asks?: number;
  /** Who is attached. */
  clients: ClientView[];
  /** Command and arguments. */
  command: string[];
  /** When it started. */
  created_ms: number;
  /** Where it started. */
  cwd: string;
  /** Records of its journal are missing: what, for people. Only humans act in it, and whom they granted something since. */
  damaged?: string | null;
  /** When it ended. */
  ended_ms?: number | null;
  /** How it ended. */
  exit?: Exit | null;
  /** Offset of the next output byte. */
  head: number;
  /** Identity. */
  id: SessionId;
  /** Which life of the session this is: 1, and one more with each recovery. */
  incarnation?: number;
  /** The keeper's process. */
  keeper_pid: number;
  /** Whether it lives. */
  life: Life;
  /** What was lost, where it is lost. */
  lost?: LostView | null;
  /** Human name. */
  name: SessionName;
  /** When its next life begins by itself. */
  next_life_ms?: number | null;
  /** Something a person should know (a damaged file, a gap in the screen). */
  note?: string | null;
  /** Oldest offset `read` can still give. */
  oldest: number;
  /** The command's process. */
  pid: number;
  /** It gets another life by itself where it is lost. */
  recovers?: boolean;
  /** Its command is run again where it fails, at most this many times within ten minutes. */
  restart_on_failure?: number | null;
  /** Data bytes of the ring. */
  ring_bytes: number;
  /** The terminal's size. */
  size: Size;
  /** The shell that runs in place of its command, since a recovery that did not run the command again. */
  stand_in?: string | null;
  /** When bytes were typed last that no client of the host sent: a program of the same user reached the keeper by itself. */
  stranger_ms?: number | null;
  /** The title its program set. */
  title?: string;
  /** Who may write. */
  turn: TurnView;
  /** The user it runs as, where that is not the host's. */
  user?: string | null;
}

/** Sends a signal. */
export interface SignalParams {
  /** Its number. */
  number: number;
  /** The actor's signature. */
  proof?: Proof | null;
  /** Name or id. */
  session: string;
  /** 0 the foreground group, 1 the command's group, 2 the whole tree. */
  target?: number;
}

/** An Ed25519 signature. */
export type Signature = string;

/** Columns by rows, always within the limits. */
export type Size = string;

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

/** One socket and who of the session holds it. */
export interface SocketNode {
  /** It is in another network namespace, which we do not ask about. */
  elsewhere?: boolean;
  /** Its family. */
  family?: Family | null;
  /** Who holds it, in the order of processes, each once. */
  holders: ProcessId[];
  /** Which one. */
  id: SocketId;
  /** Its kind. */
  kind?: SocketKind | null;
  /** Our address. */
  local?: string | null;
  /** The path of a unix socket; an abstract one starts with `@`. */
  path?: string | null;
  /** The other side, where it is a socket of this machine that is known. */
  peer?: SocketId | null;
  /** The kernel's name for its protocol (`TCP`, `NETLINK`), known even where its state is not. */
  protocol?: string | null;
  /** The other side's. */
  remote?: string | null;
  /** Its state. */
  state?: SocketState | null;
  /**
   * The kernel did not tell its state: it is elsewhere, neither bound nor connected, or of a family that we do not
   * ask about.
   */
  unknown?: boolean;
}

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

/** What a session is doing, as clients see it. */
export type StateView = {
  /** Where its output stood. */
  at: number;
  /** Its name. */
  name: SessionName;
  /** The process that says so, if one does. */
  pid?: number | null;
  /** Which session. */
  session: SessionId;
  /** Since when the host has seen it so. It may have been so for longer if no client looked before. */
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
    /** For what. */
    kind: Kind;
    /** What the screen shows before the cursor. */
    prompt: string;
    state: "waiting";
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
    /** By whom. */
    by: Handle;
    state: "frozen";
  }
  /** Its command has ended. */
  | {
    /** How. */
    exit: Exit;
    state: "ended";
  }
  /** No guess. */
  | {
    state: "unknown";
    /** Why. */
    why: Blind;
  }
);

/** What a descriptor leads to: the id of a socket or a pipe of the same graph. */
export type Target =
  /** A socket. */
  | SocketId
  /** A pipe. */
  | PipeId;

/** A session's terminal. What only its keeper knows is not there where that does not answer. */
export interface TerminalView {
  /** The programs' output switched to the alternate screen. */
  alternate_screen: boolean;
  /** The process group that has the terminal. */
  foreground?: number | null;
  /** Its modes. */
  modes?: ModesView | null;
  /** Columns and rows. */
  size: Size;
}

/** A new token. */
export interface TokenNewAnswer {
  /** Its text: it is not shown again. */
  text: string;
  /** What it is. */
  token: TokenView;
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

/** Which token. */
export interface TokenParams {
  /** Its id. */
  token: string;
}

/** A token as it is listed. */
export interface TokenView {
  /** Who shows it. */
  actor: Handle;
  /** Who made it. */
  by: Handle;
  /** The token's rights; none: all rights of its actor. */
  can?: Rights | null;
  /** When. */
  created_ms: number;
  /** Identity: no secret. */
  id: string;
  /** What it is for. */
  note?: string;
  /** The token with which it was made: it ends with that one. */
  parent?: string | null;
  /** When it ends. */
  until_ms: number;
}

/** What came of it. */
export interface TurnAnswer {
  /** The caller waits behind so many. */
  before?: number | null;
  /** The caller has the turn, under this fence. */
  fence?: Fence | null;
  /** How it stands now. */
  turn: TurnView;
}

/** Something an actor does about the turn. */
export interface TurnParams {
  /** The attached client through which it will write. */
  client?: number | null;
  /** The actor's signature. */
  proof?: Proof | null;
  /** Name or id. */
  session: string;
}

/** Who may write now, and who waits. */
export interface TurnView {
  /** The newest fence. */
  fence: Fence;
  /** The tree stands still. */
  frozen?: FrozenView | null;
  /** Who has it; none: it is free. */
  holder?: HolderView | null;
  /** Who waits, first in first. */
  queue?: Handle[];
}

/** Which output is no longer followed. */
export interface UnfollowParams {
  /** The number given to `session.follow`. */
  follow: number;
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

/** What a terminal should know after its update. */
export interface UpdateAnswer {
  /** The session's size now. */
  size: Size;
}

/** What changed at an attached terminal. */
export interface UpdateParams {
  /** From this offset on it answers queries (true) or no longer does (false). */
  answers?: Answers | null;
  /** The client's number. It attached by this connection. */
  client: number;
  /** Name or id. */
  session: string;
  /** Its terminal's new size. */
  size?: Size | null;
}

/** What waiting gave. */
export interface WaitAnswer {
  /** How the command ended; none: it still runs. */
  exit?: Exit | null;
  /** Who takes connections at the port that was waited for. */
  listener?: Listener | null;
  /** The state that was waited for. */
  state?: StateView | null;
}

/** How long to wait. */
export interface WaitParams {
  /** Name or id. */
  session: string;
  /** Give up after this long. */
  timeout_ms?: number | null;
  /** What to wait for; the command's end by default. */
  until?: Until;
}

/** Events. */
export interface WatchAnswer {
  /** Oldest first. */
  events: SessionEvent[];
  /** Number of dropped events, of all sessions: the reader was too slow, or the host restarted. */
  lost?: number;
  /** Ask behind this one next. */
  to: number;
}

/** What happened since. */
export interface WatchGraphAnswer {
  /** The session has ended: nothing follows. */
  end?: boolean;
  /** Oldest first. */
  events: GraphEvent[];
  /** How they are come by. */
  how: HowWatched;
  /** Some events between the two are missing: the reader or the host was too slow, or no client watched. Take a new graph. */
  lost?: boolean;
  /** Ask after this one next. */
  to: number;
}

/** What happens to a session's processes. */
export interface WatchGraphParams {
  /** The `to` of the answer before; none: from now on, which is answered at once. */
  after?: number | null;
  /** Name or id. */
  session: string;
  /** How long to wait for an event, at most. */
  wait_ms?: number;
}

/** Which events. */
export interface WatchParams {
  /** Those behind this number; none: those to come, and first of all what each session is doing. */
  after?: number | null;
  /** Name or id; none: every session the caller may observe. */
  session?: string | null;
  /** Wait this long for the first. */
  wait_ms?: number;
}

/** Event `writes`: whether an attached client is the one that writes now, and under which fence. */
export interface WritesEvent {
  /** The client's number. */
  client: number;
  /** The newest fence. */
  fence: Fence;
  /** It writes: it may speak to the keeper directly. */
  writes: boolean;
}

/** Every operation: what it is asked with, and what it answers. */
export interface Operations {
  /** List the actors that the host knows. */
  "actor.list": { params: Nothing; answer: ActorView[] };
  /** Get which actor you are, and by which token. */
  "actor.me": { params: Nothing; answer: MeAnswer };
  /** Remove an actor and revoke its key. */
  "actor.remove": { params: ActorParams; answer: Nothing };
  /** List the devices that may reach this host through a relay. */
  "device.list": { params: Nothing; answer: DeviceView[] };
  /** Revoke a device at once: its connections and its grants end. */
  "device.revoke": { params: DeviceParams; answer: DeviceView };
  /** Grant rights in a session to an actor. */
  "grant.add": { params: GrantParams; answer: GrantView };
  /** List the grants in a session. */
  "grant.list": { params: SessionParams; answer: GrantsAnswer };
  /** Revoke rights, and all grants made from them. */
  "grant.revoke": { params: RevokeParams; answer: RevokeAnswer };
  /** Get the session's processes, their files and sockets, and the act that started each. */
  "graph.get": { params: GraphParams; answer: GraphAnswer };
  /** List listening ports of a session, or of all sessions. */
  "graph.ports": { params: PortsParams; answer: PortView[] };
  /** Get events of the session's processes; can wait for them. */
  "graph.watch": { params: WatchGraphParams; answer: WatchGraphAnswer };
  /** Agree on a protocol version; the first message of every connection. */
  "hello": { params: HelloParams; answer: HelloAnswer };
  /** Get the host's metrics in the Prometheus text format. */
  "host.metrics": { params: Nothing; answer: MetricsAnswer };
  /** Get the host's version and status. */
  "host.status": { params: Nothing; answer: HostStatus };
  /** Stop the host; sessions keep running. */
  "host.stop": { params: Nothing; answer: Nothing };
  /** Prove which actor this connection belongs to. */
  "identify": { params: IdentifyParams; answer: IdentifyAnswer };
  /** Accept the invite by which this connection came: enrol an actor's key. */
  "invite.accept": { params: InviteAcceptParams; answer: InviteAcceptAnswer };
  /** List invites: your own, or all if you are a human. */
  "invite.list": { params: Nothing; answer: InviteView[] };
  /** Create a link by which others get access to a session, or to the host, through a relay. */
  "invite.new": { params: InviteNewParams; answer: InviteNewAnswer };
  /** Revoke an invite; devices that accepted it stay. */
  "invite.revoke": { params: InviteParams; answer: InviteView };
  /** Create a code that logs a browser in as you, once. */
  "login.new": { params: Nothing; answer: LoginAnswer };
  /** Answer a question; only humans may. */
  "question.answer": { params: QuestionAnswerParams; answer: QuestionView };
  /** Ask the humans of a session a question; can wait for the answer. */
  "question.ask": { params: QuestionAskParams; answer: QuestionView };
  /** Get a question and its answer; can wait for it. */
  "question.get": { params: QuestionParams; answer: QuestionView };
  /** List the questions of a session, or of all sessions you may observe. */
  "question.list": { params: QuestionListParams; answer: QuestionView[] };
  /** Withdraw a question; only its asker or a human may. */
  "question.withdraw": { params: QuestionWithdrawParams; answer: QuestionView };
  /** Wait at a relay, so that clients can reach this host through it. */
  "relay.add": { params: RelayParams; answer: RelaysAnswer };
  /** List the relays this host waits at, and get the host's key. */
  "relay.list": { params: Nothing; answer: RelaysAnswer };
  /** Wait at a relay no longer. */
  "relay.remove": { params: RelayParams; answer: RelaysAnswer };
  /** Interrupt a run. */
  "run.cancel": { params: RunCancelParams; answer: RunAnswer };
  /** Get a run and its output; can wait for its end. */
  "run.get": { params: RunParams; answer: RunAnswer };
  /** List the runs of a session, or of all sessions you may observe. */
  "run.list": { params: RunListParams; answer: RunView[] };
  /** A run's output bytes, from an offset on; waits for some if asked to. */
  "run.output": { params: RunOutputParams; answer: RunOutputAnswer };
  /** Run a command in a session's shell or in a new session; once per key. */
  "run.start": { params: RunStartParams; answer: RunAnswer };
  /** Attach a terminal; the answer's bytes paint the session's state at an offset. */
  "session.attach": { params: AttachParams; answer: AttachAnswer };
  /** Grant more bytes to output that is followed. */
  "session.credit": { params: CreditParams; answer: Nothing };
  /** Detach clients from a session; the session keeps running. */
  "session.detach": { params: DetachParams; answer: DetachAnswer };
  /** End a session and its whole process tree: SIGHUP, then SIGKILL after a grace period. */
  "session.end": { params: EndParams; answer: SessionView };
  /** Get the names in the session's shell and who changed them: names and hashes, never values. */
  "session.env": { params: EnvParams; answer: EnvAnswer };
  /** Have output pushed from an offset on, as far as bytes are granted. */
  "session.follow": { params: FollowParams; answer: Nothing };
  /** Show one session. */
  "session.get": { params: SessionParams; answer: SessionView };
  /** Read the session's journal, line by line as written. */
  "session.journal": { params: JournalParams; answer: JournalAnswer };
  /** Leave a session that this connection is attached to. */
  "session.leave": { params: LeaveParams; answer: LeaveAnswer };
  /** List sessions. */
  "session.list": { params: ListParams; answer: SessionView[] };
  /** Start a session. */
  "session.new": { params: NewParams; answer: SessionView };
  /** Repaint an attached terminal, with or without history. */
  "session.paint": { params: PaintParams; answer: Painted };
  /** Read output bytes from an offset; can wait for more. */
  "session.read": { params: ReadParams; answer: ReadAnswer };
  /** Give a lost session another life: the same identity, journal, history, directory and environment, new processes. */
  "session.recover": { params: RecoverParams; answer: RecoverAnswer };
  /** Rename the session. */
  "session.rename": { params: RenameParams; answer: SessionView };
  /** Resize the session's terminal. */
  "session.resize": { params: ResizeParams; answer: Nothing };
  /** Get the screen as text. */
  "session.screen": { params: ScreenParams; answer: ScreenAnswer };
  /** Type the message's bytes into the session; exactly once per stream and seq. */
  "session.send": { params: SendParams; answer: SendAnswer };
  /** Send a signal to the session's processes. */
  "session.signal": { params: SignalParams; answer: Nothing };
  /** Get what the session is doing: working, waiting for input, or at its prompt. */
  "session.state": { params: SessionParams; answer: StateView };
  /** No longer follow output. */
  "session.unfollow": { params: UnfollowParams; answer: Nothing };
  /** Report changes of an attached terminal: its size, whether it answers queries. */
  "session.update": { params: UpdateParams; answer: UpdateAnswer };
  /** Wait until the session's command ends, or for another event. */
  "session.wait": { params: WaitParams; answer: WaitAnswer };
  /** Get events of a session, or of all sessions you may observe; can wait for them. */
  "session.watch": { params: WatchParams; answer: WatchAnswer };
  /** List valid tokens: your own, or all if you are a human. */
  "token.list": { params: Nothing; answer: TokenView[] };
  /** Create a token for HTTP: it acts as one actor, with at most these rights. */
  "token.new": { params: TokenNewParams; answer: TokenNewAnswer };
  /** Revoke a token at once. */
  "token.revoke": { params: TokenParams; answer: TokenView };
  /** Get who has the turn, and who waits for it. */
  "turn.get": { params: SessionParams; answer: TurnView };
  /** Give the turn to another actor. */
  "turn.give": { params: GiveParams; answer: TurnAnswer };
  /** Release the turn. */
  "turn.release": { params: TurnParams; answer: TurnAnswer };
  /** Request the turn; you get it when its holder releases it or is idle. */
  "turn.request": { params: TurnParams; answer: TurnAnswer };
  /** Seize the turn, whatever its holder does; can freeze the process tree. */
  "turn.seize": { params: SeizeParams; answer: SeizeAnswer };
  /** Take the turn if it is free. */
  "turn.take": { params: TurnParams; answer: TurnAnswer };
  /** Resume a frozen process tree. */
  "turn.thaw": { params: TurnParams; answer: TurnAnswer };
  /** Withdraw a request for the turn. */
  "turn.withdraw": { params: TurnParams; answer: TurnAnswer };
}

/** What a host sends without being asked, to a client that is attached. */
export interface HostEvents {
  /** Answer the session's terminal queries after an offset, and report with `session.update` where that really began. */
  "answer": AnswerEvent;
  /** Leave the terminal; the session keeps running. */
  "detached": DetachedEvent;
  /** News for the operator: the turn, a request, a seizure, its rights. */
  "notice": NoticeEvent;
  /** Output that is followed; the bytes stand behind the JSON. */
  "output": OutputEvent;
  /** Catch the person's attention: a bell, and the text as a notification. */
  "ring": RingEvent;
  /** Whether this client has the turn to write; only then may it write to the keeper directly. */
  "writes": WritesEvent;
}

/** Operations that are asked with bytes beside their parameters. */
export type SendsBytes = "session.send";

/** Operations that answer with bytes beside their answer. */
export type GivesBytes = (typeof GIVES_BYTES)[number];

/** The same, to look at. */
export const GIVES_BYTES = [
  "run.output",
  "session.attach",
  "session.journal",
  "session.paint",
  "session.read",
] as const;

/** The names of all operations. */
export const OPERATION_NAMES: ReadonlyArray<keyof Operations> = [
  "actor.list",
  "actor.me",
  "actor.remove",
  "device.list",
  "device.revoke",
  "grant.add",
  "grant.list",
  "grant.revoke",
  "graph.get",
  "graph.ports",
  "graph.watch",
  "hello",
  "host.metrics",
  "host.status",
  "host.stop",
  "identify",
  "invite.accept",
  "invite.list",
  "invite.new",
  "invite.revoke",
  "login.new",
  "question.answer",
  "question.ask",
  "question.get",
  "question.list",
  "question.withdraw",
  "relay.add",
  "relay.list",
  "relay.remove",
  "run.cancel",
  "run.get",
  "run.list",
  "run.output",
  "run.start",
  "session.attach",
  "session.credit",
  "session.detach",
  "session.end",
  "session.env",
  "session.follow",
  "session.get",
  "session.journal",
  "session.leave",
  "session.list",
  "session.new",
  "session.paint",
  "session.read",
  "session.recover",
  "session.rename",
  "session.resize",
  "session.screen",
  "session.send",
  "session.signal",
  "session.state",
  "session.unfollow",
  "session.update",
  "session.wait",
  "session.watch",
  "token.list",
  "token.new",
  "token.revoke",
  "turn.get",
  "turn.give",
  "turn.release",
  "turn.request",
  "turn.seize",
  "turn.take",
  "turn.thaw",
  "turn.withdraw",
];
