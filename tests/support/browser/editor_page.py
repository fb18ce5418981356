"""A page that its scripts change when the test says so, such as while a person decides."""

from __future__ import annotations

from tests.support.browser.page_server import PageResponse, PageServer
from tests.support.runs.waiting import wait_until

EDITOR = """<!doctype html><title>Editor</title><h1>Editor</h1>
<form id=f method=post action="/drafts?key=k1#top"><input name=title aria-label="Title">
<button id=b>Save draft</button></form>
<a id=a href="/more">More (3)</a>
<script>setInterval(async () => {
  const change = await (await fetch("/change")).text();
  if (!change || change === window.changed) return;
  window.changed = change;
  eval(change);
  fetch("/made");
}, 50);</script>"""
DELETE = (
    "b.textContent = 'Delete account'; f.action = '/account'; history.pushState({}, '', '/me');"
)


class Editor:
    """A page whose scripts change it when the test says so."""

    def __init__(self, server: PageServer) -> None:
        self.server, self.change, self.changes = server, "", 0
        self.url = server.add("/editor", EDITOR)
        for path in ("/drafts", "/account", "/more"):
            server.add(path, lambda query: PageResponse(b"<title>Done</title>Done."))
        server.add("/change", lambda query: PageResponse(self.change.encode()))
        server.add("/made", lambda query: PageResponse(b""))

    def make(self, change: str) -> None:
        """Let the page run a script, and wait until it has."""
        before, self.change = self.server.hits["/made"], change
        wait_until(lambda: self.server.hits["/made"] > before)

    @property
    def pressed(self) -> list[str]:
        """The addresses that a click requested."""
        return [path for path in ("/drafts", "/account", "/more") if self.server.hits[path]]
