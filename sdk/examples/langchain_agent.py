"""An agent of LangChain whose commands run in a Holdfast session: people can watch it, and it outlives the agent."""

import holdfast
from langchain.agents import create_agent
from langchain_core.tools import tool


def agent(model, session: holdfast.Session):
    @tool
    def run_command(command: str) -> str:
        """Run a shell command; its directory, variables and jobs stay for the next one."""
        answer = session.run(command, timeout=60)
        return f"exit {answer.exit_code}\n{answer.output}"

    @tool
    def ask_human(question: str) -> str:
        """Ask a person who watches the session, and wait for the answer."""
        answered = session.ask(question).answer
        return answered.text if answered else "nobody answered"

    return create_agent(model, tools=[run_command, ask_human])
