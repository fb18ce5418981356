"""The private Redis server: only its owner can reach it, and its failures do not prevent a
start."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.operations.home import redis_server
from runs.operations.home.errors import ServiceFailed


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    binary = redis_server.find_binary()
    assert binary is not None
    command = redis_server.command(binary, socket_path=tmp_path / "r.sock", folder=tmp_path)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 10
    while not redis_server.is_responding(tmp_path / "r.sock"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield process
    process.kill()
    process.wait()


@pytest.mark.usefixtures("server")
def test_only_the_owner_can_use_the_socket(tmp_path: Path) -> None:
    assert (tmp_path / "r.sock").stat().st_mode & 0o777 == 0o600
    reply = redis_server.send_command(tmp_path / "r.sock", b"CONFIG GET port")
    assert b"port\r\n$1\r\n0\r\n" in reply


def test_stored_data_survives_a_stop(tmp_path: Path, server: subprocess.Popen[bytes]) -> None:
    redis_server.send_command(tmp_path / "r.sock", b"SET a 1")
    server.terminate()
    server.wait()
    assert (tmp_path / "appendonlydir").is_dir()


def test_a_server_left_over_from_before_is_ended(
    tmp_path: Path, server: subprocess.Popen[bytes]
) -> None:
    redis_server.stop_leftover_server(tmp_path / "r.sock")
    assert server.wait(5) == 0
    assert not redis_server.is_responding(tmp_path / "r.sock")


def test_a_server_that_does_not_answer_is_not_ready(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent_socket:
        silent_socket.bind(str(tmp_path / "r.sock"))
        silent_socket.listen()
        assert not redis_server.is_responding(tmp_path / "r.sock")
    assert not redis_server.is_responding(tmp_path / "r.sock")  # no server behind the file
    assert not redis_server.is_responding(tmp_path / "absent.sock")


def test_data_that_cannot_be_loaded_is_set_aside_once(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").mkdir()
    moved = redis_server.move_unreadable_data(tmp_path)
    assert moved is not None
    assert moved.is_dir()
    assert redis_server.move_unreadable_data(tmp_path) is None


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ServiceFailed, match="not a folder that you own"):
        redis_server.create_private_folder(tmp_path / "link")


def test_a_folder_that_others_may_enter_is_made_private(tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir(mode=0o755)
    redis_server.create_private_folder(tmp_path / "redis")
    assert (tmp_path / "redis").stat().st_mode & 0o777 == 0o700


def test_the_wheels_server_is_used_where_none_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    binary = redis_server.find_binary()
    assert binary is not None
    assert binary.name == "valkey-server"
