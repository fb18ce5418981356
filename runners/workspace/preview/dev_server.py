"""The project's own dev server: its dev script, running for as long as the session it serves."""

from __future__ import annotations

import asyncio
import re
import time

from runners.browser.session.session import BrowserSession
from runners.workspace.errors import PreviewFailed, WorkspaceFailed, WorkspaceTimeout
from runners.workspace.preview.local_http import NothingListening, http_get
from runners.workspace.preview.local_page import check_local_url
from runners.workspace.scripts.package_scripts import find_script
from runners.workspace.scripts.running_scripts import GRACE_SECONDS, run_script, start_script
from runners.workspace.scripts.script_output import ScriptOutput
from runners.workspace.scripts.script_process import ScriptProcess
from runners.workspace.workspace import Workspace

SCRIPT = "dev"
LOOK_SECONDS = 0.1
_ADDRESS = re.compile(r"\bhttps?://(?:localhost|127\.0\.0\.1)(?::[0-9]{1,5})?(?:/[^\s'\"<>]*)?")


class DevServer:
    """A running dev script; a session keeps it and ends it.

    Attributes:
        url: the address that it printed, checked.
    """

    def __init__(self, process: ScriptProcess) -> None:
        self.url = ""
        self._process = process

    @property
    def has_ended(self) -> bool:
        """Whether the script is over."""
        return self._process.has_ended

    async def wait_until_serving(self, workspace: Workspace, deadline: float) -> None:
        """Wait until the script has printed an address of this machine and answers there.

        Raises:
            PreviewFailed, WorkspaceTimeout: It ended, or did not come so far; details.logs is what it
                printed.
            PolicyViolation: The address may not be opened.
        """
        while not (self.url and await _answers(self.url, deadline)):
            if self.has_ended:
                raise self._failure(PreviewFailed, "The project's dev script ended.")
            if time.monotonic() >= deadline:
                raise self._failure(
                    WorkspaceTimeout, "The project's dev script serves no page yet."
                )
            found = _ADDRESS.search("\n".join(self._process.output.lines()))
            if found and not self.url:
                self.url = check_local_url(found[0], workspace)
            await asyncio.sleep(LOOK_SECONDS)

    async def close(self) -> None:
        """End the script and everything it started."""
        await self._process.end(grace_seconds=GRACE_SECONDS)

    def _failure(self, kind: type[WorkspaceFailed], message: str) -> WorkspaceFailed:
        return kind(message, details={"logs": self._process.output.lines()[-100:]})


async def can_start_dev_server(workspace: Workspace) -> bool:
    """Tell whether the project has a dev script, and this is a developer who may start it."""
    if not workspace.policy.developer:
        return False
    try:
        await asyncio.to_thread(find_script, workspace, SCRIPT)
    except WorkspaceFailed:
        return False
    return True


async def get_dev_server(
    workspace: Workspace, session: BrowserSession, *, seconds: float
) -> DevServer:
    """Return the session's dev server of this project, starting it where none runs.

    Raises:
        PolicyViolation: package.json names no dev script, or the address it prints may not be
            opened.
        PreviewFailed, WorkspaceTimeout: It does not serve anything.
    """
    key = f"dev server of {workspace.root}"
    kept = session.resources.pop(key, None)
    if isinstance(kept, DevServer) and not kept.has_ended:
        session.resources[key] = kept
        return kept
    if kept is not None:
        await kept.close()
    made = DevServer(await _start(workspace, deadline := time.monotonic() + seconds))
    try:
        await made.wait_until_serving(workspace, deadline)
    except BaseException:
        await made.close()
        raise
    session.resources[key] = made
    return made


async def _start(workspace: Workspace, deadline: float) -> ScriptProcess:
    """Run what goes before the dev script, and start it."""
    output = ScriptOutput()
    for script in await asyncio.to_thread(find_script, workspace, SCRIPT):
        if script.event == SCRIPT:
            return await start_script(script, [], workspace, output)
        try:
            status = await run_script(script, [], workspace, output, deadline)
        except TimeoutError:
            status = -1
        if status != 0:
            raise PreviewFailed(
                f"The project's script {script.event} failed.", details={"logs": output.lines()}
            )
    raise AssertionError("the script that was asked for is among those found")


async def _answers(url: str, deadline: float) -> bool:
    try:
        await http_get(url, seconds=max(0.1, deadline - time.monotonic()))
    except NothingListening:
        return False
    return True
