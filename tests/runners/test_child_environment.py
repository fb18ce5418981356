"""Test that child processes get a minimal environment: who starts one names what it gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.child_environment import INHERITED, child_environment
from runs.operations.supervision.watcher import MARK

ROOT = Path(__file__).parents[2]
PARTS = ("config", "mcp_server", "runs", "runners", "artifacts", "decisions")
STARTS = {"run", "Popen", "call", "check_call", "check_output"}
SECRETS = ("DATABASE_URL", "REDIS_URL", "CONTINUITY_SECRET_KEYS", "CONTINUITY_LLM_API_KEY")
# `manage.py up`, which needs what the command that starts it has.
INHERIT_ALL = {"runs/operations/home/start.py", "runs/operations/supervision/background.py"}
# Where all variables are read: to choose some of them, and for the services of the stack.
READ_ALL = {"runners/child_environment.py", "runs/operations/supervision/service_definitions.py"}
# Where `NAME_FILE` is read into NAME, in the variables of this process.
READ_SECRET_FILES = {"config/settings.py", "runners/docker_runner/command_line.py"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for part in PARTS:
        for path in sorted((ROOT / part).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def starts_process(node: ast.Call) -> bool:
    name = ast.unparse(node.func)
    module, _, function = name.rpartition(".")
    if module == "os":
        takes_environment = function in ("execve", "execvpe", "posix_spawn")
        starts = function.startswith(("exec", "spawn", "posix_spawn", "popen", "system"))
        return starts and not takes_environment
    return (module == "subprocess" and function in STARTS) or "create_subprocess" in function


def test_every_start_of_a_process_names_its_environment() -> None:
    found, unnamed = set(), set()
    for file, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and starts_process(node):
                found.add(file)
                if "env" not in {keyword.arg for keyword in node.keywords}:
                    unnamed.add(file)
    assert unnamed == INHERIT_ALL
    assert len(found) > 10


def test_all_variables_are_passed_on_to_the_services_of_the_stack_alone() -> None:
    reading = set()
    for file, tree in modules():
        in_lookups = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Subscript)
            or (isinstance(node, ast.Attribute) and node.attr in ("get", "setdefault", "pop"))
        }
        everything = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "os.environ"
        ]
        reading |= {file for node in everything if node not in in_lookups}
    assert reading == READ_ALL | READ_SECRET_FILES


def test_a_child_gets_the_listed_variables_and_those_that_its_start_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (*SECRETS, "PGPASSFILE", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "value")
    monkeypatch.setenv("LC_TIME", "C.UTF-8")
    assert not {*SECRETS, "PGPASSFILE", "HTTPS_PROXY"} & child_environment().keys()
    got = child_environment("PG*", "HTTPS_PROXY", HOME="/home/of/child")
    assert (got["PGPASSFILE"], got["HTTPS_PROXY"]) == ("value", "value")
    assert (got["LC_TIME"], got["HOME"]) == ("C.UTF-8", "/home/of/child")
    monkeypatch.delenv("PATH")
    assert child_environment()["PATH"]


def test_children_keep_the_mark_by_which_the_stack_ends_its_processes() -> None:
    assert MARK in INHERITED
