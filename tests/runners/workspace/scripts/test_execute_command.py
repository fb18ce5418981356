"""The execute_command tool: which scripts may run, their input, and their output."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from runners.workspace.scripts.script_output import HEAD_BYTES, TAIL_BYTES
from tests.support.workspace.project import Project


def run(game: Project, name: str = "build", **args: Any) -> dict[str, Any]:
    """Run an allowed script and return the tool's output."""
    return game.output("execute_command", scriptName=name, **args)


def test_a_script_runs_in_the_project_root_and_its_output_is_returned(game: Project) -> None:
    game.scripts(build="pwd; echo to stderr >&2")
    result = run(game)
    assert result["ok"] is True
    assert result["logs"][1:] == [str(game.root), "to stderr"]


def test_a_failing_script_returns_its_exit_status(game: Project) -> None:
    game.scripts(lint="echo bad; exit 3")
    result = run(game, "lint")
    assert result["ok"] is False
    assert result["logs"][-2:] == ["bad", "> lint ended with exit status 3"]


def test_a_killed_script_returns_its_signal(game: Project) -> None:
    game.scripts(lint="kill -9 $$")
    assert run(game, "lint")["logs"][-1] == "> lint ended with signal 9"


def test_the_shell_does_not_interpret_arguments(game: Project) -> None:
    game.scripts(lint="printf '<%s>\\n'")
    arguments = [
        "$(id)",
        "`id`",
        "; id",
        "a  b",
        "'",
        '"',
        "$HOME",
        "-n",
        "*",
        "\n",
        "",
        "&& id",
        "寿",
    ]
    printed = "\n".join(run(game, "lint", args=arguments)["logs"][1:])
    assert printed == "\n".join(f"<{arg}>" for arg in arguments)


def test_only_the_main_script_receives_arguments_not_its_pre_and_post_scripts(
    game: Project,
) -> None:
    game.scripts(prelint="echo before", lint="echo main", postlint="echo after")
    printed = [line for line in run(game, "lint", args=["x"])["logs"] if line[0] != ">"]
    assert printed == ["before", "main x", "after"]


def test_nothing_runs_after_a_script_that_failed(game: Project) -> None:
    game.scripts(prebuild="false", build="echo never", postbuild="echo never")
    result = run(game)
    assert (result["ok"], "never" in result["logs"]) == (False, False)


def test_programs_in_node_modules_bin_are_found(game: Project) -> None:
    game.write("node_modules/.bin/webgal-lint", "#!/bin/sh\necho linted $1\n").chmod(0o755)
    game.scripts(lint="webgal-lint")
    assert run(game, "lint", args=["game"])["logs"][-1] == "linted game"


def test_npm_environment_variables_are_set(game: Project) -> None:
    game.scripts(build="echo $npm_lifecycle_event $npm_package_name $npm_package_version")
    assert run(game)["logs"][-1] == "build game 1.2.3"


def test_a_script_does_not_inherit_the_workers_secrets(
    game: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CONTINUITY_SECRET_KEYS", "DATABASE_URL", "NPM_TOKEN", "HTTPS_PROXY", "BASH_ENV"):
        monkeypatch.setenv(name, "hidden-value")
    monkeypatch.setenv("LC_TIME", "C.UTF-8")
    game.scripts(dev="env; cat /proc/self/environ")
    printed = "\n".join(run(game, "dev")["logs"])
    assert "hidden-value" not in printed
    assert "CONTINUITY" not in printed
    assert "LC_TIME=C.UTF-8" in printed
    assert f"HOME={os.environ['HOME']}" in printed


def test_secrets_of_the_run_are_masked_in_the_output(game: Project) -> None:
    game.secrets = ("hunter2",)
    game.scripts(build="printf token=%s")
    assert run(game, args=["hunter2"])["logs"] == ["> build: printf token=%s", "token=***"]


@pytest.mark.parametrize("name", ["rm", "test", "", "build; id", "../build", "prebuild", "install"])
def test_scripts_that_the_policy_does_not_allow_are_refused(game: Project, name: str) -> None:
    game.scripts(**{"build": "echo", name: "touch done"})
    assert game.code("execute_command", scriptName=name) == "E_POLICY_VIOLATION"
    assert not (game.root / "done").exists()


def test_a_script_needs_both_the_policy_and_package_json(game: Project) -> None:
    game.policy = {"allowed_commands": ("lint",)}
    game.scripts(build="touch done")
    for name in ("build", "lint"):
        assert game.code("execute_command", scriptName=name) == "E_POLICY_VIOLATION"
    assert not (game.root / "done").exists()


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"scripts": []}',
        b'{"scripts": {"build": 1}}',
        b'{"scripts": {"build": " "}}',
        b'{"scripts": {"build": "a\\u0000b"}}',
        b"[" * 100_000,
        b'{"scripts": {"build": "\\ud800"}}',
        b'{"scripts": null}',
        b'{"scripts": {"Build": "id"}}',
    ],
)
def test_a_script_missing_from_package_json_is_refused(
    game: Project, content: bytes | None
) -> None:
    if content is not None:
        game.write("package.json", content)
    error = game.error("execute_command", scriptName="build")
    assert error["errorCode"] == "E_POLICY_VIOLATION"
    assert str(game.root) not in error["message"]


