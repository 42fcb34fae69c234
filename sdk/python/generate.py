"""Writes `types.py`, `errors.py` and `calls.py` from `spec/schema.json`. With `--check` it fails where they are stale."""

from __future__ import annotations

import json
import keyword
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCHEMA = HERE.parent.parent / "spec" / "schema.json"
PACKAGE = HERE / "src" / "holdfast"
HEAD = '# Made by generate.py from spec/schema.json: do not edit, run `python generate.py`.\n'

# What the schema does not say: which operations have raw bytes behind their JSON.
TAKES_BYTES = {"session.send"}
GIVES_BYTES = {"session.read", "session.attach", "session.paint", "session.journal", "run.output", "page.get"}
# The connection's own; a caller has no use for them.
OWN = {"hello", "identify", "session.follow", "session.credit", "session.unfollow"}

Schema = dict[str, Any]


def pascal(word: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[._-]", word))


def safe(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) else name


def doc(text: str | None, indent: str) -> str:
    """A docstring, or nothing."""
    if not text:
        return ""
    text = re.sub(r"\s+", " ", text).replace("\\", "\\\\").strip()
    text = re.sub(r"\[`([^`]*)`\]", r"`\1`", text)
    return f'{indent}"""{text}"""\n'


class Writer:
    """Turns the schema's definitions into Python."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.defs: dict[str, Schema] = schema["$defs"]
        self.out: list[str] = []
        self.words: set[str] = set()
        """Definitions that are one of some words: a newer host may say another."""
        for name, node in self.defs.items():
            if all("const" in choice for choice in node.get("oneOf", [{}])):
                self.words.add(name)

    # What a place holds.

    def type_of(self, node: Schema | bool, *, open_words: bool = True) -> str:
        if node is True or node == {}:
            return "Any"
        assert isinstance(node, dict)
        if "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[1]
            return f"{name} | str" if name in self.words and open_words else name
        if "const" in node:
            return f"Literal[{json.dumps(node['const'])}]"
        if "enum" in node:
            return f"Literal[{', '.join(json.dumps(value) for value in node['enum'])}]"
        choices = node.get("anyOf") or node.get("oneOf")
        if choices:
            parts = [self.type_of(choice, open_words=open_words) for choice in choices]
            return " | ".join(dict.fromkeys(parts))
        kinds = node.get("type")
        if kinds is None:
            return "Any"
        parts = [self.simple(kind, node, open_words) for kind in ([kinds] if isinstance(kinds, str) else kinds)]
        return " | ".join(parts)

    def simple(self, kind: str, node: Schema, open_words: bool) -> str:
        if kind == "array":
            if "prefixItems" in node:
                inner = ", ".join(self.type_of(item, open_words=open_words) for item in node["prefixItems"])
                return f"tuple[{inner}]"
            return f"list[{self.type_of(node.get('items', {}), open_words=open_words)}]"
        if kind == "object":
            return "dict[str, Any]"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}[kind]

    @staticmethod
    def default_of(node: Schema, kind: str) -> str | None:
        """What stands for a field that is left out."""
        if "default" in node:
            return repr(node["default"])
        if "None" in kind.split(" | ") or kind == "Any":
            return "None"
        return {"bool": "False", "int": "0", "str": '""'}.get(kind, "[]" if kind.startswith("list[") else None)

    # Definitions.

    def definition(self, name: str, node: Schema) -> None:
        choices = node.get("oneOf", [])
        if name in self.words:
            values = ", ".join(json.dumps(choice["const"]) for choice in choices)
            self.out.append(f"{name}: TypeAlias = Literal[{values}]\n" + doc(self.words_doc(node), ""))
        elif node.get("type") == "object" or (choices and all(self.tag(choice) for choice in choices)):
            self.model(name, *self.flat(node), text=node.get("description"))
        elif choices:
            self.union(name, node)
        else:
            self.out.append(f"{name}: TypeAlias = {self.type_of(node)}\n" + doc(node.get("description"), ""))

    @staticmethod
    def words_doc(node: Schema) -> str:
        each = "; ".join(f"`{c['const']}`: {c.get('description', '').rstrip('.')}" for c in node["oneOf"])
        return f"{node.get('description', '')} {each}."

    @staticmethod
    def tag(choice: Schema) -> bool:
        return any("const" in field for field in choice.get("properties", {}).values())

    def flat(self, node: Schema) -> tuple[dict[str, Schema], set[str]]:
        """Fields of an object and of all its variants: those of a variant are there or not, as its tag says."""
        fields = dict(node.get("properties", {}))
        required = set(node.get("required", []))
        tags: dict[str, list[str]] = {}
        for choice in node.get("oneOf", []):
            more, _ = self.flat(choice)
            for name, field in more.items():
                if "const" in field:
                    tags.setdefault(name, []).append(field["const"])
                    if all("const" in c.get("properties", {}).get(name, {}) for c in node["oneOf"]):
                        required.add(name)
                elif "tag" in field:
                    fields[name] = field
                else:
                    optional = field if name in fields else {"anyOf": [self.bare(field), {"type": "null"}]}
                    old = fields.get(name)
                    if old is not None and old.get("anyOf") != optional.get("anyOf") and "tag" not in old:
                        optional = self.either(old, field)
                    told = [text for text in (old or {}).get("description", "").split(" / ") if text]
                    if field.get("description", "") not in told:
                        told.append(field.get("description", ""))
                    fields[name] = {**optional, "description": " / ".join(told)}
        for name, values in tags.items():
            fields[name] = {"tag": values, "description": "Which: the other fields follow from it."}
        return fields, required

    @staticmethod
    def bare(field: Schema) -> Schema:
        return {key: value for key, value in field.items() if key not in ("description", "default")}

    def either(self, one: Schema, other: Schema) -> Schema:
        choices = one.get("anyOf", [self.bare(one)]) + other.get("anyOf", [self.bare(other)])
        unique: list[Schema] = []
        for choice in choices:
            bare = self.bare(choice)
            if bare not in unique and bare != {"type": "null"}:
                unique.append(bare)
        return {"anyOf": [*unique, {"type": "null"}]}

    def model(self, name: str, fields: dict[str, Schema], required: set[str], text: str | None) -> None:
        lines = [f"class {name}(Model):\n", doc(text, "    ")]
        for field in sorted(fields, key=lambda field: (field not in required, list(fields).index(field))):
            node = fields[field]
            if "tag" in node:
                kind = f"Literal[{', '.join(json.dumps(value) for value in node['tag'])}] | str"
                if field not in required:
                    kind += " | None"
            else:
                kind = self.type_of(node)
            parts = dict.fromkeys(self.split(kind))
            kind = " | ".join(sorted(parts, key=lambda part: (part == "None", part == "str")))
            default = None if field in required else self.default_of(node, kind)
            if default is None and field not in required:
                kind, default = f"{kind} | None", "None"
            here = safe(field)
            if here != field:
                value = f'Field({"..." if default is None else default}, alias="{field}")'
            elif default == "[]":
                value = "Field(default_factory=list)"
            else:
                value = default
            lines.append(f"    {here}: {kind}" + (f" = {value}" if value is not None else "") + "\n")
            lines.append(doc(node.get("description"), "    "))
        if len(lines) == 2 and not lines[1]:
            lines.append("    pass\n")
        self.out.append("".join(lines))

    @staticmethod
    def split(kind: str) -> list[str]:
        """The parts of a union, brackets kept whole."""
        parts, depth, start = [], 0, 0
        for i, char in enumerate(kind):
            depth += {"[": 1, "]": -1}.get(char, 0)
            if depth == 0 and kind.startswith(" | ", i):
                parts.append(kind[start:i])
                start = i + 3
        return [*parts, kind[start:]]

    def union(self, name: str, node: Schema) -> None:
        """One of some words, or an object of one field."""
        parts = []
        for choice in node["oneOf"]:
            if "const" in choice:
                parts.append(f"Literal[{json.dumps(choice['const'])}]")
                continue
            of = name + pascal(next(iter(choice["properties"])))
            self.model(of, choice["properties"], set(choice.get("required", [])), choice.get("description"))
            parts.append(of)
        self.out.append(f"{name}: TypeAlias = {' | '.join(parts)}\n" + doc(node.get("description"), ""))

    def in_order(self) -> list[str]:
        """Aliases need what they name before them; classes do not."""
        order: list[str] = []

        def visit(name: str) -> None:
            if name in order:
                return
            node = self.defs[name]
            if node.get("type") != "object":
                for used in re.findall(r'"#/\$defs/(\w+)"', json.dumps(node)):
                    if used != name:
                        visit(used)
            order.append(name)

        for name in sorted(self.defs):
            visit(name)
        return order


def types_text(schema: Schema) -> str:
    writer = Writer(schema)
    for name in writer.in_order():
        writer.definition(name, writer.defs[name])
    head = (
        HEAD
        + '"""What clients and a host say to each other. A newer host may add fields and words: both are let through."""\n\n'
        + "from __future__ import annotations\n\nfrom typing import Any, Literal, TypeAlias\n\n"
        + "from pydantic import BaseModel, ConfigDict, Field\n\n\n"
        + "class Model(BaseModel):\n"
        + '    """What all have in common."""\n\n'
        + '    model_config = ConfigDict(extra="allow", populate_by_name=True, protected_namespaces=())\n'
    )
    # Each is whole when this module is: what is built on one elsewhere need not know the names here.
    foot = "\n\nfor _model in Model.__subclasses__():\n    _model.model_rebuild()\n"
    return head + "\n\n" + "\n\n".join(writer.out) + foot


def errors_text(schema: Schema) -> str:
    choices = schema["$defs"]["Code"]["oneOf"]
    names = [pascal(choice["const"]) for choice in choices]
    lines = [
        HEAD,
        '"""An exception for each code a host answers with."""\n\n',
        "from __future__ import annotations\n\n",
        "from ._fault import Fault, HoldfastError, Interrupted, TimedOut, Unreachable, Untrusted\n\n",
    ]
    for name, choice in zip(names, choices, strict=True):
        lines.append(f"\nclass {name}(Fault):\n{doc(choice.get('description'), '    ')}\n")
    lines.append("\nBY_CODE: dict[str, type[Fault]] = {\n")
    lines += [f'    "{choice["const"]}": {name},\n' for name, choice in zip(names, choices, strict=True)]
    lines.append("}\n\n__all__ = [\n")
    every = ["Fault", "HoldfastError", "Interrupted", "TimedOut", "Unreachable", "Untrusted", *names]
    lines += [f'    "{name}",\n' for name in ["BY_CODE", *sorted(every)]]
    lines.append("]\n")
    return "".join(lines)


def calls_text(schema: Schema) -> str:
    writer = Writer(schema)
    lines = [
        HEAD,
        '"""Every operation of the table as a typed method."""\n\n',
        "from __future__ import annotations\n\n",
        "from typing import Any, Protocol\n\n",
        "from .types import *\n\n",
        "Answer = tuple[Any, bytes]\n\n\n",
        "class AsyncAsk(Protocol):\n",
        '    """Asks a host."""\n\n',
        "    async def __call__(\n        self, method: str, params: dict[str, Any], data: bytes, answer: Any\n"
        "    ) -> Answer: ...\n\n\n",
        "class Ask(Protocol):\n",
        '    """Asks a host, and waits."""\n\n',
        "    def __call__(self, method: str, params: dict[str, Any], data: bytes, answer: Any) -> Answer: ...\n\n\n",
        "def _given(params: dict[str, Any]) -> dict[str, Any]:\n",
        "    return {name: value for name, value in params.items() if value is not None}\n",
    ]
    for is_async in (True, False):
        lines += calls_class(writer, schema, is_async)
    return "".join(lines)


def calls_class(writer: Writer, schema: Schema, is_async: bool) -> list[str]:
    name, ask, define, wait = ("AsyncCalls", "AsyncAsk", "async def", "await ") if is_async else ("Calls", "Ask", "def", "")
    lines = [f"\n\nclass {name}:\n", '    """The table."""\n\n', f"    def __init__(self, ask: {ask}) -> None:\n        self._ask = ask\n"]
    for operation, row in sorted(schema["operations"].items()):
        if operation in OWN:
            continue
        params = writer.defs[row["params"]["$ref"].rsplit("/", 1)[1]]
        required = params.get("required", [])
        arguments, fields = [], []
        for field in sorted(params.get("properties", {}), key=lambda field: (field not in required, field)):
            node = params["properties"][field]
            kind = writer.type_of(node, open_words=False)
            if field not in required and "None" not in kind.split(" | "):
                kind += " | None"
            arguments.append(f"{safe(field)}: {kind}" + ("" if field in required else " = None"))
            fields.append(f'"{field}": {safe(field)}')
        if operation in TAKES_BYTES:
            arguments.append("data: bytes")
        answer = writer.type_of(row["answer"])
        gives = f"tuple[{answer}, bytes]" if operation in GIVES_BYTES else answer
        star = ", *, " + ", ".join(arguments) if arguments else ""
        data = "data" if operation in TAKES_BYTES else 'b""'
        lines.append(f"\n    {define} {safe(operation.replace('.', '_'))}(self{star}) -> {gives}:\n")
        lines.append(doc(row["doc"], "        "))
        lines.append(f"        params = _given({{{', '.join(fields)}}})\n")
        lines.append(f'        found: {answer}\n')
        lines.append(f'        found, {"more" if operation in GIVES_BYTES else "_"} = {wait}self._ask("{operation}", params, {data}, {answer})\n')
        lines.append("        return found, more\n" if operation in GIVES_BYTES else "        return found\n")
    return lines


def main() -> int:
    schema = json.loads(SCHEMA.read_text())
    texts = {"types.py": types_text(schema), "errors.py": errors_text(schema), "calls.py": calls_text(schema)}
    stale = [name for name, text in texts.items() if not (PACKAGE / name).exists() or (PACKAGE / name).read_text() != text]
    if "--check" in sys.argv[1:]:
        for name in stale:
            print(f"sdk/python/src/holdfast/{name} is not what spec/schema.json says: run `python sdk/python/generate.py`")
        return 1 if stale else 0
    for name in stale:
        (PACKAGE / name).write_text(texts[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
