"""WebGAL's engine is made to jump to the previewed scene: test pages follow the protocol of its
versions.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from runners.workspace.preview import scene_jump
from tests.support.browser.page_server import PageResponse, PageServer
from tests.support.runs.waiting import wait_until
from tests.support.workspace.project import Project

SCENE = "game/scene/第一章/beach date.txt"
# The engine's reaction to a jump: it fetches the scene and logs the lines that it executes.
ENGINE = """
let scene = '';
let run = async (name, sentence) => {
  const text = await (await fetch(encodeURI('/game/scene/' + name))).text();
  scene = name;
  console.log(`runs ${sentence} of ${name}: ${text.trim()}`);
};
const socket = protocol => new WebSocket(`ws://${location.host}/api/webgalsync`, protocol);
setTimeout(() => { scene = scene || 'start.txt'; }, 50);
"""
PERIODIC_SYNC = """
const connection = socket([]);
const send = message => connection.send(JSON.stringify(message));
connection.onopen = () => { connection.send('hello'); setInterval(report, 100); };
"""
BARE_PROTOCOL = (
    PERIODIC_SYNC
    + """
const report = () => send({command: 1, sceneMsg: {scene, sentence: 0}, message: 'sync'});
connection.onmessage = e => { const message = JSON.parse(e.data);
  if (message.command === 0) run(message.sceneMsg.scene, message.sceneMsg.sentence); };
"""
)
ENVELOPE_PROTOCOL = (
    PERIODIC_SYNC
    + """
const report = () => send({event: 'message', data: {command: 1, sceneMsg: {scene, sentence: 0}}});
connection.onmessage = e => { const message = JSON.parse(e.data).data;
  if (message.command === 0) run(message.sceneMsg.scene, message.sceneMsg.sentence); };
"""
)
# The engine ignores commands before it is registered, and the stage is notified of changes.
REQUEST_PROTOCOL = """
const connection = socket('webgal-editor-preview-sync.v1');
const send = message => connection.send(JSON.stringify(message));
const report = () => send({kind: 'event', type: 'stage.snapshot.updated',
  payload: {sceneName: scene, sentenceId: 0, stageState: {}}});
let registered = false;
connection.onopen = () => send({kind: 'request', type: 'session.register-preview', requestId: 'r1',
  payload: {}});
connection.onmessage = async e => { const message = JSON.parse(e.data);
  if (message.kind === 'response' && message.requestId === 'r1') {
    registered = true; report(); return; }
  if (!registered || message.type !== 'preview.command.sync-scene') return;
  send({kind: 'response', type: message.type, requestId: message.requestId, payload: {}});
  await run(message.payload.sceneName, message.payload.sentenceId); report(); };
"""


@pytest.fixture
def terre(
    game_with_browser: Project, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> PageServer:
    """A server that responds as WebGAL Terre does, with a scene."""
    game_with_browser.write(SCENE, "雪乃: 海风真舒服呢;\n")
    game_with_browser.policy = {"preview_url": page_server.url(""), "browser_timeout_ms": 60_000}
    monkeypatch.setattr(scene_jump, "ARRIVE_SECONDS", 60.0)
    page_server.add("/api/test", PageResponse(b"API Test OK", mime="text/plain"))
    for name in ("start.txt", "%E7%AC%AC%E4%B8%80%E7%AB%A0/beach%20date.txt"):
        page_server.add(f"/game/scene/{name}", PageResponse(b"a line;", mime="text/plain"))
    return page_server


def serve_engine(terre: PageServer, script: str) -> None:
    terre.add("/preview", f"<title>P</title><h1>Scene</h1><script>{ENGINE}{script}</script>")


def logs(game: Project, **args: Any) -> list[str]:
    return [line.split(" (http")[0] for line in game.output("preview_scene", **args)["logs"]]


@pytest.mark.slow
@pytest.mark.parametrize("engine", [BARE_PROTOCOL, ENVELOPE_PROTOCOL, REQUEST_PROTOCOL])
def test_an_engine_jumps_to_the_scene(
    game_with_browser: Project, terre: PageServer, engine: str
) -> None:
    serve_engine(terre, engine)
    runs = logs(game_with_browser, scenePath=SCENE)
    assert set(runs) == {"[log] runs 1 of 第一章/beach date.txt: a line;"}
    assert set(logs(game_with_browser)) == {"[log] runs 1 of start.txt: a line;"}  # in the same tab


@pytest.mark.slow
def test_an_engine_whose_own_first_scene_loads_late_jumps_again(
    game_with_browser: Project, terre: PageServer
) -> None:
    serve_engine(
        terre,
        "const goes = run; let n = 0; run = (...to) => n++ ? goes(...to) : 0;" + ENVELOPE_PROTOCOL,
    )
    assert "[log] runs 1 of 第一章/beach date.txt: a line;" in logs(
        game_with_browser, scenePath=SCENE
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", "did not connect as WebGAL's engine does"),
        ("socket([]).onopen = e => e.target.send('Terre is here')", "did not confirm in time"),
        (
            "const s = socket([]); s.onopen = () => ['[', '7', '[]', 'null', '{\"data\": []}',"
            ' \'{"kind": "request"}\', \'{"data": {"sceneMsg": {"scene": 7}}}\']'
            ".forEach(m => s.send(m))",
            "did not confirm in time",
        ),
    ],
)
def test_a_page_that_does_not_confirm_the_scene_gets_a_warning(
    game_with_browser: Project,
    terre: PageServer,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    expected: str,
) -> None:
    monkeypatch.setattr(scene_jump, "ARRIVE_SECONDS", 1.0)
    serve_engine(terre, script)
    [warning] = logs(game_with_browser, scenePath=SCENE)
    assert warning.startswith("[warning] The page")
    assert expected in warning


def test_the_start_scene_of_a_page_without_an_engine_gets_no_warning(
    game_with_browser: Project, terre: PageServer
) -> None:
    serve_engine(terre, "")
    assert logs(game_with_browser) == []


@pytest.mark.slow
def test_a_page_that_the_server_returns_for_any_path_gets_a_warning(
    game_with_browser: Project, terre: PageServer
) -> None:
    serve_engine(terre, "")
    terre.pages = AnyPage(terre.pages)
    assert logs(game_with_browser)[0].startswith(
        "[warning] The server returns this page for any path"
    )
    serve_engine(terre, ENVELOPE_PROTOCOL)  # here the server does run the game
    assert set(logs(game_with_browser)) == {"[log] runs 1 of start.txt: a line;"}


class AnyPage(dict[str, Any]):
    """Pages of a server that returns one page for every unknown path."""

    def get(self, path: str, default: Any = None) -> Any:
        is_unknown = re.fullmatch(r"/[0-9a-f]{16}", path)
        return self["/preview"] if is_unknown else super().get(path, default)


@pytest.mark.slow
def test_a_page_opened_later_connects_to_its_own_server(
    game_with_browser: Project, terre: PageServer
) -> None:
    serve_engine(terre, ENVELOPE_PROTOCOL)
    logs(game_with_browser, scenePath=SCENE)
    url = terre.add("/editor", f"<title>E</title><script>{ENGINE}socket([])</script>")
    game_with_browser.output("browser_action", action="open", url=url)
    wait_until(lambda: terre.hits["/api/webgalsync"] == 1)
