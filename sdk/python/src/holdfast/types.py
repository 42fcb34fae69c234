# Made by generate.py from spec/schema.json: do not edit, run `python generate.py`.
"""What clients and a host say to each other. A newer host may add fields and words: both are let through."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field


class Model(BaseModel):
    """What all have in common."""

    model_config = ConfigDict(extra="allow", populate_by_name=True, protected_namespaces=())


class ActionCounts(Model):
    """The counts of one command."""
    action: str
    """The command, such as `make`."""
    runs: int
    """Those that promised something about their effects."""
    valid: int
    """Those that stayed within what they promised."""
    succeeded: int
    """Those that ended with an exit status that was expected."""
    unexpected: int
    """Those with effects beyond the contract."""
    unknown: int
    """Those of which it is not known."""
    last_unexpected: LastUnexpected | None = None
    """The last run with effects beyond its contract, and the first of them."""


class Actor(Model):
    """Who acts. The key is the identity; the handle is what people read, and what the actor says of itself: whether it may be believed is the host's to say."""
    id: ActorId
    """Its public key."""
    handle: Handle
    """Its handle."""


ActorId: TypeAlias = str
"""An actor's identity: its Ed25519 public key."""


class ActorParams(Model):
    """An actor by its handle."""
    handle: Handle
    """Class and name."""


class ActorView(Model):
    """An actor the host knows."""
    actor: Actor
    """Key and handle."""
    sessions: list[str] = Field(default_factory=list)
    """Sessions it is attached to now."""
    doing: list[Doing2] = Field(default_factory=list)
    """Its runs that are on and what its open requests wait for, in sessions the caller may observe; oldest first."""
    connected: list[Connected] = Field(default_factory=list)
    """Its connections to the host."""


class AnswerEvent(Model):
    """Event `answer`: this terminal shall answer the session's queries from an offset on. What it has already drawn beyond it, it leaves to the host: it reports where it really begins (`session.update`)."""
    client: int
    """The client's number."""
    from_: int = Field(..., alias="from")
    """Queries before this offset are the host's."""


class Answers(Model):
    """From where on a terminal answers queries, or no longer does. What lies between the two offsets it never saw."""
    on: bool
    """It does, or goes on to after a paint."""
    left: int
    """Everything before this offset it has seen."""
    from_: int = Field(..., alias="from")
    """It answers from this offset on."""


class ApprovalAnswerParams(Model):
    """What to answer."""
    approval: ApprovalId
    """The approval's id."""
    seen: Hash
    """The `hash` of what was read: an answer to something else is refused."""
    approve: bool
    """True: it may happen. False: it does not."""
    reason: str | None = None
    """What the actor that asked is to read."""
    minutes: int | None = None
    """With an approval: the same actor may do the same again under the same rule for so many minutes, at most 480."""
    proof: Proof | None = None
    """The actor's signature."""


ApprovalId: TypeAlias = str
"""An approval's identity for all time: `apr_` and 26 characters."""


class ApprovalListParams(Model):
    """Which held acts."""
    session: str | None = None
    """Those of one session; none: of all sessions the caller may observe, and its own."""
    all: bool = False
    """Those that are over too, as far as they are remembered."""


class ApprovalParams(Model):
    """Which held act."""
    approval: ApprovalId
    """Its id."""
    wait_ms: int = 0
    """Answer when it stands otherwise than now, or nothing more will become of it; at the latest after this long."""


ApprovalState: TypeAlias = Literal["open", "approved", "done", "failed", "denied", "expired"]
"""Where a held act stands. `open`: It waits for a human; `approved`: A human approved it, and the host is about to do it; `done`: It was approved and done. For a run: it is in the shell; `failed`: It was approved, and could not be done; `denied`: A human denied it; `expired`: Nobody answered in time, or its session ended: it is denied."""


class ApprovalView(Model):
    """A held act as clients see it."""
    id: ApprovalId
    """Identity."""
    by: Actor
    """Who wants it."""
    act: str
    """What kind of act: `run`, `start`, `signal`, `end`, `exec`."""
    command: str
    """The command line, as it was written: what shows it makes it harmless first."""
    cwd: str
    """Where it would run."""
    rule: str
    """The rule that asks."""
    why: str
    """What the rule asks."""
    risks: list[str]
    """What the command risks, in the words of policies."""
    writes: list[str]
    """Paths it would write; `?` stands for what is not known."""
    deletes: list[str]
    """Paths it would delete; likewise."""
    hash: Hash
    """The hash of all that, which an answer carries."""
    again: bool
    """It was approved before, and what it was about has changed since."""
    asked_ms: int
    """When it was asked for."""
    expires_at_ms: int
    """When it is denied without an answer."""
    state: ApprovalState | str
    """Where it stands."""
    session: SessionId | None = None
    """Its session; none where the act would start one."""
    name: SessionName | None = None
    """That session's name."""
    shapers: list[Shaper] = Field(default_factory=list)
    """Who else shaped what it would run, and by what."""
    answered_by: Actor | None = None
    """Who answered."""
    answered_ms: int | None = None
    """When."""
    reason: str | None = None
    """What the human said to it."""
    until_ms: int | None = None
    """Until when the same actor may do the same again under the same rule without being asked."""
    run: RunId | None = None
    """For a run: its id, which it has once it is done."""
    error: str | None = None
    """Why it failed."""


class ArriveAnswer(Model):
    """What came of it."""
    refused: list[str] = Field(default_factory=list)
    """`check`, `whole`: what is in the way."""
    home: MoveHome | None = None
    """`check`: the lease of this host, for a session that is leased."""
    session: SessionView | None = None
    """`finish`: the session."""
    cut: list[str] = Field(default_factory=list)
    """`finish`: connections that were cut."""


class ArriveParams(Model):
    """A step of a move, at the host to which a session is moved."""
    step: ArriveStep
    """What to do."""


class MoveOffer(Model):
    """What a session needs to go on elsewhere."""
    session: SessionId
    """Which session."""
    name: SessionName
    """Its name."""
    incarnation: int
    """Its life until now."""
    machine: str
    """The machine it comes from."""
    version: str
    """Holdfast there."""
    criu: str
    """CRIU there."""
    bytes: int
    """How much room it takes at most."""
    processes: int
    """How many processes."""
    mounts: list[str]
    """Mounts that it sees."""
    own: str
    """Where it sees its own directory."""
    state: str
    """Where it sees Holdfast's state directory."""
    run: str
    """Where it sees Holdfast's sockets."""
    processor: str
    """The processor, as CRIU describes it: `cpuinfo.img` in hexadecimal."""
    files: list[NeededFile]
    """Files that it needs."""
    cut: list[str] = Field(default_factory=list)
    """Connections that will be cut."""
    user: str | None = None
    """The user it runs as, where that is not root."""
    came_with: list[str] = Field(default_factory=list)
    """Keys with which it was moved before: who has one may have it back."""
    leased: bool = False
    """Its home is a lease, which is passed on with it."""


class MoveParcel(Model):
    """A session that stands still, and what is sent of it."""
    id: str
    """The move."""
    offer: MoveOffer
    """What it needs, as of now."""
    checkpoint: str
    """The checkpoint that is sent."""
    lock: str
    """SHA-256 of the key without which nobody begins its next life, in hexadecimal."""
    files: list[SentFile]
    """What is sent."""


SessionId: TypeAlias = str
"""A session's identity for all time."""


class ArriveStepCheck(Model):
    """Say what would be in the way."""
    check: dict[str, Any]


class ArriveStepBegin(Model):
    """Make room for it."""
    begin: dict[str, Any]


class ArriveStepWrite(Model):
    """Bytes of a file, which come with the message."""
    write: dict[str, Any]


class ArriveStepWhole(Model):
    """Look whether all of it is there, and as it was."""
    whole: dict[str, Any]


class ArriveStepFinish(Model):
    """It lives here now."""
    finish: dict[str, Any]


class ArriveStepGiveUp(Model):
    """Nothing comes of it."""
    give_up: dict[str, Any]


ArriveStep: TypeAlias = ArriveStepCheck | ArriveStepBegin | ArriveStepWrite | ArriveStepWhole | ArriveStepFinish | ArriveStepGiveUp
"""What the host to which a session is moved is to do."""


class AttachAnswer(Model):
    """Everything an attached terminal needs to go on by itself."""
    session: SessionView
    """The session."""
    client: int
    """The client's number there."""
    painted: Painted
    """What the bytes are."""
    ring: str
    """The ring file."""
    keeper: str
    """The keeper's socket."""
    token: str
    """The client's token, hexadecimal: it opens the keeper's door once, and a later host knows the client by it."""
    fence: Fence
    """The newest fence."""
    writes: bool
    """This client has the turn and writes under that fence, directly to the keeper."""
    answers: bool
    """This terminal answers the session's queries; the others filter them out."""
    has_history: bool
    """There are lines above the screen: ask for them by `session.paint`."""


class AttachParams(Model):
    """A terminal that wants to be attached."""
    session: str
    """Name or id."""
    size: Size
    """The terminal's size."""
    read_only: bool = False
    """It will not write."""
    tty: str = ''
    """The terminal's name."""
    pid: int = 0
    """The client's process."""
    env: list[str] = Field(default_factory=list)
    """Variables of the client that a session follows (`TERM`, `SSH_AUTH_SOCK`, …), `K=V` each. The host takes over those it names itself, and only from a human who may type, at a terminal of this machine that writes."""
    resume: Resume | None = None
    """What this client still has, after its host went away."""
    remote: bool = False
    """It types and reads through the host alone (`session.send`, `session.read`), shows the session in the session's own size, and leaves terminal queries to the host. Clients over a network do."""
    sizes: bool = False
    """With `remote`: it is a person's terminal, and its window gives the session its size as a local one's does."""
    draws: bool = False
    """It draws the session from a keyframe, whatever its size, and leaves terminal queries to the host."""


class Attempt(Model):
    """One attempt of a run that may be retried."""
    run: RunId
    """The run."""
    started_ms: int
    """When it began."""
    ended_ms: int | None = None
    """When it was over."""
    exit_code: int | None = None
    """Its status."""
    error: str | None = None
    """Why there was none, where it could not be begun."""


class Binding(Model):
    """A process or socket, and the act that started it."""
    of: Bound
    """What."""
    by: Known | str
    """How that is known."""
    act: int | None = None
    """The act's number in the session's journal."""
    actor: Actor | None = None
    """Who did it."""
    at_ms: int | None = None
    """When it was recorded."""


Blind: TypeAlias = Literal["nobody", "unreadable", "opaque", "too_many", "keeper", "damaged"]
"""Why nothing can be said. `nobody`: No live process has the terminal; `unreadable`: The process is another user's, or hides itself (sudo, ssh-agent). If the terminal is canonical without echo, a password is likely; the caller has the flags; `opaque`: What it waits for cannot be seen: io_uring, or a 32-bit program; `too_many`: There is too much to look at, and what was looked at says nothing; `keeper`: Its keeper does not answer, or is of a version this host does not know; `damaged`: Its files cannot be read."""


ProcessId: TypeAlias = str
"""A process: `p<pid>-<start>`. The kernel gives the pid to another one later, but not with the same start."""


SocketId: TypeAlias = str
"""A socket: `s<inode>`."""


Bound: TypeAlias = ProcessId | SocketId
"""What is bound."""


class BranchChange(Model):
    """A file that differs."""
    path: str
    """Its path; that of a directory ends with a slash."""
    how: HowChanged | str
    """How."""
    bytes: int = 0
    """Bytes of the new content."""


Category: TypeAlias = Literal["variable", "alias", "function", "option", "cwd", "path", "trap", "binding", "builtin", "hash", "setting"]
"""What kind of thing a name stands for. `variable`: An exported variable, and those that shape a shell without being exported: `PS1`, `PROMPT_COMMAND`, `IFS`, `CDPATH`; `alias`: An alias, or an abbreviation of fish. What fish calls an alias is a function; `function`: A function; `option`: An option that is on; those of zsh are all there, with `on` or `off`; `cwd`: The working directory; there is one; `path`: A directory in `PATH`; `trap`: A trap; `binding`: A key of the line editor that runs a command or types a text; `builtin`: A builtin that is switched off; `hash`: A name under which the shell remembers a program that is in no directory of `PATH` (`hash -p`); `setting`: A limit: `umask`."""


class Cause(Model):
    """Why a session was lost."""
    is_: Literal["reboot", "out_of_memory", "signal", "checkpoint", "unknown"] | str = Field(..., alias="is")
    """Which: the other fields follow from it."""
    number: int | None = None
    """The signal."""


Challenge: TypeAlias = str
"""What a host asks a connection to sign."""


class Changed(Model):
    """The act that changed something."""
    known: Known2 | str
    """How that is known."""
    at_ms: int
    """When the shell reported it."""
    act: int | None = None
    """The act's number in the session's journal."""
    run: RunId | None = None
    """The run it was done by."""
    key: str | None = None
    """That run's key."""
    actor: Actor | None = None
    """Who."""


Channel: TypeAlias = Literal["alias", "function", "variable", "path", "trap", "binding", "builtin", "hash", "setting", "file", "line", "job", "directory", "option"]
"""By what somebody shapes what another actor runs. `alias`: An alias, or an abbreviation of fish; `function`: A function of the shell; `variable`: A variable: `LD_PRELOAD`, `GIT_SSH_COMMAND`, `PROMPT_COMMAND`, or one that the line uses; `path`: A directory in `PATH` that has a program of that name; `trap`: A trap: `DEBUG`, `ERR`; `binding`: A key of the line editor; `builtin`: A builtin that was switched off or on; `hash`: A program that the shell remembers under another path (`hash -p`); `setting`: A limit of the shell's: its umask; `file`: A file that is executed: a script, a Makefile, a module, a git hook, an rc file; `line`: Text that stood at the prompt already; `job`: A process that goes on in the background; `directory`: The working directory; `option`: An option of the shell."""


