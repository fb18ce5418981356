"""Test the reference runner's file and command tools, and how they fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.runners.docker_runner_process import (
    RunnerProcess,
    execute_body,
    start_docker_runner,
)

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunnerProcess]:
    """Start one runner without isolation for all tests of this file."""
    base = tmp_path_factory.mktemp("hands")
    (base / "secret").write_text("the secret")
    (base / "root").mkdir()
    with start_docker_runner(base / "root", "--isolation", "process") as runner:
        yield runner


@pytest.mark.parametrize(
    "command", ["head -c 3000000 /dev/zero | tr '\\0' a", "head -c 3000000 /dev/urandom"]
)
def test_output_is_truncated_at_a_mebibyte_and_marked(runner: RunnerProcess, command: str) -> None:
    result = runner.call("bash.exec", cmd=f"{command}; exit 5")
    output = result["output"]
    assert (output["exitCode"], output["truncated"]) == (5, True)
    assert 0.9 * MIB < len(json.dumps(output["stdout"], ensure_ascii=False).encode()) <= MIB + 2


def test_the_updates_mark_truncated_output_once(runner: RunnerProcess) -> None:
    command = "head -c 2000000 /dev/zero | tr '\\0' '\\1'; echo; echo more"
    body = json.dumps(execute_body("bash.exec", {"cmd": command})).encode()
    connection, response = runner.open("POST", "/execute", body, content_type="application/json")
    raw = response.read()
    connection.close()
    output = "".join(update["delta"] for update in json.loads(raw)["updates"])
    assert output.count("[output cut here") == 1
    assert "more" not in output
    assert len(raw) < 3 * MIB


def test_bytes_that_are_not_text_are_replaced_instead_of_refused(runner: RunnerProcess) -> None:
    output = runner.output("bash.exec", cmd=r"printf 'a\0b\377c\303'; sleep 0.2; printf '\251'")
    assert output["stdout"] == "a\0b\ufffdc\u00e9"


def test_a_file_is_written_appended_to_and_read(runner: RunnerProcess) -> None:
    assert runner.output("file.write", path="a/b.txt", content="é\n") == {
        "path": "a/b.txt",
        "bytesWritten": 3,
        "sizeBytes": 3,
    }
    assert runner.output("file.write", path="a/b.txt", content="!", append=True)["sizeBytes"] == 4
    assert runner.output("file.read", path="a/b.txt")["content"] == "é\n!"
    assert (runner.root / "a" / "b.txt").read_text() == "é\n!"


def test_concurrent_appends_lose_nothing(runner: RunnerProcess) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda n: runner.output("file.write", path="log", content=f"{n}\n", append=True),
                range(40),
            )
        )
    lines = (runner.root / "log").read_text().split()
    assert sorted(lines, key=int) == [str(n) for n in range(40)]


def test_a_folder_is_listed_up_to_the_limit(runner: RunnerProcess) -> None:
    for name in ("one", "two", "three"):
        runner.output("file.write", path=f"many/{name}/file", content="x")
    output = runner.output("file.list", path="many")
    assert [entry["path"] for entry in output["entries"]] == ["many/one", "many/three", "many/two"]
    assert (output["total"], output["truncated"]) == (3, False)
    output = runner.output("file.list", path="many", recursive=True, limit=2)
    assert output["entries"] == [
        {"path": "many/one", "type": "folder"},
        {"path": "many/one/file", "type": "file"},
    ]
    assert (output["total"], output["truncated"]) == (6, True)


def test_a_file_name_that_is_not_text_is_omitted(runner: RunnerProcess) -> None:
    runner.output("bash.exec", cmd=r"mkdir -p odd; touch odd/good odd/$'bad\xff'")
    output = runner.output("file.list", path="odd")
    assert output["entries"] == [{"path": "odd/good", "type": "file"}]
    assert (output["total"], output["truncated"]) == (1, False)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../secret", "E_DENY_PATH"),
        ("/etc/passwd", "E_DENY_PATH"),
        ("link", "E_DENY_PATH"),
        ("link-folder/secret", "E_DENY_PATH"),
        (".git/config", "E_DENY_PATH"),
        (".env", "E_DENY_PATH"),
        ("pipe", "E_DENY_PATH"),
        ("none", "E_NOT_FOUND"),
        (".", "E_BAD_ARGS"),
        ("", "E_BAD_ARGS"),
        ("binary", "E_ENCODING"),
        ("large", "E_TOO_LARGE"),
    ],
)
def test_a_path_that_is_not_a_readable_file_of_the_folder_is_refused(
    runner: RunnerProcess, path: str, code: str
) -> None:
    runner.output(
        "bash.exec",
        cmd="ln -sfn ../secret link; ln -sfn .. link-folder; [ -e pipe ] || mkfifo pipe;"
        " printf '\\377' > binary; head -c 1048577 /dev/zero | tr '\\0' a > large",
    )
    error = runner.error("file.read", path=path)
    assert error["code"] == code
    assert str(runner.root) not in str(error)


def test_a_write_through_a_link_or_outside_the_folder_is_refused(runner: RunnerProcess) -> None:
    runner.output("bash.exec", cmd="ln -sfn ../secret link; ln -sfn .. link-folder")
    for path in ("link", "link-folder/new", "../new", ".git/hooks/post-checkout"):
        assert runner.error("file.write", path=path, content="x")["code"] == "E_DENY_PATH"
    assert (runner.root.parent / "secret").read_text() == "the secret"
    assert not (runner.root.parent / "new").exists()


@pytest.mark.parametrize("path", ["twice", "continuity.workspace.json"])
def test_hard_links_and_policy_files_are_not_written(runner: RunnerProcess, path: str) -> None:
    runner.output(
        "bash.exec", cmd="echo old > once; ln -f once twice; echo '{}' > continuity.workspace.json"
    )
    before = (runner.root / path).read_text()
    assert runner.error("file.write", path=path, content="x")["code"] == "E_DENY_PATH"
    assert (runner.root / path).read_text() == before


@pytest.mark.parametrize(
    ("cwd", "code"),
    [
        ("..", "E_DENY_PATH"),
        ("link-folder", "E_DENY_PATH"),
        ("none", "E_NOT_FOUND"),
        ("log-file", "E_BAD_ARGS"),
    ],
)
def test_a_command_runs_only_in_a_folder_below_the_root(
    runner: RunnerProcess, cwd: str, code: str
) -> None:
    runner.output("bash.exec", cmd="ln -sfn .. link-folder; echo > log-file")
    assert runner.error("bash.exec", cmd="echo > ran", cwd=cwd)["code"] == code
    assert not (runner.root / "ran").exists()
