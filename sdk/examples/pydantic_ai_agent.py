"""An agent of Pydantic AI whose commands run in a Holdfast session."""

from holdfast import aio
from pydantic_ai import Agent, RunContext


def agent(model) -> Agent[aio.Session, str]:
    made = Agent(model, deps_type=aio.Session)

    @made.tool
    async def run_command(ctx: RunContext[aio.Session], command: str, key: str | None = None) -> str:
        """Run a shell command. The same key runs once, also after a crash."""
        answer = await ctx.deps.run(command, key=key, timeout=60)
        return f"exit {answer.exit_code}\n{answer.output}"

    return made
