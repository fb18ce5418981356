"""`manage.py mcp_config`: print the configuration with which an agent host starts `mcp_stdio` or
connects to a server.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.operations.home.listen import FIRST_PORT

HINT = (
    "Add this to the MCP configuration of your agent host (often mcp.json or .mcp.json), then"
    " restart the host."
)
FROM_ENVIRONMENT = (
    "DATABASE_URL is set: set DATABASE_URL, REDIS_URL and CONTINUITY_SECRET_KEYS in the host's"
    " environment too. They are secrets and therefore not printed here."
)
TOKEN = "CONTINUITY_TOKEN"  # noqa: S105  (the name of a variable, not a token)
HINT_HTTP = (
    f"Add this to the MCP configuration of your agent host, and set {TOKEN} in its environment to"
    " the token that `manage.py create_token NAME` prints. For a host that supports only the older"
    " SSE transport, add --sse."
)


class Command(BaseCommand):
    """Print the entry for a host's configuration."""

    help = "Print the MCP configuration for an agent host, with a command or with a server's URL."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--name", default="continuity", help="name that the host displays (continuity)"
        )
        parser.add_argument(
            "--http",
            nargs="?",
            const=f"http://127.0.0.1:{FIRST_PORT}",
            metavar="URL",
            help=f"print the entry for a server with this URL (http://127.0.0.1:{FIRST_PORT})",
        )
        parser.add_argument(
            "--sse", action="store_true", help="with --http: use the older SSE transport"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print JSON on stdout and instructions on stderr."""
        if options["sse"] and not options["http"]:
            raise CommandError("--sse is an option of --http: give --http too.")
        if not options["name"].strip():
            raise CommandError("--name is empty; give the name that the host displays.")
        if options["http"]:
            self._print(options["name"], _http_entry(options["http"], options["sse"]))
            self.stderr.write(HINT_HTTP)
            return
        entry: dict[str, Any] = {
            "command": sys.executable,
            "args": [str(settings.BASE_DIR / "manage.py"), "mcp_stdio"],
        }
        if settings.CONTINUITY_HOME != settings.BASE_DIR / ".continuity":
            entry["env"] = {"CONTINUITY_HOME": str(settings.CONTINUITY_HOME)}
        self._print(options["name"], entry)
        self.stderr.write(HINT if settings.EMBEDDED else f"{HINT} {FROM_ENVIRONMENT}")

    def _print(self, name: str, entry: dict[str, Any]) -> None:
        config = {"mcpServers": {name: entry}}
        self.stdout.write(json.dumps(config, indent=2, ensure_ascii=False))


def _http_entry(url: str, sse: bool) -> dict[str, Any]:
    if not url.startswith(("http://", "https://")) or len(url.split("/")[2]) == 0:
        raise CommandError(
            f"{url!r} is not the URL of a server; write for example"
            f" --http http://127.0.0.1:{FIRST_PORT}."
        )
    return {
        "type": "sse" if sse else "http",
        "url": url.rstrip("/") + ("/sse" if sse else "/mcp"),
        "headers": {"Authorization": f"Bearer ${{{TOKEN}}}"},
    }
