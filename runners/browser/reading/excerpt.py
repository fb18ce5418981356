"""Choose the lines of a page that fit into an observation; say which are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LIMIT_BYTES = 3_500
FULL_LIMIT_BYTES = 12_000
TEXT_LIMIT = 160  # characters of a text on a page that has to be cut
GAP_BYTES = 48  # what a mark for omitted lines takes at most

Line = Mapping[str, Any]  # {text, inView, isText?, isElement?}, as page/outline.js returns it


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Whole lines of a page, in its order.

    Attributes:
        text: the lines, with a mark where lines are omitted between them.
        next: the number of the line with which to read on; None if none is left.
        left: how many lines are omitted.
    """

    text: str
    next: int | None = None
    left: int = 0


def excerpt_of(lines: Sequence[Line], *, start: int | None, full: bool) -> Excerpt:
    """Return the lines from number `start` on, or those in view first, as far as they fit.

    Lines are numbered from 1. Long texts are shortened on a page that does not fit as a whole,
    unless `full`, which also raises the limit.
    """
    limit = FULL_LIMIT_BYTES if full else LIMIT_BYTES
    texts = [str(line["text"]) for line in lines]
    if start is None and _size(texts) <= limit:
        return Excerpt("\n".join(texts))
    if not full:
        texts = [_shortened(line) for line in lines]
    if start is not None:
        return _from(texts, start, limit)
    return _marked(texts, _chosen(lines, texts, limit), lines)


def _from(texts: Sequence[str], start: int, limit: int) -> Excerpt:
    end, size = start - 1, 0
    while end < len(texts) and (size == 0 or size + _size(texts[end : end + 1]) <= limit):
        size += _size(texts[end : end + 1])
        end += 1
    left = len(texts) - end
    return Excerpt("\n".join(texts[start - 1 : end]), end + 1 if left > 0 else None, max(0, left))


def _chosen(lines: Sequence[Line], texts: Sequence[str], limit: int) -> set[int]:
    """Return the positions of the lines to show: those in view, then those after, then the rest."""
    in_view = [at for at, line in enumerate(lines) if line["inView"]]
    begin = in_view[0] if in_view else 0
    after = [at for at in range(begin, len(lines)) if not lines[at]["inView"]]
    before = [at for at in range(begin - 1, -1, -1) if not lines[at]["inView"]]
    chosen: set[int] = set()
    left = limit - GAP_BYTES
    for at in (*in_view, *after, *before):
        is_apart = not {at - 1, at + 1} & chosen
        left -= _size(texts[at : at + 1]) + (GAP_BYTES if is_apart else 0)
        if left < 0:
            break
        chosen.add(at)
    return chosen


def _marked(texts: Sequence[str], chosen: set[int], lines: Sequence[Line]) -> Excerpt:
    shown: list[str] = []
    omitted = [at for at in range(len(texts)) if at not in chosen]
    for at, text in enumerate(texts):
        if at in chosen:
            shown.append(text)
        elif at == 0 or at - 1 in chosen:
            count = next((n for n in range(at, len(texts)) if n in chosen), len(texts)) - at
            shown.append(f"… {count} lines left out (from: {at + 1})")
    first = min(chosen, default=-1)
    following = [at for at in omitted if at > first] or omitted
    return Excerpt("\n".join(shown), following[0] + 1 if following else None, len(omitted))


def _size(texts: Sequence[str]) -> int:
    return sum(len(text.encode()) + 1 for text in texts)


def _shortened(line: Line) -> str:
    text = str(line["text"])
    if not line.get("isText") or len(text) <= TEXT_LIMIT:
        return text
    return f"{text[: TEXT_LIMIT - 1].rstrip()}…"
