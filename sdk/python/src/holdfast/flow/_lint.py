"""Finds in flows what a replay would answer differently: clocks, chance, the environment, and waiting past `ctx`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

_INSTEAD = {
    "time.time": "ctx.now()", "time.sleep": "ctx.sleep()", "time.monotonic": "ctx.now()",
    "datetime.now": "ctx.now()", "datetime.utcnow": "ctx.now()", "datetime.datetime.now": "ctx.now()",
    "datetime.date.today": "ctx.now()", "date.today": "ctx.now()",
    "uuid.uuid1": "ctx.uuid()", "uuid.uuid4": "ctx.uuid()", "os.urandom": "ctx.random()", "os.getenv": "ctx.step()",
    "open": "ctx.step()", "input": "ctx.ask()", "subprocess.run": "ctx.run()", "os.system": "ctx.run()",
}  # fmt: skip
_MODULES = {
    "random": "ctx.random()", "secrets": "ctx.random()", "asyncio": "ctx.sleep(), ctx.all() or ctx.race()",
    "subprocess": "ctx.run()", "requests": "ctx.step()", "httpx": "ctx.step()",
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """Something in a flow that differs from replay to replay."""

    line: int
    flow: str
    call: str
    instead: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.flow} uses {self.call}, which a replay answers differently; use {self.instead}"


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return ""


def lint(source: str) -> list[Finding]:
    """Looks through every function that is marked `@flow`. What stands inside `ctx.step(…)` is recorded, and fine."""
    found: list[Finding] = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.AsyncFunctionDef):
            continue
        if any(_dotted(mark).split(".")[-1] == "flow" for mark in function.decorator_list):
            for statement in function.body:
                _look(statement, function.name, found)
    return sorted(found, key=lambda one: one.line)


def _look(node: ast.AST, flow: str, found: list[Finding]) -> None:
    if isinstance(node, ast.Call):
        called = _dotted(node.func)
        if called.endswith(".step"):
            return
        instead = _INSTEAD.get(called) or _MODULES.get(called.split(".")[0] if "." in called else "")
        if instead:
            found.append(Finding(node.lineno, flow, f"{called}()", instead))
    elif isinstance(node, ast.Attribute) and _dotted(node) == "os.environ":
        found.append(Finding(node.lineno, flow, "os.environ", "ctx.step()"))
    for child in ast.iter_child_nodes(node):
        _look(child, flow, found)
