"""`manage.py mcp_stdio`: the door for an agent host that starts us as its child."""

from __future__ import annotations

import asyncio
import gc
import pwd
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from mcp_server.server import ContinuityServer
from mcp_server.stdio.descriptors import StdioDescriptors, take_over_stdio
from mcp_server.stdio.local_stack import StdioTransport
from mcp_server.stdio.streams import open_stdio_streams
from mcp_server.tools.registry import UnknownToolset, check_toolsets
from runners.targets.local_folder import LocalFolder, is_folder, use_local_folder
from runners.targets.runner_endpoint import close_connections
from runs.installation.health.publisher import Publisher

LAST_FIGURES_S = 1.5  # a host that closed stdin kills what does not end soon


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
            help="folder that workspace tools work in (CONTINUITY_WORKSPACE, else the current one"
            " unless that is / or a home directory)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve; exit 2 when an option is wrong."""
        stdio = take_over_stdio()
        asked = options["toolsets"]
        toolsets = asked.split(",") if asked is not None else settings.CONTINUITY_MCP_TOOLSETS
        toolsets = [name.strip() for name in toolsets if name.strip()]
        try:
            check_toolsets(toolsets)
        except UnknownToolset as unknown:
            self.stderr.write(str(unknown))
            sys.exit(2)
        named = options["workspace"]
        if named is not None and not is_folder(named):
            self.stderr.write(f"--workspace: there is no folder {named}.")
            sys.exit(2)
        use_local_folder(folder_of(named, developer="developer" in toolsets))
        with suppress(KeyboardInterrupt):
            asyncio.run(serve(stdio, toolsets))


def folder_of(named: Path | None, *, developer: bool) -> LocalFolder:
    """Return the folder of workspace tools: the one that was named, else that of the settings, else
    the current one, unless a host merely happened to start us there.
    """
    if named is not None:
        return LocalFolder(named.resolve(), is_named=True, developer=developer)
    if settings.WORKSPACE is not None:
        return LocalFolder(settings.WORKSPACE, developer=developer)
    try:
        here = Path.cwd()
    except OSError as gone:
        told = f"mcp_stdio was started in a folder that is gone ({gone.strerror}); --workspace DIR"
        return LocalFolder(None, developer=developer, why=f"{told} names another.")
    users = (Path(user.pw_dir) for user in pwd.getpwall())
    # A home may be a link, or lie behind one. Others' are not all looked up: they may be far away.
    homes = {Path.home(), *(home for home in users if home.name == here.name)}
    if here in {Path(here.anchor), *(home.resolve() for home in homes if is_folder(home))}:
        told = f"mcp_stdio was started in {here}, which is no project; give it --workspace DIR."
        return LocalFolder(None, developer=developer, why=told)
    return LocalFolder(here, developer=developer)


async def serve(stdio: StdioDescriptors, toolsets: Sequence[str]) -> None:
    """Serve one host until it closes stdin."""
    transport = StdioTransport()
    server = ContinuityServer(toolsets, transport)

    def after_first_answer() -> None:
        gc.freeze()  # manage.py turned it off for the imports
        gc.enable()
        transport.open()

    publisher = Publisher()  # of the calls that are made here
    publisher.start()
    try:
        async with open_stdio_streams(stdio, after_first_answer=after_first_answer) as (
            inbox,
            outbox,
        ):
            await server.run(inbox, outbox, server.stream_options())
    finally:
        await asyncio.to_thread(publisher.stop, LAST_FIGURES_S)
    await close_connections()
