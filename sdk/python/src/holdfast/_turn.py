"""Who may write into a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .types import ActorView, SeizeAnswer, TurnAnswer, TurnView

if TYPE_CHECKING:
    from ._session import Session


class Turn:
    """The exclusive right to write into a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def get(self) -> TurnView:
        """Gets who has the turn, and who waits for it."""
        found: TurnView = await self._session._ask("turn.get", answer=TurnView)
        return found

    async def _do(self, word: str) -> TurnAnswer:
        found: TurnAnswer = await self._session._act(f"turn.{word}", {}, word, TurnAnswer)
        return found

    async def take(self) -> TurnAnswer:
        """Takes the turn if it is free."""
        return await self._do("take")

    async def request(self) -> TurnAnswer:
        """Requests the turn: you get it when its holder releases it or is idle."""
        return await self._do("request")

    async def withdraw(self) -> TurnAnswer:
        """Withdraws the request for the turn."""
        return await self._do("withdraw")

    async def release(self) -> TurnAnswer:
        """Releases the turn."""
        return await self._do("release")

    async def give(self, to: str) -> TurnAnswer:
        """Gives the turn to an actor by its handle: `human:ann`."""
        views, _ = await self._session.client._ask("actor.list", {}, b"", list[ActorView])
        found = [view.actor for view in views if view.actor.handle == to]
        if not found:
            raise ValueError(f"the host does not know the actor {to}")
        actor = {"id": found[0].id, "handle": found[0].handle}
        answer: TurnAnswer = await self._session._act("turn.give", {"to": actor}, {"give": {"to": actor}}, TurnAnswer)
        return answer

    async def seize(self, reason: str, *, freeze: bool = False) -> SeizeAnswer:
        """Seizes the turn, whatever its holder does; can freeze the process tree."""
        params = {"freeze": freeze, "reason": reason}
        answer: SeizeAnswer = await self._session._act("turn.seize", params, {"seize": params}, SeizeAnswer)
        return answer

    async def thaw(self) -> TurnAnswer:
        """Resumes a frozen process tree."""
        return await self._do("thaw")
