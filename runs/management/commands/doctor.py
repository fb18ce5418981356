"""`manage.py doctor`: check every part of this installation, and name the way out."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from typing import Any

from django.core.management.base import BaseCommand
from playwright._impl._driver import compute_driver_executable
from playwright.async_api import Error, async_playwright

from runners.browser.pool.chromium import (
    Chromium,
    ChromiumMissing,
    find_chromium,
    launch_args,
    wants_sandbox,
)
from runs.installation.health.checks import CheckResult, run_checks
from runs.installation.home.errors import StackError
from runs.installation.home.prepare import prepare_home

PAGE = "<p id=p>0</p><script>p.textContent = [6, 7].reduce((a, b) => a * b)</script>"
PROOF_TIMEOUT_S = 60
COLOURS = {"ok": "32", "note": "33", "bad": "31"}


class Command(BaseCommand):
    """Look at everything that a run needs, as it is now."""

    help = "Check every part of this installation; exit 1 when something that is needed is broken."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a line a part, and the way out below each that is not well."""
        try:
            prepare_home()
            findings = []
        except StackError as problem:
            findings = [CheckResult("bad", "home", str(problem))]
            self._show(findings[0])
        for finding in run_checks():
            findings.append(finding)
            self._show(finding)
        findings.append(check_chromium())
        self._show(findings[-1])
        bad = sum(finding.verdict == "bad" for finding in findings)
        if bad:
            self.stdout.write(f"{bad} of {len(findings)} checks failed.")
            sys.exit(1)
        self.stdout.write("Everything that a run needs is there.")

    def _show(self, finding: CheckResult) -> None:
        verdict = f"{finding.verdict:<4}"
        if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
            verdict = f"\x1b[{COLOURS[finding.verdict]}m{verdict}\x1b[0m"
        self.stdout.write(f"  {verdict}  {finding.name:<10} {finding.what}")
        if finding.recovery:
            self.stdout.write(f"        {'':<10} → {finding.recovery}")
        self.stdout.flush()


def check_chromium() -> CheckResult:
    """The browser: found, started, and proven by a page whose script ran."""
    try:
        found = find_chromium()
    except ChromiumMissing as missing:
        return CheckResult("bad", "chromium", *_sentences(str(missing)))
    driver = subprocess.run(
        [compute_driver_executable()[0], "--version"], capture_output=True, text=True, check=False
    )
    if driver.returncode != 0:
        what = f"Playwright's driver does not run: {driver.stderr.strip()[-200:]}"
        recovery = "Install what it lacks (Debian: `apt-get install libatomic1`)."
        return CheckResult("bad", "chromium", what, recovery)
    began = time.monotonic()
    try:
        version = asyncio.run(asyncio.wait_for(_render(found), PROOF_TIMEOUT_S))
    except (Error, OSError, TimeoutError, ValueError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        recovery = "Run it by hand to see why, or name another in CONTINUITY_CHROMIUM."
        return CheckResult(
            "bad", "chromium", f"{found.path} renders no page: {reason[0]}", recovery
        )
    took = time.monotonic() - began
    return CheckResult(
        "ok", "chromium", f"{version}, {found.path}, rendered a page in {took:.1f} s"
    )


async def _render(found: Chromium) -> str:
    """Return the browser's version once it has shown what a page's script computed."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=found.path, args=launch_args(), chromium_sandbox=wants_sandbox()
        )
        page = await browser.new_page()
        await page.set_content(PAGE)
        text, picture = await page.inner_text("#p"), await page.screenshot()
        version = browser.version
        await browser.close()
    if text != "42" or not picture.startswith(b"\x89PNG"):
        raise ValueError(f"the page shows {text!r}")
    return version


def _sentences(text: str) -> tuple[str, str]:
    what, _, recovery = text.partition(". ")
    return what, recovery
