"""The template `submit_and_verify`: fields are filled, the form is sent once, the result is
reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from decisions.models import AuditEntry
from runners.browser.reading import form_watch, page_watch
from runs.models import Run, RunEvent, RunStep
from runs.task_templates.builtin.submit_and_verify import SubmitAndVerify
from tests.support.browser.template_sites import HEAD, RunTemplate, Site, by_selector, by_text
from tests.support.runs.worker_rows import error_of

THANKS = {"type": "textIncludes", "value": "Thank you", "timeoutMs": 8000}


def field(name: str, value: str, locator: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"name": name, "value": value, "locator": locator, **more}


NAME = field("name", "Ada 王", by_text("your name"))
ALL_FIELDS = [
    NAME,
    field("mail", "ada@example.org", by_text("email")),
    field("topic", "support", by_text("topic")),
    field("day", "2026-11-22", by_text("day")),
    field("copy", "true", by_text("send me a copy")),
    field("text", "line one\nline two", by_selector("textarea")),
]


def effects(run: Run) -> list[tuple[str, str]]:
    rows = RunStep.objects.filter(run=run).order_by("index")
    return list(rows.values_list("effect", "status"))


def test_a_form_is_filled_by_typing_and_sent_once(run_template: RunTemplate, site: Site) -> None:
    run = run_template(
        "submit_and_verify",
        startUrl=site.url("/contact"),
        fields=ALL_FIELDS,
        successIndicator=THANKS,
    )
    assert run.status == "succeeded", run.error
    ((path, sent),) = site.server.forms
    assert (path, sent.pop("copy")) == ("/sent", "on")
    assert sent == {
        "name": "Ada 王",
        "mail": "ada@example.org",
        "topic": "Support",
        "day": "2026-11-22",
        "text": "line one\r\nline two",
    }
    assert effects(run)[-2:] == [("once", "succeeded"), ("read", "succeeded")]


def test_the_result_has_names_and_no_values(run_template: RunTemplate, site: Site) -> None:
    run = run_template(
        "submit_and_verify",
        startUrl=site.url("/contact"),
        fields=[field("name", "zebra-4711", by_text("your name"))],
        successIndicator=THANKS,
    )
    assert run.result["submittedFields"] == ["name"]
    assert (run.result["success"], run.result["indicatorMatched"]) == (True, True)
    steps = RunStep.objects.filter(run=run).values_list("input", "output", "name")
    events = RunEvent.objects.filter(run=run).values_list("data", flat=True)
    audit = AuditEntry.objects.filter(resource_id=run.id).values_list("metadata", flat=True)
    everything = json.dumps([run.result, list(steps), list(events), list(audit)], default=str)
    assert "Thank you" in everything
    assert "zebra-4711" not in everything


def test_an_indicator_that_is_not_met_keeps_the_page_and_is_no_success(
    run_template: RunTemplate, site: Site
) -> None:
    never = {"type": "textIncludes", "value": "Order confirmed", "timeoutMs": 300}
    run = run_template(
        "submit_and_verify", startUrl=site.url("/contact"), fields=[NAME], successIndicator=never
    )
    assert (run.status, run.error) == ("partial_success", None)
    assert (run.result["success"], run.result["indicatorMatched"]) == (False, False)
    assert run.result["finalPage"]["title"] == "Thanks"
    assert "indicator was not met" in run.warnings[0]
    assert len(site.server.forms) == 1


def test_a_form_with_errors_names_the_invalid_field(run_template: RunTemplate, site: Site) -> None:
    run = run_template("submit_and_verify", startUrl=site.url("/refusing"), fields=[NAME])
    assert run.status == "partial_success", run.error
    assert (run.result["success"], run.result["indicatorMatched"]) == (False, None)
    assert run.warnings == ["“E-mail” is marked as invalid: This address is taken."]
    assert site.server.forms == []


@pytest.mark.slow
def test_a_field_that_the_browser_itself_rejects_is_named(
    run_template: RunTemplate, site: Site
) -> None:
    mail = field("mail", "not-an-address", by_text("e-mail"))
    run = run_template("submit_and_verify", startUrl=site.url("/contact"), fields=[NAME, mail])
    assert run.status == "partial_success", run.error
    assert "E-mail" in run.warnings[0]
    assert site.server.forms == []


def test_a_submit_that_ends_on_an_error_page_is_no_success(
    run_template: RunTemplate, site: Site
) -> None:
    run = run_template("submit_and_verify", startUrl=site.url("/crashing"), fields=[NAME])
    assert run.status == "partial_success", run.error
    assert run.result["success"] is False
    assert run.result["finalPage"]["httpStatus"] == 500
    assert run.warnings == ["The server answered with HTTP status 500."]


@pytest.mark.slow
def test_a_page_that_never_answers_is_a_timeout_that_must_not_be_retried(
    run_template: RunTemplate, site: Site
) -> None:
    run = run_template(
        "submit_and_verify", startUrl=site.url("/lost"), fields=[NAME], timeout_ms=15_000
    )
    error = error_of(run)
    assert error["errorCode"] in ("NAVIGATION_TIMEOUT", "RUN_TIMEOUT")
    assert site.server.hits["/never"] == 1
    assert all(
        action["args"].get("templateId") != "submit_and_verify" for action in run.next_actions
    )


@pytest.mark.slow
def test_a_missing_field_sends_nothing(run_template: RunTemplate, site: Site) -> None:
    fields = [NAME, field("fax", "1", by_text("fax number"))]
    run = run_template("submit_and_verify", startUrl=site.url("/contact"), fields=fields)
    error = error_of(run)
    assert error["errorCode"] == "ELEMENT_NOT_FOUND"
    assert error["step"] == {"step": 2, "name": "fill fax"}
    assert error["details"]["submitted"] == "no"
    assert error["details"]["candidates"]
    assert site.server.forms == []


def test_a_missing_option_names_the_existing_options(run_template: RunTemplate, site: Site) -> None:
    topic = field("topic", "Complaints", by_text("topic"))
    run = run_template("submit_and_verify", startUrl=site.url("/contact"), fields=[topic])
    assert error_of(run)["details"]["options"] == ["Sales", "Support"]


@pytest.mark.slow
def test_a_disabled_button_is_not_clicked(run_template: RunTemplate, site: Site) -> None:
    run = run_template(
        "submit_and_verify",
        startUrl=site.url("/contact"),
        fields=[NAME],
        submit=by_text("send later"),
    )
    error = error_of(run)
    assert (error["errorCode"], error["details"]["reason"]) == ("ELEMENT_NOT_FOUND", "disabled")
    assert error["details"]["submitted"] == "no"
    assert site.server.forms == []


def test_flagged_values_are_stored_for_their_steps_and_for_the_report_of_the_page() -> None:
    template = SubmitAndVerify()
    fields = [NAME, field("code", "***", by_text("code"), secret=True)]
    inputs = {"startUrl": "https://example.org/", "fields": fields}
    assert template.secret_paths(inputs) == {("fields", 1, "value")}
    needing = [step.name for step in template.plan(inputs) if step.needs_secrets]
    assert needing == ["fill code", "submit the form", "verify and read the page"]
    without_secret = template.plan({"startUrl": "https://example.org/", "fields": [NAME]})
    assert not any(step.needs_secrets for step in without_secret)


DEAD = f"""{HEAD}<title>Dead</title><p>Thank you for coming.<form onsubmit="return false">
<label for=name>Your name</label> <input id=name><button>Send</button></form>"""


def test_a_form_that_sends_nothing_is_no_success(
    run_template: RunTemplate, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_watch, "REACTION_SECONDS", 0.3)
    site.server.add("/dead", DEAD)
    run = run_template("submit_and_verify", startUrl=site.url("/dead"), fields=[NAME])
    assert (run.status, run.result["success"]) == ("partial_success", False)
    assert "apparently not sent" in run.warnings[0]


def test_an_indicator_that_held_before_the_submit_is_no_success(
    run_template: RunTemplate, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_watch, "REACTION_SECONDS", 0.3)
    site.server.add("/dead", DEAD)
    run = run_template(
        "submit_and_verify", startUrl=site.url("/dead"), fields=[NAME], successIndicator=THANKS
    )
    assert (run.result["success"], run.result["indicatorMatched"]) == (False, True)
    assert any("held before the submit" in warning for warning in run.warnings)


@pytest.mark.parametrize(
    ("dialog", "status", "sent"),
    [
        pytest.param(None, "partial_success", 0, marks=pytest.mark.slow, id="dismissed"),
        pytest.param({"accept": True}, "succeeded", 1, id="accepted"),
    ],
)
def test_the_question_of_a_page_before_it_sends_is_answered_as_the_inputs_say(
    run_template: RunTemplate, site: Site, dialog: Any, status: str, sent: int
) -> None:
    form = "<form method=post action=/thanks onsubmit=\"return confirm('Really?')\">"
    site.server.add("/asking", f"{HEAD}<title>Ask</title>{form}<input name=a><button>Send")
    site.server.add("/thanks", f"{HEAD}<title>Thank you</title>Thank you")
    inputs = {"dialog": dialog} if dialog else {}
    fields = [field("a", "1", by_selector("input"))]
    run = run_template("submit_and_verify", startUrl=site.url("/asking"), fields=fields, **inputs)
    assert (run.status, len(site.server.forms)) == (status, sent), run.error
    assert any("Really?" in warning for warning in run.warnings)


TICKING = """<p id=clock><script>let n = 0; const tick = () => {
  clock.textContent = `Now: ${'abcdef'[n++ % 6]}`; fetch("/poll?at=" + Date.now());
}; tick(); setInterval(tick, 400);</script>"""


def test_a_page_that_only_ticks_and_polls_has_not_sent_its_form(
    run_template: RunTemplate, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_watch, "REACTION_SECONDS", 0.3)
    site.server.add("/ticking", DEAD + TICKING)
    site.server.add("/poll", "")
    run = run_template("submit_and_verify", startUrl=site.url("/ticking"), fields=[NAME])
    assert (run.status, run.result["success"]) == ("partial_success", False)
    assert "apparently not sent" in run.warnings[0]


MAIL_FORM = """<form method=post action={}><label>Mail <input name=mail></label>
<label>Kind <select name=kind><option>a</select></label><button>Send</button></form>"""
MAIL = field("mail", "nobody", by_text("mail"))
ALWAYS = {"type": "textIncludes", "value": "Contact", "timeoutMs": 8000}


@pytest.mark.parametrize(
    ("answer", "indicator"),
    [
        ("<p class=error>Mail is invalid</p>", None),
        ("<div class=alert>Sorry, we could not send your message.</div>", ALWAYS),
        ("<p>Ungültig", None),
    ],
    ids=["a marked error", "an alert and an indicator", "words"],
)
def test_a_form_that_the_server_shows_again_is_no_success(
    run_template: RunTemplate, site: Site, answer: str, indicator: Any
) -> None:
    head = f"{HEAD}<title>Contact</title><h1>Contact</h1>"
    site.server.add("/ask", head + MAIL_FORM.format("/again"))
    site.server.add("/again", f"{head}{answer}{MAIL_FORM.format('/again')}")
    inputs = {"successIndicator": indicator} if indicator else {}
    run = run_template("submit_and_verify", startUrl=site.url("/ask"), fields=[MAIL], **inputs)
    assert (run.status, run.result["success"]) == ("partial_success", False), run.error
    assert "shows the form again" in run.warnings[-1]
    assert answer.partition(">")[2].partition("<")[0] in run.warnings[-1]
    assert "apparently not accepted" in run.result_summary


SENT_BY_SCRIPT = """<p id=says {attributes}></p><script>
document.forms[0].onsubmit = (event) => {{
  event.preventDefault(); document.forms[0].reset(); says.textContent = {text!r};
  fetch("/poll");
}};</script>"""


@pytest.mark.parametrize(
    ("attributes", "text", "status"),
    [
        ("role=alert", "Thank you", "succeeded"),
        pytest.param("", "It could not be sent", "partial_success", marks=pytest.mark.slow),
    ],
)
def test_a_form_that_a_script_empties_is_accepted_if_no_new_text_is_an_error(
    run_template: RunTemplate,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    attributes: str,
    text: str,
    status: str,
) -> None:
    monkeypatch.setattr(form_watch, "REACTION_SECONDS", 0.3)
    script = SENT_BY_SCRIPT.format(attributes=attributes, text=text)
    site.server.add("/ask", f"{HEAD}<title>Contact</title>{MAIL_FORM.format('/again')}{script}")
    site.server.add("/poll", "")
    run = run_template("submit_and_verify", startUrl=site.url("/ask"), fields=[MAIL])
    assert run.status == status, (run.error, run.warnings)
    assert run.result["success"] is (status == "succeeded")
