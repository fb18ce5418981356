"""`preview_scene` in the local preview of a project, with a real server and a real Chromium."""

from __future__ import annotations

import socket
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from runners.workspace.tools.preview_scene import RESPONSE
from tests.support.browser.page_server import PageResponse, PageServer, html
from tests.support.workspace.project import Project

SCENE = "game/scene/beach_date.txt"
CONFIG = "Game_name:Beach;\nGame_key:abc;\n"
PLAYER = "<title>Preview</title><h1>Scene</h1>"


@pytest.fixture
def terre(game_with_browser: Project, page_server: PageServer) -> PageServer:
    """A server that responds as WebGAL Terre does, and a project with one scene."""
    game_with_browser.write(SCENE, "雪乃: 海风真舒服呢;\n")
    game_with_browser.write("game/config.txt", CONFIG)
    game_with_browser.policy = {"preview_url": page_server.url("")}
    page_server.add("/api/test", PageResponse(b"API Test OK", mime="text/html; charset=utf-8"))
    page_server.add("/preview", PLAYER)
    return page_server


def preview(game: Project, **args: Any) -> dict[str, Any]:
    """Preview a scene and check that the result has the fields of the S2 seed."""
    result = game.output("preview_scene", **args)
    Draft202012Validator(dict(RESPONSE)).validate(result)
    return result


def test_a_scene_is_displayed_in_the_preview(game_with_browser: Project, terre: PageServer) -> None:
    result = preview(game_with_browser, scenePath=SCENE)
    assert result["url"] == terre.url("/preview#scene=beach_date")
    assert (terre.hits["/api/test"], terre.hits["/preview"]) == (1, 2)


def test_the_start_scene_is_the_default(game_with_browser: Project, terre: PageServer) -> None:
    assert preview(game_with_browser)["url"].endswith("/preview#scene=start")


def test_scene_names_keep_folders_and_non_ascii_letters(
    game_with_browser: Project, terre: PageServer
) -> None:
    game_with_browser.write("public/game/scene/第一章/a b.txt", ";")
    url = preview(game_with_browser, scenePath="public/game/scene/第一章/a b.txt")["url"]
    assert url.endswith("#scene=%E7%AC%AC%E4%B8%80%E7%AB%A0/a%20b")


def test_a_game_that_terre_serves_is_opened_directly(
    game_with_browser: Project, terre: PageServer
) -> None:
    terre.add(
        "/games/game_project/game/config.txt", PageResponse(CONFIG.encode(), mime="text/plain")
    )
    terre.add("/games/game_project/", PLAYER)
    assert preview(game_with_browser)["url"] == terre.url("/games/game_project/#scene=start")


def test_a_different_game_of_the_same_name_is_not_opened(
    game_with_browser: Project, terre: PageServer
) -> None:
    terre.add("/games/game_project/game/config.txt", "Game_name:Another;")
    assert "/games/" not in preview(game_with_browser)["url"]


def test_a_dev_server_is_opened_at_its_root(game_with_browser: Project, terre: PageServer) -> None:
    terre.add("/api/test", PLAYER)
    terre.add("/", PLAYER)
    assert preview(game_with_browser)["url"] == terre.url("/#scene=start")


def test_console_messages_and_the_line_of_the_first_error_are_returned(
    game_with_browser: Project, terre: PageServer
) -> None:
    game_with_browser.secrets = ("hunter2",)
    terre.add(
        "/preview",
        "<title>P</title>\n<script>\nconsole.log('loaded');\n"
        "console.warn('hunter2');\nnull.x;\n</script>",
    )
    result = preview(game_with_browser)
    address = terre.url("/preview")
    assert result["logs"][0] == f"[log] loaded ({address}:3)"
    assert result["logs"][1].startswith("[warning] *** (")
    assert result["logs"][2].startswith("[error] Uncaught Cannot read properties of null")
    # an error of the page's own script has no line of a scene
    assert "firstErrorLine" not in result


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("start.txt:12 unknown command", 12),
        ("syntax error at line 7", 7),
        ("第 31 行缺少分号", 31),
        ("no line number", 99),
        ("no JSON at position 5 (line 1 column 6)", 99),
    ],
)
def test_the_line_number_is_read_from_the_error(
    game_with_browser: Project, terre: PageServer, message: str, line: int
) -> None:
    page = "<title>P</title>\n<script>console.error('{}'); console.error('line 99')</script>"
    terre.add("/preview", page.format(message))
    assert preview(game_with_browser)["firstErrorLine"] == line


def test_a_load_failure_is_an_error_without_a_line(
    game_with_browser: Project, terre: PageServer
) -> None:
    terre.add("/preview", "<title>P</title><img src=/none.webp>")
    result = preview(game_with_browser)
    assert "firstErrorLine" not in result
    assert result["logs"] == [
        "[error] Failed to load resource: the server responded with a status of 404 (Not Found)"
        f" ({terre.url('/none.webp')})"
    ]


def test_a_request_to_another_host_is_blocked_and_logged(
    game_with_browser: Project, terre: PageServer
) -> None:
    terre.add("/preview", "<title>P</title><script src='http://cdn.example/x.js'></script>")
    logs = preview(game_with_browser)["logs"]
    assert any("Blocked: the page requested cdn.example" in line for line in logs)


