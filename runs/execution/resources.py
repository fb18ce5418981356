"""The resources of a running run: its secret inputs and its named browser session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.conf import settings

from decisions.security.masking import Masker
from decisions.security.url_credentials import credentials_in_urls
from runs.journal.outcome import masked_conclusion
from runs.journal.writer import Ending
from runs.lifecycle.changes import NewEvent, StepChange
from runs.models import UNFINISHED, Run
from runs.queue.leases import Lease
from runs.sessions.named import NamedSession
from runs.submission.secret_inputs import Secrets, read_secrets
from runs.task_templates.base import Conclusion

AGENT = "agent_task"
MIN_KEY_CHARS = 16  # a shorter model API key is a placeholder, and may be a common word


class RunResources:
    """The resources of one lease of a run; used on the run's own thread.

    Attributes:
        secrets: the secret inputs, for the steps that need them.
        masker: removes secrets, and credentials in the URLs of the inputs, from everything that the
            run writes.
        secret_masker: removes the secrets alone, from the records of a decision.
        session: the named session; None where the run owns its session.
    """

    def __init__(self, lease: Lease) -> None:
        self._run, self._in_flight_calls = lease.run, lease.in_flight_calls
        self.secrets, self.masker, self.secret_masker = Secrets(), Masker(), Masker()
        self.session = None if lease.run.owns_session else NamedSession(lease.run, lease.worker_id)

    def load(self) -> None:
        """Read the secrets and the state of the session.

        Raises:
            SessionNotFound: The session was closed after the submit, or its state cannot be read.
        """
        self.secrets = read_secrets(self._run)
        keys = _model_keys(self._run)
        self.secret_masker = self.secrets.masker(*keys)
        in_urls = credentials_in_urls(self._run.inputs)
        self.masker = self.secrets.masker(*keys, url_credentials=in_urls)
        if self.session is not None:
            self.session.load_state()

    def mask_event(self, event: NewEvent) -> NewEvent:
        """Return an event without secrets."""
        return NewEvent(event.type, self.masker.value(event.data)) if self.masker else event

    def mask_conclusion(self, conclusion: Conclusion) -> Conclusion:
        """Return a template's conclusion without secrets."""
        return masked_conclusion(conclusion, self.masker)

    def ends_use_of_secrets(self, changes: Iterable[StepChange]) -> bool:
        """Return whether these changes end the last step that needs the secrets."""
        return any(
            change.index == self.secrets.last_step and change.status not in UNFINISHED
            for change in changes
        )

    def ending(self, ending: Ending) -> Ending:
        """Save the session, and return the ending with the session's warnings."""
        if self.session is None:
            return ending
        self.session.save()
        return replace(ending, warnings=[*self.session.warnings(), *ending.warnings])

    def hand_over(self) -> None:
        """Save the session and release it, for the worker that resumes the run."""
        if self.session is not None:
            self.session.save()
            self.session.hand_over()

    def values_of(self, step_index: int) -> dict[str, Any]:
        """Return the arguments of `StepRun` that a step gets from the resources."""
        return {
            "secrets": self.secrets.of_step(step_index),
            "masker": self.masker,
            "secret_masker": self.secret_masker,
            "in_flight_calls": self._in_flight_calls,
        }


def _model_keys(run: Run) -> list[str]:
    """Return the API key of the model, which the responses of its server may contain."""
    key = str(settings.LLM.api_key or "") if run.template_id == AGENT else ""
    return [key] if len(key) >= MIN_KEY_CHARS else []
