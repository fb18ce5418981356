"""The parsers and schemas that read what callers, models, runners, pages and files send, each with
the size that is accepted and the fragments of its input."""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from decisions.audit.bundle import read_lines
from decisions.chat.risk.detection import find_risk
from decisions.foundation.errors import Refused
from decisions.foundation.infra.trace_context import parse_traceparent
from decisions.foundation.presentation.markdown import plain_lines
from decisions.foundation.presentation.visible_text import visible
from decisions.foundation.security.logs import redact
from decisions.foundation.security.masking import input_masker
from decisions.foundation.validation.foreign_schema import ForeignSchema
from decisions.foundation.validation.json_input import load_json
from decisions.foundation.validation.json_schema import check, compile_schema
from decisions.foundation.validation.storable import storable
from decisions.identity.tokens import parse_lifetime
from mcp_server.protocol.message_parser import parse_message
from runners.browser.tracing.sanitize import clean_address
from runners.errors import ToolFailed
from runners.gateway.response_parser import InvalidRunnerResponse, parse_response
from runners.gateway.stream_parser import UpdateSplitter
from runners.llm.tool_calls import parse_arguments
from runners.network.address import check_address
from runners.targets.published_tools import parse_published_tools
from runners.workspace.files.globs import Globs
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.search.line_matching import matches_in
from runners.workspace.search.patterns import line_pattern
from runners.workspace.webgal.checks import check_script
from runners.workspace.webgal.project import Project
from runners.workspace.writing.line_diff import diff_lines
from runners.workspace.writing.replacement import replace_all
from runs.agent.output_schema import check_output_schema
from runs.api.schemas import runs as schemas
from runs.operations.backups.manifest import read_manifest
from runs.operations.home.errors import BackupError
from runs.search.labels import parse_labels
from runs.search.terms import words_to_store
from runs.task_templates.subjects import subject_line

KB = 1024
LONGEST_MS, LONGEST_OFFLINE_MS = 2000.0, 15_000.0
# What a parser may raise: the input is refused.
REFUSALS = (
    Refused,
    ToolFailed,
    ValueError,
    InvalidRunnerResponse,
    BackupError,
)
JSON = [
    *("1,", "[1,2],", '{"a":1},', '"x",', "null,", '"[",', "0.1e9,", "-1,", '"\\u00e9",', "1"),
    *("[", "]", '{"a":', "}", ",", " "),
]
WORDS = [
    "delete ",
    "all ",
    "the ",
    "data",
    " and ",
    "please ",
    "send",
    ", ",
    ". ",
    "do it ",
    "删除",
]
PATTERNS = ["(a|b)*", "a", "[ab]", "{9}", "{2,9}", "(", ")", "a+", ".?", ".*", "\\w", "^", "$", "|"]


@dataclass(frozen=True, slots=True)
class Parser:
    """A parser of the product.

    Attributes:
        name: what it reads.
        max_bytes: the size that is accepted.
        parse: reads a text of that size.
        fragments: the parts of its texts.
        prepare: makes of a text what `parse` reads; its time does not count.
        longest_ms: the time at its accepted size.
        is_offline: a command reads it, in a process of its own.
    """

    name: str
    max_bytes: int
    parse: Callable[[Any], Any]
    fragments: Sequence[str]
    prepare: Callable[[str], Any] = str
    longest_ms: float = LONGEST_MS
    is_offline: bool = False


_RUN = compile_schema(schemas.RUN_TASK_TEMPLATE_INPUT)
_OUTPUT = ForeignSchema(
    {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"$ref": "#"}},
            "b": {"anyOf": [{"type": "string", "pattern": "^(x|y)*z$"}, {"$ref": "#"}]},
        },
        "additionalProperties": {"anyOf": [{"type": "integer"}, {"$ref": "#/properties/a"}]},
    }
)
_MASKER = input_masker(
    {"url": "https://a.test/?token=canary-8a1f0c93"}, ["s3cret-value", "aaaaaaaaab", "pass word"]
)
_PATTERN = line_pattern("(a|b)*a[ab]{20}c")


