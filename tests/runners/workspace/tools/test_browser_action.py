"""Opening, clicking and capturing pages of this machine, and no others, in a real Chromium."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runners.workspace.preview.local_page import LOCAL_URL
from runners.workspace.tools.browser_action import REQUEST
from tests.support.browser.page_server import PageResponse, PageServer, html, serve_pages
from tests.support.workspace.project import Project

PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"


def act(game: Project, action: str, **args: Any) -> None:
    """Run an action that must succeed."""
    assert game.output("browser_action", action=action, **args) == {"ok": True}


def code(game: Project, action: str, **args: Any) -> str:
    """Run an action that must fail and return the code."""
    return game.code("browser_action", action=action, **args)


def shown_url(game: Project) -> str:
    """Return the address that the project's tab displays."""
    assert game.browser is not None
    (inner,) = game.browser.resources.values()
    return str(inner.open_tabs()[0].page.url)  # type: ignore[attr-defined]


@pytest.fixture
def outside() -> Iterator[str]:
    """Serve a page at an address other than those of the two names; no request may arrive."""
    with serve_pages("127.0.0.2") as server:
        yield server.add("/outside", "<title>Outside</title>")
        assert server.hits.total() == 0


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/",
        "http://127.0.0.1.evil.test/",
        "http://localhost.evil.test/",
        "http://localhost@evil.test/",
        "http://localhost:80@evil.test/",
        "http://user@localhost/",
        "http://[::1]/",
        "http://127.1/",
        "http://0x7f.1/",
        "http://2130706433/",
        "http://0.0.0.0/",
        "http://127.0.0.2/",
        "http://LOCALHOST/",
        "http://localhost./",
        "http://foo.localhost/",
        "HTTP://localhost/",
        "http://localhost\\@evil.test/",
        "http://localhost#@evil.test/",
        "http://localhost?x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,hi",
        "about:blank",
        "chrome://version/",
        "ftp://localhost/",
        "view-source:http://localhost/",
        "ws://localhost/",
        "http://localhost:8000/admin/",
        "http://127.0.0.1:8000/",
        "http://[::ffff:127.0.0.1]/",
        "http://ⓛocalhost/",
        "http:localhost/",
        "localhost:80",
    ],
)
def test_an_address_that_is_not_clearly_local_is_against_the_policy(
    game: Project, url: str
) -> None:
    assert code(game, "open", url=url) == "E_POLICY_VIOLATION"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "no address",
        "/etc/passwd",
        "http://localhost:99999/",
        "http://localhost:0/",
        "http://localhost/a b",
        "http://localhost/\n",
        " http://localhost/",
        "http://localhost/\ud800",
        "http://localhost/a\\b",
        "http://localhost/" + "x" * 9000,
    ],
)
def test_an_invalid_address_is_a_bad_argument(game: Project, url: str) -> None:
    assert code(game, "open", url=url) == "E_BAD_ARGS"


@pytest.mark.parametrize("action", ["open", "click", "screenshot"])
def test_each_action_needs_its_own_argument(game: Project, action: str) -> None:
    assert code(game, action) == "E_BAD_ARGS"


def test_developer_mode_is_needed(game_with_browser: Project, page_server: PageServer) -> None:
    game_with_browser.policy = {"developer": False}
    url = page_server.add("/", "<title>Game</title>")
    assert code(game_with_browser, "open", url=url) == "E_TOOL_DISABLED"
    assert page_server.hits["/"] == 0


def test_a_call_without_a_browser_is_reported(game: Project) -> None:
    assert code(game, "open", url="http://localhost:3001/") == "E_UNSUPPORTED"


@pytest.mark.slow
def test_a_page_stays_open_between_calls(
    game_with_browser: Project, page_server: PageServer
) -> None:
    url = page_server.add("/menu", "<title>Menu</title><a id=start href='/game'>Start</a>")
    page_server.add("/game", "<title>Game</title><h1>Go</h1>")
    act(game_with_browser, "open", url=url)
    act(game_with_browser, "click", selector="#start")
    assert shown_url(game_with_browser).endswith("/game")
    act(game_with_browser, "screenshot", path="shots/game.png")
    assert (game_with_browser.root / "shots/game.png").read_bytes().startswith(PNG)


def test_another_run_of_the_same_session_finds_the_page_open(
    game_with_browser: Project, page_server: PageServer
) -> None:
    act(game_with_browser, "open", url=page_server.add("/game", "<title>Game</title><button>Go"))
    assert game_with_browser.browser is not None
    game_with_browser.browser.run_id = "run_later"
    act(game_with_browser, "click", selector="button")


def test_localhost_is_reached_by_its_name(
    game_with_browser: Project, page_server: PageServer
) -> None:
    page_server.add("/game", "<title>Game</title>")
    act(game_with_browser, "open", url=f"http://localhost:{page_server.server_port}/game")
    assert page_server.hits["/game"] == 1