class CheckAnswer(Model):
    """What a checkpoint of a session would refuse, cut and disturb now."""
    processes: int
    """How many processes it has."""
    refused: list[Obstacle] = Field(default_factory=list)
    """Why there can be no checkpoint now."""
    cut: list[Obstacle] = Field(default_factory=list)
    """Connections that would be cut in the copy."""
    noted: list[Obstacle] = Field(default_factory=list)
    """What else a person should know."""


class CheckpointListParams(Model):
    """Whose checkpoints to list."""
    session: str | None = None
    """Name or id; left out: of all sessions you may observe."""


class CheckpointParams(Model):
    """Which session to make a checkpoint of."""
    session: str
    """Name or id."""
    keep_running: bool = False
    """The session goes on. Left out: it stops, until it is restored. That needs the right `end` too."""
    proof: Proof | None = None
    """The actor's signature."""


class CheckpointRemoveParams(Model):
    """A checkpoint to remove."""
    session: str
    """Name or id of its session."""
    checkpoint: str
    """Its id."""
    proof: Proof | None = None
    """The actor's signature."""


class CheckpointView(Model):
    """A checkpoint."""
    id: str
    """Its id, `ckp_…`."""
    session: SessionId
    """Of which session."""
    name: SessionName
    """The session's name then."""
    at_ms: int
    """When it was made."""
    incarnation: int
    """In which of the session's lives."""
    size: Size
    """The terminal's size then."""
    bytes: int
    """What it takes up on disk."""
    still_ms: int
    """How long the processes stood still for it."""
    programs: list[str]
    """The programs in it, at most 64."""
    mounts: list[str]
    """Mounts of the machine that the session sees: they must be there when it is restored."""
    kernel: str
    """The kernel it was made on."""
    criu: str
    """The version of CRIU that made it."""
    cut: list[str] = Field(default_factory=list)
    """Connections that are cut once it is restored."""
    automatic: bool = False
    """The host made it by itself, and replaces it by later ones."""
    damaged: str | None = None
    """Why it cannot be used, where it cannot: damaged, or made by a later version."""


ClientToken: TypeAlias = str
"""What an attached client alone knows: the host made it up for this client, and the keeper repeats it to the next host."""


class ClientView(Model):
    """An attached client."""
    id: int
    """Its number in this session."""
    pid: int
    """Its process."""
    tty: str
    """Its terminal's name."""
    size: Size
    """Its terminal's size."""
    read_only: bool
    """It cannot write."""
    since_ms: int
    """Since when."""
    actor: Actor | None = None
    """Who; none until a client that outlived the last host has reported back."""


Code: TypeAlias = Literal["bad_request", "unknown_operation", "version", "not_found", "ambiguous", "name_taken", "ended", "lost", "unknown_keeper", "cannot_start", "ahead", "busy", "damaged", "unidentified", "unconfirmed", "bad_proof", "no_such_actor", "turn_held", "fence_stale", "denied", "frozen", "not_frozen", "not_holder", "not_attached", "no_such_grant", "too_wide", "too_long", "empty_grant", "too_many", "echo_on", "shell_busy", "key_conflict", "no_such_run", "no_such_token", "no_such_invite", "invite_over", "no_such_device", "no_such_relay", "too_fast", "too_large", "stopping", "no_such_question", "question_closed", "approval_needed", "no_such_approval", "approval_closed", "no_such_file", "outside_root", "not_a_file", "file_changed", "unrecorded", "internal"]
"""What went wrong, for programs. Codes are never renamed. `bad_request`: The message is not JSON-RPC, or its parameters do not fit the operation; `unknown_operation`: There is no such operation; `version`: No protocol version both sides speak; `not_found`: No session has that name or id; `ambiguous`: An id prefix fits several sessions; `name_taken`: A live session has that name already; `ended`: The session has ended; `lost`: The session was lost; it can be recovered; `unknown_keeper`: The session's keeper speaks a version this host does not know; `cannot_start`: The host could not start the command, enter its directory, or create the session's files; `ahead`: The offset asked for does not exist yet; `busy`: The terminal takes no more input now; `damaged`: A file of the session is damaged; `unidentified`: The connection has not proven who speaks, or the proof does not hold; `unconfirmed`: The process runs inside a session or was started by an agent, and the human has not confirmed that it is theirs; `bad_proof`: A signature over an act does not fit it; `no_such_actor`: The host knows no such actor; `turn_held`: Another actor has the turn; `fence_stale`: The turn has changed since this was written; `denied`: The actor may not do that; `frozen`: The session is frozen; `not_frozen`: The session is not frozen; `not_holder`: Only the holder of the turn can do that; `not_attached`: The client is not attached, or is another actor's; `no_such_grant`: There is no such grant now; `too_wide`: A grant wider than its giver's envelope; `too_long`: A grant that would outlast its giver's envelope; `empty_grant`: A grant of nothing; `too_many`: A bound of the session is reached; `echo_on`: A secret would be shown: the terminal's echo is on; `shell_busy`: The session's shell is not at an idle prompt, or the host cannot know; `key_conflict`: The key of a run was used for something else; `no_such_run`: There is no such run; `no_such_token`: There is no such token; `no_such_invite`: There is no such invite; `invite_over`: The invite was used, has expired, or was revoked; `no_such_device`: There is no such device; `no_such_relay`: There is no such relay, or none at all; `too_fast`: Too many requests in this time; `too_large`: The request is too large; `stopping`: The host is stopping; its sessions keep running; `no_such_question`: There is no such question; `question_closed`: The question was answered, withdrawn, or is over; `approval_needed`: A human must approve this first: it is held under the approval in the details; `no_such_approval`: There is no such approval; `approval_closed`: The approval was answered, or is over; `no_such_file`: There is no such file or directory, or nothing to undo; `outside_root`: The path leaves the session's working tree, or is Holdfast's own; `not_a_file`: It is not a file that can be read or written so: a directory, a device, a pipe; `file_changed`: The file is not as the caller expected it; `unrecorded`: The host cannot record the act, so it does not perform it; `internal`: Unexpected error in the host."""


class Conflict(Model):
    """A file that changed on both sides."""
    path: str
    """Its path."""
    why: str
    """Why."""


class Connected(Model):
    """A connection of an actor's."""
    program: str
    """The program and its version, as it says itself; may be empty."""
    since_ms: int
    """Since when."""


class Contract(Model):
    """What a run promises."""
    intent: str | None = None
    """Why it is run, in a sentence."""
    expect: Expectations | None = None
    """What it may do. What is left out is not promised."""
    idempotent: bool = False
    """Running it twice does no more than running it once."""
    retries: int = 0
    """How often it is run again after it failed, at most 10; only where it is idempotent."""
    backoff_ms: int | None = None
    """The pause before the first retry, in milliseconds (1000); it doubles with each."""


class CostParams(Model):
    """Of which sessions."""
    session: str | None = None
    """Name or id; none: of every session the caller may observe that runs."""


class CostView(Model):
    """What a session takes up, and when somebody last used it."""
    session: SessionId
    """Which session."""
    name: SessionName
    """Its name."""
    memory_bytes: int
    """Memory of its keeper and its processes. What is shared with others counts in parts, where the kernel tells."""
    processes: int
    """Its processes, without the keeper."""
    disk_bytes: int
    """Blocks on disk of its ring, history, journal and other files."""
    created_ms: int
    """When it started."""
    memory_estimated: bool = False
    """The kernel told of some processes only what they have resident, or nothing: the true number is another one."""
    attached_ms: int | None = None
    """When somebody was attached last; none: nobody was, as far as the host knows. Somebody who is attached counts as now."""
    looked_ms: int | None = None
    """When somebody last looked at its screen, its output or its journal."""


class CreditParams(Model):
    """How much more may be sent."""
    follow: int
    """The number given to `session.follow`."""
    bytes: int
    """Bytes on top of what was granted before."""


class Decision(Model):
    """By which rule a run was let through."""
    outcome: str
    """`allow`, or `off` where nothing is judged."""
    took_us: int
    """How long the decision took, facts and all, in microseconds."""
    rule: str | None = None
    """The rule."""
    approval: str | None = None
    """What a human approved."""


class Defaults(Model):
    """What actors hold in a session before anything is granted or revoked."""
    spawner: Rights = 'observe,type,run,start,signal,seize,grant,approve,checkpoint,fork,end,configure,files:read,files:write'
    """The first grant, to the actor that starts a session."""
    human: Rights = 'observe,type,run,start,signal,seize,grant,approve,checkpoint,fork,end,configure,files:read,files:write'
    """Humans the host vouches for."""
    agent: Rights = 'observe,type,run,start,files:read,files:write'
    """Agents."""
    service: Rights = ''
    """Services."""
    device: Rights = ''
    """Devices."""
    unknown: Rights = ''
    """Actors that the host does not know, whatever their handle."""


Depth: TypeAlias = Literal["processes", "sockets", "full"]
"""How much a snapshot reads; each includes the ones before. `processes`: The processes: what `ps` shows; `sockets`: Their sockets too: what `ss -p` shows. Other descriptors are not listed; `full`: All descriptors, with positions and locks: what `lsof` shows."""


class DetachAnswer(Model):
    """Who was detached."""
    clients: list[int]
    """Their numbers."""


class DetachParams(Model):
    """Whom to detach."""
    session: str
    """Name or id."""
    clients: list[int]
    """Clients by their numbers."""
    proof: Proof | None = None
    """The actor's signature."""


class DetachedEvent(Model):
    """Event `detached`: the host asks a client to leave its terminal."""
    client: int
    """The client's number."""


class DetectQuiet(Model):
    """No output for this long, in milliseconds."""
    quiet: int


class DetectPrompt(Model):
    """The last line fits this regular expression."""
    prompt: str


Detect: TypeAlias = DetectQuiet | DetectPrompt
"""How to detect the end in a shell that does not report it."""


class DeviceParams(Model):
    """Which device."""
    device: str
    """Its id, or its actor's handle."""


class DeviceView(Model):
    """A device as it is listed."""
    id: str
    """Identity: no secret."""
    actor: Actor
    """Its actor."""
    can: Rights
    """The most it may do."""
    by: Handle
    """Who invited it."""
    created_ms: int
    """When it was enrolled."""
    connections: int
    """How many connections it has now."""
    session: SessionId | None = None
    """The session it was invited to; none: the whole host."""
    until_ms: int | None = None
    """When its access ends; none: when it is revoked."""


class DirectParams(Model):
    """Where a host shall listen itself."""
    listen: str | None = None
    """`IP:PORT`; none: nowhere."""
    addresses: list[str] = Field(default_factory=list)
    """Where others find it, as `NAME:PORT`; none: at the machine's own address."""


class DirectView(Model):
    """Where a host listens itself."""
    listen: str
    """`IP:PORT`."""
    addresses: list[str]
    """Where its devices are told to find it."""
    up: bool
    """It listens."""
    why: str | None = None
    """Why it does not."""


Kind: TypeAlias = Literal["line", "password", "repl", "choice"]
"""What a client waits for. `line`: A line that shows while it is typed; `password`: A line that does not; `repl`: Keys, on the main screen: a program with its own line editor; `choice`: One of a few answers; only by `Doing::with_screen`."""


class Doing(Model):
    """What a session is doing, and which process says so."""
    doing: Literal["idle_prompt", "running", "waiting", "full_screen", "blocked_elsewhere", "stopped", "unknown"] | str
    """Which: the other fields follow from it."""
    pid: int | None = None
    """The shell. / One that does. / Who. / The first of them. / Who cannot be seen."""
    kind: Kind | str | None = None
    """For what."""
    why: Blind | str | None = None
    """Why."""


class Doing2(Model):
    """What an actor is doing in a session."""
    session: SessionId
    """Which session."""
    name: SessionName
    """Its name."""
    text: str
    """For people: `run: make`, `waits for port 80`."""
    since_ms: int
    """Since when."""


class Effects(Model):
    """What a run did."""
    files: FileEffects
    """To files."""
    processes: list[LeftProcess]
    """Processes it left behind."""
    ports: list[int]
    """Ports it listens on at its end, or was seen to listen on before."""
    connections: list[str]
    """Connections beyond this machine, as `ADDRESS:PORT`."""
    files_measured: Measure
    """How files were measured."""
    processes_measured: Measure
    """How processes were."""
    ports_measured: Measure
    """How ports were: those at its end."""
    network_measured: Measure
    """How connections were."""


End: TypeAlias = Literal["read", "write", "both"]
"""An end of a pipe. `read`: What is written comes out here; `write`: What is written goes in here; `both`: A named pipe that was opened for both."""


class EndParams(Model):
    """How to end."""
    session: str
    """Name or id."""
    grace_ms: int = 5000
    """Time from SIGHUP to SIGKILL, 5 seconds by default; a frozen session is killed at once."""
    proof: Proof | None = None
    """The actor's signature."""


class EnvAnswer(Model):
    """What a session's shell is made of, against what it started with."""
    session: SessionId
    """Whose."""
    name: SessionName
    """Its name."""
    integration: bool
    """Its command is a shell that reports its names."""
    entries: list[EnvEntry]
    """By category and name."""
    since_ms: int | None = None
    """When it first reported: later changes are compared with that. None: it has not."""
    partial: bool = False
    """It has more names than the host keeps: some changes may be missing."""


class EnvEntry(Model):
    """One name."""
    category: Category | str
    """Its kind."""
    name: str
    """Its name; `cwd` for the working directory."""
    gone: bool
    """It was there when the shell started, and is no more."""
    hash: str | None = None
    """Of its value, under a key that only this session's files have: tells two values apart and nothing else. None: it is gone."""
    changed: Changed | None = None
    """Who made it what it is now. None: it is as it was when the shell started."""


