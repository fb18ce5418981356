"""The subject of a run says what it is about, and shows no query string, credential or token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from decisions.identity.principals import Principal
from runs.models import Run
from runs.submission.submit import submit_run
from runs.task_templates.registry import find_template

PAGE = "https://ada:pw@docs.example.com:8443/guide/%E7%99%BB%E5%BD%95?key=geheim#top"
LOCATOR = {"mode": "selector", "selector": "input"}
CASES: list[tuple[str, Mapping[str, Any], str]] = [
    ("batch_extract_pages", {"urls": [PAGE]}, "docs.example.com:8443/guide/登录"),
    ("batch_extract_pages", {"urls": ["https://a.de/1", "https://a.de/2"]}, "a.de · 2 pages"),
    (
        "batch_extract_pages",
        {"urls": [f"https://{host}.de/" for host in "abcd"]},
        "a.de, b.de +2 · 4 pages",
    ),
    (
        "multi_tab_compare",
        {"urls": [PAGE, "https://b.de/"]},
        "docs.example.com:8443, b.de · 2 pages",
    ),
    (
        "search_extract",
        {"startUrl": PAGE, "query": "durable\nqueues"},
        "docs.example.com:8443 · “durable queues”",
    ),
    (
        "paginated_extract",
        {"startUrl": "https://a.de/list", "pagination": {"maxPages": 5}},
        "a.de/list · up to 5 pages",
    ),
    (
        "submit_and_verify",
        {"startUrl": "https://a.de/contact", "fields": [{"name": "email", "value": "x@y.de"}]},
        "a.de/contact · email",
    ),
    ("login_keep_session", {"startUrl": "https://a.de/login;jsessionid=1"}, "a.de/login"),
    (
        "agent_task",
        {"goal": f"Read {PAGE}\n and  sum up"},
        "Read docs.example.com:8443/guide/登录 and sum up",
    ),
    ("agent_task", {"goal": "Log in, password=hunter2"}, "Log in, ***"),
    (
        "session_action",
        {"action": "browser_click", "args": {"index": 3}, "url": PAGE},
        "browser_click · docs.example.com:8443",
    ),
    ("session_action", {"action": "task_stop", "args": {}}, "task_stop"),
    (
        "call_tools",
        {"calls": [{"name": "read_file", "args": {"path": "a.txt"}}, {"name": "read_file"}]},
        "read_file (2) · a.txt",
    ),
    (
        "call_tools",
        {"calls": [{"name": "bash.exec", "args": {"cmd": "x"}, "targetId": "target_b"}]},
        "bash.exec · target_b",
    ),
    ("batch_extract_pages", {"urls": ["https://a.de/reset/k3Jd93kLmQ0x82Lq"]}, "a.de/reset/…"),
    (
        "batch_extract_pages",
        {"urls": ["https://a.de/2026-11-24-what-is-new"]},
        "a.de/2026-11-24-what-is-new",
    ),
    ("batch_extract_pages", {"urls": ["file:///srv/a.html"]}, "file:/srv/a.html"),
    ("batch_extract_pages", {"urls": ["me:pw@no-scheme.de/x?key=1"]}, "no-scheme.de/x"),
    ("batch_extract_pages", {"urls": ["https://[::1/x"]}, "https://[::1/x"),
]


@pytest.mark.parametrize(("template_id", "inputs", "subject"), CASES)
def test_a_subject_names_what_tells_runs_of_a_template_apart(
    template_id: str, inputs: Mapping[str, Any], subject: str
) -> None:
    assert find_template(template_id, is_listed=False).subject(inputs) == subject


def test_a_template_without_a_subject_of_its_own_has_one(principal: Principal) -> None:
    template = find_template("test_stepwise")
    assert template.subject({"startUrl": "https://a.de/x?y=1"}) == "a.de/x"
    assert template.subject({"query": "a\nb"}) == "a b"
    assert template.subject({"do": ["ok"]}) == template.name


def test_a_secret_input_that_another_input_repeats_is_masked(principal: Principal) -> None:
    run_id = submit_run(
        principal=principal,
        template_id="submit_and_verify",
        inputs={
            "startUrl": "https://a.de/geheimes-wort",
            "fields": [
                {"name": "pin", "value": "geheimes-wort", "secret": True, "locator": LOCATOR}
            ],
        },
        options={"mode": "async", "labels": {"why": "geheimes-wort"}},
    ).run_id
    run = Run.objects.get(id=run_id)
    assert (run.subject, run.labels) == ("a.de/*** · pin", {"why": "***"})
    assert "geheimes-wort" not in str([*run.terms.values_list("terms", flat=True), run.options])
