"""The terms of a run: the words by which a person finds it, and one term for each value that lists
filter by.

Words are lower case and split at everything that is neither a letter nor a digit. Chinese, Japanese
and Korean texts have no spaces, so they are stored as overlapping pairs of characters: a query of
two characters is one term, and one of a single character is the start of a term.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from runs.models import Run
from runs.search.sites import site_of_error, site_of_subject

WORD_MAX = 40  # characters of a word that count
WORDS_MAX = 600  # of a run: labels can be long
ID_END = 8  # characters of an id that pages show
Kind = Literal["error", "label", "principal", "site", "template", "user", "workspace"]
_MARKS: Mapping[str, str] = {
    "error": "e",
    "label": "l",
    "principal": "p",
    "site": "s",
    "template": "t",
    "user": "u",
    "workspace": "w",
}
_EAST_ASIAN = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003fffd"
)
_PIECE = re.compile(rf"(?P<pairs>[{_EAST_ASIAN}]+)|[^\W_{_EAST_ASIAN}]+")


def facet(kind: Kind, value: str) -> str:
    """Return the term that every run with this value has, and no word is."""
    return f"0{_MARKS[kind]}{hashlib.sha256(value.encode()).hexdigest()[:16]}"


def label_facet(name: str, value: str) -> str:
    """Return the term of a label."""
    return facet("label", f"{name}={value}")


def words_to_store(text: str) -> Iterator[str]:
    """Yield the terms of a text that is searched."""
    for piece, is_paired in _pieces(text):
        if is_paired:
            yield from _pairs(piece)
            yield piece[-1]
        else:
            yield piece[:WORD_MAX]


def words_to_find(text: str) -> Iterator[str]:
    """Yield the starts of terms that a matching text has, for a text that is searched for."""
    for piece, is_paired in _pieces(text):
        if is_paired and len(piece) > 1:
            yield from _pairs(piece)
        else:
            yield piece[:WORD_MAX]


def terms_of(run: Run) -> str:
    """Return a run's terms, separated by spaces: the column of `RunTerms`."""
    labels: Mapping[str, str] = run.labels or {}
    facets = [
        facet("workspace", run.workspace_id),
        facet("template", run.template_id),
        facet("principal", run.principal_id),
        *([facet("user", run.user_id)] if run.user_id else []),
        *(label_facet(name, value) for name, value in labels.items()),
    ]
    body = run.id.partition("_")[2] or run.id
    texts = [
        body,
        body[-ID_END:],
        run.subject or "",
        *(f"{name} {value}" for name, value in labels.items()),
    ]
    words = dict.fromkeys(word for text in texts for word in words_to_store(text))
    terms = [*facets, *list(words)[:WORDS_MAX]]
    return " ".join([*terms, *error_terms(run.error_code, run.error_cause, run.error_site)])


def error_terms(code: str, cause: str, site: str) -> list[str]:
    """Return the terms of a run's error: none without one."""
    if not code:
        return []
    codes = dict.fromkeys([code, *([cause] if cause else [])])
    words = (word for text in (*codes, site) for word in words_to_store(text))
    facets = [*(facet("error", one) for one in codes), *([facet("site", site)] if site else [])]
    return [*facets, *dict.fromkeys(words)]


def error_columns(error: Mapping[str, Any] | None, subject: str = "") -> dict[str, str]:
    """Return the columns by which failures are filtered and grouped, for a run's error.

    The cause of several failed pages is the code that most of them have.
    """
    details = (error or {}).get("details") or {}
    code, cause = (error or {}).get("errorCode") or "", details.get("causeCode") or ""
    codes = details.get("causeCodes")
    if not cause and isinstance(codes, Mapping) and codes:
        cause = max(codes, key=lambda one: codes[one])
    return {
        "error_code": str(code)[:64],
        "error_cause": str(cause)[:64],
        "error_site": site_of_error(error) or (site_of_subject(subject) if error else ""),
    }


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    for found in _PIECE.finditer(folded):
        yield found[0], found["pairs"] is not None


def _pairs(piece: str) -> Iterator[str]:
    return (piece[at : at + 2] for at in range(len(piece) - 1))
