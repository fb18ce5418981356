"""The similarity of messages, and the signatures that estimate it."""

from __future__ import annotations

import math

import pytest

from decisions.chat.history.similarity import near_ones, signature, similarity

DELETE = "Delete all rows of the orders table"


def differing_bits(one: str, other: str) -> int:
    first, second = (int.from_bytes(signature(text), "little") for text in (one, other))
    return (first ^ second).bit_count()


@pytest.mark.parametrize(
    ("other", "low", "high"),
    [
        (DELETE, 1.0, 1.0),
        (DELETE.upper() + "!!", 0.999, 1.0),
        ("Please delete all rows of the orders table", 0.85, 0.999),
        ("Restart the payment gateway", 0.0, 0.3),
        ("删除订单表的所有数据", 0.0, 0.01),
    ],
)
def test_similarity_is_that_of_the_words(other: str, low: float, high: float) -> None:
    assert low <= similarity(DELETE, other) <= high
    assert similarity(DELETE, other) == similarity(other, DELETE)


def test_chinese_is_compared_by_its_characters() -> None:
    assert similarity("删除生产库的订单表", "把生产库的订单表删除") > 0.5
    assert similarity("删除生产库的订单表", "给所有客户发邮件") < 0.1


@pytest.mark.parametrize("other", [DELETE, f"{DELETE} now", "Delete the rows", "Buy milk"])
def test_a_signature_estimates_the_similarity(other: str) -> None:
    angle = math.pi * differing_bits(DELETE, other) / 512
    assert max(0.0, math.cos(angle)) == pytest.approx(similarity(DELETE, other), abs=0.12)


def test_the_most_similar_messages_come_first_and_unrelated_ones_are_left_out() -> None:
    texts = ("Buy milk", f"{DELETE} now", DELETE)
    known = [int.from_bytes(signature(text), "little") for text in texts]
    found = sorted(near_ones(signature(DELETE), [1, 2, 3], known, at_least=0.5))
    assert [number for _, number in found] == [3, 2]


@pytest.mark.parametrize("text", ["", "!!!", "x", "😀", "a" * 70_000])
def test_any_text_has_a_signature_of_64_bytes(text: str) -> None:
    assert len(signature(text)) == 64
    assert 0.0 <= similarity(text, DELETE) <= 1.0
