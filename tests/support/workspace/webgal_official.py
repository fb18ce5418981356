"""Parse scenes with the engine's own parser, webgal-parser from npm.

The scenes in tests/data/webgal/corpus are our own; that parser generated their expected statements:

    python -m tests.support.workspace.webgal_official   generates them again (needs node and npm)
"""

from __future__ import annotations

import atexit
import functools
import json
import math
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runners.workspace.webgal.parser import Statement, Value

VERSION = "4.5.18"
DATA = Path(__file__).parents[2] / "data" / "webgal"
CORPUS, EXPECTED = DATA / "corpus", DATA / "expected.json"
# A statement in the form for comparison: command, content, arguments, comment.
Compared = list[Any]
# The parser replaces each line that it joined to the previous line by this comment.
PLACEHOLDER = "_WEBGAL_LINE_BREAK_"
_PROGRAM = """
import Parser, {SCRIPT_CONFIG, ADD_NEXT_ARG_LIST, sceneTextPreProcess} from './parser.mjs';
import readline from 'node:readline';
console.log = () => {};  // the parser prints every line
const names = new Map(SCRIPT_CONFIG.map(entry => [entry.scriptType, entry.scriptString]));
const parser = new Parser(() => {}, name => name, ADD_NEXT_ARG_LIST, SCRIPT_CONFIG);
const comparable = value =>
  Number.isFinite(value) || typeof value !== 'number' ? value : String(value);
for await (const line of readline.createInterface({input: process.stdin})) {
  const scene = parser.parse(sceneTextPreProcess(JSON.parse(line)), 'scene', 'scene');
  process.stdout.write(JSON.stringify(scene.sentenceList.map(statement => [
    names.get(statement.command) ?? 'comment', statement.content,
    statement.args.map(arg => [arg.key, comparable(arg.value)]),
    statement.inlineComment])) + '\\n');
}
"""


class ParserUnavailable(Exception):
    """The official parser cannot run on this machine; the message contains the reason."""


def parse_officially(scenes: Sequence[str]) -> list[list[tuple[int, Compared]]]:
    """Return the statements of each scene as the official parser reads them, with their positions.

    Positions start at 1; they are line numbers if the parser dropped no line.

    Raises:
        ParserUnavailable: node or npm is missing, or npm cannot fetch the parser.
    """
    lines = "".join(json.dumps(scene) + "\n" for scene in scenes)
    process = subprocess.run(
        ["node", _program()], input=lines, capture_output=True, text=True, timeout=300, check=False
    )
    assert process.returncode == 0, process.stderr
    answers = [json.loads(line) for line in process.stdout.split("\n") if line]
    assert len(answers) == len(scenes)
    return [
        [
            (line, statement)
            for line, statement in enumerate(scene, 1)
            if not is_placeholder(statement)
        ]
        for scene in answers
    ]


def is_placeholder(statement: Compared) -> bool:
    """Return whether this statement replaces a line that was joined to the previous line."""
    return statement[0] == "comment" and str(statement[1]).startswith(PLACEHOLDER)


def comparable(statements: Sequence[Statement]) -> list[Compared]:
    """Return our statements in the shape of the official ones."""
    return [
        [
            statement.command,
            statement.content,
            [[key, _json_value(value)] for key, value in statement.arguments],
            statement.comment,
        ]
        for statement in statements
    ]


def _json_value(value: Value) -> Value:
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


@functools.cache
def _program() -> Path:
    """Fetch the parser into a folder of this process and return the program that runs it."""
    for binary in ("node", "npm"):
        if shutil.which(binary) is None:
            raise ParserUnavailable(f"{binary} is not installed")
    folder = Path(tempfile.mkdtemp(prefix="webgal-parser-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    process = subprocess.run(
        [
            "npm",
            "pack",
            f"webgal-parser@{VERSION}",
            "--silent",
            "--fetch-retries=0",
            "--fetch-timeout=20000",
            f"--pack-destination={folder}",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if process.returncode != 0:
        raise ParserUnavailable(f"npm cannot fetch webgal-parser: {process.stderr.strip()[-200:]}")
    with tarfile.open(folder / f"webgal-parser-{VERSION}.tgz") as archive:
        built = archive.extractfile("package/build/es/index.js")
        assert built is not None
        (folder / "parser.mjs").write_bytes(built.read())
    (folder / "program.mjs").write_text(_PROGRAM)
    return folder / "program.mjs"


def corpus() -> dict[str, str]:
    """Return the scenes of the corpus by name, with unchanged line endings."""
    return {path.stem: path.read_bytes().decode() for path in sorted(CORPUS.glob("*.txt"))}


def main() -> None:
    """Generate the expected statements of the corpus again."""
    scenes = corpus()
    answers = dict(zip(scenes, parse_officially(list(scenes.values())), strict=True))
    lines = [
        f"{json.dumps(name)}: [\n"
        + ",\n".join(json.dumps(statement, ensure_ascii=False) for _, statement in statements)
        + "\n]"
        for name, statements in answers.items()
    ]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
