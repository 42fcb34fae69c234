"""Who this process is: an actor and its secret key, in the files the `holdfast` program uses.

`<class>.<name>.key` has the secret, `<class>.<name>.pub` is how the host knows the actor. Both are for their user alone.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import re
import secrets
import time
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ._fault import HoldfastError
from .home import Home

DEFAULT_ACTOR = "agent:python"
RECORDED_BYTES_MAX = 4096
"""Longest command that is signed whole; of a longer one its beginning, length and hash."""
_HANDLE = re.compile(r"(human|agent|service|device):[a-z0-9._-]{1,32}")


class BadKey(HoldfastError):
    """There is no usable key."""

    code = "key"


def fields(domain: str, *parts: bytes) -> bytes:
    """What is signed: a domain and a zero byte, then each part with its length in front."""
    return domain.encode() + b"\0" + b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def recorded(command: str) -> str:
    """A run's command as it is signed."""
    whole = command.encode()
    if len(whole) <= RECORDED_BYTES_MAX:
        return command
    beginning = whole[:RECORDED_BYTES_MAX].decode(errors="ignore")
    return f"{beginning} […] ({len(whole)} bytes, sha256 {hashlib.sha256(whole).hexdigest()})"


class Identity:
    """An actor that can prove it is itself."""

    def __init__(self, handle: str, secret: bytes) -> None:
        if not _HANDLE.fullmatch(handle):
            raise BadKey(
                f"invalid handle {handle!r}", hint="expected CLASS:NAME, with the class human, agent, service or device"
            )
        self.handle = handle
        self._key = Ed25519PrivateKey.from_private_bytes(secret)
        raw = (serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self.id: str = self._key.public_key().public_bytes(*raw).hex()

    def __repr__(self) -> str:
        return f"Identity({self.handle})"

    @property
    def actor(self) -> dict[str, str]:
        """Key and handle, in the order in which they are signed."""
        return {"id": self.id, "handle": self.handle}

    def called(self, handle: str) -> Identity:
        """The same key under the name that another machine knows it by."""
        other = copy.copy(self)
        other.handle = handle
        return other

    def sign(self, data: bytes) -> str:
        """Its signature over some bytes."""
        return self._key.sign(data).hex()

    def challenge_bytes(self, challenge: str) -> bytes:
        """What `identify` signs on a unix socket."""
        mine = bytes.fromhex(self.id)
        return fields("holdfast connect v1", bytes.fromhex(challenge), b"unix", mine, self.handle.encode())

    def prove(self, session: str, ask: Any, nonce: bytes | None = None) -> dict[str, str]:
        """Signs an act in a session: `"take"`, `{"seize": {…}}`. A nonce serves once."""
        if nonce is None:
            nonce = int(time.time() * 1000).to_bytes(6, "big") + secrets.token_bytes(10)
        return {"nonce": nonce.hex(), "signature": self.sign(act_bytes(session, ask, nonce))}

    @staticmethod
    def from_file(path: Path) -> Identity:
        """The actor whose key this file has."""
        try:
            content = json.loads(path.read_text())
            secret = bytes.fromhex(content["secret"])
            if len(secret) != 32:
                raise ValueError("its secret is not 64 hexadecimal digits")
            return Identity(content["handle"], secret)
        except FileNotFoundError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise BadKey(f"cannot use the key file {path}: {error}") from None

    @staticmethod
    def load_or_make(home: Home, handle: str) -> Identity:
        """The actor of this handle; made where there is none. Two processes that make it at once end up with one key."""
        Identity(handle, bytes(32))  # reports a wrong handle before it becomes a path
        deadline = time.monotonic() + 1
        while True:
            with contextlib.suppress(FileNotFoundError):
                found = Identity.from_file(home.key(handle))
                if found.handle != handle:
                    raise BadKey(f"the key file {home.key(handle)} belongs to another actor")
                return found
            with contextlib.suppress(FileExistsError):
                return _make(home, handle)
            if time.monotonic() > deadline:
                raise BadKey(f"{handle} is known here, but its secret key is not in {home.key(handle)}")
            # Somebody is making it this moment: its secret is about to be there.
            time.sleep(0.005)


def act_bytes(session: str, ask: Any, nonce: bytes) -> bytes:
    """What is signed for one act: its JSON without spaces, fields in the order of their declaration."""
    text = json.dumps(ask, ensure_ascii=False, separators=(",", ":")).encode()
    return fields("holdfast act v1", session.encode(), nonce, text)


def _make(home: Home, handle: str) -> Identity:
    secret = secrets.token_bytes(32)
    identity = Identity(handle, secret)
    if home.public(handle).exists():
        raise FileExistsError(home.public(handle))
    home.public(handle).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The secret first: a key that is known and lost would be worse than one that is not known.
    _write_new(home.key(handle), {"handle": handle, "secret": secret.hex()})
    try:
        public = {"handle": handle, "id": identity.id, "created_ms": int(time.time() * 1000)}
        _write_new(home.public(handle), public)
    except FileExistsError:
        home.key(handle).unlink(missing_ok=True)
        raise
    return identity


def _write_new(path: Path, content: dict[str, Any]) -> None:
    """Writes a file that must not be there yet, whole or not at all."""
    beside = path.with_name(f"{path.name}.new{os.getpid()}.{secrets.token_hex(4)}")
    with open(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(json.dumps(content, separators=(",", ":")) + "\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        # A link, not a rename: the first one stays.
        os.link(beside, path)
    finally:
        beside.unlink()
