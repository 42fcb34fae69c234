# Made by generate.py from spec/schema.json: do not edit, run `python generate.py`.
"""Every operation of the table as a typed method."""

from __future__ import annotations

from typing import Any, Protocol

from .types import *

Answer = tuple[Any, bytes]


class AsyncAsk(Protocol):
    """Asks a host."""

    async def __call__(
        self, method: str, params: dict[str, Any], data: bytes, answer: Any
    ) -> Answer: ...


class Ask(Protocol):
    """Asks a host, and waits."""

    def __call__(self, method: str, params: dict[str, Any], data: bytes, answer: Any) -> Answer: ...


def _given(params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


class AsyncCalls:
    """The table."""

    def __init__(self, ask: AsyncAsk) -> None:
        self._ask = ask

    async def actor_list(self) -> list[ActorView]:
        """List the actors that the host knows."""
        params = _given({})
        found: list[ActorView]
        found, _ = await self._ask("actor.list", params, b"", list[ActorView])
        return found

    async def actor_me(self) -> MeAnswer:
        """Get which actor you are, and by which token."""
        params = _given({})
        found: MeAnswer
        found, _ = await self._ask("actor.me", params, b"", MeAnswer)
        return found

    async def actor_record(self, *, handle: Handle, action: str | None = None) -> RecordView:
        """Get an actor's track record: its runs under contracts, and how many kept them."""
        params = _given({"handle": handle, "action": action})
        found: RecordView
        found, _ = await self._ask("actor.record", params, b"", RecordView)
        return found

    async def actor_remove(self, *, handle: Handle) -> Nothing:
        """Remove an actor and revoke its key."""
        params = _given({"handle": handle})
        found: Nothing
        found, _ = await self._ask("actor.remove", params, b"", Nothing)
        return found

    async def approval_answer(self, *, approval: ApprovalId, approve: bool, seen: Hash, minutes: int | None = None, proof: Proof | None = None, reason: str | None = None) -> ApprovalView:
        """Approve or deny a held act; only humans may, and never the actor that asked for it."""
        params = _given({"approval": approval, "approve": approve, "seen": seen, "minutes": minutes, "proof": proof, "reason": reason})
        found: ApprovalView
        found, _ = await self._ask("approval.answer", params, b"", ApprovalView)
        return found

    async def approval_get(self, *, approval: ApprovalId, wait_ms: int | None = None) -> ApprovalView:
        """Get a held act; can wait until its state changes."""
        params = _given({"approval": approval, "wait_ms": wait_ms})
        found: ApprovalView
        found, _ = await self._ask("approval.get", params, b"", ApprovalView)
        return found

    async def approval_list(self, *, all: bool | None = None, session: str | None = None) -> list[ApprovalView]:
        """List acts that wait for a human: of a session, or of all sessions you may observe."""
        params = _given({"all": all, "session": session})
        found: list[ApprovalView]
        found, _ = await self._ask("approval.list", params, b"", list[ApprovalView])
        return found

    async def checkpoint_check(self, *, session: str) -> CheckAnswer:
        """Get what a checkpoint of the session would refuse and cut now, by process and descriptor."""
        params = _given({"session": session})
        found: CheckAnswer
        found, _ = await self._ask("checkpoint.check", params, b"", CheckAnswer)
        return found

    async def checkpoint_list(self, *, session: str | None = None) -> list[CheckpointView]:
        """List checkpoints of a session, or of all sessions you may observe, oldest first."""
        params = _given({"session": session})
        found: list[CheckpointView]
        found, _ = await self._ask("checkpoint.list", params, b"", list[CheckpointView])
        return found

    async def checkpoint_make(self, *, session: str, keep_running: bool | None = None, proof: Proof | None = None) -> CheckpointView:
        """Keep a copy of a portable session's live processes; the session stops unless it is to keep running."""
        params = _given({"session": session, "keep_running": keep_running, "proof": proof})
        found: CheckpointView
        found, _ = await self._ask("checkpoint.make", params, b"", CheckpointView)
        return found

    async def checkpoint_remove(self, *, checkpoint: str, session: str, proof: Proof | None = None) -> Nothing:
        """Remove a checkpoint."""
        params = _given({"checkpoint": checkpoint, "session": session, "proof": proof})
        found: Nothing
        found, _ = await self._ask("checkpoint.remove", params, b"", Nothing)
        return found

    async def device_list(self) -> list[DeviceView]:
        """List the devices that may reach this host through a relay."""
        params = _given({})
        found: list[DeviceView]
        found, _ = await self._ask("device.list", params, b"", list[DeviceView])
        return found

    async def device_revoke(self, *, device: str) -> DeviceView:
        """Revoke a device at once: its connections and its grants end."""
        params = _given({"device": device})
        found: DeviceView
        found, _ = await self._ask("device.revoke", params, b"", DeviceView)
        return found

    async def files_changes(self, *, session: str) -> list[FileChange]:
        """List the last writes to files through the host, newest first."""
        params = _given({"session": session})
        found: list[FileChange]
        found, _ = await self._ask("files.changes", params, b"", list[FileChange])
        return found

    async def files_diff(self, *, change: int, session: str) -> FilesDiffAnswer:
        """Get what a write changed, as a diff, where the bytes are kept."""
        params = _given({"change": change, "session": session})
        found: FilesDiffAnswer
        found, _ = await self._ask("files.diff", params, b"", FilesDiffAnswer)
        return found

    async def files_edit(self, *, new: str, old: str, path: str, session: str) -> FilesEditAnswer:
        """Replace a text in a file of the session's working tree; it must be there once."""
        params = _given({"new": new, "old": old, "path": path, "session": session})
        found: FilesEditAnswer
        found, _ = await self._ask("files.edit", params, b"", FilesEditAnswer)
        return found

    async def files_list(self, *, session: str, after: str | None = None, limit: int | None = None, path: str | None = None) -> FilesListAnswer:
        """List a directory of the session's working tree, page by page."""
        params = _given({"session": session, "after": after, "limit": limit, "path": path})
        found: FilesListAnswer
        found, _ = await self._ask("files.list", params, b"", FilesListAnswer)
        return found

    async def files_read(self, *, path: str, session: str, etag: str | None = None, max: int | None = None, offset: int | None = None) -> FilesReadAnswer:
        """Read a file of the session's working tree, from an offset on."""
        params = _given({"path": path, "session": session, "etag": etag, "max": max, "offset": offset})
        found: FilesReadAnswer
        found, _ = await self._ask("files.read", params, b"", FilesReadAnswer)
        return found

    async def files_undo(self, *, session: str, path: str | None = None) -> FileChange:
        """Undo your last write to a file, where the bytes before it are kept."""
        params = _given({"session": session, "path": path})
        found: FileChange
        found, _ = await self._ask("files.undo", params, b"", FileChange)
        return found

    async def files_upload(self, *, path: str, session: str, size: int, tag: str, descriptor: int | None = None, finish: bool | None = None, hash: Hash | None = None, mode: int | None = None, offset: int | None = None) -> FilesUploadAnswer:
        """Upload a file to the session's working tree in pieces, which can be resumed."""
        params = _given({"path": path, "session": session, "size": size, "tag": tag, "descriptor": descriptor, "finish": finish, "hash": hash, "mode": mode, "offset": offset})
        found: FilesUploadAnswer
        found, _ = await self._ask("files.upload", params, b"", FilesUploadAnswer)
        return found

    async def files_write(self, *, path: str, session: str, etag: str | None = None, mode: int | None = None, new: bool | None = None) -> FileChange:
        """Write a file of the session's working tree, whole and at once."""
        params = _given({"path": path, "session": session, "etag": etag, "mode": mode, "new": new})
        found: FileChange
        found, _ = await self._ask("files.write", params, b"", FileChange)
        return found

    async def flow_answer(self, *, flow: str, text: str, step: int | None = None) -> FlowView:
        """Answer a flow's question; only humans may."""
        params = _given({"flow": flow, "text": text, "step": step})
        found: FlowView
        found, _ = await self._ask("flow.answer", params, b"", FlowView)
        return found

    async def flow_cancel(self, *, flow: str, reason: str | None = None) -> FlowView:
        """Cancel a flow: stop what runs, then undo what was done."""
        params = _given({"flow": flow, "reason": reason})
        found: FlowView
        found, _ = await self._ask("flow.cancel", params, b"", FlowView)
        return found

    async def flow_get(self, *, flow: str, after: int | None = None, generation: int | None = None, wait_ms: int | None = None) -> FlowView:
        """Get a flow, what it waits for and its history; can wait for more of it."""
        params = _given({"flow": flow, "after": after, "generation": generation, "wait_ms": wait_ms})
        found: FlowView
        found, _ = await self._ask("flow.get", params, b"", FlowView)
        return found

    async def flow_list(self, *, after: int | None = None, all: bool | None = None, wait_ms: int | None = None) -> list[FlowView]:
        """List flows, the newest first: your own, or all if you are a human."""
        params = _given({"after": after, "all": all, "wait_ms": wait_ms})
        found: list[FlowView]
        found, _ = await self._ask("flow.list", params, b"", list[FlowView])
        return found

    async def flow_retry(self, *, flow: str, value: Any | None = None, verdict: str | None = None) -> FlowView:
        """Let a blocked flow go on, or decide about a stuck step, which only humans may."""
        params = _given({"flow": flow, "value": value, "verdict": verdict})
        found: FlowView
        found, _ = await self._ask("flow.retry", params, b"", FlowView)
        return found

    async def flow_signal(self, *, flow: str, name: str, id: str | None = None, value: Any | None = None) -> FlowView:
        """Send a signal to a flow; once per id."""
        params = _given({"flow": flow, "name": name, "id": id, "value": value})
        found: FlowView
        found, _ = await self._ask("flow.signal", params, b"", FlowView)
        return found

    async def flow_start(self, *, cwd: str | None = None, definition: str | None = None, flow: str | None = None, input: Any | None = None, name: str | None = None, skip_timers: bool | None = None) -> FlowView:
        """Start a durable flow: a definition in YAML, or a flow whose code a worker has."""
        params = _given({"cwd": cwd, "definition": definition, "flow": flow, "input": input, "name": name, "skip_timers": skip_timers})
        found: FlowView
        found, _ = await self._ask("flow.start", params, b"", FlowView)
        return found

    async def fork_diff(self, *, session: str, patch: bool | None = None, with_: str | None = None) -> ForkDiffAnswer:
        """List the files that differ between a branch and the files it was forked over, or between two branches; as a patch, with the right `fork`."""
        params = _given({"session": session, "patch": patch, "with": with_})
        found: ForkDiffAnswer
        found, _ = await self._ask("fork.diff", params, b"", ForkDiffAnswer)
        return found

    async def fork_discard(self, *, session: str, proof: Proof | None = None) -> SessionView:
        """End a branch and remove its files and checkpoints."""
        params = _given({"session": session, "proof": proof})
        found: SessionView
        found, _ = await self._ask("fork.discard", params, b"", SessionView)
        return found

    async def fork_keep(self, *, session: str, into: str | None = None, leave: list[str] | None = None, proof: Proof | None = None, take: list[str] | None = None) -> ForkKeepAnswer:
        """Apply a branch's changed files to the real ones, or copy them elsewhere; only humans may. Nothing is applied while files conflict."""
        params = _given({"session": session, "into": into, "leave": leave, "proof": proof, "take": take})
        found: ForkKeepAnswer
        found, _ = await self._ask("fork.keep", params, b"", ForkKeepAnswer)
        return found

    async def grant_add(self, *, rights: Rights, session: str, to: Actor, proof: Proof | None = None, until_ms: int | None = None) -> GrantView:
        """Grant rights in a session to an actor."""
        params = _given({"rights": rights, "session": session, "to": to, "proof": proof, "until_ms": until_ms})
        found: GrantView
        found, _ = await self._ask("grant.add", params, b"", GrantView)
        return found

    async def grant_list(self, *, session: str) -> GrantsAnswer:
        """List the grants in a session."""
        params = _given({"session": session})
        found: GrantsAnswer
        found, _ = await self._ask("grant.list", params, b"", GrantsAnswer)
        return found

    async def grant_revoke(self, *, session: str, actor: ActorId | None = None, grant: int | None = None, proof: Proof | None = None) -> RevokeAnswer:
        """Revoke rights, and all grants made from them."""
        params = _given({"session": session, "actor": actor, "grant": grant, "proof": proof})
        found: RevokeAnswer
        found, _ = await self._ask("grant.revoke", params, b"", RevokeAnswer)
        return found

    async def graph_get(self, *, session: str, depth: Depth | None = None) -> GraphAnswer:
        """Get the session's processes, their files and sockets, and the act that started each."""
        params = _given({"session": session, "depth": depth})
        found: GraphAnswer
        found, _ = await self._ask("graph.get", params, b"", GraphAnswer)
        return found

    async def graph_ports(self, *, session: str | None = None) -> list[PortView]:
        """List listening ports of a session, or of all sessions."""
        params = _given({"session": session})
        found: list[PortView]
        found, _ = await self._ask("graph.ports", params, b"", list[PortView])
        return found

    async def graph_watch(self, *, session: str, after: int | None = None, wait_ms: int | None = None) -> WatchGraphAnswer:
        """Get events of the session's processes; can wait for them."""
        params = _given({"session": session, "after": after, "wait_ms": wait_ms})
        found: WatchGraphAnswer
        found, _ = await self._ask("graph.watch", params, b"", WatchGraphAnswer)
        return found

    async def host_metrics(self) -> MetricsAnswer:
        """Get the host's metrics in the Prometheus text format."""
        params = _given({})
        found: MetricsAnswer
        found, _ = await self._ask("host.metrics", params, b"", MetricsAnswer)
        return found

    async def host_status(self) -> HostStatus:
        """Get the host's version and status."""
        params = _given({})
        found: HostStatus
        found, _ = await self._ask("host.status", params, b"", HostStatus)
        return found

    async def host_stop(self) -> Nothing:
        """Stop the host; sessions keep running."""
        params = _given({})
        found: Nothing
        found, _ = await self._ask("host.stop", params, b"", Nothing)
        return found

    async def invite_accept(self, *, actor: Actor, signature: Signature) -> InviteAcceptAnswer:
        """Accept the invite by which this connection came: enrol an actor's key."""
        params = _given({"actor": actor, "signature": signature})
        found: InviteAcceptAnswer
        found, _ = await self._ask("invite.accept", params, b"", InviteAcceptAnswer)
        return found

    async def invite_list(self) -> list[InviteView]:
        """List invites: your own, or all if you are a human."""
        params = _given({})
        found: list[InviteView]
        found, _ = await self._ask("invite.list", params, b"", list[InviteView])
        return found

    async def invite_new(self, *, access_ms: int | None = None, can: Rights | None = None, for_ms: int | None = None, session: str | None = None, uses: int | None = None) -> InviteNewAnswer:
        """Create a link by which others get access to a session, or to the host, through a relay."""
        params = _given({"access_ms": access_ms, "can": can, "for_ms": for_ms, "session": session, "uses": uses})
        found: InviteNewAnswer
        found, _ = await self._ask("invite.new", params, b"", InviteNewAnswer)
        return found

    async def invite_revoke(self, *, invite: str) -> InviteView:
        """Revoke an invite; devices that accepted it stay."""
        params = _given({"invite": invite})
        found: InviteView
        found, _ = await self._ask("invite.revoke", params, b"", InviteView)
        return found

    async def login_new(self) -> LoginAnswer:
        """Create a code that logs a browser in as you, once."""
        params = _given({})
        found: LoginAnswer
        found, _ = await self._ask("login.new", params, b"", LoginAnswer)
        return found

    async def page_get(self, *, have: Signature | None = None) -> tuple[PageView, bytes]:
        """Get the page for a browser that comes through a relay, signed by the host; the answer's bytes are its files."""
        params = _given({"have": have})
        found: PageView
        found, more = await self._ask("page.get", params, b"", PageView)
        return found, more

    async def policy_get(self) -> PolicyView:
        """Get the policy in force: its rules, and what is wrong in files that are not."""
        params = _given({})
        found: PolicyView
        found, _ = await self._ask("policy.get", params, b"", PolicyView)
        return found

    async def policy_may(self, *, command: str, actor: Handle | None = None, cwd: str | None = None, session: str | None = None) -> MayAnswer:
        """Ask what the policy says of a command, without running it."""
        params = _given({"command": command, "actor": actor, "cwd": cwd, "session": session})
        found: MayAnswer
        found, _ = await self._ask("policy.may", params, b"", MayAnswer)
        return found

    async def question_answer(self, *, question: QuestionId, seen: Hash, option: int | None = None, proof: Proof | None = None, text: str | None = None) -> QuestionView:
        """Answer a question; only humans may."""
        params = _given({"question": question, "seen": seen, "option": option, "proof": proof, "text": text})
        found: QuestionView
        found, _ = await self._ask("question.answer", params, b"", QuestionView)
        return found

    async def question_ask(self, *, session: str, text: str, expires_ms: int | None = None, key: str | None = None, options: list[str] | None = None, wait_ms: int | None = None) -> QuestionView:
        """Ask the humans of a session a question; can wait for the answer."""
        params = _given({"session": session, "text": text, "expires_ms": expires_ms, "key": key, "options": options, "wait_ms": wait_ms})
        found: QuestionView
        found, _ = await self._ask("question.ask", params, b"", QuestionView)
        return found

    async def question_get(self, *, question: QuestionId, wait_ms: int | None = None) -> QuestionView:
        """Get a question and its answer; can wait for it."""
        params = _given({"question": question, "wait_ms": wait_ms})
        found: QuestionView
        found, _ = await self._ask("question.get", params, b"", QuestionView)
        return found

    async def question_list(self, *, all: bool | None = None, session: str | None = None) -> list[QuestionView]:
        """List the questions of a session, or of all sessions you may observe."""
        params = _given({"all": all, "session": session})
        found: list[QuestionView]
        found, _ = await self._ask("question.list", params, b"", list[QuestionView])
        return found

    async def question_withdraw(self, *, question: QuestionId) -> QuestionView:
        """Withdraw a question; only its asker or a human may."""
        params = _given({"question": question})
        found: QuestionView
        found, _ = await self._ask("question.withdraw", params, b"", QuestionView)
        return found

    async def relay_add(self, *, url: str) -> RelaysAnswer:
        """Wait at a relay, so that clients can reach this host through it."""
        params = _given({"url": url})
        found: RelaysAnswer
        found, _ = await self._ask("relay.add", params, b"", RelaysAnswer)
        return found

    async def relay_direct(self, *, addresses: list[str] | None = None, listen: str | None = None) -> RelaysAnswer:
        """Listen for devices that reach this host without a relay, or stop."""
        params = _given({"addresses": addresses, "listen": listen})
        found: RelaysAnswer
        found, _ = await self._ask("relay.direct", params, b"", RelaysAnswer)
        return found

    async def relay_list(self) -> RelaysAnswer:
        """List the relays this host waits at, where it listens itself, and get the host's key."""
        params = _given({})
        found: RelaysAnswer
        found, _ = await self._ask("relay.list", params, b"", RelaysAnswer)
        return found

    async def relay_remove(self, *, url: str) -> RelaysAnswer:
        """Wait at a relay no longer."""
        params = _given({"url": url})
        found: RelaysAnswer
        found, _ = await self._ask("relay.remove", params, b"", RelaysAnswer)
        return found

    async def run_cancel(self, *, run: RunRef, proof: Proof | None = None, wait_ms: int | None = None) -> RunAnswer:
        """Interrupt a run."""
        params = _given({"run": run, "proof": proof, "wait_ms": wait_ms})
        found: RunAnswer
        found, _ = await self._ask("run.cancel", params, b"", RunAnswer)
        return found

    async def run_get(self, *, run: RunRef, wait_ms: int | None = None) -> RunAnswer:
        """Get a run and its output; can wait for its end."""
        params = _given({"run": run, "wait_ms": wait_ms})
        found: RunAnswer
        found, _ = await self._ask("run.get", params, b"", RunAnswer)
        return found

    async def run_list(self, *, session: str | None = None) -> list[RunView]:
        """List the runs of a session, or of all sessions you may observe."""
        params = _given({"session": session})
        found: list[RunView]
        found, _ = await self._ask("run.list", params, b"", list[RunView])
        return found

    async def run_output(self, *, run: RunRef, from_: int | None = None, max: int | None = None, wait_ms: int | None = None) -> tuple[RunOutputAnswer, bytes]:
        """A run's output bytes, from an offset on; waits for some if asked to."""
        params = _given({"run": run, "from": from_, "max": max, "wait_ms": wait_ms})
        found: RunOutputAnswer
        found, more = await self._ask("run.output", params, b"", RunOutputAnswer)
        return found, more

    async def run_start(self, *, approval_wait_ms: int | None = None, command: str | None = None, contract: Contract | None = None, detect: Detect | None = None, intent: str | None = None, keep: bool | None = None, key: str | None = None, new: NewParams | None = None, on_exit: OnExit | None = None, proof: Proof | None = None, run: RunId | None = None, separate_stderr: bool | None = None, session: str | None = None, shared: bool | None = None, wait_ms: int | None = None) -> RunAnswer:
        """Run a command in a session's shell or in a new session; once per key."""
        params = _given({"approval_wait_ms": approval_wait_ms, "command": command, "contract": contract, "detect": detect, "intent": intent, "keep": keep, "key": key, "new": new, "on_exit": on_exit, "proof": proof, "run": run, "separate_stderr": separate_stderr, "session": session, "shared": shared, "wait_ms": wait_ms})
        found: RunAnswer
        found, _ = await self._ask("run.start", params, b"", RunAnswer)
        return found

    async def run_trace(self, *, run: RunRef) -> TraceView:
        """Get everything that is known of a run: its contract, decision, attempts, effects and outcome."""
        params = _given({"run": run})
        found: TraceView
        found, _ = await self._ask("run.trace", params, b"", TraceView)
        return found

    async def session_arrive(self, *, step: ArriveStep) -> ArriveAnswer:
        """Take a session in that is moved here, step by step; only humans may, by a path that narrows nothing."""
        params = _given({"step": step})
        found: ArriveAnswer
        found, _ = await self._ask("session.arrive", params, b"", ArriveAnswer)
        return found

    async def session_attach(self, *, session: str, size: Size, draws: bool | None = None, env: list[str] | None = None, pid: int | None = None, read_only: bool | None = None, remote: bool | None = None, resume: Resume | None = None, sizes: bool | None = None, tty: str | None = None) -> tuple[AttachAnswer, bytes]:
        """Attach a terminal; the answer's bytes paint the session's state at an offset."""
        params = _given({"session": session, "size": size, "draws": draws, "env": env, "pid": pid, "read_only": read_only, "remote": remote, "resume": resume, "sizes": sizes, "tty": tty})
        found: AttachAnswer
        found, more = await self._ask("session.attach", params, b"", AttachAnswer)
        return found, more

    async def session_cost(self, *, session: str | None = None) -> list[CostView]:
        """Get what a session, or each session, takes up: memory, processes, disk; and when somebody last used it."""
        params = _given({"session": session})
        found: list[CostView]
        found, _ = await self._ask("session.cost", params, b"", list[CostView])
        return found

    async def session_detach(self, *, clients: list[int], session: str, proof: Proof | None = None) -> DetachAnswer:
        """Detach clients from a session; the session keeps running."""
        params = _given({"clients": clients, "session": session, "proof": proof})
        found: DetachAnswer
        found, _ = await self._ask("session.detach", params, b"", DetachAnswer)
        return found

    async def session_end(self, *, session: str, grace_ms: int | None = None, proof: Proof | None = None) -> SessionView:
        """End a session and its whole process tree: SIGHUP, then SIGKILL after a grace period."""
        params = _given({"session": session, "grace_ms": grace_ms, "proof": proof})
        found: SessionView
        found, _ = await self._ask("session.end", params, b"", SessionView)
        return found

    async def session_env(self, *, session: str, all: bool | None = None) -> EnvAnswer:
        """Get the names in the session's shell and who changed them: names and hashes, never values."""
        params = _given({"session": session, "all": all})
        found: EnvAnswer
        found, _ = await self._ask("session.env", params, b"", EnvAnswer)
        return found

    async def session_fork(self, *, session: str, count: int | None = None, names: list[SessionName] | None = None, proof: Proof | None = None, share_network: bool | None = None) -> ForkAnswer:
        """Start copies of a portable session, each with its own identity, files and network; the session itself goes on."""
        params = _given({"session": session, "count": count, "names": names, "proof": proof, "share_network": share_network})
        found: ForkAnswer
        found, _ = await self._ask("session.fork", params, b"", ForkAnswer)
        return found

    async def session_get(self, *, session: str) -> SessionView:
        """Show one session."""
        params = _given({"session": session})
        found: SessionView
        found, _ = await self._ask("session.get", params, b"", SessionView)
        return found

    async def session_handover(self, *, session: str) -> HandoverAnswer:
        """Get what others changed since you wrote in the session last: names, files, text at the prompt, jobs."""
        params = _given({"session": session})
        found: HandoverAnswer
        found, _ = await self._ask("session.handover", params, b"", HandoverAnswer)
        return found

    async def session_journal(self, *, session: str, after: int | None = None, last: int | None = None, wait_ms: int | None = None) -> tuple[JournalAnswer, bytes]:
        """Read the session's journal, line by line as written."""
        params = _given({"session": session, "after": after, "last": last, "wait_ms": wait_ms})
        found: JournalAnswer
        found, more = await self._ask("session.journal", params, b"", JournalAnswer)
        return found, more

    async def session_keep(self, *, session: str, for_ms: int | None = None, off: bool | None = None, proof: Proof | None = None) -> SessionView:
        """Keep a session from being reaped, for a time or until further notice; or no longer."""
        params = _given({"session": session, "for_ms": for_ms, "off": off, "proof": proof})
        found: SessionView
        found, _ = await self._ask("session.keep", params, b"", SessionView)
        return found

    async def session_leave(self, *, client: int, session: str, shown: int | None = None) -> LeaveAnswer:
        """Leave a session that this connection is attached to."""
        params = _given({"client": client, "session": session, "shown": shown})
        found: LeaveAnswer
        found, _ = await self._ask("session.leave", params, b"", LeaveAnswer)
        return found

    async def session_list(self, *, all: bool | None = None) -> list[SessionView]:
        """List sessions."""
        params = _given({"all": all})
        found: list[SessionView]
        found, _ = await self._ask("session.list", params, b"", list[SessionView])
        return found

    async def session_move(self, *, session: str, step: MoveStep, proof: Proof | None = None) -> MoveAnswer:
        """Move a portable session to another host, step by step, at the host that has it: needs the right `end` too."""
        params = _given({"session": session, "step": step, "proof": proof})
        found: MoveAnswer
        found, _ = await self._ask("session.move", params, b"", MoveAnswer)
        return found

    async def session_new(self, *, ahead: bool | None = None, argv0: str | None = None, checkpoint_every_ms: int | None = None, command: list[str] | None = None, cwd: str | None = None, env: list[str] | None = None, env_add: list[str] | None = None, gate: Seam | None = None, integrate: bool | None = None, lease: Leasing | None = None, name: SessionName | None = None, nofile: int | None = None, on_resume: str | None = None, portable: bool | None = None, reap_after: ReapAfter | None = None, recover: Recovery | None = None, restart_on_failure: int | None = None, ring_bytes: int | None = None, size: Size | None = None, umask: int | None = None, user: str | None = None, wall: Wall | None = None) -> SessionView:
        """Start a session."""
        params = _given({"ahead": ahead, "argv0": argv0, "checkpoint_every_ms": checkpoint_every_ms, "command": command, "cwd": cwd, "env": env, "env_add": env_add, "gate": gate, "integrate": integrate, "lease": lease, "name": name, "nofile": nofile, "on_resume": on_resume, "portable": portable, "reap_after": reap_after, "recover": recover, "restart_on_failure": restart_on_failure, "ring_bytes": ring_bytes, "size": size, "umask": umask, "user": user, "wall": wall})
        found: SessionView
        found, _ = await self._ask("session.new", params, b"", SessionView)
        return found

    async def session_paint(self, *, session: str, size: Size, answers: int | None = None, behind: HistoryPlace | None = None, draws: bool | None = None, history: bool | None = None, remote: bool | None = None) -> tuple[Painted, bytes]:
        """Repaint an attached terminal, with or without history."""
        params = _given({"session": session, "size": size, "answers": answers, "behind": behind, "draws": draws, "history": history, "remote": remote})
        found: Painted
        found, more = await self._ask("session.paint", params, b"", Painted)
        return found, more

    async def session_read(self, *, session: str, from_: int | None = None, max: int | None = None, wait_ms: int | None = None) -> tuple[ReadAnswer, bytes]:
        """Read output bytes from an offset; can wait for more."""
        params = _given({"session": session, "from": from_, "max": max, "wait_ms": wait_ms})
        found: ReadAnswer
        found, more = await self._ask("session.read", params, b"", ReadAnswer)
        return found, more

    async def session_recover(self, *, session: str, env: list[str] | None = None, proof: Proof | None = None, run: bool | None = None) -> RecoverAnswer:
        """Give a lost session another life: the same identity, journal, history, directory and environment, new processes."""
        params = _given({"session": session, "env": env, "proof": proof, "run": run})
        found: RecoverAnswer
        found, _ = await self._ask("session.recover", params, b"", RecoverAnswer)
        return found

    async def session_rename(self, *, name: SessionName, session: str, proof: Proof | None = None) -> SessionView:
        """Rename the session."""
        params = _given({"name": name, "session": session, "proof": proof})
        found: SessionView
        found, _ = await self._ask("session.rename", params, b"", SessionView)
        return found

    async def session_resize(self, *, session: str, size: Size, proof: Proof | None = None) -> Nothing:
        """Resize the session's terminal."""
        params = _given({"session": session, "size": size, "proof": proof})
        found: Nothing
        found, _ = await self._ask("session.resize", params, b"", Nothing)
        return found

    async def session_restore(self, *, session: str, checkpoint: str | None = None, proof: Proof | None = None) -> RestoreAnswer:
        """Give a portable session that does not run its processes back, from a checkpoint: the same identity, the next life."""
        params = _given({"session": session, "checkpoint": checkpoint, "proof": proof})
        found: RestoreAnswer
        found, _ = await self._ask("session.restore", params, b"", RestoreAnswer)
        return found

    async def session_screen(self, *, session: str, ansi: bool | None = None, history: int | None = None) -> ScreenAnswer:
        """Get the screen as text."""
        params = _given({"session": session, "ansi": ansi, "history": history})
        found: ScreenAnswer
        found, _ = await self._ask("session.screen", params, b"", ScreenAnswer)
        return found

    async def session_send(self, *, seq: int, session: str, stream: int, client: int | None = None, fence: Fence | None = None, force: bool | None = None, in_order: bool | None = None, secret: bool | None = None, data: bytes) -> SendAnswer:
        """Type the message's bytes into the session; exactly once per stream and seq."""
        params = _given({"seq": seq, "session": session, "stream": stream, "client": client, "fence": fence, "force": force, "in_order": in_order, "secret": secret})
        found: SendAnswer
        found, _ = await self._ask("session.send", params, data, SendAnswer)
        return found

    async def session_signal(self, *, number: int, session: str, proof: Proof | None = None, target: int | None = None) -> Nothing:
        """Send a signal to the session's processes."""
        params = _given({"number": number, "session": session, "proof": proof, "target": target})
        found: Nothing
        found, _ = await self._ask("session.signal", params, b"", Nothing)
        return found

    async def session_state(self, *, session: str) -> StateView:
        """Get what the session is doing: working, waiting for input, or at its prompt."""
        params = _given({"session": session})
        found: StateView
        found, _ = await self._ask("session.state", params, b"", StateView)
        return found

    async def session_update(self, *, client: int, session: str, answers: Answers | None = None, size: Size | None = None) -> UpdateAnswer:
        """Report changes of an attached terminal: its size, whether it answers queries."""
        params = _given({"client": client, "session": session, "answers": answers, "size": size})
        found: UpdateAnswer
        found, _ = await self._ask("session.update", params, b"", UpdateAnswer)
        return found

    async def session_wait(self, *, session: str, timeout_ms: int | None = None, until: Until | None = None) -> WaitAnswer:
        """Wait until the session's command ends, or for another event."""
        params = _given({"session": session, "timeout_ms": timeout_ms, "until": until})
        found: WaitAnswer
        found, _ = await self._ask("session.wait", params, b"", WaitAnswer)
        return found

    async def session_watch(self, *, after: int | None = None, session: str | None = None, wait_ms: int | None = None) -> WatchAnswer:
        """Get events of a session, or of all sessions you may observe; can wait for them."""
        params = _given({"after": after, "session": session, "wait_ms": wait_ms})
        found: WatchAnswer
        found, _ = await self._ask("session.watch", params, b"", WatchAnswer)
        return found

    async def token_list(self) -> list[TokenView]:
        """List valid tokens: your own, or all if you are a human."""
        params = _given({})
        found: list[TokenView]
        found, _ = await self._ask("token.list", params, b"", list[TokenView])
        return found

    async def token_new(self, *, actor: Handle, can: Rights | None = None, for_ms: int | None = None, note: str | None = None) -> TokenNewAnswer:
        """Create a token for HTTP: it acts as one actor, with at most these rights."""
        params = _given({"actor": actor, "can": can, "for_ms": for_ms, "note": note})
        found: TokenNewAnswer
        found, _ = await self._ask("token.new", params, b"", TokenNewAnswer)
        return found

    async def token_revoke(self, *, token: str) -> TokenView:
        """Revoke a token at once."""
        params = _given({"token": token})
        found: TokenView
        found, _ = await self._ask("token.revoke", params, b"", TokenView)
        return found

    async def turn_get(self, *, session: str) -> TurnView:
        """Get who has the turn, and who waits for it."""
        params = _given({"session": session})
        found: TurnView
        found, _ = await self._ask("turn.get", params, b"", TurnView)
        return found

    async def turn_give(self, *, session: str, to: Actor, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Give the turn to another actor."""
        params = _given({"session": session, "to": to, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = await self._ask("turn.give", params, b"", TurnAnswer)
        return found

    async def turn_release(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Release the turn."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = await self._ask("turn.release", params, b"", TurnAnswer)
        return found

    async def turn_request(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Request the turn; you get it when its holder releases it or is idle."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = await self._ask("turn.request", params, b"", TurnAnswer)
        return found

    async def turn_seize(self, *, reason: str, session: str, client: int | None = None, freeze: bool | None = None, proof: Proof | None = None) -> SeizeAnswer:
        """Seize the turn, whatever its holder does; can freeze the process tree."""
        params = _given({"reason": reason, "session": session, "client": client, "freeze": freeze, "proof": proof})
        found: SeizeAnswer
        found, _ = await self._ask("turn.seize", params, b"", SeizeAnswer)
        return found

    async def turn_take(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Take the turn if it is free."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = await self._ask("turn.take", params, b"", TurnAnswer)
        return found

    async def turn_thaw(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Resume a frozen process tree."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = await self._ask("turn.thaw", params, b"", TurnAnswer)
        return found

    async def turn_withdraw(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Withdraw a request for the turn."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = await self._ask("turn.withdraw", params, b"", TurnAnswer)
        return found


class Calls:
    """The table."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def actor_list(self) -> list[ActorView]:
        """List the actors that the host knows."""
        params = _given({})
        found: list[ActorView]
        found, _ = self._ask("actor.list", params, b"", list[ActorView])
        return found

    def actor_me(self) -> MeAnswer:
        """Get which actor you are, and by which token."""
        params = _given({})
        found: MeAnswer
        found, _ = self._ask("actor.me", params, b"", MeAnswer)
        return found

    def actor_record(self, *, handle: Handle, action: str | None = None) -> RecordView:
        """Get an actor's track record: its runs under contracts, and how many kept them."""
        params = _given({"handle": handle, "action": action})
        found: RecordView
        found, _ = self._ask("actor.record", params, b"", RecordView)
        return found

    def actor_remove(self, *, handle: Handle) -> Nothing:
        """Remove an actor and revoke its key."""
        params = _given({"handle": handle})
        found: Nothing
        found, _ = self._ask("actor.remove", params, b"", Nothing)
        return found

    def approval_answer(self, *, approval: ApprovalId, approve: bool, seen: Hash, minutes: int | None = None, proof: Proof | None = None, reason: str | None = None) -> ApprovalView:
        """Approve or deny a held act; only humans may, and never the actor that asked for it."""
        params = _given({"approval": approval, "approve": approve, "seen": seen, "minutes": minutes, "proof": proof, "reason": reason})
        found: ApprovalView
        found, _ = self._ask("approval.answer", params, b"", ApprovalView)
        return found

    def approval_get(self, *, approval: ApprovalId, wait_ms: int | None = None) -> ApprovalView:
        """Get a held act; can wait until its state changes."""
        params = _given({"approval": approval, "wait_ms": wait_ms})
        found: ApprovalView
        found, _ = self._ask("approval.get", params, b"", ApprovalView)
        return found

    def approval_list(self, *, all: bool | None = None, session: str | None = None) -> list[ApprovalView]:
        """List acts that wait for a human: of a session, or of all sessions you may observe."""
        params = _given({"all": all, "session": session})
        found: list[ApprovalView]
        found, _ = self._ask("approval.list", params, b"", list[ApprovalView])
        return found

    def checkpoint_check(self, *, session: str) -> CheckAnswer:
        """Get what a checkpoint of the session would refuse and cut now, by process and descriptor."""
        params = _given({"session": session})
        found: CheckAnswer
        found, _ = self._ask("checkpoint.check", params, b"", CheckAnswer)
        return found

    def checkpoint_list(self, *, session: str | None = None) -> list[CheckpointView]:
        """List checkpoints of a session, or of all sessions you may observe, oldest first."""
        params = _given({"session": session})
        found: list[CheckpointView]
        found, _ = self._ask("checkpoint.list", params, b"", list[CheckpointView])
        return found

    def checkpoint_make(self, *, session: str, keep_running: bool | None = None, proof: Proof | None = None) -> CheckpointView:
        """Keep a copy of a portable session's live processes; the session stops unless it is to keep running."""
        params = _given({"session": session, "keep_running": keep_running, "proof": proof})
        found: CheckpointView
        found, _ = self._ask("checkpoint.make", params, b"", CheckpointView)
        return found

    def checkpoint_remove(self, *, checkpoint: str, session: str, proof: Proof | None = None) -> Nothing:
        """Remove a checkpoint."""
        params = _given({"checkpoint": checkpoint, "session": session, "proof": proof})
        found: Nothing
        found, _ = self._ask("checkpoint.remove", params, b"", Nothing)
        return found

    def device_list(self) -> list[DeviceView]:
        """List the devices that may reach this host through a relay."""
        params = _given({})
        found: list[DeviceView]
        found, _ = self._ask("device.list", params, b"", list[DeviceView])
        return found

    def device_revoke(self, *, device: str) -> DeviceView:
        """Revoke a device at once: its connections and its grants end."""
        params = _given({"device": device})
        found: DeviceView
        found, _ = self._ask("device.revoke", params, b"", DeviceView)
        return found

    def files_changes(self, *, session: str) -> list[FileChange]:
        """List the last writes to files through the host, newest first."""
        params = _given({"session": session})
        found: list[FileChange]
        found, _ = self._ask("files.changes", params, b"", list[FileChange])
        return found

    def files_diff(self, *, change: int, session: str) -> FilesDiffAnswer:
        """Get what a write changed, as a diff, where the bytes are kept."""
        params = _given({"change": change, "session": session})
        found: FilesDiffAnswer
        found, _ = self._ask("files.diff", params, b"", FilesDiffAnswer)
        return found

    def files_edit(self, *, new: str, old: str, path: str, session: str) -> FilesEditAnswer:
        """Replace a text in a file of the session's working tree; it must be there once."""
        params = _given({"new": new, "old": old, "path": path, "session": session})
        found: FilesEditAnswer
        found, _ = self._ask("files.edit", params, b"", FilesEditAnswer)
        return found

    def files_list(self, *, session: str, after: str | None = None, limit: int | None = None, path: str | None = None) -> FilesListAnswer:
        """List a directory of the session's working tree, page by page."""
        params = _given({"session": session, "after": after, "limit": limit, "path": path})
        found: FilesListAnswer
        found, _ = self._ask("files.list", params, b"", FilesListAnswer)
        return found

    def files_read(self, *, path: str, session: str, etag: str | None = None, max: int | None = None, offset: int | None = None) -> FilesReadAnswer:
        """Read a file of the session's working tree, from an offset on."""
        params = _given({"path": path, "session": session, "etag": etag, "max": max, "offset": offset})
        found: FilesReadAnswer
        found, _ = self._ask("files.read", params, b"", FilesReadAnswer)
        return found

    def files_undo(self, *, session: str, path: str | None = None) -> FileChange:
        """Undo your last write to a file, where the bytes before it are kept."""
        params = _given({"session": session, "path": path})
        found: FileChange
        found, _ = self._ask("files.undo", params, b"", FileChange)
        return found

    def files_upload(self, *, path: str, session: str, size: int, tag: str, descriptor: int | None = None, finish: bool | None = None, hash: Hash | None = None, mode: int | None = None, offset: int | None = None) -> FilesUploadAnswer:
        """Upload a file to the session's working tree in pieces, which can be resumed."""
        params = _given({"path": path, "session": session, "size": size, "tag": tag, "descriptor": descriptor, "finish": finish, "hash": hash, "mode": mode, "offset": offset})
        found: FilesUploadAnswer
        found, _ = self._ask("files.upload", params, b"", FilesUploadAnswer)
        return found

    def files_write(self, *, path: str, session: str, etag: str | None = None, mode: int | None = None, new: bool | None = None) -> FileChange:
        """Write a file of the session's working tree, whole and at once."""
        params = _given({"path": path, "session": session, "etag": etag, "mode": mode, "new": new})
        found: FileChange
        found, _ = self._ask("files.write", params, b"", FileChange)
        return found

    def flow_answer(self, *, flow: str, text: str, step: int | None = None) -> FlowView:
        """Answer a flow's question; only humans may."""
        params = _given({"flow": flow, "text": text, "step": step})
        found: FlowView
        found, _ = self._ask("flow.answer", params, b"", FlowView)
        return found

    def flow_cancel(self, *, flow: str, reason: str | None = None) -> FlowView:
        """Cancel a flow: stop what runs, then undo what was done."""
        params = _given({"flow": flow, "reason": reason})
        found: FlowView
        found, _ = self._ask("flow.cancel", params, b"", FlowView)
        return found

    def flow_get(self, *, flow: str, after: int | None = None, generation: int | None = None, wait_ms: int | None = None) -> FlowView:
        """Get a flow, what it waits for and its history; can wait for more of it."""
        params = _given({"flow": flow, "after": after, "generation": generation, "wait_ms": wait_ms})
        found: FlowView
        found, _ = self._ask("flow.get", params, b"", FlowView)
        return found

    def flow_list(self, *, after: int | None = None, all: bool | None = None, wait_ms: int | None = None) -> list[FlowView]:
        """List flows, the newest first: your own, or all if you are a human."""
        params = _given({"after": after, "all": all, "wait_ms": wait_ms})
        found: list[FlowView]
        found, _ = self._ask("flow.list", params, b"", list[FlowView])
        return found

    def flow_retry(self, *, flow: str, value: Any | None = None, verdict: str | None = None) -> FlowView:
        """Let a blocked flow go on, or decide about a stuck step, which only humans may."""
        params = _given({"flow": flow, "value": value, "verdict": verdict})
        found: FlowView
        found, _ = self._ask("flow.retry", params, b"", FlowView)
        return found

    def flow_signal(self, *, flow: str, name: str, id: str | None = None, value: Any | None = None) -> FlowView:
        """Send a signal to a flow; once per id."""
        params = _given({"flow": flow, "name": name, "id": id, "value": value})
        found: FlowView
        found, _ = self._ask("flow.signal", params, b"", FlowView)
        return found

    def flow_start(self, *, cwd: str | None = None, definition: str | None = None, flow: str | None = None, input: Any | None = None, name: str | None = None, skip_timers: bool | None = None) -> FlowView:
        """Start a durable flow: a definition in YAML, or a flow whose code a worker has."""
        params = _given({"cwd": cwd, "definition": definition, "flow": flow, "input": input, "name": name, "skip_timers": skip_timers})
        found: FlowView
        found, _ = self._ask("flow.start", params, b"", FlowView)
        return found

    def fork_diff(self, *, session: str, patch: bool | None = None, with_: str | None = None) -> ForkDiffAnswer:
        """List the files that differ between a branch and the files it was forked over, or between two branches; as a patch, with the right `fork`."""
        params = _given({"session": session, "patch": patch, "with": with_})
        found: ForkDiffAnswer
        found, _ = self._ask("fork.diff", params, b"", ForkDiffAnswer)
        return found

    def fork_discard(self, *, session: str, proof: Proof | None = None) -> SessionView:
        """End a branch and remove its files and checkpoints."""
        params = _given({"session": session, "proof": proof})
        found: SessionView
        found, _ = self._ask("fork.discard", params, b"", SessionView)
        return found

    def fork_keep(self, *, session: str, into: str | None = None, leave: list[str] | None = None, proof: Proof | None = None, take: list[str] | None = None) -> ForkKeepAnswer:
        """Apply a branch's changed files to the real ones, or copy them elsewhere; only humans may. Nothing is applied while files conflict."""
        params = _given({"session": session, "into": into, "leave": leave, "proof": proof, "take": take})
        found: ForkKeepAnswer
        found, _ = self._ask("fork.keep", params, b"", ForkKeepAnswer)
        return found

    def grant_add(self, *, rights: Rights, session: str, to: Actor, proof: Proof | None = None, until_ms: int | None = None) -> GrantView:
        """Grant rights in a session to an actor."""
        params = _given({"rights": rights, "session": session, "to": to, "proof": proof, "until_ms": until_ms})
        found: GrantView
        found, _ = self._ask("grant.add", params, b"", GrantView)
        return found

    def grant_list(self, *, session: str) -> GrantsAnswer:
        """List the grants in a session."""
        params = _given({"session": session})
        found: GrantsAnswer
        found, _ = self._ask("grant.list", params, b"", GrantsAnswer)
        return found

    def grant_revoke(self, *, session: str, actor: ActorId | None = None, grant: int | None = None, proof: Proof | None = None) -> RevokeAnswer:
        """Revoke rights, and all grants made from them."""
        params = _given({"session": session, "actor": actor, "grant": grant, "proof": proof})
        found: RevokeAnswer
        found, _ = self._ask("grant.revoke", params, b"", RevokeAnswer)
        return found

    def graph_get(self, *, session: str, depth: Depth | None = None) -> GraphAnswer:
        """Get the session's processes, their files and sockets, and the act that started each."""
        params = _given({"session": session, "depth": depth})
        found: GraphAnswer
        found, _ = self._ask("graph.get", params, b"", GraphAnswer)
        return found

    def graph_ports(self, *, session: str | None = None) -> list[PortView]:
        """List listening ports of a session, or of all sessions."""
        params = _given({"session": session})
        found: list[PortView]
        found, _ = self._ask("graph.ports", params, b"", list[PortView])
        return found

    def graph_watch(self, *, session: str, after: int | None = None, wait_ms: int | None = None) -> WatchGraphAnswer:
        """Get events of the session's processes; can wait for them."""
        params = _given({"session": session, "after": after, "wait_ms": wait_ms})
        found: WatchGraphAnswer
        found, _ = self._ask("graph.watch", params, b"", WatchGraphAnswer)
        return found

    def host_metrics(self) -> MetricsAnswer:
        """Get the host's metrics in the Prometheus text format."""
        params = _given({})
        found: MetricsAnswer
        found, _ = self._ask("host.metrics", params, b"", MetricsAnswer)
        return found

    def host_status(self) -> HostStatus:
        """Get the host's version and status."""
        params = _given({})
        found: HostStatus
        found, _ = self._ask("host.status", params, b"", HostStatus)
        return found

    def host_stop(self) -> Nothing:
        """Stop the host; sessions keep running."""
        params = _given({})
        found: Nothing
        found, _ = self._ask("host.stop", params, b"", Nothing)
        return found

    def invite_accept(self, *, actor: Actor, signature: Signature) -> InviteAcceptAnswer:
        """Accept the invite by which this connection came: enrol an actor's key."""
        params = _given({"actor": actor, "signature": signature})
        found: InviteAcceptAnswer
        found, _ = self._ask("invite.accept", params, b"", InviteAcceptAnswer)
        return found

    def invite_list(self) -> list[InviteView]:
        """List invites: your own, or all if you are a human."""
        params = _given({})
        found: list[InviteView]
        found, _ = self._ask("invite.list", params, b"", list[InviteView])
        return found

    def invite_new(self, *, access_ms: int | None = None, can: Rights | None = None, for_ms: int | None = None, session: str | None = None, uses: int | None = None) -> InviteNewAnswer:
        """Create a link by which others get access to a session, or to the host, through a relay."""
        params = _given({"access_ms": access_ms, "can": can, "for_ms": for_ms, "session": session, "uses": uses})
        found: InviteNewAnswer
        found, _ = self._ask("invite.new", params, b"", InviteNewAnswer)
        return found

    def invite_revoke(self, *, invite: str) -> InviteView:
        """Revoke an invite; devices that accepted it stay."""
        params = _given({"invite": invite})
        found: InviteView
        found, _ = self._ask("invite.revoke", params, b"", InviteView)
        return found

    def login_new(self) -> LoginAnswer:
        """Create a code that logs a browser in as you, once."""
        params = _given({})
        found: LoginAnswer
        found, _ = self._ask("login.new", params, b"", LoginAnswer)
        return found

    def page_get(self, *, have: Signature | None = None) -> tuple[PageView, bytes]:
        """Get the page for a browser that comes through a relay, signed by the host; the answer's bytes are its files."""
        params = _given({"have": have})
        found: PageView
        found, more = self._ask("page.get", params, b"", PageView)
        return found, more

    def policy_get(self) -> PolicyView:
        """Get the policy in force: its rules, and what is wrong in files that are not."""
        params = _given({})
        found: PolicyView
        found, _ = self._ask("policy.get", params, b"", PolicyView)
        return found

    def policy_may(self, *, command: str, actor: Handle | None = None, cwd: str | None = None, session: str | None = None) -> MayAnswer:
        """Ask what the policy says of a command, without running it."""
        params = _given({"command": command, "actor": actor, "cwd": cwd, "session": session})
        found: MayAnswer
        found, _ = self._ask("policy.may", params, b"", MayAnswer)
        return found

    def question_answer(self, *, question: QuestionId, seen: Hash, option: int | None = None, proof: Proof | None = None, text: str | None = None) -> QuestionView:
        """Answer a question; only humans may."""
        params = _given({"question": question, "seen": seen, "option": option, "proof": proof, "text": text})
        found: QuestionView
        found, _ = self._ask("question.answer", params, b"", QuestionView)
        return found

    def question_ask(self, *, session: str, text: str, expires_ms: int | None = None, key: str | None = None, options: list[str] | None = None, wait_ms: int | None = None) -> QuestionView:
        """Ask the humans of a session a question; can wait for the answer."""
        params = _given({"session": session, "text": text, "expires_ms": expires_ms, "key": key, "options": options, "wait_ms": wait_ms})
        found: QuestionView
        found, _ = self._ask("question.ask", params, b"", QuestionView)
        return found

    def question_get(self, *, question: QuestionId, wait_ms: int | None = None) -> QuestionView:
        """Get a question and its answer; can wait for it."""
        params = _given({"question": question, "wait_ms": wait_ms})
        found: QuestionView
        found, _ = self._ask("question.get", params, b"", QuestionView)
        return found

    def question_list(self, *, all: bool | None = None, session: str | None = None) -> list[QuestionView]:
        """List the questions of a session, or of all sessions you may observe."""
        params = _given({"all": all, "session": session})
        found: list[QuestionView]
        found, _ = self._ask("question.list", params, b"", list[QuestionView])
        return found

    def question_withdraw(self, *, question: QuestionId) -> QuestionView:
        """Withdraw a question; only its asker or a human may."""
        params = _given({"question": question})
        found: QuestionView
        found, _ = self._ask("question.withdraw", params, b"", QuestionView)
        return found

    def relay_add(self, *, url: str) -> RelaysAnswer:
        """Wait at a relay, so that clients can reach this host through it."""
        params = _given({"url": url})
        found: RelaysAnswer
        found, _ = self._ask("relay.add", params, b"", RelaysAnswer)
        return found

    def relay_direct(self, *, addresses: list[str] | None = None, listen: str | None = None) -> RelaysAnswer:
        """Listen for devices that reach this host without a relay, or stop."""
        params = _given({"addresses": addresses, "listen": listen})
        found: RelaysAnswer
        found, _ = self._ask("relay.direct", params, b"", RelaysAnswer)
        return found

    def relay_list(self) -> RelaysAnswer:
        """List the relays this host waits at, where it listens itself, and get the host's key."""
        params = _given({})
        found: RelaysAnswer
        found, _ = self._ask("relay.list", params, b"", RelaysAnswer)
        return found

    def relay_remove(self, *, url: str) -> RelaysAnswer:
        """Wait at a relay no longer."""
        params = _given({"url": url})
        found: RelaysAnswer
        found, _ = self._ask("relay.remove", params, b"", RelaysAnswer)
        return found

    def run_cancel(self, *, run: RunRef, proof: Proof | None = None, wait_ms: int | None = None) -> RunAnswer:
        """Interrupt a run."""
        params = _given({"run": run, "proof": proof, "wait_ms": wait_ms})
        found: RunAnswer
        found, _ = self._ask("run.cancel", params, b"", RunAnswer)
        return found

    def run_get(self, *, run: RunRef, wait_ms: int | None = None) -> RunAnswer:
        """Get a run and its output; can wait for its end."""
        params = _given({"run": run, "wait_ms": wait_ms})
        found: RunAnswer
        found, _ = self._ask("run.get", params, b"", RunAnswer)
        return found

    def run_list(self, *, session: str | None = None) -> list[RunView]:
        """List the runs of a session, or of all sessions you may observe."""
        params = _given({"session": session})
        found: list[RunView]
        found, _ = self._ask("run.list", params, b"", list[RunView])
        return found

    def run_output(self, *, run: RunRef, from_: int | None = None, max: int | None = None, wait_ms: int | None = None) -> tuple[RunOutputAnswer, bytes]:
        """A run's output bytes, from an offset on; waits for some if asked to."""
        params = _given({"run": run, "from": from_, "max": max, "wait_ms": wait_ms})
        found: RunOutputAnswer
        found, more = self._ask("run.output", params, b"", RunOutputAnswer)
        return found, more

    def run_start(self, *, approval_wait_ms: int | None = None, command: str | None = None, contract: Contract | None = None, detect: Detect | None = None, intent: str | None = None, keep: bool | None = None, key: str | None = None, new: NewParams | None = None, on_exit: OnExit | None = None, proof: Proof | None = None, run: RunId | None = None, separate_stderr: bool | None = None, session: str | None = None, shared: bool | None = None, wait_ms: int | None = None) -> RunAnswer:
        """Run a command in a session's shell or in a new session; once per key."""
        params = _given({"approval_wait_ms": approval_wait_ms, "command": command, "contract": contract, "detect": detect, "intent": intent, "keep": keep, "key": key, "new": new, "on_exit": on_exit, "proof": proof, "run": run, "separate_stderr": separate_stderr, "session": session, "shared": shared, "wait_ms": wait_ms})
        found: RunAnswer
        found, _ = self._ask("run.start", params, b"", RunAnswer)
        return found

    def run_trace(self, *, run: RunRef) -> TraceView:
        """Get everything that is known of a run: its contract, decision, attempts, effects and outcome."""
        params = _given({"run": run})
        found: TraceView
        found, _ = self._ask("run.trace", params, b"", TraceView)
        return found

    def session_arrive(self, *, step: ArriveStep) -> ArriveAnswer:
        """Take a session in that is moved here, step by step; only humans may, by a path that narrows nothing."""
        params = _given({"step": step})
        found: ArriveAnswer
        found, _ = self._ask("session.arrive", params, b"", ArriveAnswer)
        return found

    def session_attach(self, *, session: str, size: Size, draws: bool | None = None, env: list[str] | None = None, pid: int | None = None, read_only: bool | None = None, remote: bool | None = None, resume: Resume | None = None, sizes: bool | None = None, tty: str | None = None) -> tuple[AttachAnswer, bytes]:
        """Attach a terminal; the answer's bytes paint the session's state at an offset."""
        params = _given({"session": session, "size": size, "draws": draws, "env": env, "pid": pid, "read_only": read_only, "remote": remote, "resume": resume, "sizes": sizes, "tty": tty})
        found: AttachAnswer
        found, more = self._ask("session.attach", params, b"", AttachAnswer)
        return found, more

    def session_cost(self, *, session: str | None = None) -> list[CostView]:
        """Get what a session, or each session, takes up: memory, processes, disk; and when somebody last used it."""
        params = _given({"session": session})
        found: list[CostView]
        found, _ = self._ask("session.cost", params, b"", list[CostView])
        return found

    def session_detach(self, *, clients: list[int], session: str, proof: Proof | None = None) -> DetachAnswer:
        """Detach clients from a session; the session keeps running."""
        params = _given({"clients": clients, "session": session, "proof": proof})
        found: DetachAnswer
        found, _ = self._ask("session.detach", params, b"", DetachAnswer)
        return found

    def session_end(self, *, session: str, grace_ms: int | None = None, proof: Proof | None = None) -> SessionView:
        """End a session and its whole process tree: SIGHUP, then SIGKILL after a grace period."""
        params = _given({"session": session, "grace_ms": grace_ms, "proof": proof})
        found: SessionView
        found, _ = self._ask("session.end", params, b"", SessionView)
        return found

    def session_env(self, *, session: str, all: bool | None = None) -> EnvAnswer:
        """Get the names in the session's shell and who changed them: names and hashes, never values."""
        params = _given({"session": session, "all": all})
        found: EnvAnswer
        found, _ = self._ask("session.env", params, b"", EnvAnswer)
        return found

    def session_fork(self, *, session: str, count: int | None = None, names: list[SessionName] | None = None, proof: Proof | None = None, share_network: bool | None = None) -> ForkAnswer:
        """Start copies of a portable session, each with its own identity, files and network; the session itself goes on."""
        params = _given({"session": session, "count": count, "names": names, "proof": proof, "share_network": share_network})
        found: ForkAnswer
        found, _ = self._ask("session.fork", params, b"", ForkAnswer)
        return found

    def session_get(self, *, session: str) -> SessionView:
        """Show one session."""
        params = _given({"session": session})
        found: SessionView
        found, _ = self._ask("session.get", params, b"", SessionView)
        return found

    def session_handover(self, *, session: str) -> HandoverAnswer:
        """Get what others changed since you wrote in the session last: names, files, text at the prompt, jobs."""
        params = _given({"session": session})
        found: HandoverAnswer
        found, _ = self._ask("session.handover", params, b"", HandoverAnswer)
        return found

    def session_journal(self, *, session: str, after: int | None = None, last: int | None = None, wait_ms: int | None = None) -> tuple[JournalAnswer, bytes]:
        """Read the session's journal, line by line as written."""
        params = _given({"session": session, "after": after, "last": last, "wait_ms": wait_ms})
        found: JournalAnswer
        found, more = self._ask("session.journal", params, b"", JournalAnswer)
        return found, more

    def session_keep(self, *, session: str, for_ms: int | None = None, off: bool | None = None, proof: Proof | None = None) -> SessionView:
        """Keep a session from being reaped, for a time or until further notice; or no longer."""
        params = _given({"session": session, "for_ms": for_ms, "off": off, "proof": proof})
        found: SessionView
        found, _ = self._ask("session.keep", params, b"", SessionView)
        return found

    def session_leave(self, *, client: int, session: str, shown: int | None = None) -> LeaveAnswer:
        """Leave a session that this connection is attached to."""
        params = _given({"client": client, "session": session, "shown": shown})
        found: LeaveAnswer
        found, _ = self._ask("session.leave", params, b"", LeaveAnswer)
        return found

    def session_list(self, *, all: bool | None = None) -> list[SessionView]:
        """List sessions."""
        params = _given({"all": all})
        found: list[SessionView]
        found, _ = self._ask("session.list", params, b"", list[SessionView])
        return found

    def session_move(self, *, session: str, step: MoveStep, proof: Proof | None = None) -> MoveAnswer:
        """Move a portable session to another host, step by step, at the host that has it: needs the right `end` too."""
        params = _given({"session": session, "step": step, "proof": proof})
        found: MoveAnswer
        found, _ = self._ask("session.move", params, b"", MoveAnswer)
        return found

    def session_new(self, *, ahead: bool | None = None, argv0: str | None = None, checkpoint_every_ms: int | None = None, command: list[str] | None = None, cwd: str | None = None, env: list[str] | None = None, env_add: list[str] | None = None, gate: Seam | None = None, integrate: bool | None = None, lease: Leasing | None = None, name: SessionName | None = None, nofile: int | None = None, on_resume: str | None = None, portable: bool | None = None, reap_after: ReapAfter | None = None, recover: Recovery | None = None, restart_on_failure: int | None = None, ring_bytes: int | None = None, size: Size | None = None, umask: int | None = None, user: str | None = None, wall: Wall | None = None) -> SessionView:
        """Start a session."""
        params = _given({"ahead": ahead, "argv0": argv0, "checkpoint_every_ms": checkpoint_every_ms, "command": command, "cwd": cwd, "env": env, "env_add": env_add, "gate": gate, "integrate": integrate, "lease": lease, "name": name, "nofile": nofile, "on_resume": on_resume, "portable": portable, "reap_after": reap_after, "recover": recover, "restart_on_failure": restart_on_failure, "ring_bytes": ring_bytes, "size": size, "umask": umask, "user": user, "wall": wall})
        found: SessionView
        found, _ = self._ask("session.new", params, b"", SessionView)
        return found

    def session_paint(self, *, session: str, size: Size, answers: int | None = None, behind: HistoryPlace | None = None, draws: bool | None = None, history: bool | None = None, remote: bool | None = None) -> tuple[Painted, bytes]:
        """Repaint an attached terminal, with or without history."""
        params = _given({"session": session, "size": size, "answers": answers, "behind": behind, "draws": draws, "history": history, "remote": remote})
        found: Painted
        found, more = self._ask("session.paint", params, b"", Painted)
        return found, more

    def session_read(self, *, session: str, from_: int | None = None, max: int | None = None, wait_ms: int | None = None) -> tuple[ReadAnswer, bytes]:
        """Read output bytes from an offset; can wait for more."""
        params = _given({"session": session, "from": from_, "max": max, "wait_ms": wait_ms})
        found: ReadAnswer
        found, more = self._ask("session.read", params, b"", ReadAnswer)
        return found, more

    def session_recover(self, *, session: str, env: list[str] | None = None, proof: Proof | None = None, run: bool | None = None) -> RecoverAnswer:
        """Give a lost session another life: the same identity, journal, history, directory and environment, new processes."""
        params = _given({"session": session, "env": env, "proof": proof, "run": run})
        found: RecoverAnswer
        found, _ = self._ask("session.recover", params, b"", RecoverAnswer)
        return found

    def session_rename(self, *, name: SessionName, session: str, proof: Proof | None = None) -> SessionView:
        """Rename the session."""
        params = _given({"name": name, "session": session, "proof": proof})
        found: SessionView
        found, _ = self._ask("session.rename", params, b"", SessionView)
        return found

    def session_resize(self, *, session: str, size: Size, proof: Proof | None = None) -> Nothing:
        """Resize the session's terminal."""
        params = _given({"session": session, "size": size, "proof": proof})
        found: Nothing
        found, _ = self._ask("session.resize", params, b"", Nothing)
        return found

    def session_restore(self, *, session: str, checkpoint: str | None = None, proof: Proof | None = None) -> RestoreAnswer:
        """Give a portable session that does not run its processes back, from a checkpoint: the same identity, the next life."""
        params = _given({"session": session, "checkpoint": checkpoint, "proof": proof})
        found: RestoreAnswer
        found, _ = self._ask("session.restore", params, b"", RestoreAnswer)
        return found

    def session_screen(self, *, session: str, ansi: bool | None = None, history: int | None = None) -> ScreenAnswer:
        """Get the screen as text."""
        params = _given({"session": session, "ansi": ansi, "history": history})
        found: ScreenAnswer
        found, _ = self._ask("session.screen", params, b"", ScreenAnswer)
        return found

    def session_send(self, *, seq: int, session: str, stream: int, client: int | None = None, fence: Fence | None = None, force: bool | None = None, in_order: bool | None = None, secret: bool | None = None, data: bytes) -> SendAnswer:
        """Type the message's bytes into the session; exactly once per stream and seq."""
        params = _given({"seq": seq, "session": session, "stream": stream, "client": client, "fence": fence, "force": force, "in_order": in_order, "secret": secret})
        found: SendAnswer
        found, _ = self._ask("session.send", params, data, SendAnswer)
        return found

    def session_signal(self, *, number: int, session: str, proof: Proof | None = None, target: int | None = None) -> Nothing:
        """Send a signal to the session's processes."""
        params = _given({"number": number, "session": session, "proof": proof, "target": target})
        found: Nothing
        found, _ = self._ask("session.signal", params, b"", Nothing)
        return found

    def session_state(self, *, session: str) -> StateView:
        """Get what the session is doing: working, waiting for input, or at its prompt."""
        params = _given({"session": session})
        found: StateView
        found, _ = self._ask("session.state", params, b"", StateView)
        return found

    def session_update(self, *, client: int, session: str, answers: Answers | None = None, size: Size | None = None) -> UpdateAnswer:
        """Report changes of an attached terminal: its size, whether it answers queries."""
        params = _given({"client": client, "session": session, "answers": answers, "size": size})
        found: UpdateAnswer
        found, _ = self._ask("session.update", params, b"", UpdateAnswer)
        return found

    def session_wait(self, *, session: str, timeout_ms: int | None = None, until: Until | None = None) -> WaitAnswer:
        """Wait until the session's command ends, or for another event."""
        params = _given({"session": session, "timeout_ms": timeout_ms, "until": until})
        found: WaitAnswer
        found, _ = self._ask("session.wait", params, b"", WaitAnswer)
        return found

    def session_watch(self, *, after: int | None = None, session: str | None = None, wait_ms: int | None = None) -> WatchAnswer:
        """Get events of a session, or of all sessions you may observe; can wait for them."""
        params = _given({"after": after, "session": session, "wait_ms": wait_ms})
        found: WatchAnswer
        found, _ = self._ask("session.watch", params, b"", WatchAnswer)
        return found

    def token_list(self) -> list[TokenView]:
        """List valid tokens: your own, or all if you are a human."""
        params = _given({})
        found: list[TokenView]
        found, _ = self._ask("token.list", params, b"", list[TokenView])
        return found

    def token_new(self, *, actor: Handle, can: Rights | None = None, for_ms: int | None = None, note: str | None = None) -> TokenNewAnswer:
        """Create a token for HTTP: it acts as one actor, with at most these rights."""
        params = _given({"actor": actor, "can": can, "for_ms": for_ms, "note": note})
        found: TokenNewAnswer
        found, _ = self._ask("token.new", params, b"", TokenNewAnswer)
        return found

    def token_revoke(self, *, token: str) -> TokenView:
        """Revoke a token at once."""
        params = _given({"token": token})
        found: TokenView
        found, _ = self._ask("token.revoke", params, b"", TokenView)
        return found

    def turn_get(self, *, session: str) -> TurnView:
        """Get who has the turn, and who waits for it."""
        params = _given({"session": session})
        found: TurnView
        found, _ = self._ask("turn.get", params, b"", TurnView)
        return found

    def turn_give(self, *, session: str, to: Actor, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Give the turn to another actor."""
        params = _given({"session": session, "to": to, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = self._ask("turn.give", params, b"", TurnAnswer)
        return found

    def turn_release(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Release the turn."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = self._ask("turn.release", params, b"", TurnAnswer)
        return found

    def turn_request(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Request the turn; you get it when its holder releases it or is idle."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = self._ask("turn.request", params, b"", TurnAnswer)
        return found

    def turn_seize(self, *, reason: str, session: str, client: int | None = None, freeze: bool | None = None, proof: Proof | None = None) -> SeizeAnswer:
        """Seize the turn, whatever its holder does; can freeze the process tree."""
        params = _given({"reason": reason, "session": session, "client": client, "freeze": freeze, "proof": proof})
        found: SeizeAnswer
        found, _ = self._ask("turn.seize", params, b"", SeizeAnswer)
        return found

    def turn_take(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Take the turn if it is free."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = self._ask("turn.take", params, b"", TurnAnswer)
        return found

    def turn_thaw(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Resume a frozen process tree."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = self._ask("turn.thaw", params, b"", TurnAnswer)
        return found

    def turn_withdraw(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Withdraw a request for the turn."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = self._ask("turn.withdraw", params, b"", TurnAnswer)
        return found
