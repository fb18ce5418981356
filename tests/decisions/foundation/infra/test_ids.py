"""Ids sort by creation time, are unique, and use only plain characters."""

from __future__ import annotations

import re
import time

import pytest

from decisions.foundation.infra.ids import new_id


def test_an_id_is_its_prefix_and_twenty_six_plain_characters() -> None:
    assert re.fullmatch(r"run_[0-9abcdefghjkmnpqrstvwxyz]{26}", new_id("run_"))


def test_later_ids_sort_after_earlier_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = []
    for at_ms in (0, 1, 2**40, 2**47, 2**48 - 1):
        monkeypatch.setattr(time, "time_ns", lambda at_ms=at_ms: at_ms * 1_000_000)
        ids.append(new_id(""))
    assert ids == sorted(ids)


def test_ids_are_unique() -> None:
    assert len({new_id("") for _ in range(20_000)}) == 20_000


def test_an_id_contains_its_creation_time() -> None:
    digits = "0123456789abcdefghjkmnpqrstvwxyz"
    number = 0
    for character in new_id("")[:10]:
        number = number * 32 + digits.index(character)
    assert abs(number - time.time() * 1000) < 5000
