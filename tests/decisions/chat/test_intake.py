"""Chat intake: task types, the slots that a message names, and answers to questions."""

from __future__ import annotations

import pytest

from decisions.chat.analysis.intake import (
    answers_in,
    is_new_request,
    missing_slots,
    questions_for,
    slots_in,
    task_type_of,
)
from decisions.chat.analysis.language import language_of
from tests.support.decisions.gate_sets import own_set

ASKED = ["environment", "target", "success_criteria"]


def test_labelled_messages_are_classified_with_few_errors() -> None:
    messages = own_set()
    wrong = [
        message.text
        for message in messages
        if task_type_of(message.text, risky=message.found is not None) != message.task_type
    ]
    assert len(wrong) <= len(messages) * 0.03, wrong


def test_at_most_three_questions_are_asked_in_the_language_of_the_message() -> None:
    missing = missing_slots("complex_decision", {})
    assert len(missing) == 7
    english, chinese = questions_for(missing, "en"), questions_for(missing, "zh")
    assert len(english) == len(chinese) == 3
    assert [language_of(text) for text in (*english, *chinese)] == ["en"] * 3 + ["zh"] * 3


def test_a_concept_exploration_has_no_missing_slots() -> None:
    assert missing_slots("concept_exploration", {}) == []


def test_a_blank_slot_is_still_missing() -> None:
    assert missing_slots("execution", {"environment": "test", "target": " "}) == ASKED[1:]


@pytest.mark.parametrize(
    ("message", "slots"),
    [
        ("Run the job on staging", {"environment": "staging"}),
        ("在测试环境跑一下任务", {"environment": "测试环境"}),
        ("Run it.\nenvironment: qa\ntarget: the job", {"environment": "qa", "target": "the job"}),
        ("跑任务；目标：任务；成功标准：无错", {"target": "任务", "success_criteria": "无错"}),
        ("Test the product", {}),
    ],
)
def test_a_message_names_its_own_slots(message: str, slots: dict[str, str]) -> None:
    assert slots_in(message, ASKED) == slots


@pytest.mark.parametrize(
    "message",
    [
        "1. staging 2. the job 3. no errors",
        "staging\nthe job\nno errors",
        "staging; the job; no errors",
        "target: the job\nsuccess: no errors\nenvironment: staging",
        "staging, the job, no errors",
    ],
)
def test_answers_are_separated_by_number_line_or_label(message: str) -> None:
    answers = dict(zip(ASKED, ["staging", "the job", "no errors"], strict=True))
    assert answers_in(message, ASKED) == answers


def test_a_single_answer_goes_to_the_question_it_fits_or_else_the_first() -> None:
    assert answers_in("the nightly job", ["target", "success_criteria"]) == {
        "target": "the nightly job"
    }
    assert answers_in("it goes to production", ["target", "environment"]) == {
        "environment": "production"
    }


def test_a_new_request_is_not_an_answer() -> None:
    assert is_new_request("Run the unit tests instead")
    assert is_new_request("What is a slot?")
    assert not is_new_request("staging")
    assert not is_new_request("1. run it on staging 2. the job")
