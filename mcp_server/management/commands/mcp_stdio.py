"""`manage.py mcp_stdio`: the door for an agent host that starts us as its child."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from mcp_server.local_door import LocalDoor
from mcp_server.server import ContinuityServer
from mcp_server.stdio import gated_stdio
from mcp_server.tools import UnknownToolset, check_toolsets
from mcp_server.wire import Wire, claim_wire


class Command(BaseCommand):
    """Serve MCP on stdin and stdout until the host closes stdin."""

    help = (
        "Serve MCP over stdin and stdout, for an agent host; `manage.py mcp_config` prints what to"
        " tell the host. The stack is joined, or started in the background; runs go on without us."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what to offer."""
        parser.add_argument(
            "--toolsets",
            help="toolsets to offer, separated by commas (CONTINUITY_MCP_TOOLSETS)",
        )
        parser.add_argument(
            "--workspace",
            type=Path,
            default=Path(),
            help="folder that workspace tools are rooted in (the current one)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve; exit 2 when an option is wrong."""
        wire = claim_wire()
        asked = options["toolsets"]
        toolsets = asked.split(",") if asked is not None else settings.CONTINUITY_MCP_TOOLSETS
        toolsets = [name.strip() for name in toolsets if name.strip()]
        try:
            check_toolsets(toolsets)
        except UnknownToolset as unknown:
            self.stderr.write(str(unknown))
            sys.exit(2)
        if not options["workspace"].is_dir():
            self.stderr.write(f"--workspace: there is no folder {options['workspace']}.")
            sys.exit(2)
        with suppress(KeyboardInterrupt):
            asyncio.run(serve(wire, toolsets))


async def serve(wire: Wire, toolsets: Sequence[str]) -> None:
    """Serve one host until it closes stdin."""
    door = LocalDoor()
    server = ContinuityServer(toolsets, door)

    def after_first_answer() -> None:
        gc.freeze()  # manage.py turned it off for the imports
        gc.enable()
        door.open()

    async with gated_stdio(wire, after_first_answer=after_first_answer) as (inbox, outbox):
        await server.run(inbox, outbox, server.create_initialization_options())
