"""An agent of the OpenAI Agents SDK whose commands run in a Holdfast session."""

from agents import Agent, RunContextWrapper, function_tool
from holdfast import aio


@function_tool
async def run_command(context: RunContextWrapper[aio.Session], command: str) -> str:
    """Run a shell command; its directory, variables and jobs stay for the next one."""
    answer = await context.context.run(command, timeout=60)
    return f"exit {answer.exit_code}\n{answer.output}"


def agent(model) -> Agent[aio.Session]:
    return Agent(name="builder", instructions="Use run_command.", tools=[run_command], model=model)
