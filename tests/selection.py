"""Select the tests that run a second time, on PostgreSQL (docs/tests.md).

`--what-a-database-decides` deselects the tests whose result does not depend on the database, listed
below. The summary at the end of the run reports how many were deselected and why. A new test runs
on both databases unless its file is listed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

OPTION = "--what-a-database-decides"
# Files whose tests use no database, or use it only to store the row of a run.
ON_SQLITE_ALONE = {
    "integration/test_action_[!d]*.py": "pages, and what Chromium makes of them",
    "integration/test_action_dom_index.py": "pages, and what Chromium makes of them",
    "integration/test_browser_*.py": "pages, and what Chromium makes of them",
    "integration/test_demo_first_run.py": "the demo, on an installation of its own",
    "integration/test_egress_late.py": "addresses that a page may ask for",
    "integration/test_egress_outcomes.py": "addresses that a page may ask for",
    "integration/test_egress_ways.py": "addresses that a page may ask for",
    "integration/test_injections.py": "texts that order a model about, and what policy makes of it",
    "integration/test_live_hands.py": "pages, and what Chromium makes of them",
    "integration/test_mcp_embedded.py": "the stack, on an installation of its own",
    "integration/test_mcp_process.py": "a host's process, on a SQLite file of its own",
    "integration/test_mcp_stdio.py": "a host's process, on a SQLite file of its own",
    "integration/test_metrics_of_stdio.py": "a host's process, on a SQLite file of its own",
    "integration/test_preview_*.py": "servers of projects, and Chromium",
    "integration/test_stack_*.py": "processes of the stack",
    "integration/test_webgal_official.py": "the grammar, without a database",
    "contract/test_mcp_tools_list.py": "lists and schemas, made from code",
    "contract/test_workspace_schemas.py": "lists and schemas, made from code",
}
# All MCP transports share the thread pool that accesses the database, so one transport is enough.
TRANSPORT = "http"
_OTHER_TRANSPORT = f"the same calls over MCP's transports but {TRANSPORT}"
_TESTS = Path(__file__).parent
_left = pytest.StashKey[Counter[str]]()


def reason_for_sqlite_alone(path: Path, params: Mapping[str, Any]) -> str | None:
    """Return the reason why a test does not run on PostgreSQL, or None if it does."""
    name = path.relative_to(_TESTS).as_posix()
    for pattern, reason in ON_SQLITE_ALONE.items():
        if fnmatch(name, pattern):
            return reason
    over = {params[name] for name in ("host", "remote_host") if name in params}
    return _OTHER_TRANSPORT if over and TRANSPORT not in over else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the option."""
    parser.addoption(OPTION, action="store_true", help="leave out what no database decides")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that run on SQLite only, and count them by reason."""
    left = config.stash.setdefault(_left, Counter())
    if not config.getoption(OPTION):
        return
    kept: list[pytest.Item] = []
    out: list[pytest.Item] = []
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        reason = reason_for_sqlite_alone(item.path, params)
        (out if reason else kept).append(item)
        left.update([reason] if reason else [])
    items[:] = kept
    config.hook.pytest_deselected(items=out)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the counts to the controller of pytest-xdist, which collects no tests itself."""
    if hasattr(session.config, "workeroutput"):
        left = session.config.stash.get(_left, Counter[str]())
        session.config.workeroutput["left"] = dict(left)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Read the counts of one worker; all workers collect the same tests."""
    node.config.stash[_left] = Counter(getattr(node, "workeroutput", {}).get("left", {}))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Report the tests that ran on SQLite only."""
    left = config.stash.get(_left, Counter[str]())
    if left:
        terminalreporter.section(f"{left.total()} tests left to SQLite")
        for reason, number in left.most_common():
            terminalreporter.line(f"{number:5} {reason}")
