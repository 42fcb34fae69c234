"""Keys lie where the `holdfast` program looks for them, in its own form; homes are found as it finds them."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TestHome

from holdfast import aio, errors
from holdfast.home import Home
from holdfast.identity import BadKey, Identity
from holdfast.keys import has_two_forms, key


def test_a_key_made_here_is_the_programs(home: TestHome) -> None:
    made = Identity.load_or_make(Home.under(home.path), "agent:mine")
    told = json.loads(home.program("--json", "--as", "agent:mine", "whoami"))
    assert made.id in json.dumps(told)
    path = home.path / "actors" / "agent.mine.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(file.name for file in path.parent.iterdir()) == ["agent.mine.key", "agent.mine.pub"]


def test_a_key_made_by_the_program_is_ours(home: TestHome) -> None:
    home.program("actor", "new", "agent:theirs")
    found = Identity.load_or_make(Home.under(home.path), "agent:theirs")
    assert found.id in (home.path / "actors" / "agent.theirs.pub").read_text()


def test_processes_that_make_a_key_at_once_end_up_with_one(home: TestHome) -> None:
    code = (
        "import sys; from holdfast.home import Home; from holdfast.identity import Identity\n"
        f"sys.stdin.read(); print(Identity.load_or_make(Home.under({str(home.path)!r}), 'agent:both').id)"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    told = {process.communicate("")[0] for process in started}
    assert told == {Identity.load_or_make(Home.under(home.path), "agent:both").id + "\n"}


def test_a_key_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadKey) as wrong:
        Identity.load_or_make(Home.under(tmp_path), "robot:x")
    assert "CLASS:NAME" in wrong.value.hint
    (tmp_path / "actors").mkdir()
    (tmp_path / "actors" / "agent.x.key").write_text('{"handle":"agent:x","secret":"00"}')
    with pytest.raises(BadKey):
        Identity.load_or_make(Home.under(tmp_path), "agent:x")


async def test_another_key_under_a_known_handle_opens_nothing(home: TestHome) -> None:
    async with aio.connect() as client:
        await client.open("mine", "sleep 1000")
    for half in ("key", "pub"):
        (home.path / "actors" / f"agent.python.{half}").rename(home.path / f"kept.{half}")
    stranger = Identity.load_or_make(Home.under(home.path / "elsewhere"), "agent:python")
    (home.path / "kept.pub").rename(home.path / "actors" / "agent.python.pub")
    text = json.dumps({"handle": stranger.handle, "secret": stranger._key.private_bytes_raw().hex()})
    (home.path / "actors" / "agent.python.key").write_text(text)
    with pytest.raises((errors.Unidentified, errors.Denied, errors.NotFound)):
        async with aio.connect() as other:
            await (await other.session("mine")).send("x")


@pytest.mark.parametrize(
    ("env", "state", "run"),
    [
        ({"HOLDFAST_HOME": "/h", "XDG_STATE_HOME": "/s"}, "/h", "/h/run"),
        ({"XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r"}, "/s/holdfast", "/r/holdfast"),
        ({"HOME": "/u", "XDG_STATE_HOME": "relative"}, "/u/.local/state/holdfast", "/u/.local/state/holdfast/run"),
    ],
)
def test_homes_are_found_as_the_program_finds_them(env: dict[str, str], state: str, run: str) -> None:
    assert Home.from_env(env) == Home(Path(state), Path(run))


def test_no_home_is_told() -> None:
    with pytest.raises(aio.Unreachable):
        Home.from_env({})


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("C-c", b"\x03"), ("C-\\", b"\x1c"), ("C-Space", b"\0"), ("C-?", b"\x7f"), ("Enter", b"\r"), ("S-Tab", b"\x1b[Z"),
        ("Esc", b"\x1b"), ("BSpace", b"\x7f"), ("Up", b"\x1b[A"), ("C-Left", b"\x1b[1;5D"), ("PgUp", b"\x1b[5~"),
        ("S-Delete", b"\x1b[3;2~"), ("F1", b"\x1bOP"), ("F5", b"\x1b[15~"), ("F12", b"\x1b[24~"), ("C-F1", b"\x1b[1;5P"),
        ("M-x", b"\x1bx"), ("C-M-x", b"\x1b\x18"), ("M-Enter", b"\x1b\r"), ("x", b"x"), ("-", b"-"), ("é", "é".encode()),
    ],
)  # fmt: skip
def test_keys_send_what_a_terminal_would(name: str, sent: bytes) -> None:
    assert key(name) == sent


def test_cursor_keys_have_two_forms_and_nonsense_is_refused() -> None:
    assert key("Up", application=True) == b"\x1bOA"
    assert has_two_forms("Home") and not has_two_forms("C-Up")
    for name in ("", "C-", "C-é", "F0", "F13", "Foo", "ab", "M-"):
        with pytest.raises(ValueError):
            key(name)
