"""A real Chromium, not the headless shell, with the extension loaded."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runners.browser.pool.chromium import wants_sandbox
from tests.support.extension.devtools import DevTools, targets

ROOT = Path(__file__).parents[3]
EXTENSION = ROOT / "runners" / "paired_browser" / "extension"
EXTENSION_ID = "lllnilefilhffgilgeigmjgmhaeckfbl"
START_SECONDS = 30.0
WINDOW = "1280,800"
NAMES = ("chromium", "chromium-browser", "google-chrome-for-testing")


def find_full_chromium() -> str | None:
    """Return the path of a Chromium that loads extensions, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class ExtensionBrowser:
    """A running Chromium; without a display it runs in the new headless mode."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, profile: Path) -> None:
        self.process, self.port, self.profile = process, port, profile

    def worker(self) -> DevTools:
        """Return a connection to the extension's service worker, once it runs."""
        until = time.monotonic() + START_SECONDS
        while True:
            worker = DevTools(self._target("service_worker", f"chrome-extension://{EXTENSION_ID}/"))
            if worker.evaluate("Boolean(globalThis.chrome?.storage)") or time.monotonic() > until:
                return worker
            worker.close()
            time.sleep(0.05)

    def page(self, url: str) -> DevTools:
        """Return a connection to the page whose address begins with this one."""
        return DevTools(self._target("page", url))

    def stop_worker(self) -> None:
        """Stop the service worker, as Chrome does with one that is idle."""
        address = self._target("service_worker", f"chrome-extension://{EXTENSION_ID}/")
        browser = DevTools(self.address)
        browser.send("Target.closeTarget", targetId=address.rpartition("/")[2])
        browser.close()

    def open_tab(self, url: str) -> None:
        """Open a tab as the person does."""
        browser = DevTools(self.address)
        browser.send("Target.createTarget", url=url)
        browser.close()

    @property
    def address(self) -> str:
        """The address of the browser's own DevTools target."""
        port, path = (self.profile / "DevToolsActivePort").read_text().split("\n")[:2]
        return f"ws://127.0.0.1:{port}{path}"

    def urls(self, kind: str = "page") -> list[str]:
        """Return the addresses of all targets of a kind."""
        return [target["url"] for target in targets(self.port) if target["type"] == kind]

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the service worker."""
        worker = self.worker()
        try:
            return worker.evaluate(expression)
        finally:
            worker.close()

    def _target(self, kind: str, url: str) -> str:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            for target in targets(self.port):
                if target["type"] == kind and target["url"].startswith(url):
                    return str(target["webSocketDebuggerUrl"])
            time.sleep(0.05)
        raise AssertionError(f"no {kind} {url} in {targets(self.port)}")


@contextlib.contextmanager
def extension_browser(
    profile: Path, *arguments: str, extension: Path = EXTENSION, display: str = ""
) -> Iterator[ExtensionBrowser]:
    """Run a Chromium with a new profile and the extension."""
    chromium = find_full_chromium()
    assert chromium is not None
    command = [
        chromium,
        f"--user-data-dir={profile}",
        f"--load-extension={extension}",
        f"--disable-extensions-except={extension}",
        "--remote-debugging-port=0",
        "--remote-allow-origins=*",
        "--no-first-run",
        "--no-default-browser-check",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--window-size={WINDOW}",
        *([] if display else ["--headless=new"]),
        *([] if wants_sandbox() else ["--no-sandbox"]),
        *arguments,
        "about:blank",
    ]
    environment = {**os.environ, **({"DISPLAY": display} if display else {})}
    log = (profile.parent / f"{profile.name}.log").open("wb")
    process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        yield ExtensionBrowser(process, _port_of(profile), profile)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        log.close()


def _port_of(profile: Path) -> int:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(OSError, ValueError):
            return int((profile / "DevToolsActivePort").read_text().split("\n")[0])
        time.sleep(0.05)
    raise AssertionError("Chromium did not start.")