@pytest.mark.parametrize(
    "action", [{"action": "click", "selector": "a"}, {"action": "screenshot", "path": "a.png"}]
)
def test_without_a_page_an_action_fails(game_with_browser: Project, action: dict[str, str]) -> None:
    error = game_with_browser.error("browser_action", **action)
    assert error["errorCode"] == "E_PREVIEW_FAIL"
    assert not (game_with_browser.root / "a.png").exists()


def test_a_redirect_to_another_host_is_not_followed(
    game_with_browser: Project, page_server: PageServer, outside: str
) -> None:
    redirect = PageResponse(status=302, headers={"Location": outside})
    assert (
        code(game_with_browser, "open", url=page_server.add("/out", redirect))
        == "E_POLICY_VIOLATION"
    )
    assert code(game_with_browser, "screenshot", path="a.png") == "E_PREVIEW_FAIL"


@pytest.mark.parametrize(
    "to", ["http://evil.test/", "https://example.com/", "http://[::1]/", "http://localhost:8000/"]
)
def test_redirects_by_name_are_not_followed_either(
    game_with_browser: Project, page_server: PageServer, to: str
) -> None:
    hop = page_server.add("/hop", PageResponse(status=307, headers={"Location": to}))
    first = page_server.add("/first", PageResponse(status=301, headers={"Location": hop}))
    assert code(game_with_browser, "open", url=first) == "E_POLICY_VIOLATION"


NAVIGATIONS = {
    "a link": "<a id=go href='{}'>go</a>",
    "a new tab": "<a id=go target=_blank href='{}'>go</a>",
    "a script": "<button id=go onclick='location = \"{}\"'>go</button>",
    "a form": "<form action='{}'><button id=go>go</button></form>",
    "a frame's top": '<button id=go onclick=\'document.querySelector("iframe").contentWindow'
    '.postMessage(1, "*")\'>go</button><iframe srcdoc="<script>onmessage = () =>'
    " {{ top.location = '{}' }}</script>\"></iframe>",
}


@pytest.mark.parametrize("kind", list(NAVIGATIONS))
def test_a_click_that_navigates_to_another_host_is_stopped(
    game_with_browser: Project, page_server: PageServer, outside: str, kind: str
) -> None:
    markup = "<title>Game</title>" + NAVIGATIONS[kind].format(outside)
    act(game_with_browser, "open", url=page_server.add("/game", markup))
    assert code(game_with_browser, "click", selector="#go") == "E_POLICY_VIOLATION"


@pytest.mark.slow
def test_no_request_of_a_page_leaves_this_machine(
    game_with_browser: Project, page_server: PageServer, outside: str
) -> None:
    markup = f"""<title>Game</title><img src="{outside}"><iframe src="{outside}"></iframe>
      <link rel=stylesheet href="{outside}"><script src="{outside}"></script>
      <script>fetch("{outside}", {{mode: "no-cors"}}); navigator.sendBeacon("{outside}");
      new WebSocket("{outside}".replace("http", "ws"));
      new Worker(URL.createObjectURL(new Blob(['fetch("{outside}", {{mode: "no-cors"}})'])));
      </script>"""
    act(game_with_browser, "open", url=page_server.add("/game", markup))
    act(game_with_browser, "screenshot", path="game.png")


def title_of(game: Project, url: str) -> str:
    """Return the title of the tab, of the run or of the project, that displays an address."""
    assert game.browser is not None
    assert game.loop is not None
    sessions: list[Any] = [game.browser, *game.browser.resources.values()]
    (page,) = [
        tab.page for session in sessions for tab in session.open_tabs() if tab.page.url == url
    ]
    return str(game.loop.submit(page.title()).result(30))


def test_the_cookies_of_the_run_are_not_sent_to_local_pages(
    game_with_browser: Project, page_server: PageServer
) -> None:
    page_server.add("/set", html("<title>Set</title>", headers={"Set-Cookie": "a=1"}))
    game_with_browser.output("open_page", url=page_server.url("/set"))
    url = page_server.add(
        "/see", "<title>See</title><script>document.title=document.cookie</script>"
    )
    act(game_with_browser, "open", url=url)
    assert title_of(game_with_browser, url) == ""
    assert game_with_browser.browser is not None
    assert len(game_with_browser.browser.open_tabs()) == 1
    assert "/set" in game_with_browser.browser.open_tabs()[0].page.url


@pytest.mark.slow
def test_a_page_that_does_not_answer_or_hangs_fails_in_time(
    game_with_browser: Project, page_server: PageServer
) -> None:
    game_with_browser.policy = {"browser_timeout_ms": 2500}
    assert code(game_with_browser, "open", url="http://127.0.0.1:1/") == "E_PREVIEW_FAIL"
    assert code(game_with_browser, "open", url="http://localhost:9/x") == "E_PREVIEW_FAIL"
    assert code(game_with_browser, "open", url=page_server.url("/never")) == "E_TIMEOUT"
    assert code(game_with_browser, "open", url=page_server.url("/hang-up")) == "E_PREVIEW_FAIL"
    assert code(game_with_browser, "open", url=page_server.url("/report.zip")) == "E_PREVIEW_FAIL"
    act(game_with_browser, "open", url=page_server.url("/plain"))


