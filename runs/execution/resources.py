"""The resources of a running run: its secret inputs and its named browser session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from django.conf import settings

from decisions.foundation.security.masking import Masker, input_masker
from decisions.foundation.security.url_credentials import KnownUrls
from runs.agent.history import user_texts
from runs.journal.outcome import masked_conclusion
from runs.journal.writer import Ending
from runs.lifecycle.changes import NewEvent, StepChange
from runs.lifecycle.lease import Lease
from runs.models import ANSWER, UNFINISHED, Run
from runs.sessions.named import NamedSession
from runs.submission.secret_inputs import Secrets, read_secrets
from runs.task_templates.base import Conclusion

AGENT = "agent_task"
MIN_KEY_CHARS = 16  # a shorter model API key is a placeholder, and may be a common word


class RunResources:
    """The resources of one lease of a run, a helper's too; used on the run's own thread.

    Attributes:
        session: the named session; None where the run owns its session.
    """

    def __init__(self, lease: Lease) -> None:
        self._run, self._in_flight_calls = lease.run, lease.in_flight_calls
        self.session = None if lease.run.owns_session else NamedSession(lease.run, lease.worker_id)

    @cached_property
    def secrets(self) -> Secrets:
        """The secret inputs, for the steps that need them."""
        return read_secrets(self._run)

    @cached_property
    def secret_masker(self) -> Masker:
        """Removes the secrets alone, from the records of a decision."""
        return self.secrets.masker(*_model_keys(self._run))

    @cached_property
    def masker(self) -> Masker:
        """Removes secrets, and credentials in the URLs of the inputs, from everything that the
        workers of the run write.
        """
        secrets = [*self.secrets.values.values(), *_model_keys(self._run)]
        return input_masker(self._texts, secrets)

    @cached_property
    def known_urls(self) -> KnownUrls:
        """The URLs of the inputs, whose credentials a model that requests them does not get."""
        return KnownUrls(self._texts if self._run.template_id == AGENT else None)

    @cached_property
    def _texts(self) -> Sequence[Any]:
        """The inputs, the user's answer, and what the user wrote in the run's task before."""
        given = [self._run.inputs, self._run.options.get(ANSWER)]
        if self._run.template_id != AGENT or self._run.task_id is None:
            return given
        return [*given, *user_texts(self._run.task_id)]

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
        """Return the arguments of `StepAttempt` that a step gets from the resources."""
        return {
            "secrets": self.secrets.of_step(step_index),
            "masker": self.masker,
            "secret_masker": self.secret_masker,
            "known_urls": self.known_urls,
            "in_flight_calls": self._in_flight_calls,
        }


def _model_keys(run: Run) -> list[str]:
    """Return the API key of the model, which the responses of its server may contain."""
    key = str(settings.LLM.api_key or "") if run.template_id == AGENT else ""
    return [key] if len(key) >= MIN_KEY_CHARS else []
