"""What makes a statement mean something else than its author thought."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NoReturn

from runners.workspace.webgal.diagnostic import Diagnostic, DiagnosticText
from runners.workspace.webgal.grammar import Statement, dropped_line, split_lines

_JSON_CONTENT = frozenset({"setTransform", "setTempAnimation"})
_JSON_ARGUMENT = frozenset({"changeBg", "changeFigure"})
# A variable, which the engine puts in before it reads the JSON.
_VARIABLE = re.compile(r"\{(?:[^\W\d]|\$)[\w.$]*\}")


def check_syntax(text: str, statements: Sequence[Statement]) -> Iterator[Diagnostic]:
    """Yield statements without `;` (S4 §8), broken JSON, and what the engine drops."""
    lines = split_lines(text)
    for one in statements:
        if not one.is_ended:
            wide = lines[one.last_line - 1].rstrip().endswith("；")
            hint = DiagnosticText("wide_end" if wide else "add_end")
            yield Diagnostic(one.last_line, "syntax", DiagnosticText("no_end"), hint)
        if one.command in _JSON_CONTENT or one.command in _JSON_ARGUMENT:
            yield from _check_json(one)
    lost = dropped_line(text)
    if lost is not None:
        yield Diagnostic(lost, "syntax", DiagnosticText("lost"), DiagnosticText("no_backslash"))


def _check_json(one: Statement) -> Iterator[Diagnostic]:
    is_bare = one.head is None  # then the content is the command's own name
    named = [(one.command, one.content)] if one.command in _JSON_CONTENT and not is_bare else []
    named += [
        (f"-{name}", value)
        for name, value in one.arguments
        if name == "transform" and isinstance(value, str) and one.command in _JSON_ARGUMENT
    ]
    for where, value in named:
        at = _fault_of(value)
        if at is not None:
            is_cut = any(name[:1].isdigit() or name[:1] == "." for name, _ in one.arguments)
            told = DiagnosticText("json", {"where": where, "at": at})
            yield Diagnostic(
                one.line, "syntax", told, DiagnosticText("minus" if is_cut else "mend_json")
            )


def _fault_of(value: str) -> int | None:
    """Return where a text stops to be JSON, from 1; None where it is JSON, or nothing."""
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
    return json.loads(value, parse_constant=_refuse, parse_int=float)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
