"""Closed shadow roots: the browser hands them to the page scripts' own world, where they are looked
into like any other.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from runners.browser.errors import browser_errors
from runners.browser.session.tab import Tab

GROUP = "apart"
_KEEP = "function (root) { (globalThis.continuityClosed ??= new WeakMap()).set(this, root); }"


async def expose_closed_roots(tab: Tab, *, seconds: float) -> None:
    """Keep the closed roots of the elements in `continuityApart` (page/index.js) for later calls.

    Raises:
        TimeoutError: The page did not answer in time.
        PageCrashed: The page is gone; one that went on to another document has nothing to keep.
    """

    async def work() -> None:
        world = await tab.world()
        asked = {"expression": "continuityApart", "contextId": world, "objectGroup": GROUP}
        held = (await tab.line.send("Runtime.evaluate", asked))["result"]
        if "objectId" not in held:
            return
        listed = {"objectId": held["objectId"], "ownProperties": True}
        found = (await tab.line.send("Runtime.getProperties", listed))["result"]
        hosts = [one["value"]["objectId"] for one in found if one["name"].isdigit()]
        await asyncio.gather(*(_keep_root(tab, host, world) for host in hosts))
        await tab.line.send("Runtime.releaseObjectGroup", {"objectGroup": GROUP})

    async def work_if_there() -> None:
        with contextlib.suppress(*browser_errors()):
            await work()

    await tab.perform(work_if_there(), seconds=seconds)


async def _keep_root(tab: Tab, host: str, world: int) -> None:
    node: dict[str, Any] = (await tab.line.send("DOM.describeNode", {"objectId": host}))["node"]
    for root in node.get("shadowRoots", []):
        if root["shadowRootType"] == "closed":
            meant = {
                "backendNodeId": root["backendNodeId"],
                "executionContextId": world,
                "objectGroup": GROUP,
            }
            found = (await tab.line.send("DOM.resolveNode", meant))["object"]
            call = {
                "objectId": host,
                "functionDeclaration": _KEEP,
                "arguments": [{"objectId": found["objectId"]}],
            }
            await tab.line.send("Runtime.callFunctionOn", call)