class EnvParams(Model):
    """Which session's shell, and how much of it."""
    session: str
    """Name or id."""
    all: bool = False
    """Also what is as it was when the shell started."""


class Event(Model):
    """Something that happened in a session."""
    seq: int
    """Its number."""
    at_ms: int
    """When."""
    session: SessionId
    """Where."""
    name: SessionName
    """Its name then."""
    event: Literal["started", "state", "exit", "turn", "turn_requested", "asked", "answered", "question_closed", "recovered", "held", "held_closed", "reap_soon", "reap_averted", "reaped", "renamed", "run_started", "run_ended", "listen", "not_listening", "attached", "detached"] | str
    """Which: the other fields follow from it."""
    by: Handle | None = None
    """Who started it. / By whom. / Who. / Who withdrew it. / Who wants it. / Who answered. / Who gave it. / Whose. / Whose act started it, where that is known."""
    pid: int | None = None
    """The process that says so. / The oldest process that holds it."""
    since_ms: int | None = None
    """Since when."""
    kind: Kind | SocketKind | str | None = None
    """For what. / `stream` is TCP, `dgram` is UDP."""
    prompt: str | None = None
    """What the screen shows before the cursor."""
    exit: Exit | None = None
    """How."""
    why: Blind | ReapWhy | str | None = None
    """Why. / What that rule asks."""
    state: RunState | str | None = None
    """Which: the other fields follow from it. / `withdrawn` or `expired`. / `approved`, `done`, `failed`, `denied` or `expired`. / `ended`, `cancelled` or `lost`."""
    holder: Handle | None = None
    """Who."""
    question: QuestionId | None = None
    """The question."""
    text: str | None = None
    """What; of a long question the beginning. / What; of a long answer the beginning."""
    options: list[str] | None = None
    """What can be answered; none: any text."""
    option: int | None = None
    """Which option that is, from 0."""
    incarnation: int | None = None
    """Which."""
    checkpoint: str | None = None
    """The checkpoint that its processes came back from."""
    cut: list[str] | None = None
    """Connections of theirs that were cut."""
    approval: ApprovalId | None = None
    """The approval."""
    command: str | None = None
    """What; of a long command the beginning."""
    rule: str | None = None
    """The rule that asks."""
    reason: str | None = None
    """What they said to it."""
    ends_ms: int | None = None
    """When, if nobody uses or keeps it until then."""
    from_: SessionName | None = Field(None, alias="from")
    """The name before."""
    run: RunId | None = None
    """The run."""
    act: int | None = None
    """The act's number in the session's journal."""
    exit_code: int | None = None
    """Its status, where it is known."""
    socket: SocketId | None = None
    """The socket."""
    address: str | None = None
    """Address and port."""
    port: int | None = None
    """The port alone."""
    argv: list[str] | None = None
    """That one's words."""
    known: Known | str | None = None
    """How that is known."""
    client: int | None = None
    """Its number."""


class ExitCode(Model):
    """It returned this status."""
    code: int


class ExitSignal(Model):
    """A signal ended it."""
    signal: int


Exit: TypeAlias = ExitCode | ExitSignal | Literal["lost"]
"""How a session's command ended."""


class Expectations(Model):
    """What a run may do."""
    exit: list[int] = Field(default_factory=list)
    """Exit statuses that count as success; empty: 0."""
    may_change: list[str] | None = None
    """Files it may create, change, delete or move: patterns relative to its directory, or absolute. `*` stands for part of a name, `**` for any directories. Empty: none."""
    ports: list[int] | None = None
    """Ports it may listen on. Empty: none."""
    processes: int | None = None
    """How many processes it may leave running."""
    network: list[str] | None = None
    """Where it may connect to beyond this machine: patterns of `ADDRESS:PORT`, such as `*:443`. Empty: nowhere."""


Family: TypeAlias = Literal["inet", "inet6", "unix"]
"""A socket's address family. `inet`: IPv4; `inet6`: IPv6, which may take IPv4 too; `unix`: On this machine."""


class Fault(Model):
    """A refusal or failure as it is sent."""
    code: Code | str
    """For programs."""
    message: str
    """For people: lower case, no full stop."""
    hint: str = ""
    """What to do about it; may be empty."""
    details: Any = None
    """What belongs to the code: who has the turn, which right is missing. Apart, since every refusal that is passed on is this large."""


FdKind: TypeAlias = Literal["file", "dir", "pipe", "socket", "tty", "memfd", "anon", "device", "unknown"]
"""What a descriptor is of. `file`: A regular file; `dir`: A directory; `pipe`: A pipe, named or not; `socket`: A socket; `tty`: A terminal; `memfd`: A file in memory without a name; `anon`: Something of the kernel's: epoll, eventfd, pidfd; `device`: A device that is no terminal; `unknown`: We may not know."""


class FdNode(Model):
    """One open descriptor of a process."""
    fd: int
    """Its number."""
    kind: FdKind | str
    """What it is of."""
    path: str | None = None
    """Its path, or the kernel's name for what has none; nothing for sockets and unnamed pipes."""
    deleted: bool = False
    """The file has no name any more; its space goes when the last descriptor does."""
    offset: int | None = None
    """Where in a regular file it stands."""
    read: bool | None = None
    """Open for reading."""
    write: bool | None = None
    """Open for writing."""
    append: bool | None = None
    """Writes go to the end; read for regular files only."""
    locks: list[Lock] = Field(default_factory=list)
    """Locks held through it, the first `LOCKS_MAX`."""
    target: Target | None = None
    """The socket or pipe."""


Fence: TypeAlias = int
"""A number that grows with each change of turn or incarnation; a write with an old fence is dropped."""


class FileChange(Model):
    """A write to a file through the host."""
    id: int
    """Its number in the session."""
    path: str
    """The file, without links."""
    by: Handle
    """Who wrote it."""
    at_ms: int
    """When."""
    size: int
    """Bytes in the file after."""
    can_undo: bool
    """The bytes before are kept: it can be undone."""
    can_diff: bool
    """The bytes before and after are kept: it can be shown as a diff."""
    before: Hash | None = None
    """The hash before; absent: there was no file."""
    before_kind: HashKind | str | None = None
    """How that was hashed; absent: SHA-256."""
    after: Hash | None = None
    """The hash after; absent: there is no file."""
    after_kind: HashKind | str | None = None
    """How that was hashed; absent: SHA-256."""
    undoes: int | None = None
    """The number of the write that this one undid."""


class FileEffects(Model):
    """What became of files. Of long lists the beginning."""
    created: list[str] = Field(default_factory=list)
    """New ones."""
    changed: list[str] = Field(default_factory=list)
    """Written to, replaced, or with other attributes."""
    deleted: list[str] = Field(default_factory=list)
    """Gone."""
    moved: list[Moved] = Field(default_factory=list)
    """Under another name."""
    count: int = 0
    """How many in all."""
    passing: int = 0
    """Created and deleted again; not in the lists."""


class FileEntry(Model):
    """A file or directory."""
    name: str
    """Its name; where that is not UTF-8, the nearest text."""
    kind: FileKind | str
    """What it is."""
    size: int
    """Bytes in it."""
    modified_ms: int
    """When it last changed."""
    mode: int
    """Its permissions, as in chmod(1)."""
    target: str | None = None
    """Where a link points."""


FileKind: TypeAlias = Literal["file", "dir", "link", "special"]
"""What an entry is. `file`: A file; `dir`: A directory; `link`: A symbolic link; `special`: A pipe, a socket or a device, which is never opened."""


class FilesChangesParams(Model):
    """Which writes to list."""
    session: str
    """Name or id."""


class FilesDiffAnswer(Model):
    """What a write changed."""
    change: FileChange
    """The write."""
    diff: str | None = None
    """What it changed, as a unified diff; absent: the bytes are not kept, or are no text."""


class FilesDiffParams(Model):
    """Which write to show."""
    session: str
    """Name or id."""
    change: int
    """Its number."""


class FilesEditAnswer(Model):
    """What an edit came to."""
    change: FileChange
    """The write."""
    diff: str
    """What it changed, as a unified diff."""


class FilesEditParams(Model):
    """What to replace in a file."""
    session: str
    """Name or id."""
    path: str
    """A path from the session's live working directory on, or an absolute one."""
    old: str
    """The text that is there now. It must be there exactly once."""
    new: str
    """What stands there after."""


class FilesListAnswer(Model):
    """A page of a directory, in the order of the names' bytes; for a file, its one entry."""
    path: str
    """The directory, or the file, without links."""
    root: str
    """The top of the working tree: nothing above it can be reached."""
    cwd: str
    """The session's live working directory, where it is in that tree."""
    is_dir: bool
    """It is a directory."""
    entries: list[FileEntry]
    """This page."""
    next: str | None = None
    """Where the next page begins; absent: this is the last."""


class FilesListParams(Model):
    """Which directory to list."""
    session: str
    """Name or id."""
    path: str | None = None
    """A path from the session's live working directory on, or an absolute one; left out: that directory."""
    after: str | None = None
    """`next` of the page before."""
    limit: int | None = None
    """Entries of this page, at most 1000."""


class FilesReadAnswer(Model):
    """A piece of a file; its bytes belong to the answer."""
    path: str
    """The file, without links."""
    size: int
    """Bytes in the whole file."""
    modified_ms: int
    """When it last changed."""
    mode: int
    """Its permissions, as in chmod(1)."""
    etag: str
    """Changes whenever the file does."""
    offset: int
    """The first byte of this piece."""
    end: bool
    """The file ends with this piece."""


class FilesReadParams(Model):
    """Which part of a file to read."""
    session: str
    """Name or id."""
    path: str
    """A path from the session's live working directory on, or an absolute one."""
    offset: int = 0
    """The first byte."""
    max: int | None = None
    """Bytes of this piece, at most 4 MiB; left out: as many as that. 0 tells size and etag alone."""
    etag: str | None = None
    """The file as it was read before; where it is another by now, the answer is `file_changed`."""


class FilesUndoParams(Model):
    """Whose last write to undo."""
    session: str
    """Name or id."""
    path: str | None = None
    """The file; left out: the one you wrote last."""


class FilesUploadAnswer(Model):
    """How far an upload is."""
    offset: int
    """Bytes that arrived: the next piece begins here."""
    change: FileChange | None = None
    """The write, once it was finished."""


class FilesUploadParams(Model):
    """A piece of an upload; its bytes belong to the question. The same session, path, size and tag are the same upload: whoever was cut off asks without bytes where it stands, and goes on from there."""
    session: str
    """Name or id."""
    path: str
    """A path from the session's live working directory on, or an absolute one."""
    size: int
    """Bytes in the whole file."""
    tag: str
    """What tells this content from another of the same size: 1 to 64 letters and digits of the caller's choice."""
    offset: int | None = None
    """Where this piece begins; left out: tell how far the upload is."""
    descriptor: int | None = None
    """A descriptor of the asking process, from which the host takes the piece itself. For clients at the host's own socket."""
    finish: bool = False
    """Everything was sent: put the file in its place."""
    hash: Hash | None = None
    """The SHA-256 of the whole file. Where what arrived has another, it is thrown away. A file of more than 64 MiB is read once more for it."""
    mode: int | None = None
    """The permissions of a new file, as in chmod(1); left out: 0644. A file that exists keeps its own."""


class FilesWriteParams(Model):
    """A file to write, whole; its bytes belong to the question."""
    session: str
    """Name or id."""
    path: str
    """A path from the session's live working directory on, or an absolute one."""
    mode: int | None = None
    """The permissions of a new file, as in chmod(1); left out: 0644. A file that exists keeps its own."""
    etag: str | None = None
    """Write only while the file has this etag, from `files.read`."""
    new: bool = False
    """Write only where there is no file yet."""


class FlowAnswerParams(Model):
    """An answer to a flow's question."""
    flow: str
    """Of which flow."""
    text: str
    """The answer."""
    step: int | None = None
    """The step that asks, from 1; none: the only one that does."""


class FlowCancelParams(Model):
    """Which flow, and why."""
    flow: str
    """Its id."""
    reason: str = ""
    """Why."""


class FlowChild(Model):
    """A flow that a step started."""
    n: int
    """The step's number, from 0."""
    id: str
    """The flow."""
    name: str
    """What kind of flow it is."""
    status: str
    """What it is doing."""


class FlowGetParams(Model):
    """Which flow, and how much of its history."""
    flow: str
    """Its id."""
    after: int = 0
    """Events of its history that are known already."""
    wait_ms: int = 0
    """Answer once there are more than that, or it has ended; at the latest after this long, a minute at most."""
    generation: int | None = None
    """Which of its histories, from 1; by default the one that goes on."""


class FlowListParams(Model):
    """Which flows."""
    all: bool = False
    """Those that have ended too."""
    after: int = 0
    """Only those that changed later than this: the largest `changed` that is known."""
    wait_ms: int = 0
    """Answer once there are some; at the latest after this long, a minute at most."""


class FlowRetryParams(Model):
    """Which flow, and what is decided about it."""
    flow: str
    """Its id."""
    verdict: str = ""
    """About a stuck step: `again` (the default), `failed` or `done`."""
    value: Any = None
    """With `done`: what the step gave, as JSON."""


class FlowSignalParams(Model):
    """A signal."""
    flow: str
    """To which flow."""
    name: str
    """Its name."""
    value: Any = None
    """What it says, as JSON."""
    id: str = ""
    """The same id counts once."""