@pytest.mark.slow
def test_a_missing_element_is_waited_for_until_the_timeout(
    game_with_browser: Project, page_server: PageServer
) -> None:
    game_with_browser.policy = {"browser_timeout_ms": 2500}
    act(game_with_browser, "open", url=page_server.add("/game", "<title>Game</title><p>Nothing"))
    assert code(game_with_browser, "click", selector="#start") == "E_TIMEOUT"
    assert code(game_with_browser, "click", selector="][") == "E_BAD_ARGS"
    assert code(game_with_browser, "click", selector="  ") == "E_BAD_ARGS"


def test_a_screenshot_is_stored_in_the_workspace_and_as_an_artifact(
    game_with_browser: Project, page_server: PageServer
) -> None:
    act(game_with_browser, "open", url=page_server.url("/plain"))
    act(game_with_browser, "screenshot", path="shots/a.JPG")
    data = (game_with_browser.root / "shots/a.JPG").read_bytes()
    assert data.startswith(JPEG)
    assert game_with_browser.saved == [("screenshot", "image/jpeg", data)]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("../x.png", "E_DENY_PATH"),
        ("/tmp/x.png", "E_DENY_PATH"),
        (".git/x.png", "E_DENY_PATH"),
        ("link/x.png", "E_DENY_PATH"),
        ("a.txt", "E_BAD_ARGS"),
        ("a", "E_BAD_ARGS"),
        ("shots/", "E_BAD_ARGS"),
        (".png", "E_BAD_ARGS"),
        ("folder.png", "E_BAD_ARGS"),
        ("game/bg.png", "E_CONFLICT"),
        ("x\0.png", "E_BAD_ARGS"),
        (".env.png", "E_DENY_PATH"),
        ("linked.png", "E_DENY_PATH"),
        ("", "E_BAD_ARGS"),
    ],
)
def test_a_screenshot_is_written_nowhere_else(
    game_with_browser: Project, tmp_path: Path, path: str, expected: str
) -> None:
    game_with_browser.write("game/bg.png", PNG + b"an asset")
    game_with_browser.write("folder.png/x")
    game_with_browser.write("a.txt", "text")
    (game_with_browser.root / "link").symlink_to(tmp_path)
    (game_with_browser.root / "linked.png").symlink_to(tmp_path / "x.png")
    assert code(game_with_browser, "screenshot", path=path) == expected
    assert (game_with_browser.root / "game/bg.png").read_bytes() == PNG + b"an asset"
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize("path", ["a.png", "a.jpg"])
def test_a_screenshot_replaces_an_earlier_one(
    game_with_browser: Project, page_server: PageServer, path: str
) -> None:
    act(game_with_browser, "open", url=page_server.url("/plain"))
    act(game_with_browser, "screenshot", path=path)
    before = (game_with_browser.root / path).read_bytes()
    act(game_with_browser, "open", url=page_server.add("/red", "<body style='background: red'>x"))
    act(game_with_browser, "screenshot", path=path)
    assert (game_with_browser.root / path).read_bytes() != before
    assert os.listdir(game_with_browser.root) == [path]  # noqa: PTH208  (also what would be hidden)


def test_a_policy_with_fewer_hosts_is_enforced(
    game_with_browser: Project, page_server: PageServer
) -> None:
    game_with_browser.policy = {"allowed_hosts": ("localhost",)}
    url = page_server.add("/game", "<title>Game</title>")
    assert code(game_with_browser, "open", url=url) == "E_POLICY_VIOLATION"
    act(game_with_browser, "open", url=url.replace("127.0.0.1", "localhost"))
    assert page_server.hits["/game"] == 1


def test_the_session_of_local_pages_ends_with_the_run(
    game_with_browser: Project, page_server: PageServer
) -> None:
    act(game_with_browser, "open", url=page_server.url("/plain"))
    assert game_with_browser.browser is not None
    assert game_with_browser.loop is not None
    (inner,) = game_with_browser.browser.resources.values()
    game_with_browser.loop.submit(game_with_browser.browser.close()).result(30)
    assert inner.open_tabs() == []  # type: ignore[attr-defined]
    assert code(game_with_browser, "click", selector="a") == "E_PREVIEW_FAIL"


def test_the_schema_is_that_of_the_seed() -> None:
    assert REQUEST["properties"]["url"]["pattern"] == LOCAL_URL
    assert [rule["then"]["required"] for rule in REQUEST["allOf"]] == [
        ["action", "url"],
        ["action", "selector"],
        ["action", "path"],
    ]
