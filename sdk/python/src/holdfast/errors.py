# Made by generate.py from spec/schema.json: do not edit, run `python generate.py`.
"""An exception for each code a host answers with."""

from __future__ import annotations

from ._fault import Fault, HoldfastError, Interrupted, TimedOut, Unreachable, Untrusted


class BadRequest(Fault):
    """The message is not JSON-RPC, or its parameters do not fit the operation."""


class UnknownOperation(Fault):
    """There is no such operation."""


class Version(Fault):
    """No protocol version both sides speak."""


class NotFound(Fault):
    """No session has that name or id."""


class Ambiguous(Fault):
    """An id prefix fits several sessions."""


class NameTaken(Fault):
    """A live session has that name already."""


class Ended(Fault):
    """The session has ended."""


class Lost(Fault):
    """The session was lost; it can be recovered."""


class UnknownKeeper(Fault):
    """The session's keeper speaks a version this host does not know."""


class CannotStart(Fault):
    """The host could not start the command, enter its directory, or create the session's files."""


class Ahead(Fault):
    """The offset asked for does not exist yet."""


class Busy(Fault):
    """The terminal takes no more input now."""


class Damaged(Fault):
    """A file of the session is damaged."""


class Unidentified(Fault):
    """The connection has not proven who speaks, or the proof does not hold."""


class Unconfirmed(Fault):
    """The process runs inside a session or was started by an agent, and the human has not confirmed that it is theirs."""


class BadProof(Fault):
    """A signature over an act does not fit it."""


class NoSuchActor(Fault):
    """The host knows no such actor."""


class TurnHeld(Fault):
    """Another actor has the turn."""


class FenceStale(Fault):
    """The turn has changed since this was written."""


class Denied(Fault):
    """The actor may not do that."""


class Frozen(Fault):
    """The session is frozen."""


class NotFrozen(Fault):
    """The session is not frozen."""


class NotHolder(Fault):
    """Only the holder of the turn can do that."""


class NotAttached(Fault):
    """The client is not attached, or is another actor's."""


class NoSuchGrant(Fault):
    """There is no such grant now."""


class TooWide(Fault):
    """A grant wider than its giver's envelope."""


class TooLong(Fault):
    """A grant that would outlast its giver's envelope."""


class EmptyGrant(Fault):
    """A grant of nothing."""


class TooMany(Fault):
    """A bound of the session is reached."""


class EchoOn(Fault):
    """A secret would be shown: the terminal's echo is on."""


class ShellBusy(Fault):
    """The session's shell is not at an idle prompt, or the host cannot know."""


class KeyConflict(Fault):
    """The key of a run was used for something else."""


class NoSuchRun(Fault):
    """There is no such run."""


class NoSuchToken(Fault):
    """There is no such token."""


class NoSuchInvite(Fault):
    """There is no such invite."""


class InviteOver(Fault):
    """The invite was used, has expired, or was revoked."""


class NoSuchDevice(Fault):
    """There is no such device."""


class NoSuchRelay(Fault):
    """There is no such relay, or none at all."""


class TooFast(Fault):
    """Too many requests in this time."""


class TooLarge(Fault):
    """The request is too large."""


class Stopping(Fault):
    """The host is stopping; its sessions keep running."""


class NoSuchQuestion(Fault):
    """There is no such question."""


class QuestionClosed(Fault):
    """The question was answered, withdrawn, or is over."""


class ApprovalNeeded(Fault):
    """A human must approve this first: it is held under the approval in the details."""


class NoSuchApproval(Fault):
    """There is no such approval."""


class ApprovalClosed(Fault):
    """The approval was answered, or is over."""


class NoSuchFile(Fault):
    """There is no such file or directory, or nothing to undo."""


class OutsideRoot(Fault):
    """The path leaves the session's working tree, or is Holdfast's own."""


class NotAFile(Fault):
    """It is not a file that can be read or written so: a directory, a device, a pipe."""


class FileChanged(Fault):
    """The file is not as the caller expected it."""


class Unrecorded(Fault):
    """The host cannot record the act, so it does not perform it."""


class Internal(Fault):
    """Unexpected error in the host."""


BY_CODE: dict[str, type[Fault]] = {
    "bad_request": BadRequest,
    "unknown_operation": UnknownOperation,
    "version": Version,
    "not_found": NotFound,
    "ambiguous": Ambiguous,
    "name_taken": NameTaken,
    "ended": Ended,
    "lost": Lost,
    "unknown_keeper": UnknownKeeper,
    "cannot_start": CannotStart,
    "ahead": Ahead,
    "busy": Busy,
    "damaged": Damaged,
    "unidentified": Unidentified,
    "unconfirmed": Unconfirmed,
    "bad_proof": BadProof,
    "no_such_actor": NoSuchActor,
    "turn_held": TurnHeld,
    "fence_stale": FenceStale,
    "denied": Denied,
    "frozen": Frozen,
    "not_frozen": NotFrozen,
    "not_holder": NotHolder,
    "not_attached": NotAttached,
    "no_such_grant": NoSuchGrant,
    "too_wide": TooWide,
    "too_long": TooLong,
    "empty_grant": EmptyGrant,
    "too_many": TooMany,
    "echo_on": EchoOn,
    "shell_busy": ShellBusy,
    "key_conflict": KeyConflict,
    "no_such_run": NoSuchRun,
    "no_such_token": NoSuchToken,
    "no_such_invite": NoSuchInvite,
    "invite_over": InviteOver,
    "no_such_device": NoSuchDevice,
    "no_such_relay": NoSuchRelay,
    "too_fast": TooFast,
    "too_large": TooLarge,
    "stopping": Stopping,
    "no_such_question": NoSuchQuestion,
    "question_closed": QuestionClosed,
    "approval_needed": ApprovalNeeded,
    "no_such_approval": NoSuchApproval,
    "approval_closed": ApprovalClosed,
    "no_such_file": NoSuchFile,
    "outside_root": OutsideRoot,
    "not_a_file": NotAFile,
    "file_changed": FileChanged,
    "unrecorded": Unrecorded,
    "internal": Internal,
}

__all__ = [
    "BY_CODE",
    "Ahead",
    "Ambiguous",
    "ApprovalClosed",
    "ApprovalNeeded",
    "BadProof",
    "BadRequest",
    "Busy",
    "CannotStart",
    "Damaged",
    "Denied",
    "EchoOn",
    "EmptyGrant",
    "Ended",
    "Fault",
    "FenceStale",
    "FileChanged",
    "Frozen",
    "HoldfastError",
    "Internal",
    "Interrupted",
    "InviteOver",
    "KeyConflict",
    "Lost",
    "NameTaken",
    "NoSuchActor",
    "NoSuchApproval",
    "NoSuchDevice",
    "NoSuchFile",
    "NoSuchGrant",
    "NoSuchInvite",
    "NoSuchQuestion",
    "NoSuchRelay",
    "NoSuchRun",
    "NoSuchToken",
    "NotAFile",
    "NotAttached",
    "NotFound",
    "NotFrozen",
    "NotHolder",
    "OutsideRoot",
    "QuestionClosed",
    "ShellBusy",
    "Stopping",
    "TimedOut",
    "TooFast",
    "TooLarge",
    "TooLong",
    "TooMany",
    "TooWide",
    "TurnHeld",
    "Unconfirmed",
    "Unidentified",
    "UnknownKeeper",
    "UnknownOperation",
    "Unreachable",
    "Unrecorded",
    "Untrusted",
    "Version",
]
