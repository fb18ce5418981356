"""The subschemas of a JSON Schema, with each reference followed, and what each of them checks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import re2

MAX_NODES = 10_000  # subschemas, with each reference expanded; a recursive one counts once
MAX_DEPTH = 200  # subschemas in subschemas, with each reference followed
MAX_PATTERN_STATES = 10_000  # of all patterns; each takes about a microsecond to compile
# Checks of about 20 ns that comparing two containers takes, or two other values in them.
_CONTAINER, _SCALAR = 50, 10
_CHARACTERS = 20  # that a check compares

_SAME = ("not", "if", "then", "else")
_SAME_LISTS = ("allOf", "anyOf", "oneOf")
_SAME_MAPS = ("dependentSchemas", "dependencies")
_VALUES = ("additionalProperties", "unevaluatedProperties")
_ITEMS = ("items", "contains", "unevaluatedItems")
_DEFINITIONS = ("$defs", "definitions")  # read without being applied: their references are checked
_UNSUPPORTED = ("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef")
_UNICODE_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})")


class SchemaTooCostly(ValueError):
    """A schema takes too long to apply, at all or to this value."""


@dataclass(eq=False, slots=True)
class Node:
    """A subschema: what it checks itself, and which others apply to the same value or to its parts.

    Attributes:
        checks: what its own keywords cost, apart from patterns.
        errors: the most errors that its own keywords give.
        states: of its pattern, which is applied to a text.
        name_states: of the patterns that are applied to each name of an object.
        operands: the sizes (`size_of`) of what `const` and `enum` compare a value with, apart from
            short texts and numbers, which are checks.
        shown: the size of all of them, which an error has a copy of.
        compares: it compares the items of a list with one another.
        has_alternatives: it has anyOf or oneOf, whose error lists the errors of each alternative.
        same: the nodes for the same value, each as often as it is applied.
        named, values, names: those for an object's value of a name, for each value and each name.
        items: those for each item of a list.
    """

    checks: int = 1
    errors: int = 1
    states: int = 0
    name_states: int = 0
    operands: tuple[int, ...] = ()
    shown: int = 0
    compares: bool = False
    has_alternatives: bool = False
    same: list[Node] = field(default_factory=list)
    named: dict[str, list[Node]] = field(default_factory=dict)
    values: list[Node] = field(default_factory=list)
    names: list[Node] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)


class SchemaReader:
    """Reads a schema into nodes, each subschema once.

    Attributes:
        patterns: all the patterns of the schema.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes: dict[int, Node] = {}
        self._sizes: dict[int, int] = {}  # to how many nodes a subschema expands
        self._states = 0
        self.patterns: list[str] = []

    def read(self) -> Node:
        """Return the root.

        Raises:
            SchemaTooCostly: The schema expands to too many subschemas, nests too deeply, applies
                itself to the same value, or its patterns are too large.
            ValueError: A reference leads out of the schema or to nothing.
        """
        root = self._read(self._root, 0)
        if self._sizes[id(self._root)] > MAX_NODES:
            raise SchemaTooCostly(f"it expands to more than {MAX_NODES} subschemas")
        self._check_cycles()
        return root

    def _read(self, schema: Any, depth: int) -> Node:
        if not isinstance(schema, Mapping):
            return Node()
        key = id(schema)
        if key in self._nodes:
            return self._nodes[key]
        if depth > MAX_DEPTH:
            raise SchemaTooCostly(f"its parts and references nest deeper than {MAX_DEPTH} levels")
        node = self._nodes[key] = Node()
        self._sizes[key] = 0  # of a recursive reference, until it is known
        self._measure(node, schema, is_root=depth == 0)
        size = 1
        for nodes, part in _applied(node, schema, self._target):
            nodes.append(self._read(part, depth + 1))
            size += self._sizes.get(id(part), 1)
        for name in _DEFINITIONS:
            for part in _mapping(schema.get(name)).values():
                self._read(part, depth + 1)
        self._sizes[key] = min(size, MAX_NODES + 1)
        return node

    def _measure(self, node: Node, schema: Mapping[str, Any], *, is_root: bool) -> None:
        if ("$id" in schema and not is_root) or any(name in schema for name in _UNSUPPORTED):
            raise SchemaTooCostly("inside it, only references like #/$defs/name are supported")
        node.has_alternatives = "anyOf" in schema or "oneOf" in schema
        node.errors = node.checks = len(schema)
        for listed in _required(schema):
            node.errors += len(listed)
            node.checks += _names(listed)
        node.checks += _names(_mapping(schema.get("properties")))
        options = schema.get("enum")
        values = [*(options if isinstance(options, list) else ()), *_given(schema, ("const",))]
        sizes = [size_of(value) for value in values]
        node.checks, node.shown = node.checks + len(values), sum(sizes)
        node.operands = tuple(size for size in sizes if size > _SCALAR)
        node.compares = schema.get("uniqueItems") is True
        if isinstance(schema.get("pattern"), str):
            node.states = self._pattern(schema["pattern"])
        for pattern in _mapping(schema.get("patternProperties")):
            node.name_states += self._pattern(pattern)

    def _pattern(self, pattern: str) -> int:
        """Return the number of states of a pattern."""
        self.patterns.append(pattern)
        options = re2.Options()
        options.log_errors, options.never_capture = False, True
        try:
            compiled = re2.compile(_UNICODE_ESCAPE.sub(r"\\x{\1}", pattern), options)
        except (re2.error, UnicodeEncodeError):
            raise ValueError(f"RE2 does not support the pattern {pattern[:60]!r}") from None
        self._states += compiled.programsize
        if self._states > MAX_PATTERN_STATES:
            raise SchemaTooCostly(
                f"its patterns have more than {MAX_PATTERN_STATES} states; repeat less in them"
            )
        return int(compiled.programsize)

    def _target(self, reference: Any) -> Any:
        """Return the subschema to which a reference leads."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise ValueError(f"the reference {str(reference)[:100]} leads out of the schema")
        found: Any = self._root
        for part in unquote(reference[1:]).split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            elif isinstance(found, Mapping) and name in found:
                found = found[name]
            else:
                raise ValueError(f"the reference {reference[:100]} leads to nothing")
        if not isinstance(found, Mapping | bool) or reference[1:2] not in ("", "/"):
            raise ValueError(f"the reference {reference[:100]} leads to no schema")
        return found

    def _check_cycles(self) -> None:
        """Refuse a subschema that applies itself, or too long a chain, to the same value."""
        depths: dict[Node, int] = {}
        message = f"a reference leads only to itself, or to a chain of more than {MAX_DEPTH}"

        def depth_of(node: Node, above: int) -> int:
            if above > MAX_DEPTH or depths.get(node) == 0:
                raise SchemaTooCostly(message)
            if node not in depths:
                depths[node] = 0
                depths[node] = 1 + max((depth_of(one, above + 1) for one in node.same), default=0)
            if depths[node] > MAX_DEPTH:
                raise SchemaTooCostly(message)
            return depths[node]

        for node in self._nodes.values():
            depth_of(node, 0)


def size_of(value: Any, limit: float = math.inf) -> int:
    """Return how many checks comparing a JSON value with an equal one takes, up to a limit."""
    size, todo = 0, [value]
    while todo and size < limit:
        part = todo.pop()
        size += _CONTAINER if isinstance(part, Mapping | list) else _SCALAR
        if isinstance(part, Mapping):
            size += _names(part) * _SCALAR
            todo.extend(part.values())
        elif isinstance(part, list):
            todo.extend(part)
        elif isinstance(part, str):
            size += len(part) // _CHARACTERS
    return size


def _required(schema: Mapping[str, Any]) -> Iterator[list[str]]:
    for listed in (
        schema.get("required"),
        *_mapping(schema.get("dependentRequired")).values(),
        *_mapping(schema.get("dependencies")).values(),
    ):
        if isinstance(listed, list):
            yield listed


def _names(names: Iterable[Any]) -> int:
    """Return how many checks finding these names takes."""
    return sum(1 + len(str(name)) // _CHARACTERS for name in names)


def _applied(
    node: Node, schema: Mapping[str, Any], target: Any
) -> Iterator[tuple[list[Node], Any]]:
    """Yield the subschemas that a schema applies, each with the list of the node it belongs to."""
    if "$ref" in schema:
        yield node.same, target(schema["$ref"])
    # unevaluatedProperties and unevaluatedItems apply what applies to the same value once more.
    times = 2 if any(name.startswith("unevaluated") for name in schema) else 1
    for _ in range(times):
        for part in _on_same_value(schema):
            yield node.same, part
    for name, part in _mapping(schema.get("properties")).items():
        yield node.named.setdefault(name, []), part
    values = [*_mapping(schema.get("patternProperties")).values(), *_given(schema, _VALUES)]
    prefix = schema.get("prefixItems")
    items = [*(prefix if isinstance(prefix, list) else ()), *_given(schema, _ITEMS)]
    for nodes, parts in (
        (node.values, values),
        (node.items, items),
        (node.names, _given(schema, ("propertyNames",))),
    ):
        for part in parts:
            yield nodes, part


def _on_same_value(schema: Mapping[str, Any]) -> Iterator[Any]:
    yield from _given(schema, _SAME)
    for name in _SAME_LISTS:
        parts = schema.get(name)
        yield from parts if isinstance(parts, list) else ()
    for name in _SAME_MAPS:
        yield from _mapping(schema.get(name)).values()


def _given(schema: Mapping[str, Any], names: tuple[str, ...]) -> list[Any]:
    return [schema[name] for name in names if name in schema]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
