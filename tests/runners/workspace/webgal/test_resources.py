"""Files and labels that a scene refers to exist, or are reported as missing with the nearest
name."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.workspace.workspace import ProjectWorkspace
from tests.support.workspace.webgal import diagnostics, diagnostics_of_kind, game_with

FILES = [
    "background/beach.png",
    "background/night/rooftop.webp",
    "figure/yukino.png",
    "figure/live/shore.model3.json",
    "bgm/waves.mp3",
    "vocal/v1.wav",
    "vocal/yukino/v 2.ogg",
    "video/op.mp4",
    "scene/start.txt",
    "scene/chapter1/beach.txt",
]


@pytest.fixture
def game(tmp_path: Path) -> ProjectWorkspace:
    """A game with one or two files of each kind."""
    return game_with(tmp_path, FILES)


@pytest.mark.parametrize(
    "statement",
    [
        "changeBg:beach.png;",
        "changeBg: night/rooftop.webp -next;",
        "unlockCg:beach.png -name=x;",
        "changeFigure:yukino.png;",
        "changeFigure:live/shore.model3.json?type=live2d;",
        "miniAvatar:yukino.png;",
        "bgm:waves.mp3;",
        "unlockBgm:waves.mp3;",
        "playEffect:v1.wav;",
        "playEffect:waves.mp3;",
        "雪乃:a -v1.wav;",
        "雪乃:a -waves.mp3;",
        "雪乃:a -yukino/v 2.ogg -next;",
        "雪乃:a -vocal=v1.wav;",
        "playVideo:op.mp4;",
        "changeScene:start.txt;",
        "callScene:chapter1/beach.txt;",
        "choose:a:start.txt|b: chapter1/beach.txt ;",
        "changeBg:../figure/yukino.png;",
        "changeBg:./beach.png;",
    ],
)
def test_existing_files_are_no_fault(game: ProjectWorkspace, statement: str) -> None:
    assert diagnostics(game, statement) == []


@pytest.mark.parametrize(
    "statement",
    [
        "changeBg:none;",
        "changeBg:;",
        "bgm: -volume=0;",
        "changeBg:http://a.test/x.png;",
        "changeBg:https://a.test/x.png;",
        "changeBg:{bg}.png;",
        "雪乃:a -{voice}.wav;",
        "choose:a:https\\://a.test/x.txt;",
        "雪乃:changeBg 不存在.png;",
        ";changeBg:x.png;",
        "choose:a|b:;",
        "jumpLabel:{where};",
        "jumpLabel:;",
        "say:a -vocal=none;",
    ],
)
def test_a_value_that_is_not_a_file_of_the_game_is_no_fault(
    game: ProjectWorkspace, statement: str
) -> None:
    assert diagnostics(game, statement) == []


@pytest.mark.parametrize(
    ("statement", "kind", "path", "nearest"),
    [
        ("changeBg:beach.jpg;", "background", "background/beach.jpg", "beach.png"),
        ("changeBg:Beach.png;", "background", "background/Beach.png", "beach.png"),
        ("unlockCg:rooftop.webp;", "background", "background/rooftop.webp", "night/rooftop.webp"),
        ("changeFigure:yukno.png;", "figure", "figure/yukno.png", "yukino.png"),
        ("miniAvatar:yukinoo.png;", "figure", "figure/yukinoo.png", "yukino.png"),
        ("bgm:wave.mp3;", "music", "bgm/wave.mp3", "waves.mp3"),
        ("unlockBgm:waves.ogg;", "music", "bgm/waves.ogg", "waves.mp3"),
        ("雪乃:a -v2.wav;", "sound", "vocal/v2.wav", "v1.wav"),
        ("playEffect:v1.mp3;", "sound", "vocal/v1.mp3", "v1.wav"),
        ("playVideo:OP.mp4;", "video", "video/OP.mp4", "op.mp4"),
        ("changeScene:strat.txt;", "scene", "scene/strat.txt", "start.txt"),
        ("callScene:beach.txt;", "scene", "scene/beach.txt", "chapter1/beach.txt"),
        ("choose:a:start.text|b:start.txt;", "scene", "scene/start.text", "start.txt"),
    ],
)
def test_a_missing_file_is_reported_with_the_nearest_one(
    game: ProjectWorkspace, statement: str, kind: str, path: str, nearest: str
) -> None:
    expected = (1, f"The {kind} “game/{path}” does not exist", f"The closest file: {nearest}")
    assert diagnostics_of_kind(game, statement, "resource") == [expected]


@pytest.mark.parametrize(
    "name",
    [
        "../../../etc/passwd",
        "../../secret.png",
        "../../other/deep/x.png",
        "/etc/passwd",
        "..",
        ".",
        "../background",
        "night",
        "a" * 5000,
    ],
)
def test_a_name_that_leads_out_of_its_folder_is_a_missing_file(tmp_path: Path, name: str) -> None:
    game = game_with(tmp_path, FILES)
    (game.root / "secret.png").touch()
    (game.root / "other/deep").mkdir(parents=True)
    (game.root / "other/deep/x.png").touch()
    (tmp_path / "secret.png").touch()
    assert len(diagnostics_of_kind(game, f"changeBg:{name};", "resource")) == 1


def test_a_link_is_not_a_file_of_the_game(tmp_path: Path) -> None:
    game = game_with(tmp_path, FILES)
    (game.root / "game/background/link.png").symlink_to(game.root / "game/background/beach.png")
    assert len(diagnostics_of_kind(game, "changeBg:link.png;", "resource")) == 1


def test_without_a_near_file_the_hint_names_the_list(game: ProjectWorkspace) -> None:
    [(_, _, hint)] = diagnostics_of_kind(game, "changeBg:完全不同的名字.png;", "resource")
    assert hint == "Check the name; list_project_resources lists the existing files"


def test_in_a_folder_that_is_not_a_game_every_file_is_missing(tmp_path: Path) -> None:
    assert (
        len(diagnostics_of_kind(game_with(tmp_path), "changeBg:a.png;\nbgm:b.mp3;", "resource"))
        == 2
    )


def test_labels_are_found_anywhere_in_the_scene(game: ProjectWorkspace) -> None:
    assert diagnostics(game, "jumpLabel:a;\nchoose: x : b | y:a;\nlabel: a ;\nlabel:b;") == []


def test_a_missing_label_is_reported_with_the_nearest_one(game: ProjectWorkspace) -> None:
    text = "label:sunset;\njumpLabel:sunet;\nchoose:走:sunsat|留:home;"
    assert diagnostics_of_kind(game, text, "resource") == [
        (2, "This scene has no label “sunet”", "The closest label: sunset"),
        (3, "This scene has no label “sunsat”", "The closest label: sunset"),
        (3, "This scene has no label “home”", "Add “label:home;”"),
    ]


def test_a_label_of_another_scene_is_reported_as_such(tmp_path: Path) -> None:
    game = game_with(tmp_path, ["scene/a.txt", "scene/b.txt"])
    (game.root / "game/scene/b.txt").write_bytes("label: 海边 -next;\r\n雪乃:x;".encode())
    [(_, _, hint)] = diagnostics_of_kind(game, "jumpLabel:海边;", "resource")
    assert hint == (
        "“海边” is a label of scene “b.txt”; labels are valid in their scene only, use changeScene"
    )
