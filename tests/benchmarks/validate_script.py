"""Check a script of 10 000 lines with validate_script, against a floor: its lines split at their
`:` and `;` by one regular expression.

One script has no fault, and in another every second line has a fault. CPU time, so that other
processes do not affect the result.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from runners.workspace.files.sandbox import Sandbox
from runners.workspace.webgal.checks import check_script
from runners.workspace.webgal.project import Project
from runners.workspace.workspace import ProjectWorkspace
from tests.benchmarks.rounds import alternate, ratio, report, spread
from tests.support.workspace.webgal import sample_game

MAX_LINES = 10_000
_LINE = re.compile(r"^([^:;\n]*):?([^;\n]*);?(.*)$", re.MULTILINE)
VALID_LINES = [
    "changeBg:beach.png -next;",
    "雪乃:海风真舒服呢 -yukino/v1.wav;",
    "接着说一句话;",
    "; 注释",
    "choose:去:beach.txt|不去:home;",
    "label:home;",
    "",
    "playEffect:bell.wav -volume=60;",
    'setTransform:{"position":{"x":120,"y":-40}} -target=fig-left -duration=500 -next;',
    "changeFigure:yukino/smile.png -left -next; 笑了",
]
FAULTY_LINES = [
    *VALID_LINES[:5],
    "changeBG:beach.png;",
    "bgm:wave.wav;",
    "雪乃:没有分号",
    "jumpLabel:hom;",
    "a;\t",
]


def _ms(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return (time.process_time() - started) * 1000


def _check(game: ProjectWorkspace, text: str) -> None:
    with Sandbox(game.root, game.policy.forbidden) as sandbox:
        check_script(text, Project(sandbox), "ZH")


def main() -> None:
    """Measure and report."""
    valid = "\n".join(VALID_LINES * (MAX_LINES // len(VALID_LINES)))
    faulty = "\n".join(FAULTY_LINES * (MAX_LINES // len(FAULTY_LINES)))
    with tempfile.TemporaryDirectory() as folder:
        game = sample_game(Path(folder))
        ms = alternate(
            {
                "floor": lambda: _ms(lambda: _LINE.findall(valid)),
                "valid": lambda: _ms(lambda: _check(game, valid)),
                "faulty": lambda: _ms(lambda: _check(game, faulty)),
            }
        )
    report(
        "validate_script",
        lines=MAX_LINES,
        goal_ms=500,
        ours_ms=spread(ms["valid"]),
        ours_ms_half_faulty=spread(ms["faulty"]),
        floor_ms=spread(ms["floor"]),
        ratio=ratio(ms["valid"], ms["floor"]),
        ratio_half_faulty=ratio(ms["faulty"], ms["floor"]),
    )


if __name__ == "__main__":
    main()
