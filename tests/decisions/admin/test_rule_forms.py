"""Policy rules in the admin: nothing is chosen in advance, and its effect is shown first."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import admit_call, tool_call_request
from decisions.authorization.policy_rules import RuleFields, create_rule, retire_rule
from decisions.foundation.errors import PolicyDenied
from decisions.identity.principals import Principal, authenticate, create_token
from decisions.models import PolicyRule, Token
from runners.targets.targets import TargetFields, create_target_row
from runs.calls.direct.call import call_tool
from runs.calls.request import DirectCallRequest
from tests.support.browser.paired_browser import pair

pytestmark = pytest.mark.usefixtures("open_loopback")

LIST = "/admin/decisions/policyrule/"
NEW = f"{LIST}new/"
FORM = {
    "verdict": "allow",
    "tool": "bash.exec",
    "target_id": "target_build",
    "scope": "everywhere|",
    "reason": "builds",
}
WIDE = {**FORM, "tool": "*", "target_id": "*"}


def shown_in(page: str) -> str:
    """Return the digest of what the page says, which the next answer has to carry."""
    found = re.search(r'name="shown" value="([0-9a-f]{64})"', page)
    assert found, page
    return found[1]


def add_runner(principal: Principal, name: str, *tools: str) -> None:
    offers = [{"name": tool, "description": "", "inputSchema": {}} for tool in tools]
    place = principal.tenant_id, principal.workspace_id
    fields = TargetFields(*place, name, "docker-runner", endpoint="http://127.0.0.1:1/")
    row = create_target_row(fields, actor="test", target_id=f"target_{name}")
    row.catalogue = offers
    row.save(update_fields=["catalogue"])


def test_an_untouched_form_makes_nothing(superuser_client: Client) -> None:
    page = superuser_client.get(NEW).content.decode()
    assert 'value="*"' not in page
    assert "selected" not in page.replace('<option value="" selected>', "")
    response = superuser_client.post(NEW, {"verdict": ""})
    assert response.content.decode().count("This field is required.") == 5
    assert not PolicyRule.objects.exists()


@pytest.mark.parametrize("missing", FORM)
def test_every_field_has_to_be_filled_in(superuser_client: Client, missing: str) -> None:
    form = {name: value for name, value in FORM.items() if name != missing}
    assert "This field is required." in superuser_client.post(NEW, form).content.decode()
    assert not PolicyRule.objects.exists()


def test_a_link_fills_in_no_verdict_and_nothing_wide(superuser_client: Client) -> None:
    page = superuser_client.get(NEW, WIDE).content.decode()
    assert 'value="*"' not in page
    assert "selected" not in page.replace('<option value="" selected>', "")
    assert 'value="bash.exec"' in superuser_client.get(NEW, FORM).content.decode()


def test_a_narrow_rule_is_made_on_the_second_page(
    superuser_client: Client, principal: Principal
) -> None:
    add_runner(principal, "build", "bash.exec", "echo")
    page = superuser_client.post(NEW, FORM).content.decode()
    assert "This rule allows 1 tool on 1 target: bash.exec." in page
    assert "understood" not in page
    assert not PolicyRule.objects.exists()
    answer = {**FORM, "shown": shown_in(page)}
    assert superuser_client.post(NEW, answer).status_code == 302
    rule = PolicyRule.objects.get()
    assert (rule.tool, rule.target_id, rule.reason) == ("bash.exec", "target_build", "builds")


def test_a_wide_rule_names_what_it_opens_and_needs_a_tick(
    superuser_client: Client, principal: Principal
) -> None:
    add_runner(principal, "build", "bash.exec", "echo")
    add_runner(principal, "lab", "http.request", "echo")
    page = superuser_client.post(NEW, WIDE).content.decode()
    assert re.search(
        r"This rule allows every tool \(\d+ tools known now\) on 3 targets and every target added"
        r" later, among them"
        r" bash\.exec and http\.request\.",
        page,
    )
    assert re.search(r"Today, of \d+ such calls: 2 denied and 2 held for a confirmation; ", page)
    answer = {**WIDE, "shown": shown_in(page)}
    page = superuser_client.post(NEW, answer).content.decode()
    assert "tick the box" in page
    assert not PolicyRule.objects.exists()
    assert superuser_client.post(NEW, {**answer, "understood": "yes"}).status_code == 302
    assert PolicyRule.objects.get().target_id == ""


@pytest.mark.parametrize("offers", [["file.write"], []], ids=["published", "not published"])
def test_a_rule_for_a_runners_tool_on_every_target_is_wide(
    superuser_client: Client, principal: Principal, offers: list[str]
) -> None:
    add_runner(principal, "build", *offers)
    form = {**FORM, "tool": "file.write", "target_id": "*"}
    page = superuser_client.post(NEW, form).content.decode()
    assert "allows 1 tool on 1 target and every target added later: file.write." in page
    assert "Today, of 1 such call: 1 held for a confirmation." in page
    superuser_client.post(NEW, {**form, "shown": shown_in(page)})
    assert not PolicyRule.objects.exists()


def test_a_rule_for_a_runners_tool_is_wide_before_there_is_a_runner(
    superuser_client: Client,
) -> None:
    form = {**FORM, "tool": "file.write", "target_id": "*"}
    page = superuser_client.post(NEW, form).content.decode()
    assert "No known call matches" in page
    assert "It applies to every target added later." in page
    superuser_client.post(NEW, {**form, "shown": shown_in(page)})
    assert not PolicyRule.objects.exists()


def test_a_rule_names_the_runners_that_publish_no_tools(
    superuser_client: Client, principal: Principal
) -> None:
    add_runner(principal, "build", "echo")
    add_runner(principal, "lab")

    def summary(**fields: str) -> str:
        return superuser_client.post(NEW, {**FORM, **fields}).content.decode()

    every = summary(tool="*", target_id="target_lab")
    assert "This rule allows every tool of lab, which does not say which tools it offers." in every
    assert "0 tools" not in every
    named = summary(tool="bash.exec", target_id="target_lab")
    assert "This rule allows 1 tool on 1 target: bash.exec." in named
    assert "lab does not say which tools it offers: the rule decides on bash.exec if" in named
    assert "I have read what it does" not in named
    assert "allows 1 tool on 2 targets" in summary(tool="echo", target_id="*")
    create_rule(RuleFields("deny", tool="*", target_id="target_lab", reason="no"), actor="t")
    assert "other rules decide on every call" in summary(tool="bash.exec", target_id="target_lab")
    create_rule(RuleFields("deny", tool="rm", reason="no"), actor="t")
    overruled = summary(tool="rm", target_id="*", scope="agent|local")
    assert "other rules decide on every call" in overruled
    assert "added later" not in overruled


@pytest.mark.parametrize("shown", ["", "0" * 64])
def test_a_rule_that_was_not_read_is_not_made(superuser_client: Client, shown: str) -> None:
    answer = {**WIDE, "shown": shown, "understood": "yes"}
    assert "What the new rule does" in superuser_client.post(NEW, answer).content.decode()
    assert not PolicyRule.objects.exists()


def test_a_rule_is_shown_again_if_it_does_more_than_was_read(
    superuser_client: Client, principal: Principal
) -> None:
    shown = shown_in(superuser_client.post(NEW, WIDE).content.decode())
    add_runner(principal, "late", "bash.exec")
    answer = {**WIDE, "shown": shown, "understood": "yes"}
    assert "changed meanwhile" in superuser_client.post(NEW, answer).content.decode()
    assert not PolicyRule.objects.exists()
    narrower = {**FORM, "shown": shown, "understood": "yes"}
    assert "changed meanwhile" in superuser_client.post(NEW, narrower).content.decode()


def test_a_change_is_reviewed_like_a_new_rule(superuser_client: Client) -> None:
    rule = create_rule(RuleFields("deny", tool="read_page", reason="old"), actor="t")
    edit = f"{LIST}{rule.key}/edit/"
    assert 'value="read_page"' in superuser_client.get(edit).content.decode()
    form = {**FORM, "tool": "read_page", "target_id": "*"}
    page = superuser_client.post(edit, form).content.decode()
    assert "Today, of 1 such call: 1 denied." in page
    assert PolicyRule.objects.get().verdict == "deny"
    back = superuser_client.post(edit, {**form, "step": "edit"}).content.decode()
    assert "What it does" not in back
    assert 'value="builds"' in back
    superuser_client.post(edit, {**form, "shown": shown_in(page)})
    assert PolicyRule.objects.get(retired_at=None).version == 2


def test_a_call_is_tested_without_being_made(
    superuser_client: Client, principal: Principal, staff_client: Callable[..., Client]
) -> None:
    create_token(name="agent")
    caller = f"agent|token:{Token.objects.get().id}"
    rule = create_rule(RuleFields("deny", tool="submit_form", reason="no forms"), actor="t")
    viewer = staff_client("decisions.view_policyrule")

    def tested(client: Client, **call: str) -> str:
        query: dict[str, Any] = {"target_id": "", "caller": caller, **call}
        return client.get(f"{LIST}test/", query).content.decode()

    page = tested(viewer, tool="submit_form")
    assert ">deny<" in page
    assert f"{rule.key} v1" in page
    assert "no forms" in page
    assert "default: own tools" in tested(viewer, tool="read_page")
    assert "default: high risk" in tested(viewer, tool="bash.exec", target_id="target_x")
    assert "default: tools of targets" in tested(viewer, tool="echo", target_id="target_x")
    assert "No tool of this name is known" in tested(viewer, tool="read_pgae")
    assert viewer.get(f"{LIST}test/").status_code == 200
    assert staff_client().get(f"{LIST}test/").status_code == 403


def test_a_change_names_the_calls_that_the_rule_decides_no_longer(
    superuser_client: Client, principal: Principal
) -> None:
    add_runner(principal, "build", "bash.exec", "echo")
    create_rule(RuleFields("allow", tool="echo", target_id="target_build", reason="a"), actor="t")
    rule = create_rule(
        RuleFields("deny", tool="*", target_id="target_build", reason="closed"), actor="t"
    )
    form = {**FORM, "verdict": "deny", "tool": "bash.exec", "reason": "closed"}
    page = superuser_client.post(f"{LIST}{rule.key}/edit/", form).content.decode()
    assert "This rule denies 1 tool on 1 target: bash.exec." in page
    assert "The rule no longer denies 1 tool on 1 target: echo." in page
    assert "From then on, of 1 such call: 1 allowed." in page
    answer = {**form, "shown": shown_in(page)}
    page = superuser_client.post(f"{LIST}{rule.key}/edit/", answer).content.decode()
    assert "tick the box" in page
    assert PolicyRule.objects.get(key=rule.key).version == 1


def test_a_rule_is_retired_after_what_that_opens_was_read(
    superuser_client: Client, principal: Principal
) -> None:
    add_runner(principal, "build", "bash.exec", "echo")
    fields = RuleFields("deny", tool="bash.exec", target_id="target_build", reason="closed")
    rule = create_rule(fields, actor="t")
    with pytest.raises(PolicyDenied):
        admit_call(tool_call_request(principal, "bash.exec", {}, target_id="target_build"))
    retire = f"{LIST}{rule.key}/retire/"
    assert f'href="{retire}"' in superuser_client.get(f"{LIST}{rule.pk}/change/").content.decode()
    page = superuser_client.get(retire).content.decode()
    assert "The rule no longer denies 1 tool on 1 target: bash.exec." in page
    assert "From then on, of 1 such call: 1 held for a confirmation." in page
    assert "calls that would have been decided otherwise without the rule: 1 of 1." in page
    shown = shown_in(page)
    assert "understood" not in page

    def is_active() -> bool:
        return PolicyRule.objects.filter(key=rule.key, retired_at=None).exists()

    superuser_client.post(retire)
    superuser_client.post(retire, {"shown": "0" * 64})
    assert is_active()
    allow = replace(fields, verdict="allow", target_id="", reason="open")
    other = create_rule(allow, actor="t")
    assert "1 allowed" in superuser_client.post(retire, {"shown": shown}).content.decode()
    assert is_active()
    retire_rule(other.key, actor="t")
    assert superuser_client.post(retire, {"shown": shown}).status_code == 302
    assert not is_active()
    again = superuser_client.post(retire, {"shown": shown}, follow=True).content.decode()
    assert "There is no active rule" in again


def test_a_wide_rule_is_retired_with_a_tick_and_without_its_token_too(
    superuser_client: Client,
) -> None:
    create_token(name="agent")
    scope = {"scope": "agent", "scope_id": f"token:{Token.objects.get().id}"}
    rule = create_rule(RuleFields("deny", tool="*", reason="closed", **scope), actor="t")
    Token.objects.all().delete()
    retire = f"{LIST}{rule.key}/retire/"
    page = superuser_client.get(retire).content.decode()
    assert re.search(
        r"The rule no longer denies \d+ tools on 2 targets and every target added", page
    )
    answer = {"shown": shown_in(page)}
    assert "tick the box" in superuser_client.post(retire, answer).content.decode()
    assert superuser_client.post(retire, {**answer, "understood": "yes"}).status_code == 302
    assert not PolicyRule.objects.filter(retired_at=None).exists()


@pytest.mark.parametrize(
    ("tool", "target", "decided"),
    [
        ("read_page", "", "default: own tools"),
        ("read_page", "target_build", "default: tools of targets"),
        ("write_to_file", "target_build", "default: tools of targets"),
        ("run_task_template", "agent_task", "default: own tools"),
        ("echo", "", "name the runner as the target"),
    ],
)
def test_a_tested_call_is_decided_as_the_real_one_on_its_target(
    superuser_client: Client, principal: Principal, tool: str, target: str, decided: str
) -> None:
    add_runner(principal, "build", "echo")
    query = {"tool": tool, "target_id": target, "caller": "everywhere|"}
    assert decided in superuser_client.get(f"{LIST}test/", query).content.decode()
    if target == "target_build":
        request = DirectCallRequest(tool, {}, target_id=target)
        with pytest.raises(PolicyDenied, match="No rule allows this tool on this target"):
            async_to_sync(call_tool)(principal=principal, request=request)


def test_names_that_look_like_others_are_marked(
    superuser_client: Client, principal: Principal
) -> None:
    tool, target, reason = "b\u0430sh.exec", "target_\u202ebuild", "bu\u200bilds"
    marks = "b\u0430⟨U+0430⟩sh.exec", "target_⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩build"
    create_token(name="\u0430gent")
    rule = create_rule(RuleFields("deny", tool=tool, target_id=target, reason=reason), actor="t")
    add_runner(principal, "late", tool)
    form = {**FORM, "tool": tool, "target_id": "*", "reason": reason}
    query = {"tool": tool, "target_id": target, "caller": "everywhere|"}
    pages = {
        "list": superuser_client.get(LIST),
        "rule": superuser_client.get(f"{LIST}{rule.pk}/change/"),
        "review": superuser_client.post(NEW, form),
        "test": superuser_client.get(f"{LIST}test/", query),
    }
    for name, response in pages.items():
        page = response.content.decode()
        assert marks[0] in page, name
        assert "bu⟨U+200B ZERO WIDTH SPACE⟩ilds" in page, name
        if name != "review":
            assert marks[1] in page, name
    assert "token \u0430⟨U+0430⟩gent" in superuser_client.get(NEW).content.decode()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"target_id": "plugin"}, "on 1 target: browser_click."),
        ({"target_id": "$browser"}, "on 1 target: browser_click."),
        ({"target_id": "$browser", "scope": "agent|local"}, "on 1 target: browser_click."),
        ({"target_id": "$browser", "scope": "agent|$other"}, "No known call matches"),
        ({"target_id": "*", "verdict": "deny"}, "on 2 targets: browser_click."),
        ({"target_id": "*"}, "on 1 target: browser_click."),
    ],
    ids=["all browsers", "one browser", "of its owner", "of another", "denied anywhere", "allowed"],
)
def test_a_rule_names_the_paired_browsers_that_it_decides_about(
    superuser_client: Client, principal: Principal, fields: dict[str, str], sentence: str
) -> None:
    other = authenticate(create_token(name="other")).id
    known = {"$browser": pair(principal).id, "agent|$other": f"agent|{other}"}
    filled = {name: known.get(value, value) for name, value in fields.items()}
    page = superuser_client.post(NEW, {**FORM, "tool": "browser_click", **filled})
    assert sentence in page.content.decode()
    assert "further call" not in page.content.decode()


def decided_click(client: Client) -> str:
    query = {"tool": "browser_click", "target_id": "", "caller": "everywhere|"}
    return client.get(f"{LIST}test/", query).content.decode()


def test_a_tested_call_names_the_rules_on_what_it_may_do_the_same_as(
    superuser_client: Client,
) -> None:
    assert "default: own tools" in decided_click(superuser_client)
    form = create_rule(RuleFields("deny", tool="submit_form", reason="no forms"), actor="t")
    page = decided_click(superuser_client)
    assert "default: own tools" in page
    assert "Where it does the same as submit_form" in page
    assert f"{form.key} v1" in page
    assert "no forms" in page
    click = create_rule(RuleFields("deny", tool="click_element", reason="no"), actor="t")
    page = decided_click(superuser_client)
    assert f"{click.key} v1" in page
    assert "default: own tools" not in page
    assert "Where it does" not in page


def test_a_rule_names_the_calls_of_other_tools_that_do_the_same(superuser_client: Client) -> None:
    deny = {**FORM, "verdict": "deny", "tool": "submit_form", "target_id": "*"}
    page = superuser_client.post(NEW, deny).content.decode()
    assert (
        "This rule denies what does the same with other tools: browser_click, browser_drag," in page
    )
    assert "browser_click, where it does the same as submit_form" in page
    assert "Whether a call of another tool did the same: browser_click, browser_drag," in page
    assert "I have read what it does" in page  # it decides on calls in paired browsers too
    allowed = superuser_client.post(NEW, {**deny, "verdict": "allow"}).content.decode()
    assert "with other tools" not in allowed
    rule = create_rule(RuleFields("deny", tool="submit_form", reason="no forms"), actor="t")
    retired = superuser_client.get(f"{LIST}{rule.key}/retire/").content.decode()
    assert "The rule no longer denies what does the same with other tools: browser_click" in retired
    click = {**FORM, "tool": "browser_click", "target_id": "plugin"}
    page = superuser_client.post(NEW, click).content.decode()
    assert (
        "Where such a call does the same as submit_form, a stricter rule on that decides." in page
    )


def test_a_rule_does_not_release_calls_that_a_rule_on_the_same_act_restricts(
    superuser_client: Client, principal: Principal
) -> None:
    create_rule(RuleFields("confirm", tool="click_element", reason="each"), actor="t")
    scope = principal.tenant_id, principal.workspace_id
    event = AuditEvent("policy.denied", principal.id, "tool", "browser_click", *scope)
    record(replace(event, metadata={"tool": "browser_click"}))
    form = {**FORM, "tool": "browser_click", "target_id": "*", "scope": f"tenant|{scope[0]}"}
    page = superuser_client.post(NEW, form).content.decode()
    assert "Nothing: the 1 recorded call that it matches would have been decided the same" in page
    assert "other rules decide on every call" in page


def test_the_page_of_a_rule_shows_its_whole_reason_and_every_character_of_its_name(
    superuser_client: Client, principal: Principal
) -> None:
    reason = "Nobody pays before the books of the month are closed. " * 5
    rule = create_rule(RuleFields("deny", tool="pay\u202egnp", reason=reason), actor="t")
    page = superuser_client.get(f"{LIST}{rule.pk}/change/").content.decode()
    assert "\u202e" not in page
    assert page.count("pay⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩gnp") >= 4  # tab, heading, tool, version
    assert page.count(reason.strip()) == 2


def test_a_rule_is_described_in_the_language_of_the_page(
    superuser_client: Client, principal: Principal
) -> None:
    rule = create_rule(
        RuleFields("deny", "tenant", principal.tenant_id, "*", reason="r"), actor="t"
    )
    chinese = {"Accept-Language": "zh-CN"}
    page = superuser_client.get(LIST, headers=chinese).content.decode()
    assert ">所有工具</span>" in page
    assert ">租户 local</span>" in page
    page = superuser_client.get(f"{LIST}{rule.pk}/change/", headers=chinese).content.decode()
    assert "拒绝 *" in page
    call = {"tool": "bash.exec", "target_id": "x", "caller": "agent|local"}
    retire_rule(rule.key, actor="t")
    page = superuser_client.get(f"{LIST}test/", call, headers=chinese).content.decode()
    assert "bash.exec 是高风险工具。" in page


def test_a_rule_lists_past_calls_in_paired_browsers(
    superuser_client: Client, principal: Principal
) -> None:
    client_id = pair(principal).id
    details = {"tool": "browser_click", "targetId": client_id}
    scope = principal.tenant_id, principal.workspace_id
    record(AuditEvent("tool.called", principal.id, "run", "run_1", *scope, details))
    rule = {**FORM, "tool": "browser_click", "target_id": "plugin", "verdict": "deny"}
    page = superuser_client.post(NEW, rule).content.decode()
    assert "every paired browser" in page
    assert client_id in page
