"""Frames: a kind and a payload, as `spec/protocol.md` says. Pure: bytes in, messages out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

KIND_JSON = 1
KIND_JSON_BYTES = 2
FRAME_BYTES_MAX = 64 * 1024 * 1024
"""Largest frame that is accepted: a repaint with a hundred thousand lines of history."""
REQUEST_BYTES_MAX = 8 * 1024 * 1024
"""Largest frame a host accepts."""


class FrameError(ValueError):
    """Bytes that are no frame, or a frame that is no message. `why` is the word of `spec/vectors/refused.json`."""

    def __init__(self, why: str, message: str) -> None:
        super().__init__(message)
        self.why = why


@dataclass
class Message:
    """One JSON-RPC message, and the bytes behind it."""

    id: int | None = None
    method: str | None = None
    params: Any = None
    result: Any = None
    error: dict[str, Any] | None = None
    data: bytes = field(default=b"", repr=False)

    @property
    def is_answer(self) -> bool:
        return self.method is None

    def to_json(self) -> dict[str, Any]:
        """As it stands in a frame."""
        out: dict[str, Any] = {"jsonrpc": "2.0"}
        if self.id is not None:
            out["id"] = self.id
        if self.method is not None:
            out["method"] = self.method
            if self.params is not None:
                out["params"] = self.params
        elif self.error is not None:
            out["error"] = self.error
        else:
            out["result"] = self.result
        return out


def encode(message: Message) -> bytes:
    """Kind and payload: a whole message of a carrier that keeps boundaries."""
    text = json.dumps(message.to_json(), ensure_ascii=False, separators=(",", ":")).encode()
    if message.data:
        return bytes([KIND_JSON_BYTES]) + len(text).to_bytes(4, "little") + text + message.data
    return bytes([KIND_JSON]) + text


def encode_stream(message: Message) -> bytes:
    """With the length in front, for a stream of bytes."""
    content = encode(message)
    return len(content).to_bytes(4, "little") + content


def decode(content: bytes | memoryview) -> Message:
    """Reads kind and payload."""
    content = memoryview(content)
    if not content:
        raise FrameError("malformed", "malformed frame")
    kind, payload = content[0], content[1:]
    if kind == KIND_JSON:
        return _message(payload, b"")
    if kind != KIND_JSON_BYTES:
        raise FrameError("unknown_kind", f"unknown frame kind {kind}")
    if len(payload) < 4:
        raise FrameError("malformed", "malformed frame")
    count = int.from_bytes(payload[:4], "little")
    if count > len(payload) - 4:
        raise FrameError("malformed", "malformed frame")
    return _message(payload[4 : 4 + count], bytes(payload[4 + count :]))


def decode_stream(stream: bytes | bytearray, limit: int = FRAME_BYTES_MAX) -> tuple[Message, int] | None:
    """The message at the front of a stream's bytes and how many it took; nothing until it is whole."""
    if len(stream) < 4:
        return None
    length = int.from_bytes(stream[:4], "little")
    if length > limit:
        raise FrameError("too_long", f"a frame of {length} bytes is over the limit of {limit}")
    if length == 0:
        raise FrameError("malformed", "malformed frame")
    # The kind is judged as soon as it is there: garbage is noticed before its "length" has arrived.
    if len(stream) > 4 and stream[4] not in (KIND_JSON, KIND_JSON_BYTES):
        raise FrameError("unknown_kind", f"unknown frame kind {stream[4]}")
    if len(stream) < 4 + length:
        return None
    return decode(bytes(stream[4 : 4 + length])), 4 + length


def _message(text: memoryview, data: bytes) -> Message:
    try:
        raw = json.loads(bytes(text).decode())
    except ValueError as wrong:
        raise FrameError("not_a_message", f"not a JSON-RPC message: {wrong}") from None
    if not isinstance(raw, dict) or raw.get("jsonrpc") != "2.0":
        raise FrameError("not_a_message", "not a JSON-RPC 2.0 message")
    number, method, error = raw.get("id"), raw.get("method"), raw.get("error")
    known = (number is None or (type(number) is int and number >= 0)) and isinstance(method, str | None)
    known = known and isinstance(error, dict | None)
    result = raw.get("result")
    if method is not None:
        known = known and error is None and result is None
    else:
        known = known and number is not None and (error is None or result is None)
    if not known:
        raise FrameError("not_a_message", "expected a request, an answer or an event")
    return Message(number, method, raw.get("params"), result, error, data)