def _value(text: str) -> Any:
    """Return a text as a JSON value; cut and closed where it breaks off, so that many are valid."""
    for cut in (text, text.rpartition(",")[0], text.rpartition(",")[0].rpartition(",")[0]):
        opened: list[str] = []
        for sign in cut:
            if sign in "[{":
                opened.append("]" if sign == "[" else "}")
            elif sign in "]}" and opened:
                opened.pop()
        closed = cut.rstrip(",") + "".join(reversed(opened))
        for whole in (closed, f"[{closed}]"):
            with contextlib.suppress(orjson.JSONDecodeError):
                return orjson.loads(whole)
    raise ValueError("no JSON")


def _json(text: str) -> bytes:
    """Return a text as JSON if it can be made valid, else unchanged."""
    with contextlib.suppress(ValueError, TypeError):
        return orjson.dumps(_value(text))
    return text.encode(errors="replace")


def _accepted(text: str) -> Any:
    """Return a text as the JSON value of a request, if it is within the limits of all requests."""
    try:
        return load_json(_json(text))
    except Refused:
        raise ValueError("not accepted") from None


def _schema(value: Any) -> None:
    check_output_schema({"type": "object", "properties": {"a": value}, "$defs": _DEFS})


_DEFS = {
    f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
    for n in range(40)
} | {"d40": {"pattern": "(a|b)*c"}}


def _script(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Sandbox(Path(folder), ()), deadline=time.monotonic() + 60)
        check_script(text, project, "EN")


def _bundle(text: str) -> None:
    for _ in read_lines(io.BytesIO(text.encode())):  # as a file is read: no line is kept
        pass


def _manifest(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "manifest.json").write_text(text)
        read_manifest(Path(folder))


def _globs(text: str) -> None:
    globs = Globs(text.split(","))
    state = globs.start
    for name in ["a" * 200, "ab" * 100, *"abc"] * 20:
        globs.matching_names(state, [name])
        state = globs.advance(state, name)


def _replace(text: str) -> None:
    until = time.monotonic() + 0.5  # it is bounded by the time limit of its tool
    replace_all(
        text, find="(a|b)*?c|a+", replace="$1x", flags="g", size_limit=2**21, deadline=until
    )


def _diff(text: str) -> None:
    middle = len(text) // 2
    diff_lines(text[:middle], text[middle:])


def _updates(text: str) -> None:
    UpdateSplitter().feed(text.encode())


