"""Retrieval from a user's past: similar events, related failures, the best success path."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models import F, QuerySet
from django.db.models.fields.json import KT

from decisions.chat.analysis.language import SCAN_CHARS
from decisions.chat.history.signatures import signatures_of
from decisions.chat.history.similarity import rough_similarity, signature, similarity
from decisions.memory.objects import current_versions
from decisions.memory.owner import Owner
from decisions.models import Event, ObjectType, Outcome, OutcomeStatus

MIN_SIMILARITY = 0.5  # of a past event that is related to the message
_MIN_ESTIMATE = 0.4  # estimates are accurate to 0.03, and no L4 event may be missed
_MAX_COMPARED = 12  # events, or paths, that are compared in full
_HALF_LIFE_DAYS = 30.0
_MAX_FAILURES = 200
_FAILURE_AGE = timedelta(days=180)
_MAX_PATHS = 200
_MIN_OVERLAP = 0.2  # of a success path that is related to the message
FAILURE_PENALTY, MAX_PENALTY = 3.0, 30.0
_CONFIDENCE = {"high": 1.0, "medium": 0.6, "low": 0.3}
_KINDS = {
    "data_loss": (
        r"\b(?:lost|losing|lose|missing|corrupt\w*|overwr\w+)\b.{0,60}"
        r"\b(?:data|files?|rows?|work|backup)\b|\bdata loss\b|数据丢失|丢了?数据|误删|丢失"
    ),
    "repeat_error": (
        r"\b(?:again|once more|same (?:error|mistake|problem)|keeps? (?:failing|happening)"
        r"|still (?:fails|broken))\b|又(?:报错|失败|错|出)|再次失败|同样的(?:错|问题)|老问题|反复"
    ),
    "context_loss": (
        r"\b(?:forgot|forgotten|lost (?:the )?(?:context|track)|as i (?:said|told you)"
        r"|you don't remember|where were we)\b|忘了|上下文|说过了|记不得|前面说"
    ),
    "system_error": (
        r"\b(?:timeout|timed out|crash\w*|outage|exception|5\d\d error|is down|system error"
        r"|unavailable)\b|超时|崩溃|宕机|系统(?:错误|故障)|报错|不可用"
    ),
}
_KIND_PATTERNS = {kind: re.compile(pattern, re.I) for kind, pattern in _KINDS.items()}


@dataclass(frozen=True, slots=True)
class PastEvent:
    """A past event and its similarity to the message."""

    similarity: float
    layer: str
    decision_id: int
    age_days: float


@dataclass(frozen=True, slots=True)
class Past:
    """The result of retrieval; `last_event_id` is the newest event that was compared, or 0."""

    events: Sequence[PastEvent]
    matched_failure_types: Sequence[str]
    feature_penalty: float
    failures: Sequence[Mapping[str, Any]]
    best_path: Mapping[str, Any] | None
    last_event_id: int

    @property
    def top_l4(self) -> float:
        """The highest similarity to an L4 event."""
        return max((one.similarity for one in self.events if one.layer == "L4"), default=0.0)

    @property
    def retrieval_score(self) -> float:
        """The retrieval score of the best success path, or 0."""
        return float(self.best_path["retrieval_score"]) if self.best_path else 0.0


def find_past(
    owner: Owner,
    forms: Sequence[str],
    *,
    is_risky: bool,
    slots: Mapping[str, Any],
    main_constraint: str,
) -> Past:
    """Return the parts of the user's past that are related to a message.

    Args:
        forms: the message as it was sent and, if it differs, masked; an event is as similar as it
            is to the more similar of the two.
    """
    message, cached = forms[0], signatures_of(owner)
    near = [
        cached.near(owner, signature(form), at_least=_MIN_ESTIMATE, most=_MAX_COMPARED)
        for form in forms
    ]
    # The nearest L4 events are always compared in full, however many other events are nearer.
    wanted, last_id = {number for one in near for number in (*one.grave, *one.ids)}, near[0].last_id
    events = _similar(forms, Event.objects.filter(pk__in=wanted, pk__lte=last_id))
    matched, failures, penalty = _failures(owner, message, events, is_risky=is_risky)
    return Past(
        events=events,
        matched_failure_types=matched,
        feature_penalty=penalty,
        failures=failures,
        best_path=_best_path(owner, message, slots, main_constraint),
        last_event_id=last_id,
    )


def extend_past(past: Past, owner: Owner, forms: Sequence[str]) -> Past:
    """Return the past extended by newer events, each compared in full."""
    newer = Event.objects.filter(
        workspace_id=owner.workspace_id, user_id=owner.user_id, pk__gt=past.last_event_id
    )
    return replace(past, events=_most_similar_first([*past.events, *_similar(forms, newer)]))


def _similar(forms: Sequence[str], rows: QuerySet[Event]) -> list[PastEvent]:
    now = datetime.now(UTC)
    found = (
        PastEvent(
            round(max(similarity(form, text) for form in forms), 4),
            layer,
            decision_id,
            _days(now - at),
        )
        for text, layer, decision_id, at in rows.values_list(
            "text", "layer", "decision_id", "created_at"
        )
    )
    return _most_similar_first(one for one in found if one.similarity >= MIN_SIMILARITY)


def _most_similar_first(events: Iterable[PastEvent]) -> list[PastEvent]:
    return sorted(events, key=lambda one: -one.similarity)


def _days(span: timedelta) -> float:
    return span.total_seconds() / 86_400


def recency(age_days: float) -> float:
    """Return the weight of an age: 1 now, halved every 30 days."""
    return math.pow(0.5, max(0.0, age_days) / _HALF_LIFE_DAYS)


def _failures(
    owner: Owner, message: str, events: Sequence[PastEvent], *, is_risky: bool
) -> tuple[list[str], list[dict[str, Any]], float]:
    """Return the matching failure types, the related failures, and their penalty."""
    kinds = {
        kind for kind, pattern in _KIND_PATTERNS.items() if pattern.search(message[:SCAN_CHARS])
    }
    kinds |= {"high_risk"} if is_risky else set()
    similar = {one.decision_id: one.similarity for one in events}
    now = datetime.now(UTC)
    recent = (
        Outcome.objects.filter(
            workspace_id=owner.workspace_id,
            user_id=owner.user_id,
            reported_at__gt=now - _FAILURE_AGE,
            status__in=[OutcomeStatus.FAILED, OutcomeStatus.PARTIAL],
            failure_type__isnull=False,
        )
        .order_by("-reported_at")
        .values_list("failure_type", "decision_id", "reported_at")
    )
    related, penalty, matched = [], 0.0, set()
    for failure_type, decision_id, reported_at in recent[:_MAX_FAILURES]:
        if failure_type in kinds or decision_id in similar:
            age = _days(now - (reported_at or now))
            penalty += FAILURE_PENALTY * recency(age)
            matched.add(str(failure_type))
            related.append(
                {
                    "failure_type": failure_type,
                    "decision_id": decision_id,
                    "similarity": similar.get(decision_id, 0.0),
                    "age_days": round(age, 2),
                }
            )
    return sorted(matched), related[:5], round(min(MAX_PENALTY, penalty), 4)


class _Path(NamedTuple):
    """The parts of a success path that its score depends on; not its procedure."""

    object_id: str
    name: str
    intent: str
    required: list[str]
    tags: list[str]
    confidence: str
    written_at: datetime

    def overlap(self, message: str, measure: Callable[[str, str], float]) -> float:
        """Return the similarity of a message to the path's intent or name, the higher one."""
        return max(measure(message, self.intent), measure(message, self.name))

    def score(self, overlap: float, slots: Mapping[str, Any], main_constraint: str) -> float:
        """Return its retrieval score (S2)."""
        required = self.required
        covered = sum(slot in slots for slot in required) / len(required) if required else 1.0
        age = _days(datetime.now(UTC) - self.written_at)
        score = 3.0 * overlap + 2.5 * covered + 1.5 * (main_constraint in self.tags)
        return round(score + _CONFIDENCE[self.confidence] + 0.5 * recency(age), 4)


