"""`manage.py doctor`: check every part of this installation, and print how to fix problems."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand
from playwright._impl._driver import compute_driver_executable
from playwright.async_api import Browser, Error, Playwright

from runners.browser.pool.chromium import (
    Chromium,
    ChromiumMissing,
    find_chromium,
    launch_args,
    wants_sandbox,
)
from runners.browser.pool.driver import browser_environment, start_driver
from runs.operations.health.checks import Finding, bad, note, ok, run_checks
from runs.operations.home.errors import PoolingNotSet, StackError
from runs.operations.home.prepare import prepare_home

PAGE = "<p id=p>0</p><script>p.textContent = [6, 7].reduce((a, b) => a * b)</script>"
PROOF_TIMEOUT_S = 60
COLOURS = {"ok": "32", "note": "33", "bad": "31"}


class Command(BaseCommand):
    """Checks everything that a run needs."""

    help = "Check every part of this installation. Exit 1 if something that runs need is broken."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a line per check, and below each that is not ok what to do."""
        verdicts: Counter[str] = Counter()
        for name, found in _all_checks():
            verdicts[found.verdict] += 1
            self._show(name, found)
        if verdicts["bad"]:
            self.stdout.write(f"{verdicts['bad']} of {verdicts.total()} checks failed.")
            sys.exit(1)
        self.stdout.write("Everything that a run needs is available.")

    def _show(self, name: str, found: Finding) -> None:
        verdict = f"{found.verdict:<4}"
        if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
            verdict = f"\x1b[{COLOURS[found.verdict]}m{verdict}\x1b[0m"
        self.stdout.write(f"  {verdict}  {name:<10} {found.what}")
        if found.recovery:
            self.stdout.write(f"        {'':<10} → {found.recovery}")
        self.stdout.flush()


def _all_checks() -> Iterator[tuple[str, Finding]]:
    try:
        prepare_home()
    except PoolingNotSet:
        pass  # a check reports it
    except StackError as problem:
        yield "home", bad(str(problem))
    yield from run_checks()
    yield "chromium", check_chromium()


def check_chromium() -> Finding:
    """Start the browser and check that it renders a page and runs its script."""
    try:
        found = find_chromium()
    except ChromiumMissing as missing:
        return bad(*_split_message(str(missing)))
    driver = subprocess.run(
        [compute_driver_executable()[0], "--version"],
        env=browser_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if driver.returncode != 0:
        what = f"Playwright's driver does not run: {driver.stderr.strip()[-200:]}"
        recovery = "Install the missing library (Debian: `apt-get install libatomic1`)."
        return bad(what, recovery)
    began = time.monotonic()
    try:
        version, has_sandbox = asyncio.run(asyncio.wait_for(_render(found), PROOF_TIMEOUT_S))
    except (Error, OSError, TimeoutError, ValueError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        recovery = "Run it by hand to see why, or set CONTINUITY_CHROMIUM to another."
        return bad(f"{found.path} does not render a page: {reason[0]}", recovery)
    took = time.monotonic() - began
    what = f"{version}, {found.path}, rendered a page in {took:.1f} s"
    if has_sandbox:
        return ok(what)
    return note(f"{what}, without its sandbox", _sandbox_recovery())


def _sandbox_recovery() -> str:
    if wants_sandbox():
        return "Allow user namespaces (docs/operations.md, The browser's sandbox)."
    return "Chromium's sandbox does not work for root: run Continuity as another user."


async def _render(found: Chromium) -> tuple[str, bool]:
    """Return the browser's version, and whether its sandbox is on, after it has rendered the result
    of a page's script.

    Raises:
        ValueError: The page or its screenshot is wrong.
    """
    with tempfile.TemporaryDirectory(prefix="cty-", ignore_cleanup_errors=True) as folder:
        driver = await start_driver(Path(folder))
        try:
            browser, has_sandbox = await _launch(driver, found, folder)
            page = await browser.new_page()
            await page.set_content(PAGE)
            text, picture = await page.inner_text("#p"), await page.screenshot()
            version = browser.version
            await browser.close()
        finally:
            await driver.stop()
    if text != "42" or not picture.startswith(b"\x89PNG"):
        raise ValueError(f"the page shows {text!r}")
    return version, has_sandbox


async def _launch(driver: Playwright, found: Chromium, folder: str) -> tuple[Browser, bool]:
    """Start the browser as workers do: with its sandbox if that is possible."""
    start = partial(
        driver.chromium.launch,
        executable_path=found.path,
        env={**browser_environment(TMPDIR=folder)},
        args=launch_args(),
    )
    if wants_sandbox():
        try:
            return await start(chromium_sandbox=True), True
        except Error as error:
            if "sandbox" not in str(error).lower():
                raise
    return await start(chromium_sandbox=False), False


def _split_message(text: str) -> tuple[str, str]:
    what, _, recovery = text.partition(". ")
    return what, recovery