class FlowStartParams(Model):
    """What is started."""
    definition: str | None = None
    """A definition in YAML; or else a name."""
    name: str | None = None
    """The name of a flow in code, which a worker of the same actor decides about."""
    flow: str | None = None
    """Its id; the same id, code and input find the flow that was started before. None: its name and a number."""
    input: Any = None
    """What it is given, as JSON."""
    cwd: str | None = None
    """Where its new sessions start."""
    skip_timers: bool = False
    """It does not wait for its timers: somebody tries it out."""


class FlowView(Model):
    """A flow."""
    id: str
    """Its id."""
    name: str
    """What kind of flow it is."""
    by: str
    """Who started it."""
    started_ms: int
    """When."""
    state: str
    """`deciding`, `waiting`, `blocked`, `undoing`, `completed`, `failed`, `cancelled` or `continued`."""
    status: str
    """The same for people, with what it waits for."""
    events: int
    """How many events its history has."""
    ended_ms: int | None = None
    """When it ended."""
    value: Any = None
    """What it gave, or why it failed."""
    why: str | None = None
    """Why it is blocked."""
    changed: int = 0
    """Grows with each change of any flow; a question for what is new names the largest."""
    generation: int = 1
    """Which history under this id it is, from 1."""
    parent: str | None = None
    """The flow whose step started it."""
    existing: bool = False
    """It was there before, and nothing was started."""
    waits_for: list[FlowWait] = Field(default_factory=list)
    """What it waits for."""
    children: list[FlowChild] = Field(default_factory=list)
    """Flows that its steps started."""
    history: list[dict[str, Any]] = Field(default_factory=list)
    """Events of its history, as `spec/flows.md` has them."""


class FlowWait(Model):
    """One thing that a flow waits for."""
    n: int
    """The command's number, from 0."""
    name: str
    """The step's name."""
    kind: str
    """`run`, `sleep`, `until`, `ask`, `signal`, `wait` or `child`."""
    since_ms: int
    """Since when."""
    until_ms: int | None = None
    """When it ends by itself."""
    attempt: int = 1
    """Which attempt, from 1."""
    stuck: str | None = None
    """What only a human can decide."""
    question: str | None = None
    """The question."""
    options: list[str] = Field(default_factory=list)
    """What can be answered."""
    session: str | None = None
    """The session it runs in."""
    flow: str | None = None
    """The flow that the step started."""
    held_up: str | None = None
    """Why it does not go on for the moment."""


class FollowParams(Model):
    """Which output to follow."""
    session: str
    """Name or id."""
    follow: int
    """The client's number for it, which the events carry; free on this connection."""
    from_: int | None = Field(None, alias="from")
    """First offset wanted; none: the oldest there is."""
    credit: int = 0
    """Bytes that may be sent; more are granted by `session.credit`."""


class ForkAnswer(Model):
    """Branches that run."""
    branches: list[SessionView]
    """The branches."""
    still_ms: int
    """How long the session stood still for it."""
    cut: list[str] = Field(default_factory=list)
    """Connections that are cut in them. What was sent before the fork was sent."""


class ForkDiffAnswer(Model):
    """Files that differ."""
    changes: list[BranchChange]
    """The files, by path."""
    more: bool = False
    """There are more than are listed."""
    patch: str | None = None
    """The unified diff, for `patch -p1`."""


class ForkDiffParams(Model):
    """Of which branch the changed files are wanted."""
    session: str
    """Name or id of the branch."""
    with_: str | None = Field(None, alias="with")
    """Another branch to compare with; left out: the real files."""
    patch: bool = False
    """Also what is in text files, as a unified diff. Needs the right `fork` in each branch."""


class ForkDiscardParams(Model):
    """A branch that nobody wants."""
    session: str
    """Name or id."""
    proof: Proof | None = None
    """The actor's signature."""


class ForkKeepAnswer(Model):
    """What was applied of a branch."""
    applied: list[BranchChange]
    """Files that were applied; none where some conflict."""
    conflicts: list[Conflict] = Field(default_factory=list)
    """Files that changed since the fork, for each of which a choice is needed: `take` or `leave`."""


class ForkKeepParams(Model):
    """Which branch's files to apply."""
    session: str
    """Name or id of the branch."""
    into: str | None = None
    """Copy created and changed files below this directory, and touch nothing else; it must be empty, or not there."""
    take: list[str] = Field(default_factory=list)
    """Of conflicting files, those of which the branch's version is taken."""
    leave: list[str] = Field(default_factory=list)
    """Files that are left as they are."""
    proof: Proof | None = None
    """The actor's signature."""


class ForkParams(Model):
    """Which session to fork."""
    session: str
    """Name or id."""
    count: int | None = None
    """How many branches, 1 to 8; left out: 2, or as many as names are given."""
    names: list[SessionName] = Field(default_factory=list)
    """Their names; left out: the session's name with a number."""
    share_network: bool = False
    """The branches have the machine's network. Ports that the session listens on are taken, so this is for sessions without any. Left out: each has a network of its own, with nothing but a loopback."""
    proof: Proof | None = None
    """The actor's signature."""


class ForkedView(Model):
    """What a branch is a copy of."""
    session: SessionId
    """The session."""
    name: SessionName
    """Its name then."""
    at_ms: int
    """When."""
    seq: int
    """The number of the record in its journal by which the branch was asked for."""
    hash: Hash
    """That record's hash."""
    cut: list[str] = Field(default_factory=list)
    """Connections that were cut in the branch."""
    own_network: bool = False
    """It has a network of its own."""


Form: TypeAlias = Literal["repaint", "keyframe"]
"""How the bytes of an answer describe the screen. `repaint`: Escape sequences for a cleared terminal of the session's size; `keyframe`: A keyframe: for a client that draws the session's screen on a terminal of another size."""


class FrozeView(Model):
    """A tree that was stopped."""
    how: str
    """`cgroup` or `signals`."""
    processes: int
    """So many processes."""
    us: int
    """Microseconds from the request."""
    refused: list[int] = Field(default_factory=list)
    """These refused to be stopped: they run with other rights than the host."""


class FrozenView(Model):
    """A frozen session."""
    by: Actor
    """By whom."""
    since_ms: int
    """Since when."""


class Gap(Model):
    """Output that is gone."""
    from_: int = Field(..., alias="from")
    """First offset lost."""
    to: int
    """First offset there is again."""


class GiveParams(Model):
    """Hands the turn over."""
    session: str
    """Name or id."""
    to: Actor
    """To whom."""
    client: int | None = None
    """The giver's attached client."""
    proof: Proof | None = None
    """The actor's signature."""


class GrantParams(Model):
    """Passes rights on."""
    session: str
    """Name or id."""
    to: Actor
    """To whom."""
    rights: Rights
    """What."""
    until_ms: int | None = None
    """Until when; none: as long as the giver holds them."""
    proof: Proof | None = None
    """The actor's signature."""


class GrantView(Model):
    """A live grant."""
    id: int
    """Its number in the session."""
    to: Actor
    """To whom."""
    rights: Rights
    """What."""
    at_ms: int
    """When it was made."""
    by: Actor | None = None
    """By whom; none: made when the session started."""
    until_ms: int | None = None
    """Until when."""


class GrantsAnswer(Model):
    """What was granted, and what classes hold by themselves."""
    grants: list[GrantView]
    """Live grants, oldest first."""
    defaults: Defaults
    """What each class holds here without a grant."""
    you: Actor
    """Who asked."""
    yours: Rights
    """What it may do now."""
    barred: list[ActorId] = Field(default_factory=list)
    """Actors that no longer have the rights of their class."""


class GraphAnswer(Model):
    """A session's graph, its terminal, and whose act started what."""
    session: SessionId
    """Whose."""
    name: SessionName
    """Its name."""
    terminal: TerminalView
    """Its terminal."""
    at_ms: int
    """When it was taken, in milliseconds since the Unix epoch."""
    depth: Depth | str
    """How much was read."""
    processes: list[ProcessNode]
    """Parents before their children."""
    sockets: list[SocketNode]
    """By inode."""
    pipes: list[PipeNode]
    """By inode."""
    partial: bool
    """Something is missing that is there: a limit cut it, or we may not read it. Its node says which."""
    bindings: list[Binding]
    """The act that started each process and each socket, in the graph's order."""
    doing: Doing | None = None
    """What the session is doing, and which process says so."""


class GraphEvent(Model):
    """One thing that happened."""
    seq: int
    """Its number; grows, over hosts too."""
    at_ms: int
    """When the host learnt of it."""
    event: Literal["fork", "exec", "exit", "listen", "connect", "not_listening", "closed"] | str
    """Which: the other fields follow from it."""
    pid: int | None = None
    """The new one. / Who."""
    parent: int | None = None
    """Who made it."""
    argv: list[str] | None = None
    """Its words now; empty where it was gone before they could be read."""
    code: int | None = None
    """Its status; none if the shell did not report it."""
    signal: int | None = None
    """The signal that ended it."""
    socket: SocketId | None = None
    """The socket."""
    kind: SocketKind | str | None = None
    """`stream` is TCP, `dgram` is UDP."""
    address: str | None = None
    """Address and port."""
    holders: list[ProcessId] | None = None
    """Who holds the socket."""
    local: str | None = None
    """Our address."""
    remote: str | None = None
    """The other side's."""


class GraphParams(Model):
    """Which session's graph, and how much of it."""
    session: str
    """Name or id."""
    depth: Depth | str = 'full'
    """How much is read; all of it where nothing is said."""


Handle: TypeAlias = str
"""A class and a name: `human:ann`, `agent:claude`."""


class HandoverAnswer(Model):
    """What others changed since the caller wrote last before they did, or since the session started."""
    session: SessionId
    """Which session."""
    name: SessionName
    """Its name."""
    since_ms: int
    """When that was, or when the session started."""
    from_: list[Handle] = Field(..., alias="from")
    """Who else wrote since."""
    changed: list[HandoverChange]
    """What they changed, and what goes on: the shell's names, the directory, files that will be executed, text at the prompt, processes in the background."""
    summary: str
    """All of it in a line; empty: nothing changed."""
    since_act: int | None = None
    """The caller's last act there; none: it never wrote."""
    missing: list[str] = Field(default_factory=list)
    """What could not be looked at, or is not told."""


class HandoverChange(Model):
    """One change."""
    by: Channel | str
    """By what."""
    name: str
    """Its name, or path."""
    known: str
    """How that is known: `run`, `time`, `cgroup`, `lineage`, `log`, `kernel`, `written` or `unknown`."""
    at_ms: int
    """When."""
    actor: Actor | None = None
    """Who; none: it cannot be known."""
    act: int | None = None
    """By which act of the session's journal, where that is known and the session is this one."""
    gone: bool = False
    """It was there before, and is no more."""


Hash: TypeAlias = str
"""The BLAKE3 hash of a journal record, or of a question as it was read."""


HashKind: TypeAlias = Literal["sha256", "blake3"]
"""How a file was hashed. `sha256`: SHA-256: files of at most 64 MiB; `blake3`: BLAKE3, with 32 bytes: larger files, whose SHA-256 takes longer than all the rest of a transfer."""


class HelloAnswer(Model):
    """The version both will speak."""
    version: int
    """The newest both know."""
    program: str
    """The host program's version."""
    challenge: Challenge
    """What an actor signs to prove on this connection that it is itself (`identify`)."""
    inside: Inside | None = None
    """Where the host found the process that connected, if that is no place of a person: no human is taken at its word there."""
    direct: list[str] = Field(default_factory=list)
    """Addresses, as `NAME:PORT`, where the host can be reached without a relay: for devices of the whole host that came through one."""


class HelloParams(Model):
    """Versions the client speaks, and what it is."""
    versions: list[int]
    """Protocol versions, any order."""
    program: str = ''
    """Program and version, for the host's log."""


class HistoryPlace(Model):
    """A place in a session's history. It means something to the host that named it, and nothing to the next one."""
    count: int
    """Whose counting it is."""
    lines: int
    """Lines before this place."""


class HolderView(Model):
    """Who has the turn."""
    actor: Actor
    """Who."""
    since_ms: int
    """Since when."""
    active_ms: int
    """When it last wrote."""
    how: str
    """`wrote`, `asked`, `given` or `seized`."""
    client: int | None = None
    """Through which attached client; none: by single requests."""
    ends_ms: int | None = None
    """When it will be free by itself."""


HostKey: TypeAlias = str
"""A host's identity: its Ed25519 public key."""


class HostStatus(Model):
    """The host. A guest, a device that was invited to one session, is told the version alone: numbers are 0 and texts empty."""
    pid: int
    """Its process."""
    version: str
    """Its version."""
    started_ms: int
    """Since when."""
    state: str
    """Where its sessions lie."""
    socket: str
    """Its socket."""
    running: int
    """Live sessions."""
    ended: int
    """Ended ones still shown."""
    clients: int
    """Attached clients."""
    http: str | None = None
    """Where it listens for HTTP, as a URL."""
    http_error: str | None = None
    """Why it does not, although it should."""


HowChanged: TypeAlias = Literal["created", "changed", "attributes", "deleted"]
"""How a file differs. `created`: It is there, and was not; `changed`: It has other content, another target or another kind; `attributes`: It has another mode or owner; `deleted`: It is no longer there."""


HowWatched: TypeAlias = Literal["connector", "polling"]
"""How events are come by. `connector`: The kernel tells of forks, execs and exits as they happen; sockets are looked for from time to time; `polling`: Everything is looked for from time to time, more rarely while nothing happens: short lives are missed."""


class IdentifyAnswer(Model):
    """For whom the host takes the connection."""
    actor: Actor
    """Key and handle."""
    known: bool
    """The host knows this key under this handle; otherwise it holds what unknown actors hold."""


class IdentifyParams(Model):
    """Who speaks on this connection, proven."""
    actor: Actor
    """Key and handle."""
    signature: Signature
    """Over the connection's challenge."""
    confirm: bool = False
    """Inside a session: ask the human to confirm it, and answer when they have."""


