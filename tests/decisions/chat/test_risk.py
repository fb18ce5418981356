"""Which class of risky action a message requests: a labelled set and difficult input."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from decisions.chat.analysis.intake import task_type_of
from decisions.chat.risk import detection
from decisions.chat.risk.classes import RiskClass
from decisions.chat.risk.detection import find_risk
from decisions.chat.risk.english import rules
from tests.support.decisions.gate_sets import Labelled, blind_set, measure, own_set

# A line is: half, language, harm, sentence. `rules` is by the rules' author, `unseen` by a writer
# who has not seen them, `tuning` what the rules were extended for.
SENTENCES = Path(__file__).parent / "risk_sentences.tsv"
OWN = own_set()
RISKY = [item for item in OWN if item.risky]
HARMLESS = [item for item in OWN if not item.risky]


def test_the_set_has_every_class_both_languages_and_all_kinds_of_tasks() -> None:
    assert len(OWN) >= 120
    assert {item.language for item in RISKY} == {item.language for item in HARMLESS} == {"en", "zh"}
    assert len({item.rule for item in RISKY}) == 6
    assert len({item.task_type for item in OWN}) == 3


@pytest.mark.parametrize("message", RISKY, ids=lambda item: item.text[:50])
def test_no_risky_message_is_missed_and_its_rule_is_named(message: Labelled) -> None:
    assert message.found == message.rule


def test_harmless_messages_that_resemble_risky_ones_pass() -> None:
    assert [item.text for item in HARMLESS if item.found] == []


def test_the_blind_set_has_high_recall_and_precision() -> None:
    result = measure(blind_set())
    assert result["messages"] == 60
    assert result["recall"] >= 0.95
    assert result["precision"] >= 0.9


def test_few_harmful_sentences_are_missed_and_few_harmless_ones_flagged() -> None:
    rows = [line.split("\t") for line in SENTENCES.read_text("utf-8").splitlines()[1:]]
    count = Counter((half, harm) for half, _, harm, _ in rows)
    wrong = Counter(
        (half, harm)
        for half, _, harm, sentence in rows
        if (find_risk(sentence) is not None) != (harm == "harmful")
    )
    for half in ("rules", "unseen"):
        assert count[half, "harmful"] == count[half, "harmless"] == 100
    for half in ("rules", "unseen", "tuning"):
        assert wrong[half, "harmful"] <= 0.04 * count[half, "harmful"]
        assert wrong[half, "harmless"] <= 0.01 * count[half, "harmless"]
    assert wrong["rules", "harmful"] + wrong["unseen", "harmful"] <= 2


@pytest.mark.parametrize(
    ("message", "risky"),
    [
        ("Can you ease the tone of this email?", False),  # is no misspelling of "erase"
        ("帮我写一段删除历史的介绍", False),
        ("登录验证太麻烦了，关掉吧", True),  # the object is in the clause before
        ("把昨天的备份删掉", True),  # the time is the object's
        ("昨天把备份删掉了", False),
    ],
)
def test_what_a_verb_is_about_decides(message: str, risky: bool) -> None:
    assert (find_risk(message) is not None) == risky


@pytest.mark.parametrize(
    "message",
    [
        "ＤＥＬＥＴＥ all rows of the users table",
        "De\u200blete all rows of the users table",
        "Lovely weather today. " * 2000 + "Delete all rows of the users table. " + "Bye. " * 2000,
        "x " * 3000 + "delete all rows of the users table" + " y" * 3000,
        "don't " + "delete it, " * 20 + "delete the users table",
        "Say nothing about `ls`, but run `rm -rf /srv/data`",
        "```\nDROP TABLE users;\n```",
    ],
)
def test_disguises_do_not_hide_an_action(message: str) -> None:
    finding = find_risk(message)
    assert finding is not None
    assert finding.rule == "irreversible_deletion"


@pytest.mark.parametrize(
    "message",
    ["", " ", "\n" * 60_000, "'" * 60_000, "😀" * 16_000, "```", "`a`" * 5000, "1. " * 20_000],
)
def test_unusual_text_requests_no_action(message: str) -> None:
    assert find_risk(message) is None


def test_only_a_do_it_confirms_the_earlier_request() -> None:
    earlier_message = "How would I empty the orders table?"
    assert find_risk(earlier_message) is None
    assert find_risk("Yes, do it.", previous=earlier_message) is not None
    assert find_risk("Don't do it.", previous=earlier_message) is None
    assert find_risk("Yes, do it.", previous="How would I sort a list?") is None


def test_a_risk_at_the_end_of_a_long_message_is_found() -> None:
    finding = find_risk("do it " * 3000 + "and delete the production database")
    assert finding is not None
    assert finding.rule == RiskClass.DELETION


@pytest.mark.timeout(20)
@pytest.mark.parametrize("word", ["and", "hey", "so", "please", "question"])
def test_a_message_of_a_thousand_conjunctions_and_greetings_is_read(word: str) -> None:
    """Patterns that could split the commas between them in two ways needed hours for 50."""
    message = f"{word} , " * 1000
    assert find_risk(message) is None
    assert task_type_of(message, risky=False)


def test_each_clause_is_searched_once_however_often_the_message_refers_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searched: list[str] = []

    def search(clause: str, context: str) -> list[detection.RequestedRisk]:
        searched.append(clause)
        return []

    monkeypatch.setattr(detection, "_mentioned", search)
    find_risk("Do it. " * 100)
    assert len(searched) == 99


def test_excuses_are_searched_only_for_verbs_with_a_risky_object(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "is_requested", lambda *_: pytest.fail("an excuse was searched"))
    assert find_risk("We send the notes and share the slides. " * 50) is None
