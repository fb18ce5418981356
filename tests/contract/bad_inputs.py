"""Load rows of bad inputs and expand their directives to raw JSON.

A row is {surface, call, input, expect_code, why}. Inside `input`:

    {"$repeat": [text, n]}       the text n times
    {"$list": [format, n]}       n formatted strings
    {"$nest": ["[", n]}          n brackets and their closing ones
    {"$manykeys": n}             an object of n keys
    {"$raw_number": text}        the text unchanged
    {"$raw_string": text}        the text unchanged, in quotes
    {"$repeat_schema_bytes": n}  a JSON Schema of more than n bytes

Instead of an input: {"$raw_body": text}, {"$raw_hex": hex}, {"$sequence": [step, …]},
{"$parallel": [n, input]}; {"$headers": …} is for HTTP only.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.shared_files import BAD_INPUTS

FOLDER = Path(__file__).parent
RUNS = FOLDER / "bad_inputs_runs.jsonl"
CONTINUITY = FOLDER / "bad_inputs_continuity.jsonl"
WORKSPACE = FOLDER / "bad_inputs_workspace.jsonl"
WRITING = FOLDER / "bad_inputs_writing.jsonl"
HTTP = FOLDER / "bad_inputs_http.jsonl"
AGENT = FOLDER / "bad_inputs_agent.jsonl"
RUNNER = FOLDER / "bad_inputs_runner.jsonl"
LABELS = {
    RUNS: "runs",
    CONTINUITY: "continuity",
    WORKSPACE: "workspace",
    WRITING: "writing",
    HTTP: "http",
    RUNNER: "runner",
    AGENT: "agent",
    BAD_INPUTS: "shared",
}


@dataclass(frozen=True)
class Row:
    """One bad input and the error code that the server must return."""

    surface: str
    call: str
    input: Any
    expect_code: str
    why: str
    source: str

    def __str__(self) -> str:
        return f"{self.source} {self.expect_code} {self.why[:60]}"

    @property
    def tool(self) -> str:
        """Return the tool's name without the remark in parentheses that some rows add."""
        return self.call.partition("(")[0]

    @property
    def is_remote(self) -> bool:
        """Return whether the row is about a caller of trust level remote."""
        return "trust level remote" in self.why


def rows(surface: str) -> list[Row]:
    """Return the project's rows for a surface, and the shared rows if that file is present."""
    files = [path for path in LABELS if path.exists()]
    return [row for path in files for row in _rows_of(path) if row.surface == surface]


def over_both_apis(rows: Sequence[Row], *, rest: int = 3, mcp: int = 1) -> list[Any]:
    """Return a case for each row over REST and over MCP, in samples: both have one input gate and
    one table of codes. 0: none over that API.
    """
    return [
        pytest.param(api, *case.values, id=f"{api}-{case.id}", marks=case.marks)
        for api, each in (("rest", rest), ("mcp", mcp))
        if each
        for case in in_samples(rows, each=each)
    ]


def in_samples(rows: Iterable[Row], *, each: int) -> list[Any]:
    """Return a case for each row; those after the first `each` of a tool's code are slow."""
    cases, seen = [], Counter[tuple[str, str]]()
    for row in rows:
        seen[row.tool, row.expect_code] += 1
        is_more = seen[row.tool, row.expect_code] > each
        cases.append(pytest.param(row, id=str(row), marks=[pytest.mark.slow] if is_more else []))
    return cases


def _rows_of(path: Path) -> Iterator[Row]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        source = f"{LABELS[path]}:{number}"
        yield Row(**json.loads(line), source=source)


def encode(value: Any) -> bytes:
    """Return the JSON text of an input with its directives expanded."""
    return _encode(value).encode()


def _encode(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ",".join(map(_encode, value)) + "]"
    if not isinstance(value, dict):
        return json.dumps(value)
    if len(value) == 1:
        ((name, argument),) = value.items()
        if name in _DIRECTIVES:
            return _DIRECTIVES[name](argument)
    return (
        "{" + ",".join(f"{json.dumps(name)}:{_encode(item)}" for name, item in value.items()) + "}"
    )


def _nested(argument: list[Any]) -> str:
    prefix, times = str(argument[0]), int(argument[1])
    prefix = '{"a":' if prefix == "{" else prefix
    suffix = {"[": "]", '{"a":': "}"}[prefix]
    inside = "" if prefix == "[" else "1"
    return prefix * times + inside + suffix * times


def _schema_over(size: int) -> str:
    return json.dumps({"type": "object", "description": "x" * size})


_DIRECTIVES: dict[str, Callable[[Any], str]] = {
    "$repeat": lambda argument: json.dumps(argument[0] * argument[1]),
    "$list": lambda argument: json.dumps([argument[0] % n for n in range(argument[1])]),
    "$nest": _nested,
    "$raw_number": str,
    "$raw_string": lambda text: f'"{text}"',
    "$manykeys": lambda n: json.dumps({f"k{number}": 0 for number in range(n)}),
    "$repeat_schema_bytes": _schema_over,
}


def raw_line(row_input: Mapping[str, Any]) -> bytes | None:
    """Return the raw bytes that a row sends instead of a well-formed call, or None."""
    if "$raw_body" in row_input:
        return str(row_input["$raw_body"]).encode()
    if "$raw_hex" in row_input:
        return bytes.fromhex(row_input["$raw_hex"])
    return None
