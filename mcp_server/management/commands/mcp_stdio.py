"""`manage.py mcp_stdio`: the MCP server for an agent host that starts it as a child process."""

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

from decisions.foundation.database.lock_timeout import limit_lock_waits
from mcp_server.server import ContinuityServer
from mcp_server.stdio.descriptors import StdioDescriptors, take_over_stdio
from mcp_server.stdio.local_stack import StdioTransport
from mcp_server.stdio.streams import open_stdio_streams
from mcp_server.tools.registry import UnknownToolset, check_toolsets
from runners.targets.local_folder import LocalFolder, is_folder, set_local_folder
from runners.targets.runner_endpoint import close_connections
from runs.operations.health.publisher import Publisher

LAST_PUBLISH_S = 1.5  # hosts kill a server that does not exit soon after they closed stdin


class Command(BaseCommand):
    """Serve MCP on stdin and stdout until the host closes stdin."""

    help = (
        "Serve MCP over stdin and stdout, for an agent host; `manage.py mcp_config` prints the"
        " host's configuration. The command uses the running stack or starts one in the background;"
        " runs continue after it has ended."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--toolsets",
            help="toolsets to offer, separated by commas (CONTINUITY_MCP_TOOLSETS; if that is not"
            " set either, its default and browser)",
        )
        parser.add_argument(
            "--workspace",
            type=Path,
            help="folder that workspace tools work in (CONTINUITY_WORKSPACE, else the current one"
            " unless that is / or a home directory)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve; exit with status 2 if an option is invalid."""
        stdio = take_over_stdio()
        limit_lock_waits()
        names = options["toolsets"]
        toolsets = names.split(",") if names is not None else settings.STDIO_MCP_TOOLSETS
        toolsets = [name.strip() for name in toolsets if name.strip()]
        try:
            check_toolsets(toolsets)
        except UnknownToolset as unknown:
            self.stderr.write(str(unknown))
            sys.exit(2)
        workspace = options["workspace"]
        if workspace is not None and not is_folder(workspace):
            self.stderr.write(f"--workspace: there is no folder {workspace}.")
            sys.exit(2)
        set_local_folder(choose_folder(workspace, developer="developer" in toolsets))
        with suppress(KeyboardInterrupt):
            asyncio.run(serve(stdio, toolsets))


def choose_folder(option: Path | None, *, developer: bool) -> LocalFolder:
    """Return the folder of the workspace tools: that of the option, else that of the settings, else
    the current folder. The root folder and home directories are not used as the current folder:
    hosts start commands there by default.
    """
    if option is not None:
        return LocalFolder(option.resolve(), is_named=True, developer=developer)
    if settings.WORKSPACE is not None:
        return LocalFolder(settings.WORKSPACE, developer=developer)
    try:
        here = Path.cwd()
    except OSError as error:
        reason = f"mcp_stdio was started in a folder that does not exist ({error.strerror})"
        return LocalFolder(None, developer=developer, why=f"{reason}; give it --workspace DIR.")
    users = (Path(user.pw_dir) for user in pwd.getpwall())
    # Homes can be behind symbolic links, so they are resolved; of other users' homes only those of
    # the same name, because homes can be on slow network file systems.
    homes = {Path.home(), *(home for home in users if home.name == here.name)}
    if here in {Path(here.anchor), *(home.resolve() for home in homes if is_folder(home))}:
        reason = f"mcp_stdio was started in {here}, which is not a project"
        return LocalFolder(None, developer=developer, why=f"{reason}; give it --workspace DIR.")
    return LocalFolder(here, developer=developer)


async def serve(stdio: StdioDescriptors, toolsets: Sequence[str]) -> None:
    """Serve one host until it closes stdin."""
    transport = StdioTransport()
    server = ContinuityServer(toolsets, transport)

    def after_first_response() -> None:
        gc.freeze()  # what was imported stays; manage.py disabled collection before the imports
        gc.enable()
        transport.start()

    publisher = Publisher()  # of the metrics of this process
    publisher.start()
    try:
        async with open_stdio_streams(stdio, after_first_response=after_first_response) as (
            inbox,
            outbox,
        ):
            await server.run(inbox, outbox, server.stream_options())
    finally:
        await asyncio.to_thread(publisher.stop, LAST_PUBLISH_S)
    await close_connections()
