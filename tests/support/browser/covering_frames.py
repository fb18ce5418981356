"""Pages that put a frame of another origin over the button that is about to be pressed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.browser.page_server import PageServer, serve_pages

# The page in the frame: whatever it receives, it requests /landed.
VICTIM = """<!doctype html><style>html, body { margin: 0 }
button { position: fixed; inset: 0; width: 100%; height: 100% }</style>
<form action=/landed><button>Transfer</button></form><script>
for (const kind of ["pointerdown", "mousedown", "pointerup", "mouseup", "click", "keydown", "drop"])
  addEventListener(kind, () => fetch(`/landed?${kind}`), true);
</script>"""
_PAGE = """<style>#more { position: absolute; left: 100px; top: 100px; width: 200px; height: 60px }
iframe { position: absolute; left: 5000px; top: 90px; width: 240px; height: 90px; border: 0;
 opacity: .01; z-index: 9 }</style>
<button id=more>Read more</button><iframe src="{url}" {attributes}></iframe><script>
const frame = document.querySelector("iframe");
const cover = () => { frame.style.left = "80px"; };
const uncover = () => { frame.style.left = "5000px"; };
{script}</script>"""
# When the page covers the button.
COVER_WHEN = {
    "pointermove": "addEventListener('pointermove', cover, true)",
    "pointerdown": "addEventListener('pointerdown', cover, true)",
    "after the move": "addEventListener('pointermove', () => setTimeout(cover, Math.random() * 12),"
    " true); setInterval(uncover, 90)",
    "now and then": "setInterval(() => Math.random() < .5 ? cover() : uncover(), 4)",
}


def covering_page(url: str, script: str, *, attributes: str = "") -> str:
    """Return a page with a button `Read more` and a script that covers it with a frame of `url`."""
    page = _PAGE.replace("{url}", url).replace("{attributes}", attributes)
    return page.replace("{script}", script)


@contextmanager
def victim_server() -> Iterator[PageServer]:
    """Run the server of the page that is shown in a frame; it counts what reaches that page."""
    with serve_pages() as server:
        server.add("/transfer", VICTIM)
        server.add("/landed", "ok")
        yield server


def frame_url(victim: PageServer, host: str) -> str:
    """Return the address of the page in the frame: another port, or another site."""
    return victim.url("/transfer").replace("127.0.0.1", host)
