"""The project's own dev server: its package.json `dev` script, run for as long as a session."""

from __future__ import annotations

import asyncio
import re
import time

from runners.browser.session.session import OpenBrowserSession
from runners.workspace.errors import PreviewFailed, WorkspaceFailed, WorkspaceTimeout
from runners.workspace.preview.local_http import NothingListening, http_get
from runners.workspace.preview.local_page import check_local_url
from runners.workspace.scripts.package_scripts import find_script
from runners.workspace.scripts.running_scripts import RunningScript, run_script, start_script
from runners.workspace.scripts.script_output import ScriptOutput
from runners.workspace.workspace import ProjectWorkspace

SCRIPT = "dev"
POLL_SECONDS = 0.1
_ADDRESS = re.compile(r"\bhttps?://(?:localhost|127\.0\.0\.1)(?::[0-9]{1,5})?(?:/[^\s'\"<>]*)?")


class DevServer:
    """A running dev script; it is a resource of a browser session, which closes it.

    Attributes:
        url: the address that the script printed, validated; empty until then.
    """

    def __init__(self, running: RunningScript) -> None:
        self.url = ""
        self._running = running

    @property
    def has_ended(self) -> bool:
        """Whether the script has exited."""
        return self._running.has_ended

    async def wait_until_serving(self, workspace: ProjectWorkspace, deadline: float) -> None:
        """Wait until the script has printed a local address and responds there.

        Raises:
            PreviewFailed: The script exited; details.logs is its output.
            WorkspaceTimeout: The deadline has passed; details.logs is its output.
            PolicyViolation: The address is not allowed.
        """
        while not (self.url and await _responds(self.url, deadline)):
            if self.has_ended:
                raise self._failure(PreviewFailed, "The project's dev script exited.")
            if time.monotonic() >= deadline:
                raise self._failure(
                    WorkspaceTimeout, "The project's dev script did not serve a page in time."
                )
            found = _ADDRESS.search("\n".join(self._running.output.lines()))
            if found and not self.url:
                self.url = check_local_url(found[0], workspace)
            await asyncio.sleep(POLL_SECONDS)

    async def close(self) -> None:
        """Stop the script and every process that it started."""
        await self._running.end()

    def _failure(self, kind: type[WorkspaceFailed], message: str) -> WorkspaceFailed:
        return kind(message, details={"logs": self._running.output.lines()[-100:]})


async def can_start_dev_server(workspace: ProjectWorkspace) -> bool:
    """Return whether the project has a dev script and the policy allows starting it."""
    if not workspace.policy.developer:
        return False
    try:
        await asyncio.to_thread(find_script, workspace, SCRIPT)
    except WorkspaceFailed:
        return False
    return True


async def get_dev_server(
    workspace: ProjectWorkspace, session: OpenBrowserSession, *, seconds: float
) -> DevServer:
    """Return the session's dev server of this project; start it if none is running.

    Raises:
        PolicyViolation: package.json has no dev script, or the address that it prints is not
            allowed.
        PreviewFailed, WorkspaceTimeout: The script does not serve a page.
    """
    key = f"dev server of {workspace.root}"
    deadline = time.monotonic() + seconds
    running = session.resources.get(key)
    if isinstance(running, DevServer):
        if not running.has_ended and await _responds(running.url, deadline):
            return running
        del session.resources[key]
        await running.close()
    server = DevServer(await _start(workspace, deadline))
    try:
        await server.wait_until_serving(workspace, deadline)
    except BaseException:
        await server.close()
        raise
    session.resources[key] = server
    return server


async def _start(workspace: ProjectWorkspace, deadline: float) -> RunningScript:
    """Run `predev` if there is one, and start the dev script."""
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
    raise AssertionError("find_script returns the script itself")


async def _responds(url: str, deadline: float) -> bool:
    try:
        await http_get(url, seconds=max(0.1, deadline - time.monotonic()))
    except NothingListening:
        return False
    return True
