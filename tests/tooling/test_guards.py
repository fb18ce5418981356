"""The guards fit the code and the tests as they are, so that `make guards` can run them."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.guards.catalogue import PARTS, guards_by_part

ROOT = Path(__file__).parents[2]
GUARDS = [guard for guards in guards_by_part().values() for guard in guards]


def test_there_are_guards_for_each_part_and_each_has_its_own_name() -> None:
    assert all(len(guards_by_part()[part]) >= 30 for part in PARTS)
    names = Counter(guard.name for guard in GUARDS)
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("part", PARTS)
def test_each_patch_fits_its_file(part: str) -> None:
    for guard in guards_by_part()[part]:
        for patch in guard.patches:
            assert patch.patched(ROOT) != (ROOT / patch.file).read_text(), guard.name
        assert guard.patches or guard.databases, guard.name


def test_each_test_that_must_fail_is_in_make_test() -> None:
    functions: dict[str, dict[str, ast.FunctionDef | ast.AsyncFunctionDef]] = {}
    for guard in GUARDS:
        file, _, function = guard.red.partition("[")[0].partition("::")
        if file not in functions:
            tree = ast.parse((ROOT / file).read_text())
            kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
            functions[file] = {node.name: node for node in tree.body if isinstance(node, kinds)}
        test = functions[file].get(function)
        assert test is not None, f"{guard.name}: there is no {function} in {file}"
        marks = [ast.unparse(mark) for mark in test.decorator_list]
        assert not {"pytest.mark.slow", "pytest.mark.soak"} & {*marks}, guard.name
