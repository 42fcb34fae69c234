"""Where Holdfast keeps its things: the same directories as the `holdfast` program's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ._fault import Unreachable
from ._trust import must_be_ours


@dataclass(frozen=True)
class Home:
    """The directories of one Holdfast."""

    state: Path
    run: Path

    @staticmethod
    def under(directory: str | os.PathLike[str]) -> Home:
        """Everything under one directory, as with `HOLDFAST_HOME`."""
        return Home(Path(directory), Path(directory) / "run")

    @staticmethod
    def from_env(env: Mapping[str, str] | None = None) -> Home:
        """The directories that an environment names."""
        env = os.environ if env is None else env
        if env.get("HOLDFAST_HOME"):
            return Home.under(env["HOLDFAST_HOME"])

        def xdg(key: str) -> Path | None:
            value = env.get(key, "")
            # The XDG rules: a relative path is to be ignored.
            return Path(value) / "holdfast" if value.startswith("/") else None

        state = xdg("XDG_STATE_HOME")
        if state is None:
            if not env.get("HOME"):
                raise Unreachable("cannot find a directory for sessions: neither HOLDFAST_HOME nor HOME is set")
            state = Path(env["HOME"]) / ".local/state/holdfast"
        return Home(state, xdg("XDG_RUNTIME_DIR") or state / "run")

    def must_be_ours(self) -> None:
        """Fails with `Untrusted` where anybody else decides what lies in it: who is who, and which host answers."""
        must_be_ours(self.state)
        must_be_ours(self.run)

    @property
    def socket(self) -> Path:
        """The host's socket."""
        return self.run / "host.sock"

    @property
    def log(self) -> Path:
        """The host's log."""
        return self.state / "host.log"

    def key(self, handle: str) -> Path:
        """An actor's secret key."""
        return self.state / "actors" / (handle.replace(":", ".", 1) + ".key")

    def public(self, handle: str) -> Path:
        """An actor's public key: while it lies there the host knows the actor."""
        return self.state / "actors" / (handle.replace(":", ".", 1) + ".pub")


def program() -> str:
    """The `holdfast` program: `HOLDFAST_BIN`, else the one on the path."""
    found = os.environ.get("HOLDFAST_BIN") or shutil.which("holdfast")
    if not found:
        raise Unreachable(
            "no host is running, and the `holdfast` program that would start one is not on the path",
            hint="install it, or name it in HOLDFAST_BIN",
        )
    return found
