"""The shell samples of README and docs are valid: their syntax, commands, addresses and bodies.
tests/e2e/test_readme_commands.py runs those of README, and those with which pages begin.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError, get_commands
from django.urls import resolve

from tests.docs.samples import ROOT, documents, name_of, samples, shell_lines
from tests.runs.operations.test_deployment_files import check_command

TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
SERVERS = ("http://127.0.0.1:", "https://continuity.example/")
LINES = [(one.document, line) for one in samples("sh") for line in shell_lines(one.text)]


def test_each_block_is_a_shell_script() -> None:
    text = "\n".join(one.text for one in samples("sh"))
    checked = subprocess.run(
        ["bash", "-n"], input=text, capture_output=True, text=True, check=False
    )
    assert (len(LINES) > 60, checked.returncode, checked.stderr) == (True, 0, "")


def test_each_command_of_a_block_exists_with_its_options() -> None:
    called = []
    for document, line in LINES:
        for call in re.findall(r"manage\.py ([a-z_]+[^;)|&>\n]*)", line):
            words = [word for word in shlex.split(call) if "…" not in word]
            if words[0] in ("makemessages", "compilemessages", "check"):
                continue  # Django's own
            try:
                check_command(words)
            except (SystemExit, CommandError) as error:
                pytest.fail(f"{document}: {call}: {error}")
            called.append(words[0])
    assert len(set(called)) > 15


def test_each_command_that_a_text_names_exists() -> None:
    named = {
        (name_of(path), name)
        for path in documents()
        for name in re.findall(r"manage\.py ([a-z][a-z_]+)", path.read_text())
    }
    assert sorted((document, name) for document, name in named if name not in get_commands()) == []
    assert len(named) > 60


def test_each_make_target_that_a_text_names_exists() -> None:
    named = {
        name for path in documents() for name in re.findall(r"[`^]make ([a-z-]+)", path.read_text())
    }
    named |= {name for _, line in LINES for name in re.findall(r"^make ([a-z-]+)", line)}
    assert {"run", "test", "extension"} <= named <= set(TARGETS)


def test_each_call_has_an_address_of_the_api_and_a_body_of_json() -> None:
    called = []
    for document, line in LINES:
        for call in re.findall(r"curl (.*?)(?:$| \| )", line):
            words = shlex.split(call)
            (address,) = [word for word in words if word.startswith((*SERVERS, "$URL"))]
            if address != "$URL" and ":18081/" not in address:  # an answer's, a runner's
                assert resolve(urlsplit(address).path), f"{document}: {address}"
            bodies = [words[at + 1] for at, word in enumerate(words) if word == "-d"]
            called += [json.loads(body) for body in bodies] or [{}]
    assert len(called) > 12