@pytest.mark.slow
def test_a_large_number_of_messages_is_truncated(
    game_with_browser: Project, terre: PageServer
) -> None:
    script = "for (let i = 0; i < 700; i++) console.log('m' + i + 'x'.repeat(i == 3 ? 9999 : 0))"
    terre.add("/preview", f"<title>P</title><script>{script}</script>")
    logs = preview(game_with_browser)["logs"]
    assert len(logs) == 501
    assert len(logs[3]) < 2100
    assert logs[-1] == "[… 200 more messages left out …]"


@pytest.mark.slow
def test_the_same_scene_is_reloaded_each_time(
    game_with_browser: Project, terre: PageServer
) -> None:
    preview(game_with_browser)
    terre.add("/preview", "<title>P</title><script>console.log('changed')</script>")
    assert "changed" in preview(game_with_browser)["logs"][0]
    assert "changed" in preview(game_with_browser, scenePath=SCENE)["logs"][0]


def test_the_page_stays_open_for_browser_action(
    game_with_browser: Project, terre: PageServer
) -> None:
    preview(game_with_browser)
    game_with_browser.output("browser_action", action="screenshot", path="preview.png")
    assert (game_with_browser.root / "preview.png").is_file()


def test_a_closed_port_fails(game_with_browser: Project, closed_port: int) -> None:
    game_with_browser.policy = {"preview_url": f"http://127.0.0.1:{closed_port}"}
    error = game_with_browser.error("preview_scene")
    assert error["errorCode"] == "E_PREVIEW_FAIL"


def test_without_a_browser_only_the_address_is_returned(
    game_with_browser: Project, terre: PageServer
) -> None:
    game_with_browser.browser = None
    assert preview(game_with_browser) == {"url": terre.url("/preview#scene=start")}
    terre.add("/api/test", html("broken", status=500))
    assert game_with_browser.code("preview_scene") == "E_PREVIEW_FAIL"


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/api/test", "/preview"])
def test_a_hanging_server_times_out(
    game_with_browser: Project, terre: PageServer, path: str
) -> None:
    game_with_browser.policy |= {"browser_timeout_ms": 1500}
    terre.add(path, html("late", delay=3600.0))
    assert game_with_browser.code("preview_scene") == "E_TIMEOUT"


@pytest.mark.parametrize(
    "answer",
    [
        html("broken", status=500),
        PageResponse(status=0),
        PageResponse(b"PK", mime="application/zip", headers={"Content-Disposition": "attachment"}),
    ],
    ids=["an error", "nothing", "a download"],
)
def test_an_empty_preview_page_fails(
    game_with_browser: Project, terre: PageServer, answer: PageResponse
) -> None:
    terre.add("/preview", answer)
    assert game_with_browser.code("preview_scene") == "E_PREVIEW_FAIL"


@pytest.mark.parametrize(
    "response_bytes",
    [b"220 mail.example ESMTP\r\n\r\n", b"\x16\x03\x01", b"HTTP/1.1 200", b"x" * 100_000],
)
def test_a_port_that_does_not_speak_http_fails(
    game_with_browser: Project, response_bytes: bytes
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        threading.Thread(target=_respond, args=(server, response_bytes), daemon=True).start()
        game_with_browser.policy = {"preview_url": f"http://127.0.0.1:{server.getsockname()[1]}"}
        assert game_with_browser.code("preview_scene") == "E_PREVIEW_FAIL"


def _respond(server: socket.socket, response_bytes: bytes) -> None:
    with closing(server.accept()[0]) as caller:
        caller.sendall(response_bytes)


def test_a_redirect_to_another_host_is_not_followed(
    game_with_browser: Project, terre: PageServer
) -> None:
    redirect = PageResponse(status=302, headers={"Location": "https://example.com/"})
    terre.add("/preview", redirect)
    assert game_with_browser.code("preview_scene") == "E_POLICY_VIOLATION"


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/",
        "http://localhost@evil.test/",
        "http://[::1]:3001",
        "http://10.0.0.1",
        "http://127.0.0.1:8000",
        "file:///etc",
        "",
        "nonsense",
        "http://localhost:99999",
    ],
)
def test_a_preview_on_another_machine_is_refused_by_policy(
    game_with_browser: Project, url: str
) -> None:
    game_with_browser.policy = {"preview_url": url}
    assert game_with_browser.code("preview_scene") == "E_POLICY_VIOLATION"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("../x", "E_DENY_PATH"),
        ("/etc/passwd", "E_DENY_PATH"),
        (".git/a.txt", "E_DENY_PATH"),
        ("link/a.txt", "E_DENY_PATH"),
        ("game/scene/none.txt", "E_NOT_FOUND"),
        ("", "E_BAD_ARGS"),
        ("game/scene", "E_BAD_ARGS"),
        ("game/config.txt", "E_BAD_ARGS"),
        ("a\0.txt", "E_BAD_ARGS"),
        ("game/scene/folder.txt", "E_BAD_ARGS"),
        ("game/scene/.txt", "E_BAD_ARGS"),
    ],
)
def test_an_invalid_scene_path_is_refused_before_any_request(
    game_with_browser: Project, terre: PageServer, tmp_path: Path, path: str, expected: str
) -> None:
    (game_with_browser.root / "link").symlink_to(tmp_path)
    game_with_browser.write("game/scene/folder.txt/x")
    game_with_browser.write("game/scene/.txt")
    assert game_with_browser.code("preview_scene", scenePath=path) == expected
    assert terre.hits["/api/test"] == 0
