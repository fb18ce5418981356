"""Importing the browser's modules loads neither Playwright nor any app."""

from __future__ import annotations

import subprocess
import sys

PROBE = """
import pkgutil, sys, importlib, runners.browser, runners.invocation.event_loop
for module in pkgutil.walk_packages(runners.browser.__path__, "runners.browser."):
    importlib.import_module(module.name)
heavy = "playwright django celery kombu runs artifacts decisions mcp config".split()
print(sorted({name.partition(".")[0] for name in sys.modules} & set(heavy)))
"""


def test_no_browser_module_imports_playwright_or_an_app() -> None:
    loaded = subprocess.check_output([sys.executable, "-c", PROBE], text=True)
    assert loaded.strip() == "[]"


def test_the_tool_is_found_in_the_registry_without_loading_playwright() -> None:
    probe = "import sys; from runners.tools.registry import get_tool; t = get_tool('read_page'); "
    probe += "print(t.kind, t.effect, t.timeout_ms, 'playwright' in sys.modules)"
    output = subprocess.check_output([sys.executable, "-c", probe], text=True)
    assert output.split() == ["browser", "read", "60000", "False"]
