"""The Python examples with models that say what they are told to: first a command, then what came of it."""

from __future__ import annotations

import asyncio

import holdfast
from holdfast import aio

COMMAND = "echo from $((40 + 2))"
WANTED = "exit 0\nfrom 42\n"


def langchain() -> str:
    from langchain_agent import agent
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, ToolMessage

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools, **_):  # type: ignore[no-untyped-def]
            assert {one.name for one in tools} == {"run_command", "ask_human"}
            return self

    call = {"name": "run_command", "args": {"command": COMMAND}, "id": "1"}
    model = Scripted(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("done")]))
    with holdfast.connect() as client:
        said = agent(model, client.open("langchain")).invoke({"messages": ["go"]})["messages"]
        client.session("langchain").end(grace=0)
    assert said[-1].content == "done"
    return next(str(one.content) for one in said if isinstance(one, ToolMessage))


async def pydantic_ai() -> str:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai_agent import agent

    def scripted(messages, _) -> ModelResponse:  # type: ignore[no-untyped-def]
        results = [str(part.content) for one in messages for part in one.parts if isinstance(part, ToolReturnPart)]
        part = TextPart(results[0]) if results else ToolCallPart("run_command", {"command": COMMAND, "key": "once"})
        return ModelResponse(parts=[part])

    async with aio.connect() as client:
        session = await client.open("pydantic-ai")
        said = await agent(FunctionModel(scripted)).run("go", deps=session)
        await session.end(grace=0)
    return said.output


async def openai_agents() -> str:
    from agents import Model, ModelResponse, RunConfig, Runner, Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
    from openai_agents_agent import agent

    class Scripted(Model):
        async def get_response(self, system_instructions, input, *_, **__) -> ModelResponse:  # type: ignore[no-untyped-def]
            results = [one["output"] for one in input if isinstance(one, dict) and one.get("type") == "function_call_output"]
            if results:
                text = ResponseOutputText(type="output_text", text=results[0], annotations=[])
                item = ResponseOutputMessage(id="2", type="message", role="assistant", status="completed", content=[text])
            else:
                words = f'{{"command": "{COMMAND}"}}'
                item = ResponseFunctionToolCall(call_id="1", name="run_command", arguments=words, type="function_call")
            return ModelResponse(output=[item], usage=Usage(), response_id=None)

        def stream_response(self, *_, **__):  # type: ignore[no-untyped-def]
            raise NotImplementedError

    async with aio.connect() as client:
        session = await client.open("openai-agents")
        said = await Runner.run(agent(Scripted()), "go", context=session, run_config=RunConfig(tracing_disabled=True))
        await session.end(grace=0)
    return str(said.final_output)


if __name__ == "__main__":
    tried = {"langchain": langchain(), "pydantic-ai": asyncio.run(pydantic_ai())}
    tried["openai-agents"] = asyncio.run(openai_agents())
    for name, said in tried.items():
        assert said == WANTED, (name, said)
        print(f"{name}: ran")
