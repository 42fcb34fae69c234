"""Whether a path is believed: whether this user alone decides, with root, what lies there. As the program does it.

Every step of the way counts: whoever can put another file, directory or link in its place decides what is read. A
directory is passed if only its owner can change it, who is this user or root, or if it is sticky. What the path names is
this user's or root's, and nobody else writes there.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ._fault import Untrusted

# Links on the way, as the kernel allows.
LINKS_MAX = 40
# Who in a namespace of users stands for all that have no number there, root of the machine included.
OVERFLOW_UID = 65_534


def must_be_ours(path: Path) -> None:
    """Fails where anybody else decides what lies at a path. What is not there yet is believed if its place is."""
    at = "/"
    _judge(at, os.lstat(at), on_the_way=True)
    rest = _steps(os.path.abspath(path))
    links = 0
    while rest:
        step = rest.pop()
        if step == "..":
            at = os.path.dirname(at)
            continue
        following = os.path.join(at, step)
        try:
            found = os.lstat(following)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise _unknown(following) from error
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > LINKS_MAX:
                raise _unknown(following)
            # Its permissions mean nothing; who made it decided where it leads.
            _judge_owner(following, found)
            target = os.readlink(following)
            if target.startswith("/"):
                at = "/"
            rest.extend(_steps(target))
            continue
        _judge(following, found, on_the_way=bool(rest))
        at = following


def _steps(path: str) -> list[str]:
    """A path's names, the first one last."""
    return [step for step in reversed(path.split("/")) if step not in ("", ".")]


def _judge_owner(path: str, found: os.stat_result) -> None:
    believed = found.st_uid in (os.geteuid(), 0) or (found.st_uid == OVERFLOW_UID and _root_is_nobody())
    if not believed:
        raise Untrusted(f"{path} belongs to another user (uid {found.st_uid})", hint="use a directory of your own")


def _judge(path: str, found: os.stat_result, *, on_the_way: bool) -> None:
    _judge_owner(path, found)
    mode = found.st_mode
    # A group with the number of its user is, by custom, that user's alone.
    lone_group = found.st_gid == found.st_uid and not mode & stat.S_IWOTH
    spared = on_the_way and (bool(mode & stat.S_ISVTX) or lone_group)
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not spared:
        hint = f"look whether what is there is yours, then: chmod go-w {path}"
        raise Untrusted(f"other users can write to {path} (mode {mode & 0o7777:o})", hint=hint)


def _root_is_nobody() -> bool:
    """Root has no number here: its files look like nobody's."""
    try:
        lines = Path("/proc/self/uid_map").read_text().split("\n")
    except OSError:
        return False
    maps = [line.split() for line in lines if line.strip()]
    return bool(maps) and all(fields[1] != "0" for fields in maps)


def _unknown(path: str) -> Untrusted:
    return Untrusted(f"cannot check who can write to {path}", hint="use a directory of your own")
