"""`manage.py mcp_config`: what to tell an agent host, so that it starts `mcp_stdio` or calls a
server.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.installation.home.listen import FIRST_PORT

HINT = (
    "Put this into the MCP configuration of your agent host (often mcp.json or .mcp.json), then"
    " restart the host."
)
FROM_ENVIRONMENT = (
    "The database is named by DATABASE_URL: give the host DATABASE_URL, REDIS_URL and"
    " CONTINUITY_SECRET_KEYS in its environment too; they are secrets and not printed here."
)
TOKEN = "CONTINUITY_TOKEN"  # noqa: S105  (the name of a variable, not a token)
HINT_HTTP = (
    f"Put this into the MCP configuration of your agent host and the token that `manage.py"
    f" create_token NAME` prints into its environment as {TOKEN}. For a host that knows the older"
    " transport alone, add --sse."
)


class Command(BaseCommand):
    """Print the host's stanza."""

    help = "Print the JSON stanza for an agent host: by a command here, or by a server's address."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the name that the host shows."""
        parser.add_argument("--name", default="continuity", help="name in the host (continuity)")
        parser.add_argument(
            "--http",
            nargs="?",
            const=f"http://127.0.0.1:{FIRST_PORT}",
            metavar="ADDRESS",
            help=f"for a server, by its address (http://127.0.0.1:{FIRST_PORT})",
        )
        parser.add_argument("--sse", action="store_true", help="with --http: the older transport")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print JSON on stdout and a hint on stderr."""
        if options["sse"] and not options["http"]:
            raise CommandError("--sse is a way to a server: give --http too.")
        if not options["name"].strip():
            raise CommandError("--name is empty; hosts need a name to show.")
        if options["http"]:
            shown = {"mcpServers": {options["name"]: _by_address(options["http"], options["sse"])}}
            self.stdout.write(json.dumps(shown, indent=2, ensure_ascii=False))
            self.stderr.write(HINT_HTTP)
            return
        stanza: dict[str, Any] = {
            "command": sys.executable,
            "args": [str(settings.BASE_DIR / "manage.py"), "mcp_stdio"],
        }
        if settings.CONTINUITY_HOME != settings.BASE_DIR / ".continuity":
            stanza["env"] = {"CONTINUITY_HOME": str(settings.CONTINUITY_HOME)}
        shown = {"mcpServers": {options["name"]: stanza}}
        self.stdout.write(json.dumps(shown, indent=2, ensure_ascii=False))
        self.stderr.write(HINT if settings.EMBEDDED else f"{HINT} {FROM_ENVIRONMENT}")


def _by_address(address: str, sse: bool) -> dict[str, Any]:
    if not address.startswith(("http://", "https://")) or len(address.split("/")[2]) == 0:
        raise CommandError(
            f"{address!r} is no address of a server; write for example"
            f" --http http://127.0.0.1:{FIRST_PORT}."
        )
    return {
        "type": "sse" if sse else "http",
        "url": address.rstrip("/") + ("/sse" if sse else "/mcp"),
        "headers": {"Authorization": f"Bearer ${{{TOKEN}}}"},
    }