def _best_path(
    owner: Owner, message: str, slots: Mapping[str, Any], main_constraint: str
) -> dict[str, Any] | None:
    """Return the user's best success path for a message: candidates by the fast similarity, then
    the best of them by the exact one.
    """

    def ranked(
        paths: Iterable[_Path], measure: Callable[[str, str], float], at_least: float
    ) -> list[tuple[float, _Path]]:
        by_overlap = ((path.overlap(message, measure), path) for path in paths)
        return heapq.nlargest(
            _MAX_COMPARED,
            (
                (path.score(overlap, slots, main_constraint), path)
                for overlap, path in by_overlap
                if overlap >= at_least
            ),
            key=itemgetter(0),
        )

    candidates = [path for _, path in ranked(_paths_of(owner), rough_similarity, _MIN_OVERLAP / 2)]
    found = ranked(candidates, similarity, _MIN_OVERLAP)
    if not found:
        return None
    score, best = found[0]
    return {"object_id": best.object_id, "name": best.name, "retrieval_score": score}


def _paths_of(owner: Owner) -> Iterable[_Path]:
    """Yield the user's paths, last written first, without their payloads of up to 256 KiB."""
    rows = current_versions(owner, ObjectType.SUCCESS_PATH).values_list(
        "object_id",
        "object__name",
        KT("payload__intent"),
        F("payload__required_slots"),
        F("payload__tags"),
        "confidence",
        "created_at",
    )
    return (_Path(*row) for row in rows[:_MAX_PATHS])
