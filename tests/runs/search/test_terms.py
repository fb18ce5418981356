"""The words under which a run is stored and searched."""

from __future__ import annotations

import pytest

from decisions.foundation.errors import InvalidInput
from runs.search.labels import check_labels, parse_labels
from runs.search.terms import facet, label_facet, words_to_find, words_to_store


def is_found(text: str, query: str) -> bool:
    """Return whether every word of the query begins a word of the text."""
    stored = list(words_to_store(text))
    return all(any(word.startswith(sought) for word in stored) for sought in words_to_find(query))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("在example.com登录后台", "登录"),
        ("在example.com登录后台", "后"),
        ("在example.com登录后台", "台"),
        ("在example.com登录后台", "登录后台"),
        ("docs.example.com/Guide", "GUIDE"),
        ("docs.example.com/guide", "exam"),
        ("ＮＡＶＩＧＡＴＩＯＮ_TIMEOUT", "navigation time"),
        ("ログイン画面", "イン"),
    ],
)
def test_a_text_is_found_by_its_words_their_starts_and_pairs_of_characters(
    text: str, query: str
) -> None:
    assert is_found(text, query)


@pytest.mark.parametrize(
    ("text", "query"), [("登记目录", "登录"), ("example.com", "ample"), ("录登", "登录")]
)
def test_a_text_is_not_found_by_other_words(text: str, query: str) -> None:
    assert not is_found(text, query)


def test_no_word_of_a_text_is_a_facet() -> None:
    facets = [facet("error", "A"), facet("user", "A"), label_facet("a", "b=c")]
    assert len({*facets, label_facet("a=b", "c")}) == 3  # the same text, name=value
    assert not set(facets) & set(words_to_store("error A user a=b=c"))


def test_labels_are_parsed_and_written_alike() -> None:
    assert parse_labels("env=prod, team=搜索") == {"env": "prod", "team": "搜索"}


@pytest.mark.parametrize(
    "text", ["env", "=x", "env=", "a=1,a=2", "a b=1", "a= 1", f"a={'x' * 101}"]
)
def test_a_malformed_label_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_labels(text)


@pytest.mark.parametrize(
    "labels",
    [
        {"env": 1},
        {"env\n": "x"},
        {"a": "x\n"},
        {"a": "1,2"},
        {str(n): "x" for n in range(21)},
        ["a"],
    ],
)
def test_invalid_labels_are_refused(labels: object) -> None:
    with pytest.raises(InvalidInput, match=r"options\.labels"):
        check_labels(labels)
