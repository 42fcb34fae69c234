"""Names of keys, as people write them, and the bytes a terminal sends for them: `C-c`, `M-x`, `Enter`, `Up`, `F5`."""

from __future__ import annotations

import re

_SIMPLE = {
    "enter": 13, "return": 13, "cr": 13, "tab": 9, "esc": 27, "escape": 27, "space": 32, "bspace": 127, "backspace": 127,
}  # fmt: skip
_LETTERS = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_TILDE = {
    "insert": 2, "ic": 2, "delete": 3, "dc": 3, "pgup": 5, "pageup": 5, "ppage": 5, "pgdn": 6, "pagedown": 6, "npage": 6,
}  # fmt: skip
_FUNCTION = (15, 17, 18, 19, 20, 21, 23, 24)
_TWO_FORMS = re.compile(rb"\x1b\[([A-DFH])")


def key(name: str, application: bool = False) -> bytes:
    """What a key sends; cursor keys in the form the program wants."""
    rest, held = name, set()
    # `C--` is Control and a hyphen: a prefix counts only where a key follows it.
    while len(rest) > 2 and rest[:2].lower() in ("c-", "m-", "s-"):
        held.add(rest[0].lower())
        rest = rest[2:]
    found = _named(rest.lower(), held)
    if found is None:
        found = _character(rest, held)
    if found is None:
        raise ValueError(f"unknown key {name!r}; expected keys like C-c, M-x, Enter, Tab, Esc, Up, PgUp, F1, or a character")
    if application and (plain := _TWO_FORMS.fullmatch(found)):
        return b"\x1bO" + plain[1]
    return found


def has_two_forms(name: str) -> bool:
    """It is a cursor key, which a program may want in its application form."""
    return _TWO_FORMS.fullmatch(key(name)) is not None


def _named(name: str, held: set[str]) -> bytes | None:
    modifiers = 1 + ("s" in held) + 2 * ("m" in held) + 4 * ("c" in held)
    meta = b"\x1b" if "m" in held else b""
    if name == "btab" or (name == "tab" and "s" in held):
        return b"\x1b[Z"
    if name == "space" and "c" in held:
        return meta + b"\0"
    if name in _SIMPLE:
        return meta + bytes([_SIMPLE[name]])
    if name in _LETTERS:
        middle = "" if modifiers == 1 else f"1;{modifiers}"
        return f"\x1b[{middle}{_LETTERS[name]}".encode()
    if name in _TILDE:
        return f"\x1b[{_TILDE[name]}{'' if modifiers == 1 else f';{modifiers}'}~".encode()
    if not re.fullmatch(r"f([1-9]|1[0-2])", name):
        return None
    number = int(name[1:])
    if number <= 4:
        letter = chr(ord("O") + number)
        return f"\x1bO{letter}".encode() if modifiers == 1 else f"\x1b[1;{modifiers}{letter}".encode()
    return f"\x1b[{_FUNCTION[number - 5]}{'' if modifiers == 1 else f';{modifiers}'}~".encode()


def _character(text: str, held: set[str]) -> bytes | None:
    if len(text) != 1:
        return None
    meta = b"\x1b" if "m" in held else b""
    if "c" not in held:
        return meta + (text.upper() if "s" in held and text.isascii() else text).encode()
    if text in "@ ":
        return meta + b"\0"
    if text == "?":
        return meta + b"\x7f"
    if text == "/":
        # What terminals send for Ctrl-/: the same as for C-_.
        return meta + b"\x1f"
    if re.fullmatch(r"[a-zA-Z\[\\\]^_]", text):
        return meta + bytes([ord(text) & 0x1F])
    return None
