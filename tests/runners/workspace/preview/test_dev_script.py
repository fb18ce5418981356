"""A project's own dev script as its preview server, for developers: started, reused and ended."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.runs.waiting import wait_until
from tests.support.workspace.project import Project

PYTHON = shlex.quote(sys.executable)
# A dev server as projects have them: it prints its address once it listens.
SERVE = """
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Type", "text/html"); self.end_headers()
        self.wfile.write(b"<title>Dev</title><script>console.log('served by dev')</script>")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
print(f"  Local: \\x1b[36mhttp://localhost:{server.server_port}/\\x1b[0m", flush=True)
server.serve_forever()
"""


@pytest.fixture
def make_dev_project(game_with_browser: Project, closed_port: int) -> Callable[..., Project]:
    """A project with a dev script and no other preview server."""

    def make(dev: str = f"{PYTHON} serve.py", **scripts: str) -> Project:
        game_with_browser.write("serve.py", SERVE)
        game_with_browser.policy = {"preview_url": f"http://127.0.0.1:{closed_port}"}
        game_with_browser.scripts(dev=dev, **scripts)
        return game_with_browser

    return make


def servers_of(game: Project) -> list[psutil.Process]:
    """Return the processes of the project's dev server."""
    found = []
    for process in psutil.process_iter(["cwd", "status"]):
        is_own_folder = process.info["cwd"] == str(game.root)
        if is_own_folder and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


@pytest.mark.slow
def test_a_developer_can_preview_with_the_dev_script_of_the_project(
    make_dev_project: Callable[..., Project],
) -> None:
    game = make_dev_project(predev="touch prepared")
    first = game.output("preview_scene")
    assert "served by dev" in first["logs"][0]
    assert (game.root / "prepared").exists()
    assert game.output("preview_scene")["url"] == first["url"]  # the server is still running
    game.output("browser_action", action="open", url=first["url"])
    assert game.loop is not None
    assert game.browser is not None
    game.loop.submit(game.browser.close()).result(30)
    wait_until(lambda: not servers_of(game))


@pytest.mark.slow
def test_a_dev_server_that_died_is_restarted(make_dev_project: Callable[..., Project]) -> None:
    game = make_dev_project()
    game.output("preview_scene")
    for process in servers_of(game):
        with contextlib.suppress(psutil.NoSuchProcess):  # it ends with the one before
            process.kill()
    wait_until(lambda: not servers_of(game))
    assert "served by dev" in game.output("preview_scene")["logs"][0]


@pytest.mark.slow
def test_each_project_of_a_run_has_its_own_dev_server_and_page(
    make_dev_project: Callable[..., Project], tmp_path: Path
) -> None:
    game = make_dev_project()
    other = replace(game, root=tmp_path / "other")
    other.write("serve.py", SERVE.replace("served by dev", "served by the other"))
    other.scripts(dev=f"{PYTHON} serve.py")
    first = game.output("preview_scene")
    assert "served by the other" in other.output("preview_scene")["logs"][0]
    assert len(servers_of(game)) == len(servers_of(other)) > 0
    again = game.output("preview_scene")
    assert (again["url"], "served by dev" in again["logs"][0]) == (first["url"], True)


@pytest.mark.slow
def test_a_page_opened_by_one_project_is_not_used_by_another(
    make_dev_project: Callable[..., Project], tmp_path: Path
) -> None:
    game = make_dev_project()
    game.output("preview_scene")
    other = replace(game, root=tmp_path / "other")
    other.write("package.json", "{}")
    picture = {"action": "screenshot", "path": "a.png"}
    assert other.code("browser_action", **picture) == "E_PREVIEW_FAIL"


@pytest.mark.parametrize(
    ("dev", "expected"),
    [
        ("echo broken; exit 1", "E_PREVIEW_FAIL"),
        ("sleep 3600", "E_TIMEOUT"),
        ("echo http://localhost:8000/; sleep 3600", "E_POLICY_VIOLATION"),
        ("echo http://evil.test/; sleep 3600", "E_TIMEOUT"),
    ],
)
def test_a_dev_script_that_serves_nothing_is_terminated(
    make_dev_project: Callable[..., Project], dev: str, expected: str
) -> None:
    game = make_dev_project(dev)
    game.policy["command_timeout_ms"] = 1500
    assert game.code("preview_scene") == expected
    assert servers_of(game) == []


@pytest.mark.parametrize("policy", [{"developer": False}, {"allowed_commands": ("build",)}])
def test_a_dev_script_is_not_started_for_other_callers(
    make_dev_project: Callable[..., Project], policy: dict[str, Any]
) -> None:
    game = make_dev_project("touch done")
    game.policy |= policy
    assert game.code("preview_scene") == "E_PREVIEW_FAIL"
    assert not (game.root / "done").exists()
