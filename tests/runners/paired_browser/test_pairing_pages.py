"""A person pairs a browser on the extension's page, or confirms what the admin proposes there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.extension.devtools import DevTools
from tests.support.extension.extension_browser import (
    EXTENSION,
    EXTENSION_ID,
    ExtensionBrowser,
    extension_browser,
    find_full_chromium,
)
from tests.support.extension.extension_fixtures import RECONNECT
from tests.support.extension.extension_server import ExtensionServer, extension_server
from tests.support.extension.visible_page import pair

pytestmark = pytest.mark.slow
OPTIONS = f"chrome-extension://{EXTENSION_ID}/options/options.html"
SHOWN = "(() => { const e = document.getElementById('%s'); return !e.hidden && e.textContent; })()"
UNTIL = """new Promise((resolve) => {
  const look = () => (%s ? resolve(true) : setTimeout(look, 20));
  look();
})"""


@pytest.fixture
def unpaired(
    tmp_path: Path,
) -> Iterator[tuple[ExtensionBrowser, ExtensionServer, DevTools]]:
    """Yield a browser whose extension accepts proposals of the server, and its options page."""
    if find_full_chromium() is None:
        pytest.skip("There is no full Chromium, which extensions need.")
    with extension_server() as server:
        folder = tmp_path / "extension"
        shutil.copytree(EXTENSION, folder)
        manifest = json.loads((folder / "manifest.json").read_text())
        page = f"http://127.0.0.1:{server.files.server_port}"
        manifest["externally_connectable"] = {"matches": [f"{page}/*"]}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        server.files.files["/admin"] = b"<!doctype html><title>Admin</title>"
        with extension_browser(tmp_path / "profile", extension=folder) as browser:
            options = browser.page(OPTIONS)
            wait_until(options, "document.readyState === 'complete'")
            yield browser, server, options
            options.close()


def wait_until(page: DevTools, condition: str) -> None:
    page.evaluate(UNTIL % condition)


def submit(options: DevTools, ticket: str, address: str = "") -> None:
    options.evaluate(
        f"""document.getElementById("ticket").value = {json.dumps(ticket)};
        document.getElementById("address").value = {json.dumps(address)};
        document.getElementById("pair").click()"""
    )


def test_a_person_pairs_with_a_link_and_ends_the_pairing(
    unpaired: tuple[ExtensionBrowser, ExtensionServer, DevTools],
) -> None:
    _, server, options = unpaired
    submit(options, "abc", server.origin)
    wait_until(options, SHOWN % "problem")
    assert "This is no ticket" in options.evaluate(SHOWN % "problem")
    submit(options, f"{server.origin}/admin/#plt_0123456789")
    wait_until(options, SHOWN % "paired")
    assert server.of_type("activate_extension")[0]["ticket"] == "plt_0123456789"
    assert options.evaluate(SHOWN % "server") == server.origin
    assert options.evaluate(SHOWN % "principal") == "me"
    options.evaluate("document.getElementById('unpair').click()")
    wait_until(options, "document.getElementById('paired').hidden")
    assert options.evaluate("chrome.storage.local.get()") == {}


def test_a_proposal_of_the_admin_is_used_only_after_it_was_confirmed(
    unpaired: tuple[ExtensionBrowser, ExtensionServer, DevTools],
) -> None:
    browser, server, options = unpaired
    admin = f"http://127.0.0.1:{server.files.server_port}"
    browser.evaluate(f"chrome.tabs.create({{url: '{admin}/admin'}})")
    page = browser.page(f"{admin}/admin")
    send = f"chrome.runtime.sendMessage('{EXTENSION_ID}', %s)"
    proposal = {"type": "pair", "server": server.origin, "ticket": "plt_0123456789"}
    refused = page.evaluate(send % json.dumps(proposal))
    assert refused == {"ok": False, "error": "foreignServer"}  # another port is another server
    assert page.evaluate(send % json.dumps({**proposal, "server": admin})) == {"ok": True}
    page.close()
    wait_until(options, SHOWN % "proposal")
    assert options.evaluate(SHOWN % "proposal-server") == admin
    assert not server.of_type("activate_extension")
    options.evaluate("document.getElementById('decline').click()")
    wait_until(options, "document.getElementById('proposal').hidden")
    assert not server.of_type("activate_extension")


def test_the_page_forgets_an_ended_pairing_once_the_browser_is_paired_again(
    unpaired: tuple[ExtensionBrowser, ExtensionServer, DevTools],
) -> None:
    browser, server, options = unpaired
    pair(browser, server.origin, "plt_0123456789")
    server.secrets = ["of another pairing"] * 2
    server.drop()
    browser.evaluate(RECONNECT)
    wait_until(options, SHOWN % "problem")
    assert "ended this pairing" in options.evaluate(SHOWN % "problem")
    pair(browser, server.origin, "plt_9876543210")
    wait_until(options, SHOWN % "paired")
    wait_until(options, "document.getElementById('problem').hidden")