class Inside(Model):
    """Where a process was found. Neither of the two: where it comes from is not known."""
    session: str | None = None
    """It runs inside this session; empty where it is none of this host's."""
    agent: str | None = None
    """This agent started it."""


class InviteAcceptAnswer(Model):
    """A guest is enrolled."""
    actor: Actor
    """Its key, and the handle by which the host knows it."""
    host: str
    """What the host calls itself."""
    relays: list[str]
    """Where else the host can be reached."""
    can: Rights
    """The most it may do."""
    session: str | None = None
    """The name of the session it was invited to; none: the whole host."""


class InviteAcceptParams(Model):
    """A guest of an invite says who it is."""
    actor: Actor
    """Its key, and the handle it would like."""
    signature: Signature
    """As in `identify`, over the challenge and the channel's binding."""


class InviteNewAnswer(Model):
    """A new invite."""
    link: str
    """The link: a secret, and not shown again."""
    invite: InviteView
    """What it is."""


class InviteNewParams(Model):
    """What an invite shall be."""
    session: str | None = None
    """The session it is for; none: the whole host, which only a human may share."""
    can: Rights | None = None
    """The most its guests may do; none: to observe a session, or all that you may do on the host."""
    for_ms: int | None = None
    """How long it can be accepted, in milliseconds; none: an hour."""
    uses: int | None = None
    """How often it can be accepted; none: once."""
    access_ms: int | None = None
    """How long a guest's access lasts once it has accepted, in milliseconds; none: until it is revoked."""


class InviteParams(Model):
    """Which invite."""
    invite: str
    """Its id."""


InviteState: TypeAlias = Literal["open", "used", "expired", "revoked"]
"""How an invite stands. `open`: It can be accepted; `used`: It was accepted as often as it can be; `expired`: Its time is over; `revoked`: It was revoked."""


class InviteView(Model):
    """An invite as it is listed."""
    id: str
    """Identity: no secret."""
    state: InviteState | str
    """How it stands."""
    can: Rights
    """The most its guests may do."""
    by: Handle
    """Who made it."""
    created_ms: int
    """When."""
    until_ms: int
    """Until when it can be accepted."""
    uses: int
    """How often it can be accepted in all."""
    used: int
    """How often it was."""
    session: SessionId | None = None
    """The session it is for; none: the whole host."""


class JournalAnswer(Model):
    """The answer's bytes are whole lines of the journal, as they lie on disk; this says which."""
    from_: int = Field(..., alias="from")
    """Number of the first record given; none given: the next to come."""
    to: int
    """Ask behind this one next."""
    more: bool
    """There is more now."""
    end: bool
    """The session has ended and everything was given."""
    newest: int | None = None
    """Number of the last record, as the host wrote it; none while more waits for the disk."""
    newest_hash: Hash | None = None
    """Its hash."""


class JournalParams(Model):
    """Which part of a journal."""
    session: str
    """Name or id."""
    after: int = 0
    """Records behind this number; 0: from the oldest kept."""
    last: int | None = None
    """Only so many of the newest records behind `after`, counted when it is asked."""
    wait_ms: int = 0
    """Wait this long for the first."""


class KeepParams(Model):
    """Which session to keep."""
    session: str
    """Name or id."""
    for_ms: int | None = None
    """Keep it this long; left out: until somebody says otherwise."""
    off: bool = False
    """Keep it no longer."""
    proof: Proof | None = None
    """The actor's signature."""


class KeptView(Model):
    """Somebody keeps a session."""
    by: Handle
    """Who."""
    until_ms: int | None = None
    """Until when; none: until somebody says otherwise."""


Known: TypeAlias = Literal["cgroup", "lineage", "time", "unknown"]
"""How a binding is known. `cgroup`: By the cgroup it was born in, which is one turn's or one run's; `lineage`: By who made it; `time`: By when it was made; `unknown`: It is not: the journal does not reach back so far, or has no name."""


Known2: TypeAlias = Literal["run", "time", "unknown"]
"""How it is known who changed something. `run`: A run did it: the shell reported its end; `time`: The last writer before the command started; `unknown`: It is not: the journal does not reach back so far, or has no name."""


class LastUnexpected(Model):
    """A run with effects beyond its contract."""
    run: RunId
    """Which."""
    at_ms: int
    """When it was over."""
    what: str
    """The first of its unexpected effects."""


LeaseState: TypeAlias = Literal["held", "unknown", "claimed"]
"""How a session's lease stands. `held`: This host has it: the session may run; `unknown`: This host does not know whether it still has it: the session stands still, and goes on once the lease is renewed; `claimed`: Another host has it: the life here is over."""


class LeaseView(Model):
    """A session's lease, as clients see it."""
    state: LeaseState | str
    """How it stands."""
    host: str
    """The host that has it, as far as this one knows."""
    fence: int
    """The number that grows with each change of home: no two lives of a session have the same."""
    until_ms: int | None = None
    """Until when the session runs if the lease is not renewed; left out where it does not run."""
    stopped_late_ms: int | None = None
    """Its keeper stopped it because the lease was over, and this many milliseconds after that."""
    hard: bool = False
    """A keeper that cannot stop the session in time is killed."""
    why: str | None = None
    """Why it is not renewed, for people."""


class Leasing(Model):
    """That a session is to have its home by a lease."""
    hard: bool = False
    """Where the keeper cannot stop the session in time, because it is stopped itself, the kernel kills it. For portable sessions."""


class LeaveAnswer(Model):
    """What a client that left may want to remember."""
    history: HistoryPlace | None = None
    """How much of the history its terminal has, for the next `session.paint`."""


class LeaveParams(Model):
    """An operator that lets go by itself."""
    session: str
    """Name or id."""
    client: int
    """The client's number."""
    shown: int | None = None
    """Everything before this offset is on its terminal: the answer says how much of the history that is."""


class LeftProcess(Model):
    """A process that a run left behind."""
    pid: int
    """Its pid."""
    argv: list[str]
    """Its words."""


Life: TypeAlias = Literal["running", "ended", "lost", "unknown", "damaged"]
"""Whether a session lives. `running`: Its command runs; `ended`: Its command has ended; `lost`: Its keeper is gone and with it its processes; `session.recover` gives it another life; `unknown`: Its keeper speaks a version this host does not know; it is left alone; `damaged`: Its files cannot be read; nothing about it is known."""


class ListParams(Model):
    """Which sessions."""
    all: bool = False
    """Ended ones too."""


class Listener(Model):
    """Who takes connections."""
    pid: int
    """Its process."""
    address: str
    """Where."""


class Lock(Model):
    """A lock on a file."""
    kind: LockKind | str
    """Which kind."""
    exclusive: bool
    """Exclusive: a write lock."""
    start: int
    """First byte."""
    end: int | None = None
    """Last byte; `None` is the end of the file, wherever that is."""


LockKind: TypeAlias = Literal["flock", "posix", "ofd", "other"]
"""Who made a lock, and what it belongs to. `flock`: By flock(2); `posix`: By fcntl(2), of the process; `ofd`: By fcntl(2), of the open file; `other`: A lease, or what else the kernel lists."""


class LoginAnswer(Model):
    """A code that a browser exchanges for a token of the asker."""
    code: str
    """It serves once, at `/v1/login`."""
    until_ms: int
    """And not after this."""


class LostProcess(Model):
    """A process of a session that was lost."""
    pid: int
    """Its number."""
    program: str
    """Its program, without arguments: those may be secret."""
    survives: bool = False
    """It still runs, without the session's terminal."""


class LostView(Model):
    """What was lost, as far as the host knew."""
    at_ms: int
    """When the host noticed."""
    cause: Cause
    """Why."""
    why: str
    """The same for people, with what else is known."""
    cwd: str | None = None
    """Where its command was last."""
    seen_ms: int | None = None
    """When the host last looked at its processes."""
    processes: list[LostProcess] = Field(default_factory=list)
    """Its processes then, at most 64."""
    listened: list[str] = Field(default_factory=list)
    """Where they listened, for example `tcp 127.0.0.1:5173`."""
    connected: list[str] = Field(default_factory=list)
    """Their connections to others, for example `tcp 10.0.0.2:5432`. Those are cut."""
    runs: list[RunId] = Field(default_factory=list)
    """Runs that were on. None is run again by itself."""
    checkpoint: str | None = None
    """Its newest checkpoint: `restore` brings its processes back."""
    withheld: list[str] = Field(default_factory=list)
    """Variables of its environment whose values are not kept."""


class MayAnswer(Model):
    """What the policy says of a command."""
    outcome: str
    """`allow`, `ask` or `deny`."""
    rule: str
    """The rule that decides."""
    why: str
    """What that rule says; empty for an allow."""
    instead: list[str]
    """What would be allowed instead, in sentences."""
    cwd: str
    """Where it was judged."""
    parsed: bool
    """The command line was understood."""
    opaque: list[str]
    """What only the live shell knows."""
    names: list[str]
    """The commands in it."""
    risks: list[str]
    """What it risks."""
    writes: list[str]
    """Paths it would write; `?` stands for what is not known."""
    deletes: list[str]
    """Paths it would delete; likewise."""
    shapers: list[Shaper] = Field(default_factory=list)
    """Who else shaped what it would run, and by what."""


class MayParams(Model):
    """What is to be judged, without doing it."""
    command: str
    """The command line."""
    session: str | None = None
    """In which session's shell; none: in a session of its own."""
    cwd: str | None = None
    """In which directory; none: the session's, or the home directory."""
    actor: Handle | None = None
    """For which actor; none: the caller."""


class MeAnswer(Model):
    """Who asks."""
    actor: Actor
    """Who."""
    known: bool
    """The host knows this actor."""
    token: TokenView | None = None
    """The token that says so, where one does."""


class Measure(Model):
    """Whether what was measured is all there was, and by what it was measured."""
    complete: bool
    """Everything of this kind was seen, and nothing of others."""
    by: str
    """`fanotify`, `ctime`, `lineage`, `graph`, `counters`, `samples`; `none`: not measured."""
    why: str | None = None
    """What may be missing or foreign."""


class MetricsAnswer(Model):
    """The host's counters."""
    text: str
    """In the Prometheus text format."""


class ModesView(Model):
    """A terminal's modes: termios(3)."""
    canonical: bool
    """Input comes by lines (`ICANON`)."""
    echo: bool
    """What is typed shows (`ECHO`)."""
    iflag: int
    """`c_iflag`."""
    oflag: int
    """`c_oflag`."""
    lflag: int
    """`c_lflag`."""
    unread: int
    """Bytes of input that no program has taken."""


class MoveAnswer(Model):
    """What came of a step."""
    offer: MoveOffer | None = None
    """`offer`: what it needs."""
    parcel: MoveParcel | None = None
    """`hold`: what is sent."""
    key: str | None = None
    """`commit`: the key for `finish`."""
    moved: MovedView | None = None
    """Where it was moved, where it was."""


class MoveHome(Model):
    """The lease of a host, to which a leased session can be passed on."""
    host: str
    """What the host is called in records of leases."""
    lease: str
    """The lease's number, in hexadecimal."""


class MoveParams(Model):
    """A step of a move, at the host that has the session."""
    session: str
    """Name or id."""
    step: MoveStep
    """What to do."""
    proof: Proof | None = None
    """The actor's signature, for `hold`."""


class MoveStepHold(Model):
    """Stop it, and keep a copy. It goes on where the connection breaks before `commit`."""
    hold: dict[str, Any]


class MoveStepRead(Model):
    """Bytes of a file."""
    read: dict[str, Any]


MoveStep: TypeAlias = Literal["offer"] | MoveStepHold | MoveStepRead | Literal["commit"] | Literal["done"] | Literal["give_up"]
"""What the host that has a session is to do for its move."""


class Moved(Model):
    """A file that was moved."""
    from_: str = Field(..., alias="from")
    """Where it was."""
    to: str
    """Where it is."""


class MovedView(Model):
    """Where a session was moved."""
    host: str
    """The other host, as who moved it calls it."""
    at_ms: int
    """When that became its home."""
    arrived: bool = False
    """It is known to live there."""


class NeededFile(Model):
    """A file or directory that the processes have open or mapped, and must find."""
    path: str
    """As they see it."""
    mode: int
    """Its mode, with its type."""
    bytes: int = 0
    """Of a regular file."""
    sum: str = ""
    """Of a regular file: a checksum."""


class NewParams(Model):
    """What to start."""
    name: SessionName | None = None
    """A name; the host picks one where none is given."""
    command: list[str] = Field(default_factory=list)
    """Command and arguments; left out: the shell of the host's user, or with a run that shell with the run's text."""
    argv0: str | None = None
    """`argv[0]` where it differs from the command (a login shell)."""
    cwd: str | None = None
    """Where it starts, from the root on; left out: the home directory of the host's user."""
    env: list[str] | None = None
    """Its whole environment, `K=V` each; left out: the host's, without what belongs to who started the host."""
    env_add: list[str] = Field(default_factory=list)
    """Variables laid over that environment, `K=V` each."""
    size: Size = '80x24'
    """Columns and rows."""
    ring_bytes: int | None = None
    """Data bytes of the ring; rounded up to a power of two."""
    umask: int | None = None
    """File mode mask."""
    nofile: int | None = None
    """Soft limit of open files."""
    integrate: bool | None = None
    """Start a shell with integration, so that it reports its commands; true by default."""
    user: str | None = None
    """Run as this user of the machine, with a home and variables of its own; only where the host is root. `env`: terminal and language."""
    wall: Wall | None = None
    """A wall around its processes: what they can write and connect to."""
    gate: Seam | str | None = None
    """Judge more than acts: with `exec`, every program that a process of the session starts."""
    portable: bool = False
    """Make it so that checkpoints of its processes can be kept; only where the host is root. It has pids, terminals and shared memory of its own, and its processes end with its command."""
    on_resume: str | None = None
    """For a portable session: a command for `/bin/sh` that is run in it whenever its processes come back from a checkpoint, or begin as a branch. It tells programs that connections are cut, and that `$HOLDFAST_LIFE` has a new fence."""
    checkpoint_every_ms: int | None = None
    """For a portable session: make a checkpoint this often, in milliseconds, where something happened in it since the last."""
    lease: Leasing | None = None
    """Make its home a lease: it has at most one life among all hosts that share a store of leases, and stands still where this host cannot renew its lease. Only where the host is configured with such a store."""
    recover: Recovery | str | None = None
    """Whether it gets another life by itself where it is lost; left out: as the host is configured."""
    restart_on_failure: int | None = None
    """Run the command again where it fails or the session is lost, at most this many times within ten minutes, later each time."""
    reap_after: ReapAfter | None = None
    """How long it may be idle before it is reaped; left out: as the host is configured."""
    ahead: bool = False
    """Start it ahead of need: nobody is shown it, and it is given to the next of your sessions that is asked for with this name and all the same. It ends with your connection, and after ten minutes. A shell without a wall."""


