"""Check the syntax of a script: faults that make a statement mean something unintended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NoReturn

from runners.workspace.webgal.diagnostic import Diagnostic, DiagnosticText
from runners.workspace.webgal.parser import Statement

_JSON_CONTENT = frozenset({"setTransform", "setTempAnimation"})
_JSON_ARGUMENT = frozenset({"changeBg", "changeFigure"})
JSON_COMMANDS = _JSON_CONTENT | _JSON_ARGUMENT
# A variable, which the engine replaces by its value before it parses the JSON.
_VARIABLE = re.compile(r"\{(?:[^\W\d]|\$)[\w.$]*\}")


def check_end(statement: Statement, lines: Sequence[str]) -> Iterator[Diagnostic]:
    """Yield the diagnostic of a statement that does not end with `;` (S4 §8).

    A statement whose only `;` are escaped is accepted: the engine ends it with its line, and the
    author has shown that the `;` in it are text.

    Args:
        lines: of the script.
    """
    wide = lines[statement.last_line - 1].rstrip().endswith("；")
    is_escaped = any("\\;" in line for line in lines[statement.line - 1 : statement.last_line])
    if wide or not is_escaped:
        hint = DiagnosticText("wide_end" if wide else "add_end")
        yield Diagnostic(statement.last_line, "syntax", DiagnosticText("no_end"), hint)


def check_json(statement: Statement) -> Iterator[Diagnostic]:
    """Yield the diagnostics of a statement of JSON_COMMANDS whose JSON is invalid."""
    is_bare = statement.head is None  # then the content is the command's own name
    values = (
        [(statement.command, statement.content)]
        if statement.command in _JSON_CONTENT and not is_bare
        else []
    )
    values += [
        (f"-{name}", value)
        for name, value in statement.arguments
        if name == "transform" and isinstance(value, str) and statement.command in _JSON_ARGUMENT
    ]
    for where, value in values:
        at = _json_error_position(value)
        if at is not None:
            is_cut = any(name[:1].isdigit() or name[:1] == "." for name, _ in statement.arguments)
            message = DiagnosticText("json", {"where": where, "at": at})
            yield Diagnostic(
                statement.line,
                "syntax",
                message,
                DiagnosticText("minus" if is_cut else "check_json"),
            )


def _json_error_position(value: str) -> int | None:
    """Return the 1-based position of the first error in a JSON text; None if valid or empty."""
    if not value:
        return None
    try:
        _load(value)
    except json.JSONDecodeError as exc:
        return None if _is_json_with_variables(value) else exc.pos + 1
    except (ValueError, RecursionError):
        return 1
    return None


def _is_json_with_variables(value: str) -> bool:
    filled = _VARIABLE.sub("0", value)
    try:
        return filled != value and _load(filled) is not None
    except (ValueError, RecursionError):
        return False


def _load(value: str) -> object:
    return json.loads(value, parse_constant=_reject_constant, parse_int=float)


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")
