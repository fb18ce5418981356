"""Cleaning rewrites Playwright traces from known harmless parts, and the result is a valid
trace."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from runners.browser.page_scripts import looks_secret
from runners.browser.tracing.sanitize import clean_address, clean_trace

MEBIBYTE = 1024 * 1024


def snapshot(*children: Any, **fields: Any) -> dict[str, Any]:
    """Return the line of a snapshot of a body with these nodes."""
    content = {
        "callId": "c@1",
        "frameUrl": "http://x.test/",
        "html": ["BODY", {}, *children],
        **fields,
    }
    return {"type": "frame-snapshot", "snapshot": content}


def clean(
    folder: Path, *lines: dict[str, Any], max_bytes: int = MEBIBYTE, **resources: bytes
) -> dict[str, bytes] | None:
    """Clean a trace of these lines and return its files."""
    raw = folder / "raw.zip"
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr("trace.trace", "\n".join(json.dumps(line) for line in lines))
        for name, data in resources.items():
            archive.writestr(f"resources/{name}.css", data)
    zipped = clean_trace(raw, max_bytes)
    if zipped is None:
        return None
    assert len(zipped) <= max_bytes
    with zipfile.ZipFile(io.BytesIO(zipped)) as trace:
        return {name: trace.read(name) for name in trace.namelist()}


def clean_nodes(folder: Path, *children: Any) -> list[Any]:
    """Return what cleaning makes of the nodes of a snapshot."""
    files = clean(folder, snapshot(*children)) or {}
    nodes: list[Any] = json.loads(files["trace.trace"])["snapshot"]["html"][2:]
    return nodes


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://u:p@x.test/a?b=c", "http://x.test/a?b=c"),
        ("/go?page=2&access_token=abc", "/go?page=2&access_token=***"),
        ("/go?x=0123456789abcdef01234567", "/go?x=***"),
        ("http://x.test/cb#access_token=abc&state=1", "http://x.test/cb#access_token=***&state=1"),
        ("http://x.test/doc#part-2", "http://x.test/doc#part-2"),
        ("http://x.test/a;jsessionid=1F2/b?c=d", "http://x.test/a;jsessionid=***/b?c=d"),
        ("/a?sid=1F2&PHPSESSID=3&code=4", "/a?sid=***&PHPSESSID=***&code=***"),
        ("/a?page=2;token=abc", "/a?page=2;token=***"),
        ("/a?author=ann&keyword=x&unicode=y", "/a?author=ann&keyword=x&unicode=y"),
        ("data:text/html,<p>secret", "data:text/html,"),
        ("http://[broken", "***"),
    ],
)
def test_an_address_loses_parts_that_look_like_a_key(address: str, expected: str) -> None:
    assert clean_address(address) == expected


def test_the_rule_for_names_is_the_same_as_for_pages() -> None:
    assert all(map(looks_secret, ["userPassword", "api_key", "csrf-token", "验证码", "PIN"]))
    assert not any(map(looks_secret, ["query", "secretary", "tokenizer", "spinning", "用户名"]))


def test_only_buttons_keep_their_value(tmp_path: Path) -> None:
    plain = ["INPUT", {"name": "q", "value": "abc", "__playwright_value_": "abcd"}]
    button = ["INPUT", {"type": "submit", "value": "Send"}]
    area = ["TEXTAREA", {"name": "note"}, "typed"]
    assert clean_nodes(tmp_path, plain, button, area) == [
        ["INPUT", {"name": "q", "value": "***", "__playwright_value_": "***"}],
        button,
        ["TEXTAREA", {"name": "note"}, "***"],
    ]


@pytest.mark.parametrize(
    "node",
    [
        ["IMG", {"srcset": "/a.png?token=SECRET 2x"}],
        ["LINK", {"imagesrcset": "/a.png?token=SECRET 2x"}],
        ["BUTTON", {"type": "submit", "value": "SECRET"}],
        ["PARAM", {"name": "flashvars", "value": "SECRET"}],
        ["DATA", {"value": "SECRET"}],
        ["MY-FIELD", {"value": "SECRET"}],
        ["MY-CHAT", {"token": "SECRET"}],
        ["DIV", {"api-key": "SECRET", "data-access-token": "SECRET"}],
        ["A", {"href": "/next;jsessionid=SECRET"}],
    ],
)
def test_an_attribute_that_may_hold_a_key_is_masked(tmp_path: Path, node: list[Any]) -> None:
    [cleaned] = clean_nodes(tmp_path, node)
    assert cleaned[0] == node[0]
    assert "SECRET" not in str(cleaned)


PLAIN_FIELD = {"id": "f", "name": "f", "value": "canary-55"}


@pytest.mark.parametrize(
    "fields",
    [
        [["LABEL", {}, "API ", ["B", {}, "key"], ["INPUT", PLAIN_FIELD]]],
        [["INPUT", PLAIN_FIELD], ["LABEL", {"for": "f"}, "API key"]],
        [["INPUT", {**PLAIN_FIELD, "aria-labelledby": "x y"}], ["I", {"id": "y"}, "API key"]],
        [
            ["P", {"contenteditable": "true", "aria-labelledby": "y"}, "canary-55"],
            ["I", {"id": "y"}, "API key"],
        ],
        [["LABEL", {}, "API key", ["TEXTAREA", {}, "canary-55"]]],
    ],
)
def test_a_field_with_a_secret_label_is_secret(tmp_path: Path, fields: list[Any]) -> None:
    nodes = clean_nodes(tmp_path, *fields, ["P", {}, "You typed canary-55."])
    assert nodes[-1] == ["P", {}, "You typed ***."]
    assert "canary" not in str(nodes)
    named = json.loads(json.dumps(fields).replace("key", "name"))
    assert clean_nodes(tmp_path, *named, "canary-55")[-1] == "canary-55"


def test_an_unchanged_label_still_names_its_field(tmp_path: Path) -> None:
    before = snapshot(["LABEL", {}, ["B", {}, "API key"], ["INPUT", {}]], frameId="f")
    other = snapshot("elsewhere", frameId="g")
    typed = ["LABEL", {}, [[1, 1]], ["INPUT", {"value": "canary-55"}]]
    after = snapshot(typed, "canary-55", frameId="f")
    files = clean(tmp_path, before, other, after) or {}
    assert b"canary" not in files["trace.trace"]


def test_unchanged_nodes_keep_their_positions(tmp_path: Path) -> None:
    nodes = [[[1, 4]], "text", ["P", {"class": "a"}, [[2, 1]]]]
    assert clean_nodes(tmp_path, *nodes) == nodes


def test_the_value_of_a_secret_field_is_masked_in_other_places_and_the_trace_stays_valid(
    tmp_path: Path,
) -> None:
    field = ["INPUT", {"type": "password", "value": "snapshot"}]
    echo = ["P", {"title": "snapshot"}, "It was snapshot."]
    line = snapshot(field, echo)
    files = clean(tmp_path, {"type": "after", "callId": "snapshot"}, line) or {}
    first, second = map(json.loads, files["trace.trace"].splitlines())
    assert (first["callId"], second["type"]) == ("snapshot", "frame-snapshot")
    assert second["snapshot"]["html"][3] == ["P", {"title": "***"}, "It was ***."]


def test_the_value_of_a_plain_field_is_not_masked_in_other_places(tmp_path: Path) -> None:
    area, secret = ["TEXTAREA", {"name": "note"}, "word"], ["TEXTAREA", {"name": "token"}, "echoed"]
    assert clean_nodes(tmp_path, area, secret, "word echoed")[2] == "word ***"


@pytest.mark.parametrize(
    "children",
    [
        [["INPUT", {"type": "password", "value": f"{n} is my secret"}] for n in range(3000)],
        [["TEXTAREA", {"name": "token"}, f"{n} is my secret"] for n in range(3000)],
        [
            ["P", {}, "x" * 50_000_000],
            *[["INPUT", {"type": "password", "value": "abc" + c}] for c in "defgh"],
        ],
    ],
)
def test_a_page_that_is_too_expensive_to_mask_has_no_trace(
    tmp_path: Path, children: list[Any]
) -> None:
    assert clean(tmp_path, snapshot(*children)) is None


@pytest.mark.slow
def test_any_number_of_plain_fields_is_cheap(tmp_path: Path) -> None:
    areas = [["TEXTAREA", {}, f"{n} {'a' * 300}"] for n in range(30_000)]
    nodes = clean_nodes(tmp_path, *areas, "a" * 10_000_000)
    assert nodes[0] == ["TEXTAREA", {}, "***"]


def test_a_page_with_excessive_nesting_has_no_trace(tmp_path: Path) -> None:
    nested = '["B", {}, ' * 5000 + '"x"' + "]" * 5000
    line = json.dumps(snapshot("HERE")).replace('"HERE"', nested)
    raw = tmp_path / "raw.zip"
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr("trace.trace", line)
    assert clean_trace(raw, MEBIBYTE) is None


def test_a_line_of_an_unknown_kind_is_left_out(tmp_path: Path) -> None:
    files = clean(tmp_path, {"type": "stdout", "text": "secret"}, snapshot()) or {}
    assert b"secret" not in files["trace.trace"]


def test_styles_are_dropped_where_a_trace_would_be_too_long(tmp_path: Path) -> None:
    overrides = [{"url": "http://x.test/a.css", "file": f"resources/{n}.css"} for n in "ab"]
    line = snapshot(resourceOverrides=overrides)
    small, large = b"p { color: red }", bytes(range(256)) * 100
    files = clean(tmp_path, line, max_bytes=5000, a=small, b=large) or {}
    assert sorted(files) == ["resources/a.css", "trace.trace"]
    assert clean(tmp_path, line, max_bytes=100, a=small) is None