PARSERS = [
    Parser("JSON of a request", 1024 * KB, load_json, JSON, prepare=_json),
    Parser(
        "line of MCP", 8192 * KB, parse_message, [*JSON, '"id":', '"method":"ping"'], prepare=_json
    ),
    Parser(
        "request by its schema",
        1024 * KB,
        lambda value: check(_RUN, value),
        JSON,
        prepare=_accepted,
    ),
    Parser(
        "value as it is stored",
        1024 * KB,
        storable,
        [*JSON, "\ud800", "\\u0000"],
        prepare=_accepted,
    ),
    Parser(
        "output schema",
        64 * KB,
        _schema,
        [
            *JSON,
            '"$ref":"#/$defs/d0"',
            '"$ref":"#/$defs/d33"',
            '"allOf":[',
            '"items":{',
            '"pattern":"a{9}"',
            '"$ref":"#"',
            '"enum":[',
        ],
        prepare=_value,
    ),
    Parser(
        "answer by a recursive schema",
        1024 * KB,
        lambda value: _OUTPUT.errors(value, at_most=20),
        [*JSON, '{"a":[', '{"b":', "xy"],
        prepare=_accepted,
    ),
    Parser(
        "arguments that a model sends",
        4096 * KB,
        parse_arguments,
        JSON,
        prepare=lambda text: (b'{"a":' + _json(text) + b"}").decode(),
    ),
    Parser(
        "response of a runner",
        8192 * KB,
        parse_response,
        [*JSON, '{"ok":true,"output":', '{"updates":[', '"x",'],
        prepare=_json,
    ),
    Parser(
        "updates of a runner, read at once",
        256 * KB,
        _updates,
        ['{"updates":[', '"x",', '{"delta":"', '"},', "\\", '"', "[", "]"],
    ),
    Parser(
        "tools of a runner",
        256 * KB,
        parse_published_tools,
        [*JSON, '{"name":"a"},', '"inputSchema":{', '{"tools":[', '"$ref":"#"'],
        prepare=_json,
    ),
    Parser("regular expression of a search", KB, line_pattern, PATTERNS),
    Parser(
        "lines by a regular expression",
        1024 * KB,
        lambda t: matches_in("a", t.encode(), _PATTERN, 100),
        ["a", "b", "ab", "c", "\n", "\r\n", "é"],
    ),
    Parser("replacement in a file", 1024 * KB, _replace, ["a", "b", "ab", "c", "\n", "é"]),
    Parser(
        "globs",
        4 * KB,
        _globs,
        ["*", "**/", "a", "{a,b}", "{", "}", "[a-c]", "?", ",", "/", "\\", "!"],
    ),
    Parser(
        "difference of two texts",
        2048 * KB,
        _diff,
        ["a\n", "b\n", "\n", "ab", "c\n", "x" * 80 + "\n"],
    ),
    Parser(
        "WebGAL script",
        1024 * KB,
        _script,
        [
            "changeBg:a.png",
            " -next",
            ";",
            ":",
            "\n",
            "label:a;\n",
            "jumpLabel:b;\n",
            "choose:a:b|",
            " -",
            "\\",
            "say:",
            "é",
        ],
    ),
    Parser(
        "message of a chat",
        64 * KB,
        find_risk,
        [*WORDS, "$(rm -rf /)", "`", "\n", "-", "'", "12345 "],
    ),
    Parser(
        "Markdown of a message",
        64 * KB,
        plain_lines,
        ["*", "_", "`", "[", "](", ")", "<", "&", "\n", "> ", "- ", "http://a.b/", "a "],
    ),
    Parser(
        "text with unseen characters",
        64 * KB,
        visible,
        ["a", "\u202e", "\u200b", "\x1b[", "\n", "é", "e\u0301", "👩\u200d", "\t"],
    ),
    Parser(
        "text with secrets",
        1024 * KB,
        _MASKER.text,
        ["s3cret-valu", "aaaaaaaaa", "?token=", "&", "=", "http://", "pass", "%20", "%2", "word"],
    ),
    Parser(
        "line of a log",
        256 * KB,
        redact,
        [
            "token",
            "=",
            ":",
            '"',
            "\\",
            "Bearer ",
            "sk-aaaaaaaa",
            "://a",
            "@",
            "cookie: ",
            "api_",
            " ",
            "'",
        ],
    ),
    Parser(
        "address of a page",
        64 * KB,
        lambda t: check_address("http://" + t, "remote"),
        ["a", ".", "%", "%41", "1", ":", "[", "]", "@", "/", "xn--", "é", "。", "0x"],
    ),
    Parser(
        "address in a trace",
        64 * KB,
        clean_address,
        ["http://a/", "?", "a=", "&", "%41", ";sid=", "#", "/", "x" * 30],
    ),
    Parser("labels", 64 * KB, parse_labels, ["a", "=", ",", " ", "é", ":", "\n"]),
    Parser(
        "words of a search",
        64 * KB,
        lambda t: list(words_to_store(t)),
        ["a", " ", "-", "中", "e\u0301", "_", ".", "ß", "İ", "\u0345"],
    ),
    Parser(
        "subject of a run", 100 * KB, subject_line, ["a", " ", "\n", "\u200b", "http://a.b/", "中"]
    ),
    Parser("traceparent", 8 * KB, parse_traceparent, ["00-", "a", "-", "0", "f" * 32]),
    Parser("lifetime of a token", 8 * KB, parse_lifetime, ["9", "d", " ", "\n"]),
    Parser(
        "lines of an audit bundle",
        4096 * KB,
        _bundle,
        ['{"type":"audit",', '"a":', '"x",', ',"proof":"', "f" * 64, '"}\n', "\n", "{", "}"],
        # `audit verify` reads a file of any size; what counts is that its time is linear.
        longest_ms=LONGEST_OFFLINE_MS,
        is_offline=True,
    ),
    Parser(
        "manifest of a backup",
        1024 * KB,
        _manifest,
        [*JSON, '{"format":1,', '"files":{', '"a":["f",1],', "../"],
        is_offline=True,
    ),
]
