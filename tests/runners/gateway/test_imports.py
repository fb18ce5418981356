"""APIs and transports start without importing the HTTP client for runners."""

from __future__ import annotations

import subprocess
import sys

START_SCRIPT = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
import django
django.setup()
import mcp_server.stdio.streams, mcp_server.tools.registry, runs.api.tools, runners.api.targets
mcp_server.tools.registry.load_caller_tools(["runtime", "continuity", "workspace", "targets"])
sys.exit("httpcore2" in sys.modules)
"""


def test_no_api_or_transport_imports_the_http_client_at_start() -> None:
    assert subprocess.run([sys.executable, "-c", START_SCRIPT], check=False).returncode == 0
