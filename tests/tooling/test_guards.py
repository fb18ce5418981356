"""The guards fit the code and the tests as they are, so that `make guards` can run them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.guards.catalogue import PARTS, guards_by_part
from tests.selection import runs_on_sqlite

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
    of_module: dict[str, list[ast.expr]] = {}
    for guard in GUARDS:
        file, _, function = guard.failing_test.partition("[")[0].partition("::")
        if file not in functions:
            tree = ast.parse((ROOT / file).read_text())
            kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
            functions[file] = {node.name: node for node in tree.body if isinstance(node, kinds)}
            of_module[file] = [
                node.value
                for node in tree.body
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
            ]
        test = functions[file].get(function)
        assert test is not None, f"{guard.name}: there is no {function} in {file}"
        marks = " ".join(ast.unparse(mark) for mark in [*test.decorator_list, *of_module[file]])
        assert not {"mark.slow", "mark.soak"} & {*re.findall(r"mark\.\w+", marks)}, guard.name
        names_case = guard.failing_test.endswith("]")
        assert names_case or "mark.parametrize" not in marks, f"{guard.name}: name the case"
        if "sqlite" in guard.databases:
            assert runs_on_sqlite(ROOT / file), f"{guard.name}: add {file} to tests/selection.py"
