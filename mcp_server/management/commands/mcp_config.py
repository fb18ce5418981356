"""`manage.py mcp_config`: what to tell an agent host so that it starts `mcp_stdio`."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

HINT = (
    "Put this into the MCP configuration of your agent host (often mcp.json or .mcp.json), then"
    " restart the host."
)
FROM_ENVIRONMENT = (
    "The database is named by DATABASE_URL: give the host DATABASE_URL, REDIS_URL and"
    " CONTINUITY_SECRET_KEYS in its environment too; they are secrets and not printed here."
)


class Command(BaseCommand):
    """Print the host's stanza."""

    help = "Print the JSON stanza for an agent host, with absolute paths."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the name that the host shows."""
        parser.add_argument("--name", default="continuity", help="name in the host (continuity)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print JSON on stdout and a hint on stderr."""
        stanza: dict[str, Any] = {
            "command": sys.executable,
            "args": [str(settings.BASE_DIR / "manage.py"), "mcp_stdio"],
        }
        if settings.CONTINUITY_HOME != settings.BASE_DIR / ".continuity":
            stanza["env"] = {"CONTINUITY_HOME": str(settings.CONTINUITY_HOME)}
        shown = {"mcpServers": {options["name"]: stanza}}
        self.stdout.write(json.dumps(shown, indent=2, ensure_ascii=False))
        self.stderr.write(HINT if settings.EMBEDDED else f"{HINT} {FROM_ENVIRONMENT}")
