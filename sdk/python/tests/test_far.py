"""Commands on another machine: what stands for ssh starts programs in another home."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PROGRAM, TestHome

import holdfast
from holdfast import aio, errors

SSH = """#!/bin/sh
while [ "$1" != -- ]; do
    [ "$1" = -O ] && exit 0
    shift
done
[ -e "FAR/away" ] && { echo "ssh: connect to host $2 port 22: Connection refused" >&2; exit 255; }
top="HOLDFAST_TEST_TOP=$HOLDFAST_TEST_TOP"
cd FAR && exec env -i HOLDFAST_HOME=FAR HOME=FAR "$top" PATH="$PATH" SHELL=/bin/bash sh -c "$3"
"""


@pytest.fixture
def far(home: TestHome, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestHome]:
    """Another machine, which this one knows as `gpu`."""
    directory = Path(tempfile.mkdtemp(prefix="hfpy"))
    there = TestHome(directory)
    script = home.path / "ssh"
    script.write_text(SSH.replace("FAR", str(directory)))
    script.chmod(0o755)
    monkeypatch.setenv("HOLDFAST_SSH", str(script))
    home_env = {**home.env, "HOLDFAST_SSH": str(script)}
    monkeypatch.setattr(TestHome, "env", property(lambda self: home_env if self is home else _env(self)))
    home.program("--as", "agent:python", "hosts", "add", "gpu", "--ssh", "gpu", "--program", PROGRAM)
    try:
        yield there
    finally:
        left = there.close()
        shutil.rmtree(directory, ignore_errors=True)
    assert left == [], "processes were left over"


def _env(home: TestHome) -> dict[str, str]:
    path = str(home.path)
    return {"HOLDFAST_HOME": path, "HOME": path, "PATH": "/usr/local/bin:/usr/bin:/bin", "SHELL": "/bin/bash"}


def test_a_command_runs_on_another_machine_in_one_call(home: TestHome, far: TestHome) -> None:
    with holdfast.connect() as client:
        told: list[str] = []
        ran = client.run("pwd; echo err >&2; exit 3", host="gpu", separate_stderr=True, on_output=told.append)
        assert (ran.exit_code, ran.output, ran.stderr) == (3, f"{far.path}\n", "err\n")
        assert "".join(told).strip() == str(far.path)
        assert ran.actor.handle.startswith("agent:python."), "an actor of its own there"
        once = client.run(["sh", "-c", "echo x >> once"], host="gpu", key="k")
        assert client.run(["sh", "-c", "echo x >> once"], host="gpu", key="k").id == once.id
        assert (far.path / "once").read_text() == "x\n"
        there = client.at("gpu")
        session = there.open("work", "bash --norc")
        assert session.run("echo $((6 * 7))").output == "42\n"
        assert [found.name for found in there.sessions()] == ["work"]
        assert client.sessions() == []


@pytest.mark.asyncio
async def test_the_way_to_another_machine_comes_back_and_ends_with_its_client(home: TestHome, far: TestHome) -> None:
    async with aio.connect() as client:
        there = await client.at("gpu")
        assert await client.at("gpu") is there
        pid = (await there.status()).pid
        far.program("host", "stop")
        assert (await there.status()).pid != pid
    with pytest.raises(errors.HoldfastError, match="closed"):
        await there.status()


@pytest.mark.asyncio
async def test_a_machine_that_is_away_or_unknown_is_told(home: TestHome, far: TestHome) -> None:
    async with aio.connect() as client:
        with pytest.raises(holdfast.Unreachable, match="nowhere"):
            await client.run("true", host="nowhere")
        (far.path / "away").write_text("")
        with pytest.raises(holdfast.Unreachable, match="Connection refused"):
            await client.run("true", host="gpu")
        (far.path / "away").unlink()
        assert (await client.run("true", host="gpu")).exit_code == 0
