"""The logs of the parts: bounded, private, quoted in errors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runs.operations.supervision import logs


def test_a_log_that_is_too_large_is_rotated_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "ROTATE_BYTES", 3)
    for text in ("old\n", "new\n"):
        fd = logs.open_log(tmp_path / "web.log")
        os.write(fd, text.encode())
        os.close(fd)
    assert (tmp_path / "web.log.1").read_text() == "old\n"
    assert (tmp_path / "web.log").read_text() == "new\n"


def test_only_the_owner_can_read_a_log(tmp_path: Path) -> None:
    os.close(logs.open_log(tmp_path / "logs" / "web.log"))
    assert (tmp_path / "logs" / "web.log").stat().st_mode & 0o777 == 0o600


def test_the_end_of_a_log_is_bounded_and_invalid_bytes_are_tolerated(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    log.write_bytes(b"first\n" * 9000 + b"\xff" * 5000 + b"\nlast\n")
    lines = logs.last_lines(log)
    assert len(lines) == 12
    assert lines[-1] == "last"
    assert len(lines[-2]) == 300
    assert logs.last_lines(tmp_path / "absent.log") == []
