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
        """Actors the host knows."""
        params = _given({})
        found: list[ActorView]
        found, _ = await self._ask("actor.list", params, b"", list[ActorView])
        return found

    async def actor_me(self) -> MeAnswer:
        """Who asks, and by which token."""
        params = _given({})
        found: MeAnswer
        found, _ = await self._ask("actor.me", params, b"", MeAnswer)
        return found

    async def actor_remove(self, *, handle: Handle) -> Nothing:
        """Forget an actor: its key opens nothing any more."""
        params = _given({"handle": handle})
        found: Nothing
        found, _ = await self._ask("actor.remove", params, b"", Nothing)
        return found

    async def grant_add(self, *, rights: Rights, session: str, to: Actor, proof: Proof | None = None, until_ms: int | None = None) -> GrantView:
        """Pass rights on."""
        params = _given({"rights": rights, "session": session, "to": to, "proof": proof, "until_ms": until_ms})
        found: GrantView
        found, _ = await self._ask("grant.add", params, b"", GrantView)
        return found

    async def grant_list(self, *, session: str) -> GrantsAnswer:
        """What was granted in a session."""
        params = _given({"session": session})
        found: GrantsAnswer
        found, _ = await self._ask("grant.list", params, b"", GrantsAnswer)
        return found

    async def grant_revoke(self, *, session: str, actor: ActorId | None = None, grant: int | None = None, proof: Proof | None = None) -> RevokeAnswer:
        """Take rights back, and what was passed on from them."""
        params = _given({"session": session, "actor": actor, "grant": grant, "proof": proof})
        found: RevokeAnswer
        found, _ = await self._ask("grant.revoke", params, b"", RevokeAnswer)
        return found

    async def graph_get(self, *, session: str, depth: Depth | None = None) -> GraphAnswer:
        """The session's processes, what they hold, and whose act started each."""
        params = _given({"session": session, "depth": depth})
        found: GraphAnswer
        found, _ = await self._ask("graph.get", params, b"", GraphAnswer)
        return found

    async def graph_ports(self, *, session: str | None = None) -> list[PortView]:
        """Who listens where, in one session or in all."""
        params = _given({"session": session})
        found: list[PortView]
        found, _ = await self._ask("graph.ports", params, b"", list[PortView])
        return found

    async def graph_watch(self, *, session: str, after: int | None = None, wait_ms: int | None = None) -> WatchGraphAnswer:
        """What happens to the session's processes; waits for something if asked to."""
        params = _given({"session": session, "after": after, "wait_ms": wait_ms})
        found: WatchGraphAnswer
        found, _ = await self._ask("graph.watch", params, b"", WatchGraphAnswer)
        return found

    async def host_metrics(self) -> MetricsAnswer:
        """The host's counters in the Prometheus text format."""
        params = _given({})
        found: MetricsAnswer
        found, _ = await self._ask("host.metrics", params, b"", MetricsAnswer)
        return found

    async def host_status(self) -> HostStatus:
        """What the host is and how it does."""
        params = _given({})
        found: HostStatus
        found, _ = await self._ask("host.status", params, b"", HostStatus)
        return found

    async def host_stop(self) -> Nothing:
        """Stop the host; sessions go on."""
        params = _given({})
        found: Nothing
        found, _ = await self._ask("host.stop", params, b"", Nothing)
        return found

    async def login_new(self) -> LoginAnswer:
        """Make a code by which a browser logs in as who asks, once."""
        params = _given({})
        found: LoginAnswer
        found, _ = await self._ask("login.new", params, b"", LoginAnswer)
        return found

    async def question_answer(self, *, question: QuestionId, option: int | None = None, proof: Proof | None = None, text: str | None = None) -> QuestionView:
        """Answer a question; only a human does."""
        params = _given({"question": question, "option": option, "proof": proof, "text": text})
        found: QuestionView
        found, _ = await self._ask("question.answer", params, b"", QuestionView)
        return found

    async def question_ask(self, *, session: str, text: str, expires_ms: int | None = None, options: list[str] | None = None, question: QuestionId | None = None, wait_ms: int | None = None) -> QuestionView:
        """Ask the humans of a session something; waits for the answer if asked to."""
        params = _given({"session": session, "text": text, "expires_ms": expires_ms, "options": options, "question": question, "wait_ms": wait_ms})
        found: QuestionView
        found, _ = await self._ask("question.ask", params, b"", QuestionView)
        return found

    async def question_get(self, *, question: QuestionId, wait_ms: int | None = None) -> QuestionView:
        """A question and its answer; waits for it if asked to."""
        params = _given({"question": question, "wait_ms": wait_ms})
        found: QuestionView
        found, _ = await self._ask("question.get", params, b"", QuestionView)
        return found

    async def question_list(self, *, all: bool | None = None, session: str | None = None) -> list[QuestionView]:
        """The questions of a session, or of all one may observe."""
        params = _given({"all": all, "session": session})
        found: list[QuestionView]
        found, _ = await self._ask("question.list", params, b"", list[QuestionView])
        return found

    async def question_withdraw(self, *, question: QuestionId) -> QuestionView:
        """Take a question back: its asker, or a human."""
        params = _given({"question": question})
        found: QuestionView
        found, _ = await self._ask("question.withdraw", params, b"", QuestionView)
        return found

    async def run_cancel(self, *, run: RunRef, proof: Proof | None = None, wait_ms: int | None = None) -> RunAnswer:
        """Interrupt a run."""
        params = _given({"run": run, "proof": proof, "wait_ms": wait_ms})
        found: RunAnswer
        found, _ = await self._ask("run.cancel", params, b"", RunAnswer)
        return found

    async def run_get(self, *, run: RunRef, wait_ms: int | None = None) -> RunAnswer:
        """A run and its output; waits for its end if asked to."""
        params = _given({"run": run, "wait_ms": wait_ms})
        found: RunAnswer
        found, _ = await self._ask("run.get", params, b"", RunAnswer)
        return found

    async def run_list(self, *, session: str | None = None) -> list[RunView]:
        """The runs of a session, or of all one may observe."""
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

    async def run_start(self, *, command: str | None = None, detect: Detect | None = None, keep: bool | None = None, key: str | None = None, new: NewParams | None = None, on_exit: OnExit | None = None, proof: Proof | None = None, run: RunId | None = None, session: str | None = None, wait_ms: int | None = None) -> RunAnswer:
        """Run a command in a session's shell, or in a session of its own; once per key."""
        params = _given({"command": command, "detect": detect, "keep": keep, "key": key, "new": new, "on_exit": on_exit, "proof": proof, "run": run, "session": session, "wait_ms": wait_ms})
        found: RunAnswer
        found, _ = await self._ask("run.start", params, b"", RunAnswer)
        return found

    async def session_attach(self, *, session: str, size: Size, env: list[str] | None = None, pid: int | None = None, read_only: bool | None = None, remote: bool | None = None, resume: Resume | None = None, tty: str | None = None) -> tuple[AttachAnswer, bytes]:
        """Attach a terminal: the answer's bytes bring it into the session's state at an offset."""
        params = _given({"session": session, "size": size, "env": env, "pid": pid, "read_only": read_only, "remote": remote, "resume": resume, "tty": tty})
        found: AttachAnswer
        found, more = await self._ask("session.attach", params, b"", AttachAnswer)
        return found, more

    async def session_detach(self, *, clients: list[int], session: str, proof: Proof | None = None) -> DetachAnswer:
        """Detach clients from a session; it goes on."""
        params = _given({"clients": clients, "session": session, "proof": proof})
        found: DetachAnswer
        found, _ = await self._ask("session.detach", params, b"", DetachAnswer)
        return found

    async def session_end(self, *, session: str, grace_ms: int | None = None, proof: Proof | None = None) -> SessionView:
        """End a session's whole process tree: HUP, then KILL after the grace."""
        params = _given({"session": session, "grace_ms": grace_ms, "proof": proof})
        found: SessionView
        found, _ = await self._ask("session.end", params, b"", SessionView)
        return found

    async def session_env(self, *, session: str, all: bool | None = None) -> EnvAnswer:
        """What the session's shell is made of, and who changed it: names and hashes, never values."""
        params = _given({"session": session, "all": all})
        found: EnvAnswer
        found, _ = await self._ask("session.env", params, b"", EnvAnswer)
        return found

    async def session_get(self, *, session: str) -> SessionView:
        """Show one session."""
        params = _given({"session": session})
        found: SessionView
        found, _ = await self._ask("session.get", params, b"", SessionView)
        return found

    async def session_journal(self, *, session: str, after: int | None = None, last: int | None = None, wait_ms: int | None = None) -> tuple[JournalAnswer, bytes]:
        """The session's journal, line by line as it was written."""
        params = _given({"session": session, "after": after, "last": last, "wait_ms": wait_ms})
        found: JournalAnswer
        found, more = await self._ask("session.journal", params, b"", JournalAnswer)
        return found, more

    async def session_leave(self, *, client: int, session: str) -> Nothing:
        """Let go of a session one is attached to."""
        params = _given({"client": client, "session": session})
        found: Nothing
        found, _ = await self._ask("session.leave", params, b"", Nothing)
        return found

    async def session_list(self, *, all: bool | None = None) -> list[SessionView]:
        """List sessions."""
        params = _given({"all": all})
        found: list[SessionView]
        found, _ = await self._ask("session.list", params, b"", list[SessionView])
        return found

    async def session_new(self, *, argv0: str | None = None, command: list[str] | None = None, cwd: str | None = None, env: list[str] | None = None, env_add: list[str] | None = None, integrate: bool | None = None, name: SessionName | None = None, nofile: int | None = None, ring_bytes: int | None = None, size: Size | None = None, umask: int | None = None) -> SessionView:
        """Start a session."""
        params = _given({"argv0": argv0, "command": command, "cwd": cwd, "env": env, "env_add": env_add, "integrate": integrate, "name": name, "nofile": nofile, "ring_bytes": ring_bytes, "size": size, "umask": umask})
        found: SessionView
        found, _ = await self._ask("session.new", params, b"", SessionView)
        return found

    async def session_paint(self, *, session: str, size: Size, answers: int | None = None, history: bool | None = None, remote: bool | None = None) -> tuple[Painted, bytes]:
        """Paint again, with or without history, for a terminal that is attached."""
        params = _given({"session": session, "size": size, "answers": answers, "history": history, "remote": remote})
        found: Painted
        found, more = await self._ask("session.paint", params, b"", Painted)
        return found, more

    async def session_read(self, *, session: str, from_: int | None = None, max: int | None = None, wait_ms: int | None = None) -> tuple[ReadAnswer, bytes]:
        """Output bytes from an offset on; waits for some if asked to."""
        params = _given({"session": session, "from": from_, "max": max, "wait_ms": wait_ms})
        found: ReadAnswer
        found, more = await self._ask("session.read", params, b"", ReadAnswer)
        return found, more

    async def session_rename(self, *, name: SessionName, session: str, proof: Proof | None = None) -> SessionView:
        """Give the session another name."""
        params = _given({"name": name, "session": session, "proof": proof})
        found: SessionView
        found, _ = await self._ask("session.rename", params, b"", SessionView)
        return found

    async def session_resize(self, *, session: str, size: Size, proof: Proof | None = None) -> Nothing:
        """Give the session's terminal another size."""
        params = _given({"session": session, "size": size, "proof": proof})
        found: Nothing
        found, _ = await self._ask("session.resize", params, b"", Nothing)
        return found

    async def session_screen(self, *, session: str, ansi: bool | None = None, history: int | None = None) -> ScreenAnswer:
        """The screen as text."""
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
        """Send a signal into the session."""
        params = _given({"number": number, "session": session, "proof": proof, "target": target})
        found: Nothing
        found, _ = await self._ask("session.signal", params, b"", Nothing)
        return found

    async def session_state(self, *, session: str) -> StateView:
        """What the session is doing: whether it works, waits for input, or is at its prompt."""
        params = _given({"session": session})
        found: StateView
        found, _ = await self._ask("session.state", params, b"", StateView)
        return found

    async def session_update(self, *, client: int, session: str, answers: Answers | None = None, connection: int | None = None, size: Size | None = None) -> UpdateAnswer:
        """Tell what changed at an attached terminal: its size, whether it answers queries."""
        params = _given({"client": client, "session": session, "answers": answers, "connection": connection, "size": size})
        found: UpdateAnswer
        found, _ = await self._ask("session.update", params, b"", UpdateAnswer)
        return found

    async def session_wait(self, *, session: str, timeout_ms: int | None = None, until: Until | None = None) -> WaitAnswer:
        """Wait until the session's command has ended, or something else has come."""
        params = _given({"session": session, "timeout_ms": timeout_ms, "until": until})
        found: WaitAnswer
        found, _ = await self._ask("session.wait", params, b"", WaitAnswer)
        return found

    async def session_watch(self, *, after: int | None = None, session: str | None = None, wait_ms: int | None = None) -> WatchAnswer:
        """What happens in a session, or in all one may observe; waits for it if asked to."""
        params = _given({"after": after, "session": session, "wait_ms": wait_ms})
        found: WatchAnswer
        found, _ = await self._ask("session.watch", params, b"", WatchAnswer)
        return found

    async def token_list(self) -> list[TokenView]:
        """Tokens that are good now: one's own, or all where a human asks."""
        params = _given({})
        found: list[TokenView]
        found, _ = await self._ask("token.list", params, b"", list[TokenView])
        return found

    async def token_new(self, *, actor: Handle, can: Rights | None = None, for_ms: int | None = None, note: str | None = None) -> TokenNewAnswer:
        """Make a token: who shows it over HTTP is that actor, with no more than these rights."""
        params = _given({"actor": actor, "can": can, "for_ms": for_ms, "note": note})
        found: TokenNewAnswer
        found, _ = await self._ask("token.new", params, b"", TokenNewAnswer)
        return found

    async def token_revoke(self, *, token: str) -> TokenView:
        """Make a token worthless, at once."""
        params = _given({"token": token})
        found: TokenView
        found, _ = await self._ask("token.revoke", params, b"", TokenView)
        return found

    async def turn_get(self, *, session: str) -> TurnView:
        """Who has the turn, and who waits for it."""
        params = _given({"session": session})
        found: TurnView
        found, _ = await self._ask("turn.get", params, b"", TurnView)
        return found

    async def turn_give(self, *, session: str, to: Actor, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Hand the turn over."""
        params = _given({"session": session, "to": to, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = await self._ask("turn.give", params, b"", TurnAnswer)
        return found

    async def turn_release(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Let go of the turn."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = await self._ask("turn.release", params, b"", TurnAnswer)
        return found

    async def turn_request(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Ask for the turn: it comes when its holder lets go or is idle."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = await self._ask("turn.request", params, b"", TurnAnswer)
        return found

    async def turn_seize(self, *, reason: str, session: str, client: int | None = None, freeze: bool | None = None, proof: Proof | None = None) -> SeizeAnswer:
        """Take the turn whatever its holder does, and stop the tree if asked to."""
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
        """Let a frozen tree go on."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = await self._ask("turn.thaw", params, b"", TurnAnswer)
        return found

    async def turn_withdraw(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """No longer wait for the turn."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = await self._ask("turn.withdraw", params, b"", TurnAnswer)
        return found


class Calls:
    """The table."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def actor_list(self) -> list[ActorView]:
        """Actors the host knows."""
        params = _given({})
        found: list[ActorView]
        found, _ = self._ask("actor.list", params, b"", list[ActorView])
        return found

    def actor_me(self) -> MeAnswer:
        """Who asks, and by which token."""
        params = _given({})
        found: MeAnswer
        found, _ = self._ask("actor.me", params, b"", MeAnswer)
        return found

    def actor_remove(self, *, handle: Handle) -> Nothing:
        """Forget an actor: its key opens nothing any more."""
        params = _given({"handle": handle})
        found: Nothing
        found, _ = self._ask("actor.remove", params, b"", Nothing)
        return found

    def grant_add(self, *, rights: Rights, session: str, to: Actor, proof: Proof | None = None, until_ms: int | None = None) -> GrantView:
        """Pass rights on."""
        params = _given({"rights": rights, "session": session, "to": to, "proof": proof, "until_ms": until_ms})
        found: GrantView
        found, _ = self._ask("grant.add", params, b"", GrantView)
        return found

    def grant_list(self, *, session: str) -> GrantsAnswer:
        """What was granted in a session."""
        params = _given({"session": session})
        found: GrantsAnswer
        found, _ = self._ask("grant.list", params, b"", GrantsAnswer)
        return found

    def grant_revoke(self, *, session: str, actor: ActorId | None = None, grant: int | None = None, proof: Proof | None = None) -> RevokeAnswer:
        """Take rights back, and what was passed on from them."""
        params = _given({"session": session, "actor": actor, "grant": grant, "proof": proof})
        found: RevokeAnswer
        found, _ = self._ask("grant.revoke", params, b"", RevokeAnswer)
        return found

    def graph_get(self, *, session: str, depth: Depth | None = None) -> GraphAnswer:
        """The session's processes, what they hold, and whose act started each."""
        params = _given({"session": session, "depth": depth})
        found: GraphAnswer
        found, _ = self._ask("graph.get", params, b"", GraphAnswer)
        return found

    def graph_ports(self, *, session: str | None = None) -> list[PortView]:
        """Who listens where, in one session or in all."""
        params = _given({"session": session})
        found: list[PortView]
        found, _ = self._ask("graph.ports", params, b"", list[PortView])
        return found

    def graph_watch(self, *, session: str, after: int | None = None, wait_ms: int | None = None) -> WatchGraphAnswer:
        """What happens to the session's processes; waits for something if asked to."""
        params = _given({"session": session, "after": after, "wait_ms": wait_ms})
        found: WatchGraphAnswer
        found, _ = self._ask("graph.watch", params, b"", WatchGraphAnswer)
        return found

    def host_metrics(self) -> MetricsAnswer:
        """The host's counters in the Prometheus text format."""
        params = _given({})
        found: MetricsAnswer
        found, _ = self._ask("host.metrics", params, b"", MetricsAnswer)
        return found

    def host_status(self) -> HostStatus:
        """What the host is and how it does."""
        params = _given({})
        found: HostStatus
        found, _ = self._ask("host.status", params, b"", HostStatus)
        return found

    def host_stop(self) -> Nothing:
        """Stop the host; sessions go on."""
        params = _given({})
        found: Nothing
        found, _ = self._ask("host.stop", params, b"", Nothing)
        return found

    def login_new(self) -> LoginAnswer:
        """Make a code by which a browser logs in as who asks, once."""
        params = _given({})
        found: LoginAnswer
        found, _ = self._ask("login.new", params, b"", LoginAnswer)
        return found

    def question_answer(self, *, question: QuestionId, option: int | None = None, proof: Proof | None = None, text: str | None = None) -> QuestionView:
        """Answer a question; only a human does."""
        params = _given({"question": question, "option": option, "proof": proof, "text": text})
        found: QuestionView
        found, _ = self._ask("question.answer", params, b"", QuestionView)
        return found

    def question_ask(self, *, session: str, text: str, expires_ms: int | None = None, options: list[str] | None = None, question: QuestionId | None = None, wait_ms: int | None = None) -> QuestionView:
        """Ask the humans of a session something; waits for the answer if asked to."""
        params = _given({"session": session, "text": text, "expires_ms": expires_ms, "options": options, "question": question, "wait_ms": wait_ms})
        found: QuestionView
        found, _ = self._ask("question.ask", params, b"", QuestionView)
        return found

    def question_get(self, *, question: QuestionId, wait_ms: int | None = None) -> QuestionView:
        """A question and its answer; waits for it if asked to."""
        params = _given({"question": question, "wait_ms": wait_ms})
        found: QuestionView
        found, _ = self._ask("question.get", params, b"", QuestionView)
        return found

    def question_list(self, *, all: bool | None = None, session: str | None = None) -> list[QuestionView]:
        """The questions of a session, or of all one may observe."""
        params = _given({"all": all, "session": session})
        found: list[QuestionView]
        found, _ = self._ask("question.list", params, b"", list[QuestionView])
        return found

    def question_withdraw(self, *, question: QuestionId) -> QuestionView:
        """Take a question back: its asker, or a human."""
        params = _given({"question": question})
        found: QuestionView
        found, _ = self._ask("question.withdraw", params, b"", QuestionView)
        return found

    def run_cancel(self, *, run: RunRef, proof: Proof | None = None, wait_ms: int | None = None) -> RunAnswer:
        """Interrupt a run."""
        params = _given({"run": run, "proof": proof, "wait_ms": wait_ms})
        found: RunAnswer
        found, _ = self._ask("run.cancel", params, b"", RunAnswer)
        return found

    def run_get(self, *, run: RunRef, wait_ms: int | None = None) -> RunAnswer:
        """A run and its output; waits for its end if asked to."""
        params = _given({"run": run, "wait_ms": wait_ms})
        found: RunAnswer
        found, _ = self._ask("run.get", params, b"", RunAnswer)
        return found

    def run_list(self, *, session: str | None = None) -> list[RunView]:
        """The runs of a session, or of all one may observe."""
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

    def run_start(self, *, command: str | None = None, detect: Detect | None = None, keep: bool | None = None, key: str | None = None, new: NewParams | None = None, on_exit: OnExit | None = None, proof: Proof | None = None, run: RunId | None = None, session: str | None = None, wait_ms: int | None = None) -> RunAnswer:
        """Run a command in a session's shell, or in a session of its own; once per key."""
        params = _given({"command": command, "detect": detect, "keep": keep, "key": key, "new": new, "on_exit": on_exit, "proof": proof, "run": run, "session": session, "wait_ms": wait_ms})
        found: RunAnswer
        found, _ = self._ask("run.start", params, b"", RunAnswer)
        return found

    def session_attach(self, *, session: str, size: Size, env: list[str] | None = None, pid: int | None = None, read_only: bool | None = None, remote: bool | None = None, resume: Resume | None = None, tty: str | None = None) -> tuple[AttachAnswer, bytes]:
        """Attach a terminal: the answer's bytes bring it into the session's state at an offset."""
        params = _given({"session": session, "size": size, "env": env, "pid": pid, "read_only": read_only, "remote": remote, "resume": resume, "tty": tty})
        found: AttachAnswer
        found, more = self._ask("session.attach", params, b"", AttachAnswer)
        return found, more

    def session_detach(self, *, clients: list[int], session: str, proof: Proof | None = None) -> DetachAnswer:
        """Detach clients from a session; it goes on."""
        params = _given({"clients": clients, "session": session, "proof": proof})
        found: DetachAnswer
        found, _ = self._ask("session.detach", params, b"", DetachAnswer)
        return found

    def session_end(self, *, session: str, grace_ms: int | None = None, proof: Proof | None = None) -> SessionView:
        """End a session's whole process tree: HUP, then KILL after the grace."""
        params = _given({"session": session, "grace_ms": grace_ms, "proof": proof})
        found: SessionView
        found, _ = self._ask("session.end", params, b"", SessionView)
        return found

    def session_env(self, *, session: str, all: bool | None = None) -> EnvAnswer:
        """What the session's shell is made of, and who changed it: names and hashes, never values."""
        params = _given({"session": session, "all": all})
        found: EnvAnswer
        found, _ = self._ask("session.env", params, b"", EnvAnswer)
        return found

    def session_get(self, *, session: str) -> SessionView:
        """Show one session."""
        params = _given({"session": session})
        found: SessionView
        found, _ = self._ask("session.get", params, b"", SessionView)
        return found

    def session_journal(self, *, session: str, after: int | None = None, last: int | None = None, wait_ms: int | None = None) -> tuple[JournalAnswer, bytes]:
        """The session's journal, line by line as it was written."""
        params = _given({"session": session, "after": after, "last": last, "wait_ms": wait_ms})
        found: JournalAnswer
        found, more = self._ask("session.journal", params, b"", JournalAnswer)
        return found, more

    def session_leave(self, *, client: int, session: str) -> Nothing:
        """Let go of a session one is attached to."""
        params = _given({"client": client, "session": session})
        found: Nothing
        found, _ = self._ask("session.leave", params, b"", Nothing)
        return found

    def session_list(self, *, all: bool | None = None) -> list[SessionView]:
        """List sessions."""
        params = _given({"all": all})
        found: list[SessionView]
        found, _ = self._ask("session.list", params, b"", list[SessionView])
        return found

    def session_new(self, *, argv0: str | None = None, command: list[str] | None = None, cwd: str | None = None, env: list[str] | None = None, env_add: list[str] | None = None, integrate: bool | None = None, name: SessionName | None = None, nofile: int | None = None, ring_bytes: int | None = None, size: Size | None = None, umask: int | None = None) -> SessionView:
        """Start a session."""
        params = _given({"argv0": argv0, "command": command, "cwd": cwd, "env": env, "env_add": env_add, "integrate": integrate, "name": name, "nofile": nofile, "ring_bytes": ring_bytes, "size": size, "umask": umask})
        found: SessionView
        found, _ = self._ask("session.new", params, b"", SessionView)
        return found

    def session_paint(self, *, session: str, size: Size, answers: int | None = None, history: bool | None = None, remote: bool | None = None) -> tuple[Painted, bytes]:
        """Paint again, with or without history, for a terminal that is attached."""
        params = _given({"session": session, "size": size, "answers": answers, "history": history, "remote": remote})
        found: Painted
        found, more = self._ask("session.paint", params, b"", Painted)
        return found, more

    def session_read(self, *, session: str, from_: int | None = None, max: int | None = None, wait_ms: int | None = None) -> tuple[ReadAnswer, bytes]:
        """Output bytes from an offset on; waits for some if asked to."""
        params = _given({"session": session, "from": from_, "max": max, "wait_ms": wait_ms})
        found: ReadAnswer
        found, more = self._ask("session.read", params, b"", ReadAnswer)
        return found, more

    def session_rename(self, *, name: SessionName, session: str, proof: Proof | None = None) -> SessionView:
        """Give the session another name."""
        params = _given({"name": name, "session": session, "proof": proof})
        found: SessionView
        found, _ = self._ask("session.rename", params, b"", SessionView)
        return found

    def session_resize(self, *, session: str, size: Size, proof: Proof | None = None) -> Nothing:
        """Give the session's terminal another size."""
        params = _given({"session": session, "size": size, "proof": proof})
        found: Nothing
        found, _ = self._ask("session.resize", params, b"", Nothing)
        return found

    def session_screen(self, *, session: str, ansi: bool | None = None, history: int | None = None) -> ScreenAnswer:
        """The screen as text."""
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
        """Send a signal into the session."""
        params = _given({"number": number, "session": session, "proof": proof, "target": target})
        found: Nothing
        found, _ = self._ask("session.signal", params, b"", Nothing)
        return found

    def session_state(self, *, session: str) -> StateView:
        """What the session is doing: whether it works, waits for input, or is at its prompt."""
        params = _given({"session": session})
        found: StateView
        found, _ = self._ask("session.state", params, b"", StateView)
        return found

    def session_update(self, *, client: int, session: str, answers: Answers | None = None, connection: int | None = None, size: Size | None = None) -> UpdateAnswer:
        """Tell what changed at an attached terminal: its size, whether it answers queries."""
        params = _given({"client": client, "session": session, "answers": answers, "connection": connection, "size": size})
        found: UpdateAnswer
        found, _ = self._ask("session.update", params, b"", UpdateAnswer)
        return found

    def session_wait(self, *, session: str, timeout_ms: int | None = None, until: Until | None = None) -> WaitAnswer:
        """Wait until the session's command has ended, or something else has come."""
        params = _given({"session": session, "timeout_ms": timeout_ms, "until": until})
        found: WaitAnswer
        found, _ = self._ask("session.wait", params, b"", WaitAnswer)
        return found

    def session_watch(self, *, after: int | None = None, session: str | None = None, wait_ms: int | None = None) -> WatchAnswer:
        """What happens in a session, or in all one may observe; waits for it if asked to."""
        params = _given({"after": after, "session": session, "wait_ms": wait_ms})
        found: WatchAnswer
        found, _ = self._ask("session.watch", params, b"", WatchAnswer)
        return found

    def token_list(self) -> list[TokenView]:
        """Tokens that are good now: one's own, or all where a human asks."""
        params = _given({})
        found: list[TokenView]
        found, _ = self._ask("token.list", params, b"", list[TokenView])
        return found

    def token_new(self, *, actor: Handle, can: Rights | None = None, for_ms: int | None = None, note: str | None = None) -> TokenNewAnswer:
        """Make a token: who shows it over HTTP is that actor, with no more than these rights."""
        params = _given({"actor": actor, "can": can, "for_ms": for_ms, "note": note})
        found: TokenNewAnswer
        found, _ = self._ask("token.new", params, b"", TokenNewAnswer)
        return found

    def token_revoke(self, *, token: str) -> TokenView:
        """Make a token worthless, at once."""
        params = _given({"token": token})
        found: TokenView
        found, _ = self._ask("token.revoke", params, b"", TokenView)
        return found

    def turn_get(self, *, session: str) -> TurnView:
        """Who has the turn, and who waits for it."""
        params = _given({"session": session})
        found: TurnView
        found, _ = self._ask("turn.get", params, b"", TurnView)
        return found

    def turn_give(self, *, session: str, to: Actor, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Hand the turn over."""
        params = _given({"session": session, "to": to, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = self._ask("turn.give", params, b"", TurnAnswer)
        return found

    def turn_release(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Let go of the turn."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = self._ask("turn.release", params, b"", TurnAnswer)
        return found

    def turn_request(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """Ask for the turn: it comes when its holder lets go or is idle."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = self._ask("turn.request", params, b"", TurnAnswer)
        return found

    def turn_seize(self, *, reason: str, session: str, client: int | None = None, freeze: bool | None = None, proof: Proof | None = None) -> SeizeAnswer:
        """Take the turn whatever its holder does, and stop the tree if asked to."""
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
        """Let a frozen tree go on."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = self._ask("turn.thaw", params, b"", TurnAnswer)
        return found

    def turn_withdraw(self, *, session: str, client: int | None = None, proof: Proof | None = None) -> TurnAnswer:
        """No longer wait for the turn."""
        params = _given({"session": session, "client": client, "proof": proof})
        found: TurnAnswer
        found, _ = self._ask("turn.withdraw", params, b"", TurnAnswer)
        return found
