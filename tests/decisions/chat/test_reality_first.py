"""The reality question: asked once, when a user's decision rests on identity instead of facts."""

from __future__ import annotations

import pytest

from decisions.chat.analysis.language import Language
from decisions.chat.analysis.reality_first import RealityCheck, check_reality


def check(
    message: str, *, mode: str = "low_intervention", language: Language = "en", off: bool = False
) -> RealityCheck:
    return check_reality(message, mode=mode, hints_off=off, language=language)


@pytest.mark.parametrize(
    "message",
    [
        "I have always been a risk taker, so I should quit.",
        "As a founder I must accept the offer.",
        "我一直是个果断的人，决定直接签字。",
        "像我这样的人应该选择大城市。",
    ],
)
def test_identity_with_a_decision_and_no_number_is_a_hit(message: str) -> None:
    found = check(message)
    assert found.shell_bias_hit
    assert found.as_dict()["intervention"] == "hint"
    assert str(found.question).count("?") + str(found.question).count("？") == 1


@pytest.mark.parametrize(
    "message",
    [
        "I have always been a risk taker, but my savings last 6 months, so I should quit.",
        "I should quit.",
        "I have always liked trains.",
        "我一直很果断，预算够三个月，决定签字。",
        "",
    ],
)
def test_numbers_resources_or_the_lack_of_a_decision_are_no_hit(message: str) -> None:
    assert check(message).as_dict() == {
        "mode": "low_intervention",
        "shell_bias_hit": False,
        "intervention": "none",
        "question": None,
    }


def test_a_user_who_understood_or_is_impatient_gets_no_question() -> None:
    message = "As a founder I must accept the offer."
    assert check(message, off=True).question is None
    assert check(message, off=True).shell_bias_hit
    assert check(f"{message} Just do it!").question is None


def test_the_question_can_be_turned_off() -> None:
    found = check("As a founder I must accept the offer.", mode="off")
    assert found.as_dict()["mode"] == "off"
    assert not found.shell_bias_hit


def test_the_question_is_in_the_language_of_the_message() -> None:
    message = "As a founder I must accept the offer."
    assert "？" in str(check(message, language="zh").question)
