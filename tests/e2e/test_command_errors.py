"""Test that a command with wrong arguments prints one sentence and does nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from decisions.audit.record import command_actor
from tests.support.installation.temporary_home import TemporaryHome

MANAGE = Path(__file__).parents[2] / "manage.py"


def run(home: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return TemporaryHome(home).run(*args, **env)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("up", "--port", "65536"), "65536 is not a port; --port takes a number from 1 to 65535."),
        pytest.param(
            ("up", "--port", "-5"),
            "-5 is not a port; --port takes a number from 1 to 65535.",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("create_token", "x", "--scopes", ","), "--scopes names none", marks=pytest.mark.slow
        ),
        pytest.param(
            ("create_token", "x", "--scopes", ""), "--scopes names none", marks=pytest.mark.slow
        ),
        pytest.param(
            ("create_token", "x", "--scopes", "nope"),
            "Unknown scopes: nope.",
            marks=pytest.mark.slow,
        ),
        pytest.param(("create_token", ""), "A token needs a name", marks=pytest.mark.slow),
        pytest.param(
            ("create_token", "x", "--expires", "soon"),
            "'soon' is not a lifetime",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("mcp_config", "--http", "not-a-url"),
            "'not-a-url' is not the URL of a server",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("mcp_config", "--http", "http:///x"),
            "'http:///x' is not the URL of a server",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("mcp_config", "--sse"),
            "--sse is an option of --http: give --http too.",
            marks=pytest.mark.slow,
        ),
        pytest.param(("mcp_config", "--name", " "), "--name is empty", marks=pytest.mark.slow),
    ],
)
def test_wrong_arguments_print_one_sentence_and_no_traceback(
    tmp_path: Path, command: tuple[str, ...], message: str
) -> None:
    completed = run(tmp_path / "home", *command)
    assert completed.returncode == 1
    assert message in completed.stderr
    assert len(completed.stderr.strip().splitlines()) == 1
    assert not completed.stdout.startswith(("{", "cty_"))


@pytest.mark.parametrize(
    "command",
    [
        "create_token x",
        *(
            pytest.param(command, marks=pytest.mark.slow)
            for command in ("verify_audit", "export_audit", "recount_runs", "admin_link")
        ),
    ],
)
def test_a_database_without_the_tables_is_named_in_one_sentence(
    tmp_path: Path, command: str
) -> None:
    environment = {
        "DATABASE_URL": f"sqlite:///{tmp_path / 'empty.sqlite3'}",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "CONTINUITY_SECRET_KEYS": "k" * 40,
        "CONTINUITY_ONE_TIME_LOGIN": "1",
    }
    completed = run(tmp_path / "home", *command.split(), **environment)
    assert completed.returncode == 1
    assert "Run `manage.py migrate` once" in completed.stderr
    assert len(completed.stderr.strip().splitlines()) == 1


@pytest.fixture(scope="module")
def intact_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a home whose database has a token and audit rows."""
    home = tmp_path_factory.mktemp("intact") / "home"
    assert run(home, "create_token", "first").returncode == 0
    return home


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flip_bits(file: Path) -> None:
    """Invert the first bytes of each page but the first."""
    content = bytearray(file.read_bytes())
    for page in range(4096, len(content), 4096):
        content[page : page + 16] = bytes(byte ^ 0xFF for byte in content[page : page + 16])
    file.write_bytes(content)


def overwrite_header(file: Path) -> None:
    file.write_bytes(b"\0" * 100 + file.read_bytes()[100:])


@pytest.mark.parametrize(
    ("damage", "command"),
    [
        (flip_bits, "up --background"),
        (overwrite_header, "create_token x"),
        pytest.param(truncate, "verify_audit", marks=pytest.mark.slow),
        pytest.param(truncate, "up --background", marks=pytest.mark.slow),
        pytest.param(truncate, "create_token x", marks=pytest.mark.slow),
        pytest.param(flip_bits, "verify_audit", marks=pytest.mark.slow),
        pytest.param(flip_bits, "create_token x", marks=pytest.mark.slow),
        pytest.param(overwrite_header, "verify_audit", marks=pytest.mark.slow),
        pytest.param(overwrite_header, "up --background", marks=pytest.mark.slow),
    ],
)
def test_a_damaged_database_is_named_in_one_sentence_with_the_remedy(
    intact_home: Path, tmp_path: Path, damage: Callable[[Path], None], command: str
) -> None:
    home = tmp_path / "home"
    shutil.copytree(intact_home, home)
    damage(home / "continuity.sqlite3")
    completed = run(home, *command.split())
    assert completed.returncode == 1
    assert "is damaged: " in completed.stderr
    assert "`manage.py restore DIR --force`" in completed.stderr
    assert len(completed.stderr.strip().splitlines()) == 1
    assert "ree some space" not in completed.stderr


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(flip_bits, marks=pytest.mark.slow),
        truncate,
        pytest.param(overwrite_header, marks=pytest.mark.slow),
    ],
)
def test_doctor_reports_a_damaged_database_with_the_remedy(
    intact_home: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    home = tmp_path / "home"
    shutil.copytree(intact_home, home)
    damage(home / "continuity.sqlite3")
    completed = run(home, "doctor")
    assert completed.returncode == 1, completed.stdout
    assert "is damaged: " in completed.stdout
    assert "restore a backup: `manage.py restore DIR --force`" in completed.stdout
    assert "Traceback" not in completed.stderr
    assert "ree some space" not in completed.stdout


def test_a_locale_with_another_encoding_changes_no_text(tmp_path: Path) -> None:
    probe = "import sys; print(sys.getfilesystemencoding(), flush=True)"
    code = f"{probe}; import subprocess; subprocess.run([sys.executable, '-c', {probe!r}])"
    ascii_locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    completed = subprocess.run(
        [sys.executable, str(MANAGE), "shell", "--no-imports", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **ascii_locale, "CONTINUITY_HOME": str(tmp_path / "home")},
    )
    assert completed.stdout.split() == ["utf-8", "utf-8"]


def test_a_user_without_a_name_is_identified_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2_000_000_000)
    assert command_actor() == "command:2000000000"


def test_an_empty_home_setting_means_the_default_home_not_the_current_folder(
    tmp_path: Path,
) -> None:
    completed = subprocess.run(
        [sys.executable, str(MANAGE), "mcp_config"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "CONTINUITY_HOME": ""},
        timeout=120,
    )
    assert "env" not in json.loads(completed.stdout)["mcpServers"]["continuity"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["1", ""])
def test_a_closed_pipe_or_a_full_disk_prints_no_traceback(tmp_path: Path, unbuffered: str) -> None:
    command = [sys.executable, str(MANAGE), "status"]
    environment = {
        **os.environ,
        "CONTINUITY_HOME": str(tmp_path / "home"),
        "PYTHONUNBUFFERED": unbuffered,
    }
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as closed_pipe, Path("/dev/full").open("w") as full_device:
        for stdout, message in ((closed_pipe, ""), (full_device, "The disk is full")):
            completed = subprocess.run(
                command,
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                env=environment,
                timeout=120,
            )
            assert completed.returncode != 0
            assert completed.stderr.startswith(message)
            assert "Traceback" not in completed.stderr
            assert len(completed.stderr.splitlines()) == len(message.splitlines())