Nonce: TypeAlias = str
"""Random bytes that make each signed act unlike every other."""


class Nothing(Model):
    """Neither asks nor answers anything."""


Rights: TypeAlias = str
"""A set of rights; its text form is `observe,run`."""


class Notice(Model):
    """News for operators."""
    kind: Literal["turn", "requested", "seized", "frozen", "thawed", "asked", "held", "handover", "rights"] | str
    """Which: the other fields follow from it."""
    holder: Handle | None = None
    """Who."""
    by: Handle | None = None
    """Who. / By whom. / Who wants it."""
    from_: Handle | None = Field(None, alias="from")
    """From whom."""
    reason: str | None = None
    """Why."""
    question: str | None = None
    """The question's id."""
    text: str | None = None
    """What; of a long question the beginning. / What they changed, in a line."""
    options: list[str] | None = None
    """What can be answered; none: any text."""
    approval: str | None = None
    """The approval's id."""
    command: str | None = None
    """What; of a long command the beginning."""
    why: str | None = None
    """What the policy asks."""
    to: Handle | None = None
    """Who took it."""
    rights: Rights | None = None
    """What it may do."""


class NoticeEvent(Model):
    """Event `notice`: news for an operator."""
    client: int
    """The client's number."""
    notice: Notice
    """What."""


class Obstacle(Model):
    """Something that a checkpoint cannot keep."""
    pid: int
    """The process."""
    program: str
    """Its program."""
    what: str
    """What it is."""
    fd: int | None = None
    """The descriptor, where it is one."""


class OnExit(Model):
    """Where to post the outcome of a run."""
    url: str
    """Where to: `http://` or `https://`."""
    secret: str | None = None
    """What it is signed with."""


class Outcome(Model):
    """A run held against its contract."""
    validity: Validity | str
    """Whether its effects stayed within it."""
    success: bool
    """It ended with an exit status that was expected."""
    unexpected: list[Unexpected] = Field(default_factory=list)
    """Effects beyond the contract; of many the first."""
    unexpected_count: int = 0
    """How many there are."""
    untold: list[str] = Field(default_factory=list)
    """What it promises and could not be told: `files`, `network`, …"""


class OutputEvent(Model):
    """The event's bytes are output; this says where they stand."""
    follow: int
    """The number given to `session.follow`."""
    from_: int = Field(..., alias="from")
    """Offset of the first byte given."""
    to: int
    """Offset behind the last byte given."""
    size: Size
    """The session's size when they were written. An event without bytes tells another size, a gap or an end."""
    end: bool
    """The session has ended and everything was given: no event follows."""
    gap: Gap | None = None
    """Output before `from` that is no longer kept."""
    fault: Fault | None = None
    """Why it ends before that; no event follows."""


class PageFile(Model):
    """A file of the page."""
    name: str
    """Its name; `.gz` is packed."""
    digest: str
    """SHA-256 of its bytes."""
    bytes: int
    """How many bytes it has."""


class PageGetParams(Model):
    """Which page a browser has already."""
    have: Signature | None = None
    """The signature of the page it has: the files of that one are not sent again."""


class PageView(Model):
    """The page, signed: what a browser runs that came through a relay."""
    version: str
    """The version of the program it belongs to."""
    files: list[PageFile]
    """Its files, in the order in which their bytes follow the answer."""
    signature: Signature
    """The host's, over the version and the files' names and digests."""


class PaintParams(Model):
    """Asks for the screen again."""
    session: str
    """Name or id."""
    size: Size
    """The terminal's size; decides the form."""
    history: bool = False
    """History too."""
    answers: int | None = None
    """The client with this number answers the session's queries from the painted offset, if no client does yet."""
    remote: bool = False
    """Paint for a terminal of the session's size, whatever `size` is."""
    draws: bool = False
    """Give a keyframe, whatever `size` is."""
    behind: HistoryPlace | None = None
    """With `history`: the terminal has the lines before this place. Where the host does not know it, all lines come."""


class Painted(Model):
    """What was painted."""
    offset: int
    """Output goes on from here."""
    size: Size
    """The session's size there."""
    form: Form | str
    """What the bytes are."""
    history_bytes: int = 0
    """With a keyframe: how many of the bytes, at their front, are history lines for the terminal instead."""


class PipeEnd(Model):
    """One descriptor on a pipe."""
    process: ProcessId
    """Whose."""
    fd: int
    """Which of its descriptors."""
    end: End | str | None = None
    """Which end; `None` if we may not know."""


PipeId: TypeAlias = str
"""A pipe: `f<inode>`; one with a name in a file system has that file system's device too: `f<inode>@<major>:<minor>`."""


class PipeNode(Model):
    """A pipe and who of the session holds its ends. Others may hold it too."""
    id: PipeId
    """Which one."""
    ends: list[PipeEnd]
    """Its ends, in the order of processes."""


class PolicyView(Model):
    """The policy in force."""
    policy: str
    """`solo`, `careful`, `locked` or `off`."""
    dir: str
    """The directory of files of one's own."""
    files: list[str]
    """Those of them that are in force."""
    rules: list[RuleView]
    """The rules in force."""
    problems: list[str]
    """Why newer files are not in force; empty where all are."""
    judged: int
    """Runs judged since the host began, and how many of them asked a human."""
    asked: int
    """Acts that were held."""
    denied: int
    """Acts that were denied by a rule."""


class PortView(Model):
    """A listening port."""
    session: SessionId
    """In which session."""
    name: SessionName
    """Its name."""
    socket: SocketId
    """The socket."""
    kind: SocketKind | str
    """`stream` is TCP, `dgram` is UDP."""
    address: str
    """Address and port."""
    holders: list[ProcessId]
    """Who holds the socket."""
    argv: list[str]
    """That one's words."""
    by: Known | str
    """How that is known."""
    process: ProcessId | None = None
    """The oldest process that holds it."""
    since_ms: int | None = None
    """Since when that process is there: the port is open since then or later, which the kernel does not tell."""
    actor: Actor | None = None
    """Whose act started it."""
    act: int | None = None
    """The act's number in the session's journal."""


class PortsParams(Model):
    """Whose ports."""
    session: str | None = None
    """Name or id; none: those of every live session the caller may observe."""


class ProcessNode(Model):
    """One process."""
    id: ProcessId
    """Who it is."""
    pid: int
    """Its pid, as in the id."""
    parent_pid: int
    """The pid of its parent, the keeper's too."""
    group: int
    """Its process group."""
    session: int
    """Its kernel session."""
    started_ms: int
    """When it started, in milliseconds since the Unix epoch, to a clock tick."""
    state: str
    """`R` runs, `S` sleeps, `D` is in the kernel, `T` is stopped, `t` is traced, `Z` is dead."""
    comm: str
    """Its name: 15 bytes that it may change."""
    argv: list[str]
    """Its words, lossily decoded; empty for a zombie. A program may overwrite them."""
    cpu_ms: int
    """Processor time it has used, in the kernel and out of it."""
    rss_bytes: int
    """Memory it has resident; what is shared counts for each."""
    threads: int
    """Its threads."""
    parent: ProcessId | None = None
    """Its parent, unless that is the keeper."""
    foreground: bool | None = None
    """Whether its group has the terminal; `None` if unknown."""
    argv_cut: bool = False
    """`argv` is only the first `ARGV_BYTES_MAX` bytes."""
    exe: str | None = None
    """Its program. The kernel appends ` (deleted)` to one that was replaced."""
    cwd: str | None = None
    """Its working directory."""
    uid: int | None = None
    """Its effective user."""
    cgroup: str | None = None
    """Its cgroup in the unified hierarchy."""
    fds: list[FdNode] = Field(default_factory=list)
    """Its descriptors in ascending order, as far as `Depth` goes."""
    more_fds: int = 0
    """Descriptors there are beyond `FDS_MAX`."""
    unknown: bool = False
    """We may not see its descriptors."""


class Proof(Model):
    """An actor's signature over one act."""
    nonce: Nonce
    """Random, from the actor: the same act signed again is another one, and a copied one is found out."""
    signature: Signature
    """Over the act's content, as the authority spells it."""


class QuestionAnswer(Model):
    """An answer."""
    text: str
    """What was answered."""
    by: Actor
    """Who answered."""
    at_ms: int
    """When."""
    option: int | None = None
    """Which option that is, from 0."""


class QuestionAnswerParams(Model):
    """What to answer."""
    question: QuestionId
    """The question's id."""
    seen: Hash
    """The `hash` of the question that was read: an answer to another text is refused."""
    text: str | None = None
    """The answer; where there are options, one of them."""
    option: int | None = None
    """In place of a text: the number of an option, from 0."""
    proof: Proof | None = None
    """The actor's signature."""


class QuestionAskParams(Model):
    """What to ask."""
    session: str
    """Name or id of the session it is about, whose humans are asked."""
    text: str
    """The question."""
    options: list[str] = Field(default_factory=list)
    """What can be answered; none: any text."""
    wait_ms: int = 0
    """Answer when it is no longer open, at the latest after this long."""
    key: str | None = None
    """A key of the asker's own, drawn at random, at most 64 bytes: asked again with the same one after an answer was lost, it is not asked twice."""
    expires_ms: int | None = None
    """Close the question after this long; none: it is open as long as its session lives."""


QuestionId: TypeAlias = str
"""A question's identity for all time: `que_` and 26 characters."""


class QuestionListParams(Model):
    """Which questions."""
    session: str | None = None
    """Those of one session; none: of all sessions the caller may observe."""
    all: bool = False
    """Those that are no longer open too, as far as they are remembered."""


class QuestionParams(Model):
    """Which question."""
    question: QuestionId
    """Its id."""
    wait_ms: int = 0
    """Answer when it is no longer open, at the latest after this long."""


QuestionState: TypeAlias = Literal["open", "answered", "withdrawn", "expired"]
"""Where a question stands. `open`: It waits for an answer; `answered`: A human has answered; `withdrawn`: Its asker, or a human, withdrew it; `expired`: Its time is over, or its session is."""


class QuestionView(Model):
    """A question as clients see it."""
    id: QuestionId
    """Identity."""
    session: SessionId
    """Its session."""
    name: SessionName
    """That session's name."""
    by: Actor
    """Who asks."""
    text: str
    """The question, as it was written: what shows it makes it harmless first."""
    options: list[str]
    """What can be answered; none: any text."""
    hash: Hash
    """The hash of text and options, which an answer carries."""
    asked_ms: int
    """When it was asked."""
    state: QuestionState | str
    """Where it stands."""
    expires_at_ms: int | None = None
    """When the question closes."""
    answer: QuestionAnswer | None = None
    """The answer."""
    withdrawn_by: Actor | None = None
    """Who took it back."""


class QuestionWithdrawParams(Model):
    """Which question to take back."""
    question: QuestionId
    """Its id."""


class ReadAnswer(Model):
    """The answer's bytes are output; this says where they stand."""
    from_: int = Field(..., alias="from")
    """Offset of the first byte given."""
    to: int
    """Offset behind the last byte given: ask from here next."""
    head: int
    """Offset of the next byte to come."""
    end: bool
    """The session has ended and everything was given."""
    gap: Gap | None = None
    """What was asked for and is gone."""
    size: Size = '80x24'
    """The session's size when they were written: bytes behind a change of it are given by the next answer. Where none are given, its size now; a change ends a wait."""


class ReadParams(Model):
    """Which output."""
    session: str
    """Name or id."""
    from_: int | None = Field(None, alias="from")
    """First offset wanted; none: the oldest there is."""
    max: int | None = None
    """At most this many bytes."""
    wait_ms: int = 0
    """Wait this long for the first byte."""


class ReapAfterIdle(Model):
    """For so many milliseconds."""
    idle: int


ReapAfter: TypeAlias = Literal["never"] | ReapAfterIdle
"""How long a session may be idle."""


class ReapView(Model):
    """Whether and when a session is reaped."""
    after_ms: int | None = None
    """How long it may be idle; none: only the host's limits concern it, or nothing does."""
    never: bool = False
    """It is never reaped, as whoever started it said."""
    idle_since_ms: int | None = None
    """Since when it is idle, as the host saw it; none: it is not, or that is not known."""
    ends_ms: int | None = None
    """When it is ended, if nobody uses or keeps it until then."""
    warned: ReapWhy | str | None = None
    """Its users were warned, for this reason."""
    kept: KeptView | None = None
    """Who keeps it."""
    reaped: ReapWhy | str | None = None
    """It was reaped, for this reason."""


