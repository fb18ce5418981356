"""Documents that nobody here wrote, moving as pages do: HTML that packages have installed."""

from __future__ import annotations

import mimetypes
import re
from itertools import cycle
from pathlib import Path

from tests.support.browser.changing_page_clicks import MovingPage
from tests.support.browser.page_server import PageResponse, PageServer

FOLDER = Path("/usr/share/doc")
MIN_BYTES, MAX_BYTES = 3_000, 300_000
MIN_LINKS = 5
LINK = re.compile(rb"<a\s[^>]*href=", re.IGNORECASE)
RESOURCE = re.compile(r"""(?:href|src)=["']([^"'#?:]+\.(?:css|js|png|svg|gif))["']""")
# What happens on an ordinary page while a person decides.
_ADD = "document.body.insertAdjacentHTML('afterbegin', %r)"
_BANNER = "position:fixed;left:0;right:0;bottom:0;height:60px;background:#ddd"
_HEADER = "position:sticky;top:0;height:90px;background:#eee;z-index:9"
MOVEMENTS = {
    "late image": f"setTimeout(() => {_ADD % '<img width=500 height=140>'}, 250)",
    "banner": f"setTimeout(() => {_ADD % f'<p style={_BANNER}>We use cookies</p>'}, 300)",
    "sticky header": f"{_ADD % f'<header id=moving style={_HEADER}>Docs</header>'}; let n = 0;"
    " setInterval(() => { moving.style.height = `${n++ % 2 ? 90 : 40}px` }, 400)",
    "reordered list": "setInterval(() => document.querySelectorAll('ul, ol, dl, tbody').forEach("
    "(list) => list.children.length > 1 && list.append(list.firstElementChild)), 350)",
}
# The link that is clicked is the middle one of those that are shown.
_CHOOSE = """{ const shown = [...document.querySelectorAll("a[href]")].filter(
  (link) => link.checkVisibility() && link.textContent.trim());
shown[shown.length >> 1]?.setAttribute("data-used", "") }"""


def real_documents(server: PageServer, count: int) -> list[MovingPage]:
    """Serve up to `count` installed documents, which move; empty if there are none."""
    found = sorted(path for path in FOLDER.rglob("*.html") if _is_page(path))
    chosen = found[:: max(1, len(found) // count)][:count]
    return [_served(server, path, kind) for path, kind in zip(chosen, cycle(MOVEMENTS))]


def _is_page(path: Path) -> bool:
    if not path.is_file() or path.is_symlink() or not MIN_BYTES <= path.stat().st_size <= MAX_BYTES:
        return False
    return len(LINK.findall(path.read_bytes())) >= MIN_LINKS


def _served(server: PageServer, path: Path, kind: str) -> MovingPage:
    data = path.read_bytes()
    for name in RESOURCE.findall(data.decode(errors="replace")):
        _add_resource(server, (path.parent / name).resolve())
    body = data + f"<script>{_CHOOSE}; {MOVEMENTS[kind]}</script>".encode()
    mime = mimetypes.guess_type(path.name)[0] or "text/html"
    url = server.add(str(path), PageResponse(body, mime=mime))
    return MovingPage(f"document, {kind}", url, "//*[@data-used]")


def _add_resource(server: PageServer, path: Path) -> None:
    if path.is_file() and path.is_relative_to(FOLDER):
        mime = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        server.add(str(path), PageResponse(path.read_bytes(), mime=mime))
