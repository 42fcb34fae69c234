"""Sessions, runs, the turn and what happens, against a real host."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket

import pytest
from conftest import PATIENCE_S, TestHome

from holdfast import aio, errors
from holdfast.types import Gap

COUNT = "import sys\nfor i in range({n}): sys.stdout.write(f'line {{i:06d}} of many\\n')\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_host_is_started_and_knows_us(client: aio.Client) -> None:
    status = await client.status()
    assert status.pid > 0
    assert client.identity is not None and client.identity.handle == "agent:python"
    known = [view.actor.handle for view in await client.call.actor_list()]
    assert "agent:python" in known


async def test_a_run_has_its_output_and_its_status(client: aio.Client) -> None:
    session = await client.open("work")
    good = await session.run("echo one; echo two", timeout=PATIENCE_S)
    assert (good.state, good.exit_code, good.output) == ("ended", 0, "one\ntwo\n")
    bad = await session.run("(exit 7)", timeout=PATIENCE_S)
    assert (bad.exit_code, bad.end) == (7, "exact")
    assert [run.view.command for run in await session.runs()][-2:] == ["echo one; echo two", "(exit 7)"]


async def test_a_run_is_followed_from_its_first_byte_to_its_last(client: aio.Client) -> None:
    session = await client.open("work")
    run = await session.start("for i in 1 2 3; do echo $i; sleep 0.05; done")
    pieces = [piece async for _, piece in run.follow() if isinstance(piece, bytes)]
    assert b"".join(pieces) == b"1\r\n2\r\n3\r\n"


async def test_a_run_followed_before_its_shell_starts_it_begins_with_its_output(client: aio.Client, home: TestHome) -> None:
    session = await client.open("work")
    # Held up between the echo and the shell's word that the command starts.
    await session.run("mkfifo gate; PS0='$(<gate)'", timeout=PATIENCE_S)
    run = await session.start("echo one; echo two")
    await session.wait_for(text="echo one; echo two", timeout=PATIENCE_S)

    async def followed() -> bytes:
        return b"".join([piece async for _, piece in run.follow() if isinstance(piece, bytes)])

    following = asyncio.create_task(followed())
    assert ((await run.refresh()).state, (await run.output()).data) == ("starting", b"")
    (home.path / "gate").write_text("")
    assert await asyncio.wait_for(following, PATIENCE_S) == b"one\r\ntwo\r\n"


async def test_a_run_has_a_directory_variables_and_input_of_its_own(client: aio.Client) -> None:
    session = await client.open("work")
    text = "it's \\ two\nlines"
    command = 'pwd; printf "%s|%s\\n" "$GREETING" "${HOME-none}"; cat'
    own = await session.run(command, cwd="/usr", env={"GREETING": text, "HOME": None}, stdin=f"{text}\n", timeout=PATIENCE_S)
    assert own.output == f"/usr\n{text}|none\n{text}\n"
    after = await session.run('echo "${GREETING-none}"; [ "$PWD" = /usr ]', timeout=PATIENCE_S)
    assert (after.output, after.exit_code) == ("none\n", 1)
    alone = await client.run(["cat", "-"], stdin=text, cwd="/usr", timeout=PATIENCE_S)
    assert (alone.exit_code, alone.output) == (0, text)
    with pytest.raises(ValueError):
        await session.run("true", env={"-S": "x"})
    assert (await client.get_run(own.id)).view.command == own.command


async def test_runs_asked_for_at_once_run_one_after_the_other(client: aio.Client) -> None:
    session = await client.open("work")
    same, heard = await client.session("work"), []

    async def one(number: int) -> str:
        where = session if number % 2 else same
        command = f"echo begin {number} >> all; echo said {number}; echo end {number} >> all"
        return (await where.run(command, timeout=PATIENCE_S, on_output=heard.append)).output

    assert await asyncio.gather(*(one(n) for n in range(4))) == [f"said {n}\n" for n in range(4)]
    assert "".join(heard) == "".join(f"said {n}\r\n" for n in range(4))
    written = (await session.run("cat all", timeout=PATIENCE_S)).output
    assert written == "".join(f"begin {n}\nend {n}\n" for n in range(4))
    # A run whose end nobody waits for holds nobody up.
    run = await session.start("read line")
    with pytest.raises(errors.ShellBusy):
        await session.run("true", timeout=PATIENCE_S)
    await run.cancel()


async def test_the_same_key_runs_once(client: aio.Client, home: TestHome) -> None:
    session = await client.open("work")
    first = await session.run("echo x >> count", key="once", timeout=PATIENCE_S)
    second = await session.run("echo x >> count", key="once", timeout=PATIENCE_S)
    assert (first.id, second.existing) == (second.id, True)
    assert (home.path / "count").read_text() == "x\n"
    with pytest.raises(errors.KeyConflict) as conflict:
        await session.run("echo y >> count", key="once", timeout=PATIENCE_S)
    assert conflict.value.code == "key_conflict"


async def test_a_run_that_only_its_key_knows_is_waited_for_as_any_other(home: TestHome) -> None:
    # A host wrote the key down and was killed before it made the session: nobody finds this run by its id.
    known = {"key": "k", "session": f"ses_{'0' * 26}", "run": f"run_{'0' * 26}"}
    known |= {"command": "exit 3", "own": True, "created_ms": 5}
    (home.path / "runs").mkdir(mode=0o700)
    (home.path / "runs" / f"{b'k'.hex()}.json").write_text(json.dumps(known))
    async with aio.connect() as client:
        run = await client.start("exit 3", key="k", shared=True)
        assert (run.id, run.view.state) == (known["run"], "lost")
        with pytest.raises(errors.NoSuchRun):
            await client.get_run(run.id)
        assert (await run.wait(PATIENCE_S)).state == "lost"


async def test_a_key_is_its_actors_own_unless_it_is_shared(client: aio.Client) -> None:
    async with aio.connect(actor="agent:other") as other:
        command = ["sh", "-c", "exit 3"]
        own = [await one.run(command, key="k", timeout=PATIENCE_S) for one in (client, other)]
        assert own[0].id != own[1].id
        assert [run.command for run in own] == ["sh -c 'exit 3'"] * 2
        shared = [await one.run(command, key="k", shared=True, timeout=PATIENCE_S) for one in (client, other)]
        assert shared[0].id == shared[1].id


async def test_open_gives_the_live_session_of_that_name(client: aio.Client) -> None:
    first = await client.open("same", "sleep 1000")
    second = await client.open("same", "sleep 1000")
    assert first.id == second.id
    assert [session.name for session in await client.sessions()] == ["same"]
    with pytest.raises(errors.NotFound) as missing:
        await client.session("another")
    assert missing.value.hint


async def test_a_port_is_waited_for_and_told(client: aio.Client) -> None:
    session = await client.open("web")
    port = free_port()
    run = await session.start(f"exec 3>&1; python3 -m http.server {port} --bind 127.0.0.1")
    listener = await session.wait_for(port=port, timeout=PATIENCE_S)
    assert listener.address == f"127.0.0.1:{port}"
    assert [view.address for view in await session.ports()] == [f"127.0.0.1:{port}"]
    graph = await session.graph("processes")
    assert any(node.pid == listener.pid for node in graph.processes)
    ended = await run.cancel(timeout=PATIENCE_S)
    assert ended.state == "cancelled"


async def test_a_run_of_its_own_session_gives_every_byte(client: aio.Client) -> None:
    run = await client.start(["python3", "-c", COUNT.format(n=20_000)])
    answer = await run.wait(PATIENCE_S)
    assert (answer.exit_code, answer.truncated) == (0, True)
    output = await run.output()
    expected = "".join(f"line {i:06d} of many\r\n" for i in range(20_000)).encode()
    assert (output.data, output.gaps) == (expected, [])


async def test_a_text_is_run_by_a_shell_and_a_list_as_it_is(client: aio.Client) -> None:
    assert (await client.run("echo $((6 * 7)) | cat", timeout=PATIENCE_S)).output == "42\n"
    assert (await client.run(["echo", "$((6 * 7))"], timeout=PATIENCE_S)).output == "$((6 * 7))\n"


async def test_output_that_is_gone_is_told_as_a_gap(client: aio.Client) -> None:
    made = await client.call.session_new(
        command=["python3", "-c", COUNT.format(n=100_000)], cwd="/", env=["PATH=/usr/bin:/bin"], ring_bytes=65536
    )
    session = await client.session(made.id)
    await session.wait_for(state="exit", timeout=PATIENCE_S)
    pieces = [piece async for piece in session.output(0)]
    assert isinstance(pieces[0][1], Gap)
    gap = pieces[0][1]
    assert (pieces[0][0], gap.from_) == (0, 0)
    whole = "".join(f"line {i:06d} of many\r\n" for i in range(100_000)).encode()
    rest = b"".join(piece for _, piece in pieces[1:] if isinstance(piece, bytes))
    assert rest == whole[gap.to :]


async def test_a_reader_that_waits_is_woken_for_the_last_bytes_of_a_burst(client: aio.Client) -> None:
    burst = "import sys\nfor line in sys.stdin:\n  for i in range(5000): print(f'{i:07d} the quick brown fox')\n"
    session = await client.open("bursts", ["/bin/sh", "-c", 'stty -echo; echo; exec python3 -c "$0"', burst])
    output, got = session.output(0), 0
    # The empty line says that nothing is echoed any more.
    while got < 2:
        _, piece = await asyncio.wait_for(output.__anext__(), PATIENCE_S)
        assert isinstance(piece, bytes)
        got += len(piece)
    for number in range(1, 31):
        await session.send("\r")
        while got < 2 + number * 5000 * 29:
            _, piece = await asyncio.wait_for(output.__anext__(), PATIENCE_S)
            assert isinstance(piece, bytes)
            got += len(piece)
    assert got == 2 + 30 * 5000 * 29


async def test_a_session_that_has_just_begun_is_not_taken_for_ended(client: aio.Client) -> None:
    for _ in range(20):
        made = await client.call.session_new(command=["sleep", "1000"], cwd="/", env=[])
        answer, _ = await client.call.session_read(session=made.id, wait_ms=1)
        assert not answer.end


async def test_what_is_typed_is_answered(client: aio.Client) -> None:
    session = await client.open("talk", ["/bin/sh", "-c", "printf 'name? '; read name; echo hello, $name; cat"])
    await session.wait_for(state="waiting", timeout=PATIENCE_S)
    assert (await session.state()).prompt == "name?"
    await session.send("ann", enter=True)
    found = await session.wait_for(text=r"hello, (\w+)", timeout=PATIENCE_S)
    assert found[1] == "ann"
    assert "hello, ann" in (await session.screen()).text
    await session.keys("x", "Enter", "C-d")
    ended = await session.wait_for(state="exit", timeout=PATIENCE_S)
    assert ended.exit is not None and getattr(ended.exit, "code", None) == 0


async def test_a_large_text_is_typed_whole(client: aio.Client, home: TestHome) -> None:
    script = "stty -echo -icanon; echo ready; head -c 200000 > got; echo done"
    session = await client.open("paste", ["/bin/sh", "-c", script])
    await session.wait_for(text="ready", from_=0, timeout=PATIENCE_S)
    text = b"".join(b"%06d\n" % i for i in range(30_000))[:200_000]
    for start in range(0, len(text), 20_000):
        await session.send(text[start : start + 20_000])
    await session.wait_for(text="done", from_=0, timeout=PATIENCE_S)
    assert (home.path / "got").read_bytes() == text


async def test_a_timeout_ends_nothing(client: aio.Client) -> None:
    session = await client.open("slow")
    with pytest.raises(aio.TimedOut):
        await session.run("read line; echo got $line", timeout=0.3)
    with pytest.raises(TimeoutError):
        await session.wait_for(text="got it", timeout=0.1)
    (run,) = await session.runs()
    assert not run.is_over
    await session.wait_for(state="waiting", timeout=PATIENCE_S)
    await session.send("it", enter=True)
    assert (await run.wait(PATIENCE_S)).exit_code == 0


async def test_the_turn_is_taken_given_asked_for_and_let_go(client: aio.Client, home: TestHome) -> None:
    session = await client.open("shared", "cat")
    async with aio.connect(actor="agent:other") as other_client:
        other = await other_client.session("shared")
        taken = await session.turn.take()
        assert taken.fence is not None
        with pytest.raises(errors.TurnHeld) as held:
            await other.send("no\r")
        assert held.value.hint and held.value.details
        assert (await other.turn.request()).before is not None
        await other.turn.withdraw()
        given = await session.turn.give("agent:other")
        assert given.turn.holder is not None and given.turn.holder.actor.handle == "agent:other"
        await other.turn.release()
        assert (await session.turn.get()).holder is None
        with pytest.raises(errors.Denied):
            await other.turn.seize("it loops")
    async with aio.connect(actor="human:ann") as human:
        seized = await (await human.session("shared")).turn.seize("it loops", freeze=True)
        assert seized.froze is not None
        with pytest.raises(errors.Frozen):
            await session.send("x")
        await (await human.session("shared")).turn.thaw()
    journal = home.program("journal", "shared", "--json")
    assert '"proof"' in journal or "signature" in journal


async def test_events_tell_what_happens(client: aio.Client) -> None:
    seen: list[str] = []

    # Its first question is answered before the session is there: it begins now, and nothing is missed.
    begun = await client.call.session_watch()
    events = client.events(after=begun.to)

    async def until_exit() -> None:
        async for event in events:
            if isinstance(event, aio.Lost):
                continue
            seen.append(event.event)
            if event.event == "exit":
                return

    watching = asyncio.create_task(until_exit())
    session = await client.open("short", ["/bin/sh", "-c", "exit 3"])
    await asyncio.wait_for(watching, PATIENCE_S)
    assert seen[0] == "started" and seen[-1] == "exit"
    assert session.name == "short"


async def test_attach_paints_and_goes_on(client: aio.Client) -> None:
    session = await client.open("paint", ["/bin/sh", "-c", "echo before; read x; echo after; read y"])
    await session.wait_for(text="before", from_=0, timeout=PATIENCE_S)
    stream = session.attach()
    paint = await stream.__anext__()
    assert isinstance(paint, aio.Paint) and b"before" in paint.data and paint.size == session.view.size
    await session.send("\r")
    got = b""
    while b"after" not in got:
        piece = await asyncio.wait_for(stream.__anext__(), PATIENCE_S)
        assert isinstance(piece, tuple) and isinstance(piece[1], bytes)
        assert piece[0] == paint.offset + len(got)
        got += piece[1]


async def test_questions_that_wait_hold_nobody_up(client: aio.Client) -> None:
    session = await client.open("quiet", "sleep 1000")
    waits = [asyncio.create_task(session.wait_for(state="exit")) for _ in range(20)]
    for _ in range(50):
        await asyncio.wait_for(session.refresh(), PATIENCE_S)
    assert not any(wait.done() for wait in waits)
    await session.end(grace=0)
    for wait in waits:
        assert (await asyncio.wait_for(wait, PATIENCE_S)).exit is not None


async def test_every_operation_has_a_method_that_asks_for_it(client: aio.Client) -> None:
    session = await client.open("all", "sleep 1000")
    assert (await client.call.session_state(session=session.id)).session == session.id
    read, data = await client.call.session_read(session=session.id)
    assert (read.to, data) == (len(data), data)
    assert "holdfast" in (await client.call.host_metrics()).text
    journal, lines = await client.call.session_journal(session="all")
    assert journal.to > 0 and lines.count(b"\n") >= 1
    with pytest.raises(errors.UnknownOperation) as unknown:
        await client.ask("session.fly")
    assert unknown.value.code == "unknown_operation"
    with pytest.raises(errors.BadRequest):
        await client.ask("session.list", {"al": True})


async def test_a_human_is_asked_and_answers(client: aio.Client, home: TestHome) -> None:
    session = await client.open("deploy", "sleep 1000")
    asking = asyncio.create_task(session.ask("Deploy?", options=["yes", "no"], timeout=PATIENCE_S))
    async with aio.connect(actor="human:ann") as human:
        while not (open_ones := await human.call.question_list()):
            await human.call.session_watch(session=session.id, after=0, wait_ms=50)
        assert [(question.text, question.by.handle) for question in open_ones] == [("Deploy?", "agent:python")]
        with pytest.raises(errors.Denied):
            await client.call.question_answer(question=open_ones[0].id, seen=open_ones[0].hash, option=0)
        await human.call.question_answer(question=open_ones[0].id, seen=open_ones[0].hash, option=1)
    question = await asyncio.wait_for(asking, PATIENCE_S)
    assert question.state == "answered" and question.answer is not None
    assert (question.answer.text, question.answer.by.handle) == ("no", "human:ann")
    with pytest.raises(aio.TimedOut) as nobody:
        await session.ask("Again?", timeout=0.05)
    assert nobody.value.details.state == "open"


async def test_a_session_is_kept_and_no_longer(client: aio.Client) -> None:
    session = await client.open("kept", ["/bin/sh"])
    for seconds in (None, 3600):
        view = await session.keep(seconds)
        assert view.reap is not None and view.reap.kept is not None
        assert (view.reap.kept.until_ms is None) == (seconds is None)
    assert (await session.keep(off=True)).reap is None


async def test_a_lost_session_is_recovered(client: aio.Client) -> None:
    session = await client.open("lost", ["/bin/sh"])
    os.kill((await session.refresh()).keeper_pid, signal.SIGKILL)
    await session.wait_for(state="exit", timeout=PATIENCE_S)
    assert (await session.refresh()).life == "lost"
    assert await session.recover()
    assert (session.view.life, session.view.incarnation) == ("running", 2)
    assert not await session.recover()
