"""The official Python client against `holdfast mcp`, in both lifecycles of the protocol; over HTTP where a URL is given.

python_client.py HOLDFAST [URL [TOKEN]]    HOLDFAST_HOME says which home; a host is started where none runs.
"""

import asyncio
import os
import sys
import warnings
from contextlib import asynccontextmanager

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation

PATIENCE = 30
# What clients before 2026-07-28 subscribe by is tested as well.
warnings.simplefilter("ignore", UserWarning)
LOOKS = {"may", "wait_for", "read_output", "session_state", "sessions", "overview", "runs", "graph", "ports"}
LOOKS |= {"list_files", "read_file", "flow_status"}


def expect(holds, *told):
    if not holds:
        raise AssertionError(" ".join(map(str, told)))


async def call(client, tool, **arguments):
    """The structured content; the client itself has checked it against the tool's schema."""
    result = await client.call_tool(tool, arguments, read_timeout_seconds=PATIENCE)
    expect(not result.is_error, tool, result.content)
    expect(result.content[0].text, tool, "has a text")
    return result.structured_content


async def refused(client, tool, **arguments):
    result = await client.call_tool(tool, arguments, read_timeout_seconds=PATIENCE)
    expect(result.is_error, tool, result.content)
    return result.structured_content["error"]


async def tools_are_told(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    for name, tool in tools.items():
        expect(tool.description and tool.title and tool.output_schema, name, "teaches")
        expect(tool.annotations.read_only_hint == (name in LOOKS), name, "says whether it only looks")
    acts = {"run_command", "send_input", "open_session", "end_session", "turn", "interrupt", "ask_human"}
    acts |= {"write_file", "edit_file"}
    # Those for flows are shown where there are flows, and by a host that others reach.
    flows = {"start_flow", "signal_flow", "flow_status"}
    expect((LOOKS | acts) - flows == set(tools) - flows, sorted(tools))
    expect(flows & set(tools) in (flows, set()), sorted(tools))


async def commands_run(client, session):
    ran = await call(client, "run_command", command="echo hi; false", session=session)
    expect((ran["output"], ran["exit_code"]) == ("hi\n", 1), ran)
    on = await call(client, "run_command", command="read -p 'Name? ' x; echo hello $x", session=session)
    expect(on["state"] == "running" and on["doing"]["prompt"] == "Name?", on)
    busy = await refused(client, "run_command", command="echo no", session=session)
    expect(busy["code"] == "shell_busy", busy)
    await call(client, "send_input", text="ann\n", session=session)
    over = await call(client, "wait_for", run=on["run"])
    expect(over["run"]["output"].endswith("hello ann\n"), over)
    for looked in ("session_state", "graph", "read_output"):
        await call(client, looked, session=session)
    screen = await call(client, "read_output", session=session, view="screen")
    expect("hello ann" in screen["text"], screen)
    missing = await refused(client, "read_output", session="nobody")
    expect(missing["code"] == "not_found", missing)


async def progress_is_told_and_giving_up_stops_nothing(client, session):
    told = []

    async def progress(done, total, message):
        told.append(done)

    command = "until [ -e \"$HOLDFAST_TEST_GO\" ]; do sleep 0.05; done; echo went"
    on = await call(client, "run_command", command=f"HOLDFAST_TEST_GO={GO}; {command}", session=session, yield_ms=100)
    waiting = asyncio.create_task(client.call_tool("wait_for", {"run": on["run"]}, progress_callback=progress))
    async with asyncio.timeout(PATIENCE):
        while len(told) < 2:
            await asyncio.sleep(0.05)
    expect(told == sorted(set(told)), told)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    expect((await call(client, "session_state", session=session))["run"] == on["run"], "it goes on")
    open(GO, "w").close()
    over = await call(client, "wait_for", run=on["run"])
    os.unlink(GO)
    expect(over["run"]["output"] == "went\n", over)


async def resources_are_read_and_followed(client, session, notes):
    uri = f"session://{session}/log"
    listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
    expect(uri in listed, listed)
    expect(len((await client.list_resource_templates()).resource_templates) == 4, "templates")
    if client.protocol_version >= "2026-07-28":
        async with client.listen(resource_subscriptions=[uri], resources_list_changed=True) as changes:
            await call(client, "run_command", command="echo followed", session=session)
            async with asyncio.timeout(PATIENCE):
                async for change in changes:
                    if getattr(change, "uri", None) == uri:
                        break
    else:
        await client.subscribe_resource(uri)
        await call(client, "run_command", command="echo followed", session=session)
        async with asyncio.timeout(PATIENCE):
            while uri not in notes:
                await asyncio.sleep(0.05)
        await client.unsubscribe_resource(uri)
    log = (await client.read_resource(uri, cache_mode="bypass")).contents[0].text
    expect("followed" in log, log)


@asynccontextmanager
async def connected(where, mode, notes):
    async def note(message):
        params = getattr(getattr(message, "root", message), "params", None)
        notes.append(str(getattr(params, "uri", "")))

    name = Implementation(name="Python Test", version="1")
    async with Client(where(), mode=mode, client_info=name, message_handler=note) as client:
        yield client


async def test(where, mode, session):
    notes = []
    async with connected(where, mode, notes) as client:
        await tools_are_told(client)
        opened = await call(client, "open_session", name=session)
        expect(opened["session"]["name"] == session, opened)
        await commands_run(client, session)
        await progress_is_told_and_giving_up_stops_nothing(client, session)
        await resources_are_read_and_followed(client, session, notes)
        await call(client, "ports")
        await call(client, "turn", session=session, action="get")
        await call(client, "send_input", text="exit\n", session=session)
        over = await call(client, "wait_for", session=session, until="exit")
        expect(over["outcome"] == "came", over)
        print(f"{mode}: protocol {client.protocol_version} over {'HTTP' if session.startswith('http') else 'stdio'}: ok")


def main():
    holdfast, url, token = [*sys.argv[1:], None, None][:3]
    env = {key: os.environ[key] for key in ("HOLDFAST_HOME", "PATH", "HOME", "LANG") if key in os.environ}
    command = StdioServerParameters(command=holdfast, args=["mcp"], env={**env, "SHELL": "/bin/bash"}, cwd="/")
    for mode in ("legacy", "auto"):
        asyncio.run(test(lambda: command, mode, f"stdio-{mode}"))
    if url:
        headers = {"Authorization": f"Bearer {token}"} if token else {}

        def client():
            return httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(PATIENCE, read=300))

        for mode in ("legacy", "auto"):
            asyncio.run(test(lambda: streamable_http_client(url, http_client=client()), mode, f"http-{mode}"))


GO = os.path.join(os.environ["HOLDFAST_HOME"], "go")
main()
