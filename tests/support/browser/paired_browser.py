"""A paired browser in tests: answers actions as the extension does, from a few pages."""

from __future__ import annotations

import asyncio
import hashlib
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx

from artifacts.storage.staging import UPLOAD_PATH, read_ticket
from artifacts.uploads import receive_upload
from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal
from runners.models import PluginClient
from runners.paired_browser.dispatch import BrowserReply, SentAction
from tests.support.rest.rest import NO_TLS

Answer = Callable[[SentAction], BrowserReply | Mapping[str, Any]]
TAB = 41
BOX = {"x": 0, "y": 0, "w": 10, "h": 10}
SHOP = "https://shop.example/"
FORM = """# Shop
[1] link "Items" → /items
[2] button "More"
[3] button "Buy" submits
[4] input "Name" = \"\""""


def failed(code: str, **details: Any) -> BrowserReply:
    """Return the reply of an action that failed."""
    return BrowserReply("error", error={"code": code, "message": f"{code}.", "details": details})


@dataclass
class ScriptedBrowser:
    """A paired browser with one tab.

    Attributes:
        sent: the actions that it received.
        replies: replies by action name, used before the usual ones: one value, or a function.
        url, text: what its tab shows.
        visited: the origins of the pages that its tab showed earlier in an action.
        web: the server's address; empty: results are sent without HTTP.
    """

    client_id: str
    sent: list[SentAction] = field(default_factory=list)
    replies: dict[str, BrowserReply | Answer | Exception] = field(default_factory=dict)
    kept: dict[str, BrowserReply] = field(default_factory=dict)
    url: str = "about:blank"
    text: str = FORM
    visited: tuple[str, ...] = ()
    data: bytes = b"\xff\xd8 a picture"
    web: str = ""

    @property
    def names(self) -> list[str]:
        """The names of the actions that it received, in order."""
        return [action.name for action in self.sent]

    async def perform(self, action: SentAction) -> BrowserReply:
        """Answer an action as the transport returns it."""
        self.sent.append(action)
        given = self.replies.get(action.name)
        if isinstance(given, Exception):
            raise given
        reply = await in_thread(given, action) if callable(given) else given
        if not isinstance(reply, BrowserReply):
            reply = BrowserReply("success", result=reply or await self._usual(action))
        parts = urlsplit(self.url)
        origin = f"{parts.scheme}://{parts.netloc}" if parts.netloc else f"{parts.scheme}:"
        return replace(reply, page_origins=(*self.visited, origin))

    async def collect(self, action_id: str, *, wait_s: float) -> BrowserReply | None:
        """Return the reply that the transport has kept."""
        return self.kept.get(action_id)

    async def upload(self, action: SentAction, data: bytes, mime_type: str) -> dict[str, Any]:
        """Send bytes to the action's upload, and return the field `upload` of the result."""
        url = str((action.upload or {})["url"])
        if self.web:
            headers = {"Content-Type": mime_type}
            async with httpx.AsyncClient(verify=NO_TLS) as client:
                sent = await client.put(self.web + url, content=data, headers=headers)
            assert sent.status_code == HTTPStatus.NO_CONTENT
            return _facts(data, mime_type)
        ticket = read_ticket(url.rpartition(UPLOAD_PATH)[2])
        await receive_upload(ticket=ticket, body=io.BytesIO(data), mime_type=mime_type)
        return _facts(data, mime_type)

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of the result of a `browser_action` (ProtocolBrowser.perform)."""
        ((name, params),) = message["action"].items()
        ids = message["actionId"], message["taskId"], message["clientId"]
        action = SentAction(*ids, name, params, 1, message.get("upload"), message.get("files", ()))
        reply = asyncio.run(self.perform(action))
        if reply.error is not None:
            return {"error": dict(reply.error), "pageOrigins": list(reply.page_origins)}
        return {"result": dict(reply.result or {}), "pageOrigins": list(reply.page_origins)}

    def judged(self, action: SentAction, **facts: Any) -> dict[str, Any]:
        """Return what the page says of the element of an action: that of its line, else a button
        that submits.
        """
        number = (action.params["locator"] or {}).get("click_id")
        found = re.search(rf"^\[{number}\]\*? .+", self.text, re.MULTILINE)
        return judged_element(found[0] if found else '[3] button "Buy" submits', self.url, **facts)

    async def _usual(self, action: SentAction) -> Mapping[str, Any]:
        here = {"url": self.url, "title": "Shop"}
        if action.name == "browser_judge":
            return self.judged(action)
        if action.name == "task_start":
            self.url = action.params.get("url") or self.url
            return {"tabId": TAB, "windowId": 1, "groupId": 3, "url": self.url, "title": "Shop"}
        if action.name == "browser_screenshot":
            sent = await self.upload(action, self.data, "image/jpeg")
            return {"url": self.url, "width": 800, "height": 600, "upload": sent}
        if action.name == "browser_get_html":
            return {"url": self.url, "upload": await self.upload(action, b"<p>", "text/html")}
        results: dict[str, Mapping[str, Any]] = {
            "task_stop": {"stopped": True},
            "browser_debugger_attach": {"attached": True},
            "browser_wait_for_loaded": {"status": "complete"},
            "browser_readability_extract": {
                "title": "Shop",
                "markdown": "# Shop\n\nTea and coffee.",
                "text": "Shop Tea and coffee.",
                "pageType": "list",
                "contentLengthBytes": 23,
                "truncated": False,
            },
            "browser_dom_index": {
                "elements": [{"clickId": 1, "tag": "a", "text": "Items", "bbox": BOX}]
            },
            "browser_xpath_scan": {"elements": [{"xpath": "//a", "tag": "a"}]},
            "browser_observe": {
                **here,
                "status": 200,
                "viewport": {"width": 800, "height": 600},
                "scroll": "screen 1 of 1",
                "text": self.text,
                "elements": 4,
            },
            "browser_click": {"clicked": True, "strategy": "cdp_mouse"},
            "browser_type": {"typed": True, "strategy": "cdp_key"},
            "browser_scroll": {"moved": True, "screen": "screen 2 of 2", "atEnd": True},
            "browser_select": {"selected": ["Tea"]},
            "browser_hover": {"hovered": True, "strategy": "cdp_mouse"},
            "browser_press_key": {"pressed": True, "strategy": "cdp_key", "focus": "input"},
            "browser_go_back": here,
            "browser_drag": {"dragged": True, "strategy": "cdp_mouse"},
            "browser_find_text": {"total": 0, "matches": []},
            "browser_wait_for_text": {"found": True},
            "browser_upload": {
                "uploaded": True,
                "files": [
                    {"fileName": file["fileName"], "bytes": file["sizeBytes"]}
                    for file in action.files
                ],
            },
            "browser_list_tabs": {"tabs": [{"tabId": TAB, "url": self.url, "current": True}]},
            "browser_switch_tab": {"tabId": TAB, "url": self.url},
            "browser_close_tab": {"closed": True, "tabId": TAB, "url": self.url},
        }
        return results[action.name]


def _facts(data: bytes, mime_type: str) -> dict[str, Any]:
    digest = hashlib.sha256(data).hexdigest()
    return {"sizeBytes": len(data), "sha256": digest, "mimeType": mime_type}


def judged_element(line: str, url: str, **facts: Any) -> dict[str, Any]:
    """Return what a page says of the element with this line (page/basis.js)."""
    form = {"by": "", "method": "get", "action": urljoin(url, "/bought"), "sent": ""}
    known = {
        "role": line.partition("] ")[2].partition(" ")[0],
        "name": re.sub(r'^[^"]*"?|".*$', "", line),
        "text": "",
        "submits": [form] if " submits" in line else [],
        "sends": False,
        "link": "",
        "frame": url,
        "page": url,
        **facts,
    }
    fields = {"outcome": "judged", "node": f"node-{line}", "line": line, "title": "Shop"}
    return {**fields, "facts": known, "stable": known, "isSecret": False, "to": None}


def pair(principal: Principal, **fields: Any) -> PluginClient:
    """Write the row of a browser that a principal paired."""
    return PluginClient.objects.create(
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        principal_id=principal.id,
        principal={},
        name="Chrome on Linux",
        extension_id="x",
        extension_name="Continuity",
        extension_version="1",
        user_agent="Chrome",
        secret_digest="0",
        **fields,
    )
