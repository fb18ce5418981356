"""`manage.py confirm` at a terminal: it shows all pages and asks."""

from __future__ import annotations

import os
import pty
import sys
import threading
from collections.abc import Callable

import httpx
import pytest
from django.core.management import CommandError, call_command

from decisions.authorization.decision_pages import decision_page
from decisions.models import Confirmation, Decision
from tests.support.runners.runner_fixtures import MakeRunner

pytestmark = pytest.mark.usefixtures("open_loopback")
LONG = "".join(f"echo {number};" for number in range(3_000)) + " rm -f victim"


class Terminal:
    """A pseudo-terminal that is the standard input and output of the test's process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._own, other = pty.openpty()
        self._stdin, self._stdout = os.fdopen(other), os.fdopen(os.dup(other), "w")
        monkeypatch.setattr(sys, "stdin", self._stdin)
        monkeypatch.setattr(sys, "stdout", self._stdout)
        self._seen = bytearray()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def type(self, keys: str) -> None:
        os.write(self._own, keys.encode())

    def close(self) -> str:
        """Close it and return everything that it showed."""
        self._stdin.close()
        self._stdout.close()
        self._reader.join()
        os.close(self._own)
        return self._seen.decode().replace("\r\n", "\n")

    def _read(self) -> None:
        try:
            while data := os.read(self._own, 65_536):
                self._seen += data
        except OSError:  # the other end is closed
            return


@pytest.fixture
def ask(api: httpx.Client, make_runner: MakeRunner) -> Callable[[str], int]:
    """Make a call that waits for a person; return the id of its decision: `ask("true")`."""
    make_runner(is_default=True)

    def post(command: str) -> int:
        body = {"args": {"cmd": command}}
        answer = api.post("/api/v1/tools/bash.exec/call", json=body)
        number: int = answer.json()["details"]["decisionId"]
        return number

    return post


def decide(number: int, keys: str) -> tuple[str, str]:
    """Type keys into the command's terminal; return its output and the confirmation's status."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("runs.management.commands.confirm.prepare_home", lambda: None)
        terminal = Terminal(patched)
        terminal.type(keys)
        error = ""
        try:
            call_command("confirm", str(number))
        except CommandError as refusal:
            error = str(refusal)
        finally:
            patched.undo()
            seen = terminal.close()
    return seen + error, Confirmation.objects.get(decision_id=number).status


def test_all_pages_are_shown_before_the_question(ask: Callable[[str], int]) -> None:
    number = ask(LONG)
    count = decision_page(Decision.objects.get(pk=number)).count
    seen, status = decide(number, "\n" * (count - 1) + "y\n")
    pages = seen.split("Enter shows the next one.")
    assert len(pages) == count > 2
    assert "rm -f victim" in pages[-1].split("[y/N]")[0]
    assert "Confirm decision" not in "".join(pages[:-1])
    assert status == "confirmed"


@pytest.mark.parametrize(
    ("keys", "status"),
    [("y\n", "confirmed"), ("\ny\n", "refused"), ("\n\n", "waiting"), ("yes\nn\n", "waiting")],
)
def test_the_answer_decides(ask: Callable[[str], int], keys: str, status: str) -> None:
    seen, found = decide(ask("echo hello"), keys)
    assert "echo hello" in seen
    assert found == status


def test_the_end_of_the_input_decides_nothing(ask: Callable[[str], int]) -> None:
    seen, status = decide(ask("true"), "\x04")
    assert seen.endswith("Nothing was decided.")
    assert status == "waiting"
