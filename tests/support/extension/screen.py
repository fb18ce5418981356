"""A virtual screen with real mouse and keyboard input: Xvfb and xdotool."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.extension.devtools import DevTools
from tests.support.extension.extension_browser import find_full_chromium

SIZE = "1280x900x24"
ORIGIN = "[screenX, screenY + outerHeight - innerHeight]"
ARRIVAL = """globalThis.arrival = new Promise((resolve) => {
  addEventListener("mousemove", (event) => {
    if (Math.hypot(event.clientX - %f, event.clientY - %f) < 2) resolve();
  });
})"""


@dataclass(frozen=True, slots=True)
class Screen:
    """A screen; the input is that of a person: it comes from the X server."""

    display: str

    def do(self, *words: object) -> None:
        """Run a command of xdotool, such as `key a`."""
        command = ["xdotool", *(str(word) for word in words)]
        subprocess.run(command, env={"DISPLAY": self.display}, check=True, timeout=20)

    def move(self, page: DevTools, x: float, y: float) -> None:
        """Move the mouse to a point of the page's viewport, in two steps as a hand does."""
        left, top = page.evaluate(ORIGIN)
        page.evaluate(f"{ARRIVAL % (x, y)}; undefined")
        for back in (8, 0):
            self.do("mousemove", round(left + x - back), round(top + y))
        page.evaluate("globalThis.arrival")

    def click(self, page: DevTools, x: float, y: float) -> None:
        """Click at a point of the page's viewport."""
        self.move(page, x, y)
        self.do("click", 1)


def require_screen() -> None:
    """Skip the test if a program that it needs is not installed."""
    programs = {"Xvfb": shutil.which("Xvfb"), "xdotool": shutil.which("xdotool")}
    missing = [name for name, path in programs.items() if not path]
    if not find_full_chromium():
        missing.append("chromium")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


@contextlib.contextmanager
def virtual_screen() -> Iterator[Screen]:
    """Run an X server without a monitor, on a free display."""
    command = ["Xvfb", "-displayfd", "1", "-screen", "0", SIZE, "-nolisten", "tcp"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield Screen(f":{process.stdout.readline().strip()}")
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()
