"""Make closed shadow roots accessible to the page scripts in the isolated world."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from runners.browser.errors import browser_errors
from runners.browser.session.tab import Tab

GROUP = "continuity-closed-roots"
_STORE = "function (root) { (globalThis.continuityClosed ??= new WeakMap()).set(this, root); }"


async def expose_closed_roots(tab: Tab, *, seconds: float) -> None:
    """Store the closed roots of the elements in `continuityClosedHosts` (page/click_ids.js) in
    `continuityClosed`, for later calls.

    If the page navigated to another document, nothing is stored.

    Raises:
        TimeoutError: The page did not answer in time.
        PageCrashed: The page is lost.
    """

    async def work() -> None:
        world = await tab.world()
        expression = {
            "expression": "continuityClosedHosts",
            "contextId": world,
            "objectGroup": GROUP,
        }
        array = (await tab.cdp.send("Runtime.evaluate", expression))["result"]
        if "objectId" not in array:
            return
        request = {"objectId": array["objectId"], "ownProperties": True}
        properties = (await tab.cdp.send("Runtime.getProperties", request))["result"]
        hosts = [entry["value"]["objectId"] for entry in properties if entry["name"].isdigit()]
        await asyncio.gather(*(_store_root(tab, host, world) for host in hosts))
        await tab.cdp.send("Runtime.releaseObjectGroup", {"objectGroup": GROUP})

    async def ignoring_errors() -> None:
        with contextlib.suppress(*browser_errors()):
            await work()

    await tab.perform(ignoring_errors(), seconds=seconds)


async def _store_root(tab: Tab, host: str, world: int) -> None:
    node: dict[str, Any] = (await tab.cdp.send("DOM.describeNode", {"objectId": host}))["node"]
    for root in node.get("shadowRoots", []):
        if root["shadowRootType"] == "closed":
            node_ref = {
                "backendNodeId": root["backendNodeId"],
                "executionContextId": world,
                "objectGroup": GROUP,
            }
            found = (await tab.cdp.send("DOM.resolveNode", node_ref))["object"]
            call = {
                "objectId": host,
                "functionDeclaration": _STORE,
                "arguments": [{"objectId": found["objectId"]}],
            }
            await tab.cdp.send("Runtime.callFunctionOn", call)
