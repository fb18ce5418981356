"""Remove a protection from the text of a file: operators on its syntax tree.

    drop lock(...)           drop a statement, or an item of a call, `and`, list, dict or decorators
    drop epoch=...           a keyword argument
    drop 'epoch': ...        an entry of a dict
    drop .filter(...)        a call in a chain of methods
    drop if is_late: ...     a statement with its body; `unwrap with atomic(): ...` keeps the body
    is_late -> False         replace an expression, a keyword argument or statements (`a(); b()`)
    ' AND epoch = %s' ~> ''  replace a part of a string

`...` in a pattern stands for any expression; at the end of arguments, items or a body for the rest.
A pattern must match exactly once in the function, class or variable that the mutation names; if it
names none, in the module. Layout and comments never matter. In a file that is not Python, `drop`
and `->` match the text without regard to white space.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

_FORM = re.compile(r"(drop|unwrap) (.+)|(.+?) (->|~>)(?: (.*))?", re.DOTALL)
_UNSEEN = frozenset({"ctx", "kind", "type_comment"})
_ITEMS = frozenset({"args", "bases", "decorator_list", "elts", "handlers", "ifs", "items"}) | {
    "keywords",
    "values",
}
_NODES = frozenset({"expression", "keyword", "handler"})  # meanings that are one node
# What a pattern can mean: how it then begins, its frame, and where it is in that.
_FRAMES: dict[str, tuple[str, str, Callable[[list[Any]], Any]]] = {
    "statements": (r"", "{}", lambda body: body),
    "expression": (r"", "_({},)", lambda body: _only(body[0].value.args)),
    "keyword": (r"\*\*|\w+ ?=", "_({})", lambda body: _only(body[0].value.keywords)),
    "entry": (r"\*\*|.+:", "{{{}}}", lambda body: [*body[0].value.keys, *body[0].value.values]),
    "method": (r"\.", "_{}", lambda body: body[0].value),
    "handler": (r"except\b", "try: ...\n{}", lambda body: body[0].handlers[0]),
}
Change = Callable[[], object]  # changes the tree
_Match = TypeVar("_Match")


class StaleMutation(Exception):
    """A mutation does not fit the file: its pattern does not match exactly once."""


@dataclass(frozen=True)
class Mutation:
    """A change of a file (path from the repository's root) at a place in it ("": anywhere)."""

    file: str
    place: str
    text: str

    def __str__(self) -> str:
        """Return the mutation as a row has it."""
        return f"{self.file}{self.place and f' in {self.place}'}: {self.text}"

    def apply(self, root: Path) -> None:
        """Write the changed file below `root`; it must still compile.

        Raises:
            StaleMutation: The mutation does not fit the file.
        """
        path = root / self.file
        text = self.applied(path.read_text())
        if path.suffix == ".py":
            compile(text, self.file, "exec", dont_inherit=True)
        path.write_text(text)

    def check(self, root: Path, trees: dict[str, ast.Module]) -> None:
        """Find the match without making the change; keep the parsed file in `trees`.

        Raises:
            StaleMutation: The mutation does not fit the file.
        """
        if not self.file.endswith(".py"):
            self._in_plain_text((root / self.file).read_text())
            return
        if self.file not in trees:
            trees[self.file] = ast.parse((root / self.file).read_text())
        self._change_of(trees[self.file])

    def applied(self, text: str) -> str:
        """Return the text with the change."""
        if not self.file.endswith(".py"):
            return self._in_plain_text(text)
        tree = ast.parse(text)
        self._change_of(tree)()
        return ast.unparse(_Whole().visit(tree))

    def _change_of(self, tree: ast.Module) -> Change:
        """Return the change of a module's tree, which is not made yet."""
        word, old, new = self._parsed()
        places = _places(tree).get(self.place, []) if self.place else [tree]
        slots = [slot for place in places for slot in _slots(place)]
        return self._only([*_changes(slots, word, old, new)])

    def _parsed(self) -> tuple[str, str, str]:
        form = _FORM.fullmatch(self.text)
        if form is None:
            raise StaleMutation(f"{self}: this is no mutation")
        word, dropped, old, arrow, new = form.groups()
        return (word, dropped, "") if word else (arrow, old, new or "")

    def _only(self, found: list[_Match]) -> _Match:
        if len(found) != 1:
            raise StaleMutation(f"{self}: the pattern matches {len(found)} times")
        return found[0]

    def _in_plain_text(self, text: str) -> str:
        _, old, new = self._parsed()
        pattern = r"\s*".join(map(re.escape, re.findall(r"\w+|[^\w\s]", old)))
        self._only(re.findall(pattern, text))
        return re.sub(pattern, lambda _: new, text)


@dataclass(frozen=True)
class _Slot:
    """A node as a child of its parent, which can be replaced or removed there."""

    parent: ast.AST
    field: str
    index: int | None
    node: Any

    def put(self, new: Any) -> None:
        if self.index is None:
            setattr(self.parent, self.field, new)
        else:
            self.put_run(1, [new])

    def put_run(self, length: int, new: list[Any]) -> None:
        assert self.index is not None
        getattr(self.parent, self.field)[self.index : self.index + length] = new

    def run(self, length: int) -> list[Any]:
        """Return this node and the ones after it in its list."""
        if self.index is None:
            return []
        nodes: list[Any] = getattr(self.parent, self.field)
        return nodes[self.index : self.index + length]


def _slots(place: ast.AST) -> Iterator[_Slot]:
    for parent in ast.walk(place):
        for field, value in ast.iter_fields(parent):
            if isinstance(value, list):
                yield from (_Slot(parent, field, i, node) for i, node in enumerate(value))
            elif isinstance(value, ast.AST):
                yield _Slot(parent, field, None, value)


@lru_cache(maxsize=1)
def _places(tree: ast.Module) -> dict[str, list[ast.AST]]:
    """Return the functions, classes and variables of a module by their qualified names."""
    found: dict[str, list[ast.AST]] = {}
    queue: list[tuple[str, ast.AST]] = [("", tree)]
    for prefix, parent in queue:
        for node in ast.iter_child_nodes(parent):
            inner = prefix
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.setdefault(prefix + node.name, []).append(node)
                inner = f"{prefix}{node.name}."
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                found.setdefault(prefix + ast.unparse(target), []).append(node)
            elif not isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
                continue
            queue.append((inner, node))
    return found


def _changes(slots: list[_Slot], word: str, old: str, new: str) -> Iterator[Change]:
    """Yield the change at each match."""
    if word == "~>":
        yield from _changes_of_strings(slots, ast.literal_eval(old), ast.literal_eval(new))
    elif word == "->":
        yield from _replacements(slots, _meanings(old), _meanings(new))
    else:
        meanings = _meanings(old)
        for slot in slots:
            if word == "drop":
                yield from _removals(slot, meanings)
            elif _matches(meanings.get("statements"), slot.run(1)):
                yield partial(slot.put_run, 1, slot.node.body)


def _changes_of_strings(slots: list[_Slot], old: str, new: str) -> Iterator[Change]:
    pattern = r"\s+".join(map(re.escape, re.split(r"\s+", old)))
    for slot in slots:
        if isinstance(slot.node, ast.Constant) and isinstance(slot.node.value, str):
            for found in re.finditer(pattern, value := slot.node.value):
                text = value[: found.start()] + new + value[found.end() :]
                yield partial(slot.put, ast.Constant(text))


def _replacements(slots: list[_Slot], old: Any, new: Any) -> Iterator[Change]:
    for slot in slots:
        for meaning in _NODES:
            if {meaning} <= old.keys() & new.keys() and _matches(old[meaning], slot.node):
                yield partial(slot.put, new[meaning])
        if "expression" in old.keys() & new.keys() or "statements" not in old.keys() & new.keys():
            continue
        length = len(old["statements"])
        if _matches(old["statements"], slot.run(length)):
            yield partial(slot.put_run, length, new["statements"])


def _removals(slot: _Slot, old: dict[str, Any]) -> Iterator[Change]:
    length = len(old.get("statements", ()))
    if length and _matches(old["statements"], slot.run(length)):
        yield partial(slot.put_run, length, [])
    if slot.field in _ITEMS and not isinstance(slot.parent, ast.Dict | ast.JoinedStr):
        item = getattr(slot.node, "context_expr", slot.node)
        if any(_matches(old[meaning], item) for meaning in _NODES & old.keys()):
            yield partial(slot.put_run, 1, [])
    if isinstance(slot.node, ast.BinOp) and "expression" in old:
        yield from _removals_of_operands(slot, old["expression"])
    if isinstance(slot.node, ast.Dict) and "entry" in old:
        yield from _removals_of_entries(slot.node, old["entry"])
    if "method" in old and _is_method(old["method"], slot.node):
        yield partial(slot.put, slot.node.func.value)


def _removals_of_operands(slot: _Slot, operand: Any) -> Iterator[Change]:
    for side, other in ((slot.node.left, slot.node.right), (slot.node.right, slot.node.left)):
        if _matches(operand, side):
            yield partial(slot.put, other)


def _removals_of_entries(node: ast.Dict, entry: list[Any]) -> Iterator[Change]:
    for i, pair in enumerate(zip(node.keys, node.values, strict=True)):
        if _matches(entry, list(pair)):
            yield partial(_drop_entry, node, i)


def _drop_entry(node: ast.Dict, index: int) -> None:
    del node.keys[index], node.values[index]


def _is_method(pattern: Any, node: Any) -> bool:
    """Return whether the call of a method matches, whatever its object is."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return bool(pattern.func.attr == node.func.attr) and _call_matches(pattern, node)


def _meanings(text: str) -> dict[str, Any]:
    """Return what a pattern can mean."""
    found = {}
    for meaning, (hint, frame, part_of) in _FRAMES.items():
        if re.match(hint, text):
            with contextlib.suppress(SyntaxError, AttributeError, LookupError):
                found[meaning] = part_of(ast.parse(frame.format(text)).body)
    return found


def _only(nodes: list[Any]) -> Any:
    if len(nodes) != 1:
        raise LookupError
    return nodes[0]


def _matches(pattern: Any, node: Any) -> bool:
    if _is_rest(pattern) and not isinstance(pattern, ast.stmt):
        return isinstance(node, ast.expr)
    if isinstance(pattern, list):
        return isinstance(node, list) and _items_match(pattern, node)
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, ast.Call) and pattern.args and _is_rest(pattern.args[-1]):
        return _matches(pattern.func, node.func) and _call_matches(pattern, node)
    if isinstance(pattern, ast.AST):
        return all(
            _matches(value, getattr(node, field))
            for field, value in ast.iter_fields(pattern)
            if field not in _UNSEEN
        )
    return bool(pattern == node)


def _items_match(pattern: list[Any], nodes: list[Any]) -> bool:
    if pattern and _is_rest(pattern[-1]):
        pattern, nodes = pattern[:-1], nodes[: len(pattern) - 1]
    pairs = zip(pattern, nodes, strict=False)
    return len(pattern) == len(nodes) and all(_matches(one, other) for one, other in pairs)


def _call_matches(pattern: ast.Call, node: ast.Call) -> bool:
    """Return whether the arguments match; after `...` any further ones may follow."""
    if not (pattern.args and _is_rest(pattern.args[-1])):
        return _matches(pattern.args, node.args) and _matches(pattern.keywords, node.keywords)
    named = (any(_matches(one, other) for other in node.keywords) for one in pattern.keywords)
    return _matches(pattern.args, node.args) and all(named)


def _is_rest(node: Any) -> bool:
    """Return whether the node is `...`, as an expression or a statement."""
    if isinstance(node, ast.Expr):
        node = node.value
    return isinstance(node, ast.Constant) and node.value is ...


class _Whole(ast.NodeTransformer):
    """Fill what a removal emptied: a body without a statement, an `and` of one condition."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if getattr(node, "body", None) == []:
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
        if isinstance(node, ast.BoolOp) and len(node.values) == 1:
            return node.values[0]
        return node
