"""What a run has with it while it is worked on: its secret inputs and its named session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.conf import settings

from decisions.security.masking import Masker
from runs.journal.writer import Ending
from runs.lifecycle.changes import NewEvent, StepChange
from runs.models import UNFINISHED, Run
from runs.queue.leases import Lease
from runs.sessions.named import NamedSession
from runs.submission.secret_inputs import Secrets, read_secrets

AGENT = "agent_task"
LEAST_KEY = 16  # characters of a model's key: shorter ones stand in for none, and are words


class RunResources:
    """Of one lease of one run; used on the run's own thread.

    Attributes:
        secrets: the secret inputs, for the steps that need them.
        masker: takes them out of everything that the run says.
        session: the named session; None where the run has one of its own.
    """

    def __init__(self, lease: Lease) -> None:
        self._run, self._opened = lease.run, lease.in_flight_calls
        self.secrets, self.masker = Secrets(), Masker()
        self.session = None if lease.run.owns_session else NamedSession(lease.run, lease.worker_id)

    def take(self) -> None:
        """Read what is kept of them.

        Raises:
            SessionNotFound: The session was closed since the submit, or cannot be read any more.
        """
        self.secrets = read_secrets(self._run)
        self.masker = self.secrets.masker(*_told_by_models(self._run))
        if self.session is not None:
            self.session.load_state()

    def event(self, event: NewEvent) -> NewEvent:
        """Return an event of a step without secrets."""
        return NewEvent(event.type, self.masker.value(event.data)) if self.masker else event

    def spends_secrets(self, changes: Iterable[StepChange]) -> bool:
        """Tell whether with these journal lines the last step that needs the secrets is over."""
        return any(
            change.index == self.secrets.last_step and change.status not in UNFINISHED
            for change in changes
        )

    def ending(self, ending: Ending) -> Ending:
        """Save the session, and return the end of the run with what there is to say of it."""
        if self.session is None:
            return ending
        self.session.save()
        return replace(ending, warnings=[*self.session.warnings(), *ending.warnings])

    def hand_over(self) -> None:
        """Leave the session, saved, to the worker that goes on with the run."""
        if self.session is not None:
            self.session.save()
            self.session.hand_over()

    def values_of(self, step_index: int) -> dict[str, Any]:
        """Return what a step gets of them."""
        return {
            "secrets": self.secrets.of_step(step_index),
            "masker": self.masker,
            "opened": self._opened,
        }


def _told_by_models(run: Run) -> list[str]:
    """Return the secret that the answers of a model's server may hold: the key to it."""
    key = str(settings.LLM.api_key or "") if run.template_id == AGENT else ""
    return [key] if len(key) >= LEAST_KEY else []
