"""A command's own directory, variables and input, said so that bash, zsh and fish take them alike."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = re.compile(r"[A-Za-z0-9_./:=,+@%-]+")


def quoted(word: str) -> str:
    """A word as every shell of ours takes it for what it is."""
    if _PLAIN.fullmatch(word):
        return word
    # Neither a quote nor a backslash stands inside quotes: fish reads both differently there.
    return "'" + word.replace("\\", "\0").replace("'", r"'\''").replace("\0", r"'\\'") + "'"


def with_own(
    command: str,
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str | None] | None = None,
    stdin: str | None = None,
) -> str:
    """The command in a child of the shell, with this directory, these variables (`None` takes one away) and this text as its
    input. The shell's own stay as they are. Without any of them it is the command as it is.
    """
    if cwd is None and not env and stdin is None:
        return command
    words = ["env"]
    if cwd is not None:
        words += ["-C", quoted(os.fspath(cwd))]
    given = dict(env or {})
    for name in given:
        if not _NAME.fullmatch(name):
            raise ValueError(f"invalid variable name {name!r}")
    words += [word for name, value in given.items() if value is None for word in ("-u", name)]
    words += [quoted(f"{name}={value}") for name, value in given.items() if value is not None]
    words += ["sh", "-c", quoted('exec "${SHELL:-sh}" -c "$0"'), quoted(command)]
    line = " ".join(words)
    return line if stdin is None else f"printf %s {quoted(stdin)} | {line}"


def as_text(command: str | Sequence[str]) -> str:
    """A command of words as a text."""
    return command if isinstance(command, str) else " ".join(quoted(word) for word in command)
