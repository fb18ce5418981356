"""A web process is killed while a paired browser performs an action for a worker: the browser
connects to another web process, and the action is performed once.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager

import pytest

from decisions.identity.principals import local_principal
from runners.invocation.event_loop import get_loop
from runners.models import PluginClient
from runners.paired_browser import dispatch
from runners.paired_browser.dispatch import BrowserReply, perform_in_browser
from runners.paired_browser.messaging.replies import get_reply_hub
from runners.paired_browser.pairing.selectors import connected_browsers
from runners.paired_browser.pairing.tickets import create_ticket
from tests.faults.installation import FaultInstallation, Process
from tests.services import free_port
from tests.support.runners.protocol_browser import Message, ProtocolBrowser, open_browser
from tests.support.runners.protocol_fixtures import action_for

CLICKED = {"clicked": True, "strategy": "cdp_mouse"}


class WebProcess:
    """A web process and its address."""

    def __init__(self, installation: FaultInstallation) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.process: Process = installation.start("serve", "--port", str(port))
        installation.wait_until(lambda: "Serving" in self.process.log.read_text())


@contextmanager
def connect(web: WebProcess, **credential: str) -> Iterator[ProtocolBrowser]:
    """Connect a browser as soon as the web process accepts connections."""
    with ExitStack() as opened:
        for _ in range(100):
            try:
                browser = opened.enter_context(open_browser(web.url))
            except OSError:
                web.process.popen.poll()
                continue
            browser.perform = lambda action: {"result": CLICKED}
            browser.activate(**credential)
            yield browser
            return
    raise AssertionError("the web process does not answer")


def secret_of(session: Message) -> dict[str, str]:
    return {name: session[name] for name in ("clientId", "secret")}


def start_action(client_id: str) -> Future[BrowserReply]:
    return get_loop().submit(perform_in_browser(action_for(client_id, timeout_ms=20_000)))


async def _close_reply_hub() -> None:
    await get_reply_hub().close()


@pytest.fixture(autouse=True)
def close_reply_hub_after(installation: FaultInstallation) -> Iterator[None]:
    """Close this process's subscription before the installation's Redis stops."""
    yield
    get_loop().submit(_close_reply_hub()).result(60)


@pytest.mark.slow
def test_a_result_reaches_the_worker_over_another_web_process(
    installation: FaultInstallation,
) -> None:
    first, second = WebProcess(installation), WebProcess(installation)
    with connect(first, ticket=create_ticket(principal=local_principal())["ticket"]) as browser:
        browser.perform = lambda action: None  # it takes a while
        waiting = start_action(browser.session["clientId"])
        installation.wait_until(lambda: browser.actions)
        first.process.kill()
        browser.close_code()
    with connect(second, **secret_of(browser.session)) as again:
        again.perform = lambda action: None
        installation.wait_until(lambda: again.actions)  # the worker sent it again
        [sent], [repeated] = browser.actions, again.actions
        assert repeated["actionId"] == sent["actionId"]
        assert again.send_result(sent, result=CLICKED)["ok"]
        assert waiting.result(10) == BrowserReply("success", CLICKED)


def test_an_action_waits_for_a_browser_that_connects_again(
    installation: FaultInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "RECONNECT_S", 60.0)  # it takes long on a loaded machine
    first, second = WebProcess(installation), WebProcess(installation)
    with connect(first, ticket=create_ticket(principal=local_principal())["ticket"]) as browser:
        first.process.kill()
        browser.close_code()
    assert connected_browsers().count() == 1  # nobody could record its end
    waiting = start_action(browser.session["clientId"])
    with connect(second, **secret_of(browser.session)) as again:
        assert waiting.result(60).result == CLICKED
        assert len(again.actions) == 1


@pytest.mark.slow
def test_a_browser_connected_to_one_web_process_is_removed_over_another(
    installation: FaultInstallation,
) -> None:
    from runners.paired_browser.pairing.registry import revoke_browser

    web = WebProcess(installation)
    with connect(web, ticket=create_ticket(principal=local_principal())["ticket"]) as browser:
        assert revoke_browser(PluginClient.objects.get(), actor="local")
        assert browser.close_code() == 4410


def test_a_stopped_web_process_asks_its_browsers_to_connect_again(
    installation: FaultInstallation,
) -> None:
    web = WebProcess(installation)
    with connect(web, ticket=create_ticket(principal=local_principal())["ticket"]) as browser:
        web.process.popen.terminate()
        assert browser.close_code() == 1001
    installation.wait_until(lambda: PluginClient.objects.get().connection_id is None)


@pytest.mark.slow
def test_browsers_connect_again_after_an_outage_of_redis(installation: FaultInstallation) -> None:
    web = WebProcess(installation)
    with connect(web, ticket=create_ticket(principal=local_principal())["ticket"]) as browser:
        installation.redis.kill()
        assert browser.close_code() == 1001
        installation.redis.start()
    with connect(web, **secret_of(browser.session)) as again:
        assert start_action(again.session["clientId"]).result(20).result == CLICKED
