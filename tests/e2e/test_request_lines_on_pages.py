"""Requests that differ late in a long command can be told apart wherever a yes is offered, on a
desktop and on a phone, in both languages.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from decisions.authorization.authorize import admit_call, tool_call_request
from decisions.authorization.confirmation_links import confirmation_link
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import ConfirmationRequired
from decisions.identity.principals import Principal
from decisions.models import Confirmation
from tests.e2e.test_admin_accessibility import SCREENS, use_language
from tests.support.admin.accessibility import elements_outside
from tests.support.admin.visitor import Visitor

pytestmark = pytest.mark.slow
SQL = "psql shop -c \"DELETE FROM orders WHERE created_at < '2026-01-01' AND region IN ('eu', 'us')"
LIMITS = ("id < 000", "id < 100", "id < 200")
PICTURES = os.environ.get("CONTINUITY_TEST_PICTURES", "")  # a folder: keep pictures there


@pytest.fixture
def requests(principal: Principal) -> list[Confirmation]:
    """Let three calls wait that differ after 300 characters."""
    create_rule(RuleFields("confirm", tool="write_to_file", reason="test"), actor="t")
    filler = " ".join(f"-- archived partition {number}" for number in range(9))
    for limit in LIMITS:
        args = {"path": "clean.sh", "content": f'{SQL} {filler} AND {limit}" {"# end " * 40}'}
        with pytest.raises(ConfirmationRequired):
            admit_call(tool_call_request(principal, "write_to_file", args, is_builtin=True))
    return list(Confirmation.objects.order_by("decision_id"))


def each_screen(visitor: Visitor, paths: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Open each page in each window and language; yield its name and text."""
    for language in ("en", "zh-hans"):
        use_language(visitor, language)
        for size, _ in SCREENS:
            visitor.do(visitor.page.set_viewport_size(size))
            for name, path in paths.items():
                visitor.open(path)
                visitor.wait_for("main, #page")
                where = f"{name}-{language}-{size['width']}"
                assert elements_outside(visitor) == [], where
                if PICTURES:
                    picture = f"{PICTURES}/{where}.png"
                    visitor.do(visitor.page.screenshot(path=picture, full_page=True))
                yield where, visitor.do(visitor.page.inner_text("body"))


def test_three_requests_that_differ_late_can_be_told_apart_in_each_list(
    visitor: Visitor, requests: list[Confirmation]
) -> None:
    lists = {"dashboard": "/admin/", "inbox": "/admin/decisions/decision/?status=waiting"}
    for where, text in each_screen(visitor, lists):
        assert all(limit in text for limit in LIMITS), where
    shown = "return [...document.querySelectorAll('.cty-request')]"
    widths = f"(() => {{ {shown}.every((one) => one.scrollWidth <= one.clientWidth + 1) }})()"
    assert visitor.do(visitor.page.evaluate(widths))


def test_a_line_has_the_whole_width_of_a_phone(
    visitor: Visitor, requests: list[Confirmation]
) -> None:
    visitor.do(visitor.page.set_viewport_size(SCREENS[1][0]))
    widths = "[...document.querySelectorAll({!r})].map((one) => one.clientWidth)"
    for path, selector in (("/admin/", ".cty-request"), (confirmation_link(requests[0]), "dd")):
        visitor.open(path)
        visitor.wait_for("main")
        found = visitor.do(visitor.page.evaluate(widths.format(selector)))
        assert min(found, default=0) >= 300, (path, found)


def test_the_list_of_rules_needs_no_sideways_scrolling_on_a_desktop(
    visitor: Visitor, principal: Principal
) -> None:
    text = "a reason that is written in words " * 8
    target = "target_of_a_long_name_" * 4
    create_rule(RuleFields("confirm", tool="t" * 40 + "_ool" * 20, reason=text), actor="t")
    create_rule(RuleFields("deny", tool="write", target_id=target, reason=text), actor="t")
    visitor.do(visitor.page.set_viewport_size(SCREENS[0][0]))
    visitor.open("/admin/decisions/policyrule/")
    visitor.wait_for("#result_list")
    right = "document.querySelector('#result_list').getBoundingClientRect().right"
    assert visitor.do(visitor.page.evaluate(right)) <= SCREENS[0][0]["width"]


def test_the_pages_that_offer_a_yes_show_the_same_line(
    visitor: Visitor, requests: list[Confirmation]
) -> None:
    first = requests[0]
    page = f"/admin/decisions/decision/{first.decision_id}/change/"
    for where, text in each_screen(visitor, {"page": page, "link": confirmation_link(first)}):
        assert "path clean.sh · content psql shop -c" in text, where
        assert f"#{first.decision.subject_digest[:8]}" in text, where
        assert text.count("id < 000") == 2, where  # in the line, and in the call below it