ReapWhy: TypeAlias = Literal["idle", "sessions", "memory"]
"""Why a session is reaped. `idle`: It was idle for as long as it may be; `sessions`: The host has more sessions than it may have, and nobody has used this one for longest; `memory`: Its sessions take more memory than they may, and nobody has used this one for longest."""


class RecordParams(Model):
    """Whose record."""
    handle: Handle
    """The actor."""
    action: str | None = None
    """Only runs of this command, such as `make`."""


class RecordView(Model):
    """An actor's record: of its newest runs under contracts."""
    actor: Actor
    """Whose."""
    runs: int
    """Those that promised something about their effects."""
    valid: int
    """Those that stayed within what they promised."""
    succeeded: int
    """Those that ended with an exit status that was expected."""
    unexpected: int
    """Those with effects beyond the contract."""
    unknown: int
    """Those of which it is not known."""
    since_ms: int | None = None
    """When the oldest of these runs was over."""
    actions: list[ActionCounts] = Field(default_factory=list)
    """By command."""


class RecoverAnswer(Model):
    """A session with a life."""
    session: SessionView
    """The session."""
    began: bool
    """Its life began with this request; otherwise it was running already."""


class RecoverParams(Model):
    """Which session to give another life, and how."""
    session: str
    """Name or id."""
    run: bool = False
    """Run the session's command again. Left out: a session whose command is a shell gets that shell, any other one a shell in its place."""
    env: list[str] = Field(default_factory=list)
    """Variables of the caller, `K=V` each. Used for those the session had whose values are not kept on disk, and for no others."""
    proof: Proof | None = None
    """The actor's signature."""


Recovery: TypeAlias = Literal["manual", "auto"]
"""Whether a session that was lost gets another life by itself. `manual`: Somebody asks for it; `auto`: The host begins it, as often as its limit allows."""


class RelayParams(Model):
    """Which relay."""
    url: str
    """Where it is: `https://NAME` or `https://NAME:PORT`."""


class RelayView(Model):
    """A relay as it is listed."""
    url: str
    """Where it is."""
    up: bool
    """Clients find this host there."""
    since_ms: int
    """Since when it is so."""
    why: str | None = None
    """Why it is not up."""


class RelaysAnswer(Model):
    """What a host is called and known by."""
    key: HostKey
    """The host's key: what clients know it by."""
    name: str
    """What it calls itself."""
    relays: list[RelayView]
    """Its relays."""
    direct: DirectView | None = None
    """Where it listens itself."""


class RenameParams(Model):
    """Another name."""
    session: str
    """Name or id."""
    name: SessionName
    """The new name."""
    proof: Proof | None = None
    """The actor's signature."""


class ResizeParams(Model):
    """Another size."""
    session: str
    """Name or id."""
    size: Size
    """Columns and rows."""
    proof: Proof | None = None
    """The actor's signature."""


class RestoreAnswer(Model):
    """A session that was restored."""
    session: SessionView
    """The session."""
    checkpoint: CheckpointView
    """From what."""


class RestoreParams(Model):
    """Which session to restore."""
    session: str
    """Name or id."""
    checkpoint: str | None = None
    """The checkpoint; left out: the newest."""
    proof: Proof | None = None
    """The actor's signature."""


class RestoredView(Model):
    """What a session's life began from."""
    checkpoint: str
    """The checkpoint."""
    made_ms: int
    """When that was made."""
    cut: list[str] = Field(default_factory=list)
    """Connections that were cut."""


class Resume(Model):
    """What a client that goes on without its host still has."""
    client: int
    """Its number in the session."""
    token: ClientToken
    """The token it got when it attached: it alone has it."""
    answers: bool
    """It answers the session's queries."""


class RevokeAnswer(Model):
    """What fell."""
    grants: list[int]
    """The grants that are no more, what was passed on too."""


class RevokeParams(Model):
    """Takes rights back: one grant, or everything an actor holds."""
    session: str
    """Name or id."""
    grant: int | None = None
    """One grant."""
    actor: ActorId | None = None
    """Everything this actor holds."""
    proof: Proof | None = None
    """The actor's signature."""


class RingEvent(Model):
    """Event `ring`: an attached terminal shall catch its person's attention."""
    client: int
    """The client's number."""
    text: str
    """What to say."""


class RuleView(Model):
    """A rule."""
    id: str
    """Its name."""
    kind: str
    """`permit`, `ask` or `forbid`."""
    why: str
    """What it asks, or why it denies."""
    file: str
    """The file it is in."""
    line: int
    """Where in it."""
    text: str
    """Its text in Cedar."""


class RunAnswer(Model):
    """A run, and what it printed."""
    id: RunId
    """Identity."""
    session: SessionId
    """Its session."""
    name: SessionName
    """That session's name."""
    command: str
    """What was entered."""
    actor: Actor
    """Who."""
    state: RunState | str
    """Where it stands."""
    started_ms: int
    """When it was entered."""
    duration_ms: int
    """How long it took so far."""
    from_: int = Field(..., alias="from")
    """Offset of its first output byte. Until the shell has said where that is, there is no output, and it may lie further on."""
    to: int
    """Offset behind its last output byte, or behind the last one so far."""
    output: str
    """Its output as text without escape sequences; of a long one the beginning and the end."""
    truncated: bool
    """The output is longer than what is shown, or part of it is no longer kept."""
    key: str | None = None
    """Its key."""
    act: int | None = None
    """The act's number in the session's journal."""
    exit_code: int | None = None
    """Its status, where it is known."""
    end: RunEnd | str | None = None
    """How the end is known."""
    ended_ms: int | None = None
    """When it ended, as the host noticed."""
    cwd_before: str | None = None
    """The shell's directory before."""
    cwd: str | None = None
    """And after it."""
    own_session: bool = False
    """It is its session's own command."""
    outcome: Outcome | None = None
    """How it came out against its contract, once it is over; `run.trace` has the effects."""
    attempt: int | None = None
    """Of a run with retries: which attempt this is, from 1 on. It is over when its last attempt is."""
    existing: bool = False
    """It was there before, and nothing was started: the key, or the id, was used."""
    omitted: Gap | None = None
    """What is not shown."""
    stderr: str | None = None
    """What it wrote to its standard error, where that was asked to be separate: as text, of a long one the beginning and the end."""


class RunCancelParams(Model):
    """Which run to interrupt."""
    run: RunRef
    """Its id, or its key."""
    wait_ms: int = 0
    """Answer when it has ended, at the latest after this long."""
    proof: Proof | None = None
    """The actor's signature."""


RunEnd: TypeAlias = Literal["exact", "inferred", "not_started", "unknown"]
"""How the end is known. `exact`: The shell said so under the run's token, or the session's command was the run and ended; `inferred`: Taken from what the terminal showed: there is no status; `not_started`: It did not start: the shell did not accept it as a command (a syntax error), or its host was gone before it was typed; `unknown`: It has ended, and its status is unknown."""


RunId: TypeAlias = str
"""A run's identity for all time: `run_` and 26 characters."""


class RunListParams(Model):
    """Which runs."""
    session: str | None = None
    """Those of one session; none: of all sessions the caller may observe. The newest 1,000."""


class RunOutputAnswer(Model):
    """The answer's bytes are output; this says where they stand."""
    from_: int = Field(..., alias="from")
    """Offset of the first byte given."""
    to: int
    """Offset behind the last byte given: ask from here next."""
    end: bool
    """The run is over and everything was given."""
    gap: Gap | None = None
    """What was asked for and is gone."""


class RunOutputParams(Model):
    """Which part of a run's output."""
    run: RunRef
    """Its id, or its key."""
    from_: int | None = Field(None, alias="from")
    """First offset wanted; none: the run's first."""
    max: int | None = None
    """At most this many bytes."""
    wait_ms: int = 0
    """Wait this long for the first byte, or the run's end."""


class RunParams(Model):
    """Which run."""
    run: RunRef
    """Its id, or its key."""
    wait_ms: int = 0
    """Answer when it has ended, at the latest after this long."""


RunRef: TypeAlias = str
"""Which run is meant: its id, or the key it was started under. What reads as an id is one."""


class RunStartParams(Model):
    """What to run."""
    session: str | None = None
    """Name or id of the session whose shell runs it."""
    new: NewParams | None = None
    """In place of a session: the one that is made for it, with the command as it is; where that has none, the shell of the host's user executes the text in `command`."""
    keep: bool = False
    """With `new`: the session stays listed when it has ended."""
    separate_stderr: bool = False
    """With `new`: what it writes to its standard error does not go to the terminal; the answer has it as `stderr`."""
    key: str | None = None
    """The same key runs once. Keys are each actor's own."""
    shared: bool = False
    """The key is everybody's: whoever uses it with the same command finds the same run."""
    run: RunId | None = None
    """The id it shall have, drawn at random: asked again with the same one after an answer was lost, in the same session, it is not run again."""
    command: str = ''
    """What the shell is to execute; with a command in `new` it is left out."""
    wait_ms: int = 0
    """Answer when it has ended, at the latest after this long."""
    approval_wait_ms: int = 0
    """Where a human must approve it: wait for the answer for so long before `approval_needed`."""
    intent: str | None = None
    """Why it is to be run, in a sentence: for policies, and for the human who is asked."""
    contract: Contract | None = None
    """What it promises. With one its effects are measured, and held against it."""
    detect: Detect | None = None
    """How to detect its end if the shell does not report it."""
    on_exit: OnExit | None = None
    """Where to post its outcome; for an existing run, what was given at its start applies."""
    proof: Proof | None = None
    """The actor's signature."""


RunState: TypeAlias = Literal["starting", "running", "ended", "cancelled", "lost"]
"""Where a run stands. `starting`: Typed; the shell has not said yet that it runs; `running`: It runs; `ended`: It ended; `cancelled`: It was interrupted, and ended; `lost`: Its outcome is unknown, and it is not run again. `end` says whether the command can have started: `not_started` or `unknown`."""


class RunView(Model):
    """A run as clients see it."""
    id: RunId
    """Identity."""
    session: SessionId
    """Its session."""
    name: SessionName
    """That session's name."""
    command: str
    """What was entered."""
    actor: Actor
    """Who."""
    state: RunState | str
    """Where it stands."""
    started_ms: int
    """When it was entered."""
    duration_ms: int
    """How long it took so far."""
    from_: int = Field(..., alias="from")
    """Offset of its first output byte. Until the shell has said where that is, there is no output, and it may lie further on."""
    to: int
    """Offset behind its last output byte, or behind the last one so far."""
    key: str | None = None
    """Its key."""
    act: int | None = None
    """The act's number in the session's journal."""
    exit_code: int | None = None
    """Its status, where it is known."""
    end: RunEnd | str | None = None
    """How the end is known."""
    ended_ms: int | None = None
    """When it ended, as the host noticed."""
    cwd_before: str | None = None
    """The shell's directory before."""
    cwd: str | None = None
    """And after it."""
    own_session: bool = False
    """It is its session's own command."""
    outcome: Outcome | None = None
    """How it came out against its contract, once it is over; `run.trace` has the effects."""
    attempt: int | None = None
    """Of a run with retries: which attempt this is, from 1 on. It is over when its last attempt is."""


class ScreenAnswer(Model):
    """Get the screen as text."""
    offset: int
    """Everything before this offset is in it."""
    size: Size
    """Columns and rows."""
    rows: list[str]
    """The rows, top first."""
    history: list[str]
    """History lines asked for, oldest first."""
    cursor: tuple[int, int]
    """Column and row of the cursor, from 0."""
    alternate: bool
    """A full-screen program is on."""
    title: str
    """The title."""
    application_cursor: bool = False
    """The program wants cursor keys in their application form."""
    gap: Gap | None = None
    """Output the screen never saw: it was overwritten before a host could look."""


class ScreenParams(Model):
    """Which view of the screen."""
    session: str
    """Name or id."""
    ansi: bool = False
    """With colours and attributes as escape sequences."""
    history: int = 0
    """This many lines of history before it."""


Seam: TypeAlias = Literal["exec"]
"""What of a session's processes is judged before it happens. `exec`: Every program they start."""


class SeizeAnswer(Model):
    """What a seizure did."""
    fence: Fence
    """The fence under which the caller has the turn."""
    cut_us: int
    """Microseconds from the request until nothing more of the old holder could reach the terminal."""
    turn: TurnView
    """How it stands now."""
    froze: FrozeView | None = None
    """What froze, where that was asked for."""


class SeizeParams(Model):
    """Takes the turn whatever its holder does."""
    session: str
    """Name or id."""
    reason: str
    """The reason, for the journal and for the holder that loses the turn."""
    client: int | None = None
    """The attached client through which it will write."""
    freeze: bool = False
    """The whole tree stands still."""
    proof: Proof | None = None
    """The actor's signature."""


class SendAnswer(Model):
    """What became of the bytes."""
    at: int
    """Output offset at that moment."""
    written: bool
    """They have reached the terminal; otherwise they are queued, because the program does not read now."""
    fence: Fence
    """The fence they were typed under; for a repeat the newest."""


class SendParams(Model):
    """Where the message's bytes are typed."""
    session: str
    """Name or id."""
    stream: int
    """A random number of the sender's."""
    seq: int
    """Grows by one with each message of the stream, from 1; a repeated message is not typed twice. A message of more than 4096 bytes takes one number for each 4096 begun."""
    client: int | None = None
    """The attached client that types."""
    fence: Fence | None = None
    """The fence the writer believes in: under another one nothing is typed. None: whatever it is now."""
    secret: bool = False
    """They are a secret: typed only while the terminal does not show what is typed, and recorded as a length."""
    force: bool = False
    """Type the secret although the terminal may show it."""
    in_order: bool = False
    """Refuse it where a message before it in the stream was refused on this connection: for who has several under way."""


class SentFile(Model):
    """A file that is sent."""
    path: str
    """Its path below the session's directory."""
    mode: int
    """Permissions."""
    bytes: int
    """How long it is."""
    sum: str
    """Its checksum."""


