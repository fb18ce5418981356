"""Report the progress of a part of `make test`, and leave its counts for the summary.

`python -m tests` sets CONTINUITY_TEST_PART to the part's name and CONTINUITY_TEST_COUNTS to a file.
In place of a dot for each test the part prints a line for each twentieth of its tests, and the name
of a failed test at once.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

LINES = 20
COUNTED = ("passed", "failed", "error", "skipped")


class Progress:
    """Counts the tests that are over, in the first process."""

    def __init__(self, part: str, reporter: Any) -> None:
        self.part = part
        self.reporter = reporter
        self.began = time.monotonic()
        self.over: set[str] = set()
        self.lines = 0
        self.total = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Print nothing for a test that passed or was skipped."""
        if report.when == "call" and report.passed:
            return "passed", "", ""
        return ("skipped", "", "SKIPPED") if report.skipped else None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Take the number of tests, without pytest-xdist."""
        self.total = len(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Take the number of tests from a worker; all workers collect the same."""
        self.total = len(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print a failed test, and each twentieth of the tests."""
        if report.failed:
            self.reporter.write_line(f"{self.part}: FAILED {report.nodeid} ({report.when})")
        if report.when != "teardown":
            return
        self.over.add(report.nodeid)
        if self.total and len(self.over) * LINES // self.total > self.lines:
            self.lines = len(self.over) * LINES // self.total
            percent, elapsed = self.lines * 100 // LINES, minutes(time.monotonic() - self.began)
            self.reporter.write_line(
                f"{self.part}: {percent:3} % ({len(self.over)} of {self.total} tests, {elapsed})"
            )


def minutes(seconds: float) -> str:
    """Return a duration in words: `3 min 20 s`."""
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60:02} s" if whole >= 60 else f"{whole} s"


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Report progress in the first process of a part."""
    part = os.environ.get("CONTINUITY_TEST_PART")
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if part and reporter and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(part, reporter))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write the counts for the summary of all parts."""
    if path := os.environ.get("CONTINUITY_TEST_COUNTS"):
        counts = {name: len(terminalreporter.stats.get(name, ())) for name in COUNTED}
        Path(path).write_text(json.dumps(counts))
