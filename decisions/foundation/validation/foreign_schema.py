"""JSON Schemas that callers and runners give: measured when they are accepted, applied at a bounded
cost.

A schema of 3 KB can expand to 2^40 subschemas: forty levels of two references each. So a schema is
refused that expands to too many. To how many a recursive one expands depends on the value: before a
schema is applied to a value, the checks that this can take are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema_rs import ValidationError

from decisions.foundation.validation.json_schema import compile_schema
from decisions.foundation.validation.schema_nodes import (
    Node,
    SchemaReader,
    SchemaTooCostly,
    size_of,
)

# The unit is a check of about 20 ns: the maximum is 100 ms, during which the validator lets no
# other thread run.
MAX_CHECKS = 5_000_000
MAX_STEPS = 200_000  # pairs of a subschema and a part of the value that are counted for that
MAX_VALUE_DEPTH = 64
_ERROR, _COPIED, _COMPARED = 1250, 25, 50  # checks that an error, a copy, a comparison cost
_CHARACTERS = 20  # that a check counts
_OPERAND = 10  # the size of a number that is compared: measuring it is a step

_Times = dict[Node, int]  # how often each node is applied to a value


class ForeignSchema:
    """A measured schema; applying it to a value takes at most about 100 ms.

    Attributes:
        schema: as it was given.
        patterns: all its patterns.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Measure and compile.

        Raises:
            SchemaTooCostly: It takes too long to apply (`SchemaReader.read`).
            ValueError: It is no JSON Schema, or has a reference that leads out of it.
        """
        reader = SchemaReader(schema)
        self._root = reader.read()
        self.schema = schema
        self.patterns = reader.patterns
        self._validator = compile_schema(dict(schema), mask="it")

    def errors(self, value: Any, *, at_most: int) -> list[ValidationError] | None:
        """Return the first errors of a value, [] if it fits. Of a large value it is one error, or
        None if even this one is too large.

        Raises:
            SchemaTooCostly: Applying the schema to this value takes too long.
        """
        cost = _Cost()
        cost.add(self._root, value)
        if self._validator.is_valid(value):
            return []
        if cost.of_all_errors <= MAX_CHECKS:
            return list(self._validator.iter_errors(value))[:at_most]
        if cost.of_one_error > MAX_CHECKS:
            return None
        try:
            self._validator.validate(value)
        except ValidationError as first:
            return [first]
        return []


@dataclass(slots=True)
class _Part:
    """A part of a value, and what is applied to it.

    Attributes:
        applied: how often each node is.
        copies: the errors of what contains it: each has a copy of it.
        compared: the comparisons of what contains it.
        alternatives: the errors of the outermost part around it that has alternatives, counted so
            far; None without one.
    """

    value: Any
    applied: _Times
    depth: int = 0
    copies: int = 0
    compared: int = 0
    alternatives: list[int] | None = None


class _Cost:
    """The checks that applying a schema to a value takes at most.

    Attributes:
        of_all_errors: the checks that listing all errors takes at most.
    """

    def __init__(self) -> None:
        self.of_all_errors = 0
        self._checks = 0
        self._steps = 0
        self._same: dict[Node, _Times] = {}
        self._alternatives: list[list[int]] = []

    @property
    def of_one_error(self) -> int:
        """The checks that finding the first error takes at most."""
        return max((one[0] for one in self._alternatives), default=0)

    def add(self, root: Node, value: Any) -> None:
        """Count a value and its parts.

        Raises:
            SchemaTooCostly: There are too many, or it nests too deeply.
        """
        todo = [_Part(value, {root: 1})]
        self._step(1)
        while todo:
            part = todo.pop()
            times = self._with_same(part.applied)
            self._count(part, times)
            self._step(len(times))
            if part.depth > MAX_VALUE_DEPTH:
                raise SchemaTooCostly(f"the value nests deeper than {MAX_VALUE_DEPTH} levels")
            if isinstance(part.value, list | dict):
                self._step(len(part.value))  # before as many objects are made
            for inner, applied in _parts(times, part.value):
                todo.append(
                    _Part(
                        inner,
                        applied,
                        part.depth + 1,
                        part.copies,
                        part.compared,
                        part.alternatives,
                    )
                )

    def _count(self, part: _Part, times: _Times) -> None:
        errors = shown = 0
        largest = max((size for node in times for size in node.operands), default=0)
        size = size_of(part.value, largest) if largest else 0
        self._step(size // _OPERAND)
        for node, count in times.items():
            errors += node.errors * count
            shown += node.shown * count
            self._checks += sum(min(size, one) for one in node.operands) * count
            self._checks += _checks(node, part.value) * count
            if node.compares:
                part.compared += count
            if node.has_alternatives and part.alternatives is None:
                part.alternatives = [0]
                self._alternatives.append(part.alternatives)
        part.copies += errors
        self._checks += part.compared * _COMPARED
        cost = errors * _ERROR + part.copies * _COPIED + shown
        self.of_all_errors += cost
        if part.alternatives is not None:
            part.alternatives[0] += cost

    def _with_same(self, applied: _Times) -> _Times:
        """Return how often each node is applied, with those that these apply to the same value."""
        total: _Times = {}
        for node, count in applied.items():
            for one, each in self._closure(node).items():
                total[one] = total.get(one, 0) + each * count
        return total

    def _closure(self, node: Node) -> _Times:
        if not node.same:
            return {node: 1}
        found = self._same.get(node)
        if found is None:
            found = self._same[node] = {node: 1}
            for part in node.same:
                below = self._closure(part)
                self._step(len(below))
                for one, count in below.items():
                    found[one] = found.get(one, 0) + count
        return found

    def _step(self, count: int) -> None:
        self._steps += count
        if self._checks > MAX_CHECKS or self._steps > MAX_STEPS:
            raise SchemaTooCostly("it takes too long to apply to a value of this size")


def _checks(node: Node, item: Any) -> int:
    if isinstance(item, str):
        return node.checks + len(item) * node.states + len(item) // _CHARACTERS
    if isinstance(item, dict):
        names = sum(map(len, item)) if node.name_states else 0
        return node.checks + len(item) + names * node.name_states
    return node.checks


def _parts(times: _Times, item: Any) -> Iterable[tuple[Any, _Times]]:
    """Return the parts of a value, each with the nodes that are applied to it."""
    if isinstance(item, list):
        each = _sum("items", times)
        return [(part, each) for part in item]
    if not isinstance(item, dict):
        return []
    values, names = _sum("values", times), _sum("names", times)
    parts = [(name, names) for name in item] if names else []
    for name, part in item.items():
        applied = dict(values)
        for node, count in times.items():
            for one in node.named.get(name, ()):
                applied[one] = applied.get(one, 0) + count
        parts.append((part, applied))
    return parts


def _sum(kind: str, times: _Times) -> _Times:
    total: _Times = {}
    for node, count in times.items():
        for one in getattr(node, kind):
            total[one] = total.get(one, 0) + count
    return total