SessionName: TypeAlias = str
"""A name of one to 64 letters, digits, dots, underscores and hyphens."""


class SessionParams(Model):
    """One session by name, id, or the beginning of its id."""
    session: str
    """Name or id."""


class SessionView(Model):
    """A session as clients see it."""
    id: SessionId
    """Identity."""
    name: SessionName
    """Human name."""
    life: Life | str
    """Whether it lives."""
    command: list[str]
    """Command and arguments."""
    cwd: str
    """Where it started."""
    created_ms: int
    """When it started."""
    pid: int
    """The command's process."""
    keeper_pid: int
    """The keeper's process."""
    size: Size
    """The terminal's size."""
    head: int
    """Offset of the next output byte."""
    oldest: int
    """Oldest offset `read` can still give."""
    ring_bytes: int
    """Data bytes of the ring."""
    clients: list[ClientView]
    """Who is attached."""
    turn: TurnView
    """Who may write."""
    exit: Exit | None = None
    """How it ended."""
    ended_ms: int | None = None
    """When it ended."""
    title: str = ""
    """The title its program set."""
    asks: int = 0
    """How many questions wait for an answer."""
    user: str | None = None
    """The user it runs as, where that is not the host's."""
    wall: Wall | None = None
    """The wall around its processes."""
    gate: Seam | str | None = None
    """What of its processes is judged before it happens."""
    portable: bool = False
    """Checkpoints of its processes can be kept."""
    checkpoint_every_ms: int | None = None
    """How often the host makes a checkpoint of it by itself."""
    forked_from: ForkedView | None = None
    """What it is a copy of, where it is a branch."""
    restored: RestoredView | None = None
    """What this life began from, where that was a checkpoint."""
    moved: MovedView | None = None
    """Where it was moved: it lives there, and never here again unless it is moved back."""
    note: str | None = None
    """Something a person should know (a damaged file, a gap in the screen)."""
    damaged: str | None = None
    """Records of its journal are missing: what, for people. Only humans act in it, and whom they granted something since."""
    stranger_ms: int | None = None
    """When bytes were typed last that no client of the host sent: a program of the same user reached the keeper by itself."""
    incarnation: int = 0
    """Which life of the session this is: 1, and one more with each recovery."""
    lost: LostView | None = None
    """What was lost, where it is lost."""
    stand_in: str | None = None
    """The shell that runs in place of its command, since a recovery that did not run the command again."""
    recovers: bool = False
    """It gets another life by itself where it is lost."""
    restart_on_failure: int | None = None
    """Its command is run again where it fails, at most this many times within ten minutes."""
    next_life_ms: int | None = None
    """When its next life begins by itself."""
    lease: LeaseView | None = None
    """Its lease, where it has one."""
    reap: ReapView | None = None
    """Whether and when it is reaped, or by which policy it was; left out where none concerns it and nobody keeps it."""


class Shaper(Model):
    """One thing that shapes what is run, and who made it so."""
    by: Channel | str
    """By what."""
    name: str
    """Its name, or path."""
    known: str
    """How that is known: `run`, `time`, `cgroup`, `lineage`, `log`, `kernel`, `written` or `unknown`."""
    at_ms: int
    """When."""
    actor: Actor | None = None
    """Who; none: it cannot be known."""
    act: int | None = None
    """By which act of the session's journal, where that is known and the session is this one."""


class SignalParams(Model):
    """Sends a signal."""
    session: str
    """Name or id."""
    number: int
    """Its number."""
    target: int = 0
    """0 the foreground group, 1 the command's group, 2 the whole tree."""
    proof: Proof | None = None
    """The actor's signature."""


Signature: TypeAlias = str
"""An Ed25519 signature."""


Size: TypeAlias = str
"""Columns by rows, always within the limits."""


SocketKind: TypeAlias = Literal["stream", "dgram", "seqpacket"]
"""How a socket carries bytes. `stream`: TCP, or a unix stream; `dgram`: UDP, or unix datagrams; `seqpacket`: Unix packets over a connection."""


class SocketNode(Model):
    """One socket and who of the session holds it."""
    id: SocketId
    """Which one."""
    holders: list[ProcessId]
    """Who holds it, in the order of processes, each once."""
    family: Family | str | None = None
    """Its family."""
    kind: SocketKind | str | None = None
    """Its kind."""
    state: SocketState | str | None = None
    """Its state."""
    protocol: str | None = None
    """The kernel's name for its protocol (`TCP`, `NETLINK`), known even where its state is not."""
    local: str | None = None
    """Our address."""
    remote: str | None = None
    """The other side's."""
    path: str | None = None
    """The path of a unix socket; an abstract one starts with `@`."""
    peer: SocketId | None = None
    """The other side, where it is a socket of this machine that is known."""
    elsewhere: bool = False
    """It is in another network namespace, which we do not ask about."""
    unknown: bool = False
    """The kernel did not tell its state: it is elsewhere, neither bound nor connected, or of a family that we do not ask about."""


SocketState: TypeAlias = Literal["listening", "established", "connecting", "closing", "unconnected"]
"""Where a connection stands. `listening`: Takes connections; `established`: Connected; a UDP socket with a fixed peer too; `connecting`: Asked for a connection; `closing`: One side has closed, or both and the last packets are on their way; `unconnected`: Neither: a UDP socket that takes from anyone, or a stream that is not connected."""


class StateView(Model):
    """What a session is doing, as clients see it."""
    session: SessionId
    """Which session."""
    name: SessionName
    """Its name."""
    since_ms: int
    """Since when the host has seen it so. It may have been so for longer if no client looked before."""
    at: int
    """Where its output stood."""
    state: Literal["idle_prompt", "running", "waiting", "full_screen", "blocked_elsewhere", "stopped", "frozen", "ended", "unknown"] | str
    """Which: the other fields follow from it."""
    pid: int | None = None
    """The process that says so, if one does."""
    kind: Kind | str | None = None
    """For what."""
    prompt: str | None = None
    """What the screen shows before the cursor."""
    by: Handle | None = None
    """By whom."""
    exit: Exit | None = None
    """How."""
    why: Blind | str | None = None
    """Why."""


Target: TypeAlias = SocketId | PipeId
"""What a descriptor leads to: the id of a socket or a pipe of the same graph."""


class TerminalView(Model):
    """A session's terminal. What only its keeper knows is not there where that does not answer."""
    size: Size
    """Columns and rows."""
    alternate_screen: bool
    """The programs' output switched to the alternate screen."""
    foreground: int | None = None
    """The process group that has the terminal."""
    modes: ModesView | None = None
    """Its modes."""


class TokenNewAnswer(Model):
    """A new token."""
    text: str
    """Its text: it is not shown again."""
    token: TokenView
    """What it is."""


class TokenNewParams(Model):
    """What the token shall be."""
    actor: Handle
    """The actor it acts as. An unknown handle becomes an actor that has tokens and no key."""
    can: Rights | None = None
    """The token's rights; none: all rights of its actor."""
    for_ms: int | None = None
    """How long it is good, in milliseconds; none: 30 days. One that is made with a token does not outlast that."""
    note: str = ""
    """What it is for, in the maker's words."""


class TokenParams(Model):
    """Which token."""
    token: str
    """Its id."""


class TokenView(Model):
    """A token as it is listed."""
    id: str
    """Identity: no secret."""
    actor: Handle
    """Who shows it."""
    by: Handle
    """Who made it."""
    created_ms: int
    """When."""
    until_ms: int
    """When it ends."""
    can: Rights | None = None
    """The token's rights; none: all rights of its actor."""
    note: str = ""
    """What it is for."""
    parent: str | None = None
    """The token with which it was made: it ends with that one."""


class TraceParams(Model):
    """Which run."""
    run: RunRef
    """Its id, or its key."""


class TraceView(Model):
    """Everything that is known of a run."""
    id: RunId
    """Identity."""
    session: SessionId
    """Its session."""
    name: SessionName
    """That session's name."""
    command: str
    """What was entered."""
    actor: Actor
    """Who."""
    state: RunState | str
    """Where it stands."""
    started_ms: int
    """When it was entered."""
    duration_ms: int
    """How long it took so far."""
    from_: int = Field(..., alias="from")
    """Offset of its first output byte. Until the shell has said where that is, there is no output, and it may lie further on."""
    to: int
    """Offset behind its last output byte, or behind the last one so far."""
    key: str | None = None
    """Its key."""
    act: int | None = None
    """The act's number in the session's journal."""
    exit_code: int | None = None
    """Its status, where it is known."""
    end: RunEnd | str | None = None
    """How the end is known."""
    ended_ms: int | None = None
    """When it ended, as the host noticed."""
    cwd_before: str | None = None
    """The shell's directory before."""
    cwd: str | None = None
    """And after it."""
    own_session: bool = False
    """It is its session's own command."""
    outcome: Outcome | None = None
    """And what that says."""
    attempt: int | None = None
    """Of a run with retries: which attempt this is, from 1 on. It is over when its last attempt is."""
    contract: Contract | None = None
    """What it promised; none: it ran without a contract, and nothing was measured."""
    decision: Decision | None = None
    """By which rule it was let through, where the host remembers."""
    attempts: list[Attempt] = Field(default_factory=list)
    """All its attempts, the first one first."""
    effects: Effects | None = None
    """What it did, once it is over."""


class TurnAnswer(Model):
    """What came of it."""
    turn: TurnView
    """How it stands now."""
    fence: Fence | None = None
    """The caller has the turn, under this fence."""
    before: int | None = None
    """The caller waits behind so many."""
    handover: str | None = None
    """What others changed since the caller wrote last, in a line; `session.handover` tells all of it."""


class TurnParams(Model):
    """Something an actor does about the turn."""
    session: str
    """Name or id."""
    client: int | None = None
    """The attached client through which it will write."""
    proof: Proof | None = None
    """The actor's signature."""


class TurnView(Model):
    """Who may write now, and who waits."""
    fence: Fence
    """The newest fence."""
    holder: HolderView | None = None
    """Who has it; none: it is free."""
    queue: list[Handle] = Field(default_factory=list)
    """Who waits, first in first."""
    frozen: FrozenView | None = None
    """The tree stands still."""


class Unexpected(Model):
    """An effect beyond the contract."""
    kind: str
    """`file`, `port`, `process` or `network`."""
    what: str
    """Which."""


class UnfollowParams(Model):
    """Which output is no longer followed."""
    follow: int
    """The number given to `session.follow`."""


class UntilPort(Model):
    """Something in the session's tree takes connections at this port."""
    port: int


Until: TypeAlias = Literal["exit"] | Literal["idle"] | Literal["waiting"] | UntilPort
"""What to wait for."""


class UpdateAnswer(Model):
    """What a terminal should know after its update."""
    size: Size
    """The session's size now."""


class UpdateParams(Model):
    """What changed at an attached terminal."""
    session: str
    """Name or id."""
    client: int
    """The client's number. It attached by this connection."""
    size: Size | None = None
    """Its terminal's new size."""
    answers: Answers | None = None
    """From this offset on it answers queries (true) or no longer does (false)."""


Validity: TypeAlias = Literal["valid", "invalid", "unknown"]
"""Whether effects stayed within the contract. `valid`: They did; `invalid`: Some are beyond it; `unknown`: None was seen beyond it, and something it promises could not be measured completely."""


class WaitAnswer(Model):
    """What waiting gave."""
    exit: Exit | None = None
    """How the command ended; none: it still runs."""
    state: StateView | None = None
    """The state that was waited for."""
    listener: Listener | None = None
    """Who takes connections at the port that was waited for."""


class WaitParams(Model):
    """How long to wait."""
    session: str
    """Name or id."""
    timeout_ms: int | None = None
    """Give up after this long."""
    until: Until = 'exit'
    """What to wait for; the command's end by default."""


class Wall(Model):
    """What the processes of a session can write and connect to, and nothing else. They also cannot signal processes outside, and get no other rights by set-user-id programs (`sudo`). What they can read does not change."""
    write: list[str] = Field(default_factory=list)
    """Directories, from the root on. What lies in them can be written; and a temporary directory of the session's own (`$TMPDIR`)."""
    connect: list[int] | None = None
    """Ports that TCP connections can be made to; left out: all."""


class WatchAnswer(Model):
    """Events."""
    events: list[Event]
    """Oldest first."""
    to: int
    """Ask behind this one next."""
    lost: int = 0
    """Number of dropped events, of all sessions: the reader was too slow, or the host restarted."""


class WatchGraphAnswer(Model):
    """What happened since."""
    events: list[GraphEvent]
    """Oldest first."""
    to: int
    """Ask after this one next."""
    how: HowWatched | str
    """How they are come by."""
    lost: bool = False
    """Some events between the two are missing: the reader or the host was too slow, or no client watched. Take a new graph."""
    end: bool = False
    """The session has ended: nothing follows."""


class WatchGraphParams(Model):
    """What happens to a session's processes."""
    session: str
    """Name or id."""
    after: int | None = None
    """The `to` of the answer before; none: from now on, which is answered at once."""
    wait_ms: int = 0
    """How long to wait for an event, at most."""


class WatchParams(Model):
    """Which events."""
    session: str | None = None
    """Name or id; none: every session the caller may observe."""
    after: int | None = None
    """Those behind this number; none: those to come, and first of all what each session is doing."""
    wait_ms: int = 0
    """Wait this long for the first."""


class WritesEvent(Model):
    """Event `writes`: whether an attached client is the one that writes now, and under which fence."""
    client: int
    """The client's number."""
    writes: bool
    """It writes: it may speak to the keeper directly."""
    fence: Fence
    """The newest fence."""


for _model in Model.__subclasses__():
    _model.model_rebuild()
