"""The commands that docs/operations.md gives for a fleet of compose, run as they stand there."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.docs.samples import samples, shell_lines

DOCUMENT = "docs/operations.md"


def block_with(text: str) -> str:
    """Return the only shell block that has the text."""
    (found,) = [one.text for one in samples("sh", DOCUMENT) if text in one.text]
    return found


@dataclass(frozen=True)
class Shell:
    """A shell in the folder of compose.yaml."""

    folder: Path
    env: Mapping[str, str]

    def run(self, script: str) -> str:
        """Run a script; return its output.

        Raises:
            RuntimeError: A command failed.
        """
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{script.strip()[-200:]}: {done.stdout.strip()[-1500:]}")
        return done.stdout

    def run_on_terminal(self, script: str, answers: list[str]) -> None:
        """Run a script on a terminal of its own; answer each prompt that ends with a colon."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe("bash", ["bash", "-e", "-c", script], dict(self.env))  # noqa: S606
        printed, unanswered = "", list(answers)
        while True:
            try:
                printed += os.read(terminal, 4096).decode(errors="replace")
            except OSError:  # the program has closed the terminal
                break
            if unanswered and re.search(r": ?$", printed.splitlines()[-1] if printed else ""):
                os.write(terminal, unanswered.pop(0).encode() + b"\n")
                printed += "\n"
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        if status:
            raise RuntimeError(f"{script.strip()[-200:]}: {printed[-800:]}")


def lines_of(block: str) -> list[str]:
    """Return the commands of a block."""
    return list(shell_lines(block))