def test_a_package_json_that_is_a_symlink_is_not_read(game: Project, tmp_path: Path) -> None:
    game.scripts(build="echo elsewhere")
    (game.root / "package.json").rename(tmp_path / "outside.json")
    (game.root / "package.json").symlink_to(tmp_path / "outside.json")
    assert game.code("execute_command", scriptName="build") == "E_DENY_PATH"


def test_execute_command_requires_developer_mode(game: Project) -> None:
    game.scripts(build="touch done")
    game.policy = {"developer": False}
    error = game.error("execute_command", scriptName="build")
    assert error["errorCode"] == "E_TOOL_DISABLED"
    assert not (game.root / "done").exists()


@pytest.mark.parametrize(
    "args",
    [["a\0b"], ["\ud800"], ["x"] * 101, ["y" * 70_000]],
    ids=["a NUL", "no text", "too many", "too long"],
)
def test_arguments_that_no_process_can_receive_are_refused(game: Project, args: list[str]) -> None:
    game.scripts(build="touch done")
    assert game.code("execute_command", scriptName="build", args=args) == "E_BAD_ARGS"
    assert not (game.root / "done").exists()


def test_a_script_gets_an_empty_standard_input(game: Project) -> None:
    game.scripts(build="cat; echo end")
    assert run(game)["logs"][-1] == "end"


def test_long_output_is_cut_in_the_middle_with_a_note(game: Project) -> None:
    game.scripts(build="echo first; yes $(printf %099d 0) | head -n 50000; echo last")
    logs = run(game)["logs"]
    assert (logs[1], logs[-1]) == ("first", "last")
    assert sum(len(line) + 1 for line in logs) < HEAD_BYTES + TAIL_BYTES + 70_000
    note = next(line for line in logs if "left out" in line)
    lines, size = int(note.split()[1]), int(note.split()[3])
    assert lines + len(logs) - 4 == pytest.approx(50_000, abs=2)  # a line may be cut in two
    assert size > 4_500_000


def test_many_short_lines_and_one_long_line_are_cut_too(game: Project) -> None:
    game.scripts(build="yes '' | head -n 100000; head -c 50000 /dev/zero | tr '\\0' y; echo")
    logs = run(game)["logs"]
    assert len(logs) < 4100
    assert logs[-1].startswith("y" * 2000)
    assert len(logs[-1]) < 2100
    assert any("bytes left out" in line for line in logs)


def test_output_that_is_not_plain_text_is_cleaned(game: Project) -> None:
    game.write("out.bin", b"\x1b[31mred\x1b[0m \xff\x00end\n10%\r50%\rdone\r\n\x1b]0;title\x07t\n")
    game.scripts(build="cat out.bin")
    assert run(game)["logs"][1:] == ["red \ufffdend", "done", "t"]


@pytest.mark.slow
def test_the_deadline_of_the_call_ends_a_script_before_the_policy_timeout(game: Project) -> None:
    game.policy = {"command_timeout_ms": 600_000}
    game.scripts(build="echo so far; sleep 600")
    started = time.monotonic()
    error = game.error("execute_command", scriptName="build", seconds=8.0)
    assert error["errorCode"] == "E_TIMEOUT"
    assert error["details"]["logs"][-1] == "so far"
    assert time.monotonic() - started < 120


def test_a_missing_project_folder_is_reported_as_not_found(game: Project) -> None:
    game.root.rmdir()
    assert game.code("execute_command", scriptName="build") == "E_NOT_FOUND"


def test_scripts_with_unprintable_names_are_not_listed(game: Project) -> None:
    long = {f"{number}{'n' * 1000}": "true" for number in range(100)}
    game.scripts(**{"ok": "true", "\ud800": "true", "a\0b": "true", **long})
    result = game.error("execute_command", scriptName="build")["details"]["scripts"]
    assert (len(result), max(map(len, result))) == (50, 64)
    game.scripts(**{"ok": "true", "\ud800": "true", "a\0b": "true"})
    assert game.error("execute_command", scriptName="build")["details"]["scripts"] == ["ok"]
