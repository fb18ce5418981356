"""What waits for a person: decisions to confirm and questions of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from decisions.authorization.request_lines import request_lines
from decisions.foundation.presentation.formatting import shorten
from decisions.foundation.presentation.visible_text import visible
from decisions.models import Confirmation, ConfirmationStatus, Delivery
from runners.models import ExecutionTarget
from runs.models import Run, RunStatus

DECISION, QUESTION = "decision", "question"
LISTED = 20  # rows of each kind
COUNTED = 999  # a count stops here: it is shown on every page


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """A decision or a question that waits.

    Attributes:
        kind: DECISION or QUESTION.
        row_id: of the decision, or of the run that asks.
        key: the same for the same decision or question, another one for the run's next question.
        title: what waits, in a few words; every character of it is visible.
        run_id: the run that waits; None for a direct call or a chat message.
        expires_at: until when it can be answered.
        line: of a decision, what is to be confirmed (`request_lines`).
    """

    kind: str
    row_id: str
    key: str
    title: str
    run_id: str | None = None
    expires_at: datetime | None = None
    line: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits, the newest first, and the counts, which end at COUNTED."""

    rows: Sequence[WaitingRow] = ()
    decisions: int = 0
    questions: int = 0

    def for_viewer(self, *, decisions: bool, questions: bool) -> Waiting:
        """Return what a person sees who may view decisions, or questions, or both."""
        kinds = {kind for kind, may in ((DECISION, decisions), (QUESTION, questions)) if may}
        return Waiting(
            [row for row in self.rows if row.kind in kinds],
            self.decisions if decisions else 0,
            self.questions if questions else 0,
        )

    @property
    def count(self) -> int:
        """How many decisions and questions wait."""
        return self.decisions + self.questions


def waiting_confirmations() -> QuerySet[Confirmation]:
    """Return the confirmations that a person can still decide."""
    return Confirmation.objects.filter(
        status=ConfirmationStatus.WAITING, expires_at__gt=datetime.now(UTC)
    )


def waiting_questions() -> QuerySet[Run]:
    """Return the suspended runs that wait for an answer, by the index of runs not ended."""
    return Run.objects.filter(
        ended_at__isnull=True, status=RunStatus.RUNNING, ready=False, waiting_for__type="answer"
    )


def count_waiting(*, decisions: bool, questions: bool) -> int:
    """Return how many decisions and questions wait, as far as the viewer may see them."""
    ids: list[QuerySet[Any, Any]] = []
    if decisions:
        ids.append(waiting_confirmations().values_list("id"))
    if questions:
        ids.append(waiting_questions().values_list("id"))
    if not ids:
        return 0
    return len(ids[0].union(*ids[1:], all=True)[:COUNTED])


def list_waiting(*, out_of_band_only: bool = False) -> Waiting:
    """Return everything that waits for a person, in all workspaces.

    Args:
        out_of_band_only: without the chat decisions that a user confirms in the agent's host.
    """
    confirmations = waiting_confirmations().order_by("-created_at")
    if out_of_band_only:
        confirmations = confirmations.filter(delivery=Delivery.OUT_OF_BAND)
    names = ExecutionTarget.objects.filter(pk=OuterRef("decision__target_id")).values("name")
    target = Coalesce(Subquery(names[:1]), "decision__target_id")
    rows = confirmations.annotate(target=target).select_related("decision")
    count = len(confirmations.values_list("id")[:COUNTED])
    asked = list(
        waiting_questions().order_by("-updated_at").values_list("id", "waiting_for")[:COUNTED]
    )
    listed = [
        *_decision_rows(list(rows[:LISTED])),
        *(_question_row(run_id, asks or {}) for run_id, asks in asked[:LISTED]),
    ]
    return Waiting(listed, count, len(asked))


def _decision_rows(confirmations: Sequence[Confirmation]) -> Iterator[WaitingRow]:
    lines = request_lines(one.decision for one in confirmations)
    for confirmation in confirmations:
        decision, target = confirmation.decision, getattr(confirmation, "target", None)
        tool = decision.tool
        call = f"{tool} → {target}" if tool and target else tool or "chat message"
        yield WaitingRow(
            DECISION,
            str(decision.pk),
            f"{DECISION}-{decision.pk}",
            visible(shorten(call, 120)),
            decision.run_id,
            confirmation.expires_at,
            lines[decision.pk],
        )


def _question_row(run_id: str, waiting_for: dict[str, Any]) -> WaitingRow:
    expires = waiting_for.get("expiresAt")
    key = f"{run_id}-{expires}"
    question = visible(shorten(str(waiting_for.get("question", "")), 160))
    until = datetime.fromtimestamp(expires / 1000, UTC) if expires else None
    return WaitingRow(QUESTION, run_id, key, question, run_id, until)
