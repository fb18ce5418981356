"""The base class of task templates, and the types that templates and the engine exchange.

A template plans a run's steps at submit, performs them one by one or several at once, and concludes
the run from the steps in the journal. It imports neither the engine nor a browser. To add one, add
a file to `builtin` or to a module of CONTINUITY_TEMPLATE_MODULES (docs/adding-a-template.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from jsonschema_rs import Draft202012Validator
from pydantic import BaseModel

from decisions.foundation.security.masking import MASK
from decisions.foundation.validation.json_schema import (
    compile_schema,
    has_secret_fields,
    schema_of,
    secret_paths,
)
from decisions.identity.principals import Principal
from runners.invocation.planned_call import StepCall
from runs.models import RunStatus
from runs.steps import StepContext as StepContext
from runs.steps import StepPlan as StepPlan
from runs.steps import StepView as StepView
from runs.task_templates.subjects import default_subject
from runs.task_templates.truncation import answer_schema


@dataclass(frozen=True, slots=True)
class Conclusion:
    """How a run ends: its final status, with its result or error.

    Attributes:
        shown_characters: how much of each page's text the run's answer shows; the stored result has
            all of it. None: all.
    """

    status: RunStatus
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    summary: str = ""
    warnings: Sequence[str] = ()
    next_actions: Sequence[Mapping[str, Any]] = field(default=())
    shown_characters: int | None = None


class TaskTemplate(ABC):
    """A kind of run. One instance serves every run, so it has no state.

    Attributes:
        keeps_session: a run without a sessionId gets a browser session that stays open after it.
        closes_tabs: in a paired browser its tabs do not outlive the run, however that ends.
        shares_page: the steps work in the same tab, one after another. If its page is lost with the
            worker, the earlier steps are repeated first, unless one has the effect `once`.
        last_step_waits: the last step starts when all others have ended.
        is_listed: callers may run it; else only this program submits it.
        step_retries: how often a step is retried after a retryable error.
    """

    template_id: ClassVar[str]
    version: ClassVar[str] = "1.0.0"
    name: ClassVar[str]
    description: ClassVar[str]
    inputs_model: ClassVar[type[BaseModel]]
    result_schema: ClassVar[Mapping[str, Any]]
    example_inputs: ClassVar[Sequence[Mapping[str, Any]]]
    trust_levels: ClassVar[Sequence[str]] = ("local", "remote")
    is_listed: ClassVar[bool] = True
    uses_browser: ClassVar[bool] = False
    keeps_session: ClassVar[bool] = False
    closes_tabs: ClassVar[bool] = False
    shares_page: ClassVar[bool] = False
    last_step_waits: ClassVar[bool] = False
    stops_at_failed_step: ClassVar[bool] = True
    step_retries: ClassVar[int] = 0
    step_timeout_ms: ClassVar[int] = 120_000
    limits: ClassVar[Mapping[str, int]] = {}

    @cached_property
    def inputs_schema(self) -> dict[str, Any]:
        """The closed JSON Schema of the inputs."""
        return schema_of(self.inputs_model)

    @cached_property
    def inputs_validator(self) -> Draft202012Validator:
        """The compiled schema of the inputs; if some are secret, its errors contain no values."""
        is_overridden = type(self).secret_paths is not TaskTemplate.secret_paths
        mask = MASK if is_overridden or has_secret_fields(self.inputs_schema) else None
        return compile_schema(self.inputs_schema, mask=mask)

    def secret_paths(self, inputs: Mapping[str, Any]) -> set[tuple[str | int, ...]]:
        """Return the paths of the secrets in valid inputs: by default the `writeOnly` fields."""
        return secret_paths(self.inputs_schema, inputs)

    def session_name(self, inputs: Mapping[str, Any]) -> str:
        """Return the name of the session that a run with these inputs leaves open."""
        return self.name

    def subject(self, inputs: Mapping[str, Any]) -> str:
        """Return what a run with these inputs is about: a line that tells it from others in lists
        and messages (`runs.task_templates.subjects`). Secret inputs are `***`.
        """
        return default_subject(self.name, inputs)

    def complete_inputs(self, inputs: Mapping[str, Any], principal: Principal) -> Mapping[str, Any]:
        """Return valid inputs completed from the caller's data; called once, at submit.

        Raises:
            InvalidInput: The inputs name something that the caller does not have.
        """
        return inputs

    @abstractmethod
    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return the planned steps of a run with these inputs, in order."""

    @abstractmethod
    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Perform one step and return its output.

        Raises:
            ToolFailed: The step failed.
        """

    @abstractmethod
    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return how the run ends; called when no step is left."""

    def next_step(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> StepPlan | None:
        """Return a step to append once all steps so far have ended, or None to conclude the run.

        For templates that choose a step by the results of the ones before. The new row is committed
        with the output of the previous step, so the same journal must lead to the same step.
        """
        return None

    def skip_reason(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> str:
        """Return why the remaining steps are skipped, or "" to continue.

        Called between the steps of a template that has shares_page.
        """
        return ""

    def uses_shared_page(self, step_input: Mapping[str, Any]) -> bool:
        """Return whether a step works on the shared page: only then is a lost page restored for it,
        and only then is it repeated to restore one.
        """
        return True

    def starts_before_commit(self, step_input: Mapping[str, Any]) -> bool:
        """Return whether a step may start before its start is committed: it must have no effect."""
        return False

    def first_call(
        self, step_input: Mapping[str, Any], inputs: Mapping[str, Any]
    ) -> StepCall | None:
        """Return the call that a step certainly starts with; its record is committed with the
        step's start.
        """
        return None

    def step_limit_ms(self, step_input: Mapping[str, Any]) -> int:
        """Return how long a step with this input may take."""
        return self.step_timeout_ms

    def needs_browser(self, step_input: Mapping[str, Any]) -> bool:
        """Return whether a step with this input needs a browser."""
        return self.uses_browser

    def concurrency(self, inputs: Mapping[str, Any]) -> int:
        """Return how many steps may run at once."""
        return 1

    def shares_steps(self, inputs: Mapping[str, Any]) -> bool:
        """Return whether idle workers may take steps of such a run; then no step may be `once`."""
        return False

    def prefers_sync(self, inputs: Mapping[str, Any]) -> bool:
        """Return whether mode auto waits for the result of a run with these inputs."""
        return True

    def describe(self) -> dict[str, Any]:
        """Return the template as an entry of `list_task_templates`."""
        return {
            "templateId": self.template_id,
            "version": self.version,
            "name": self.name,
            "description": self.description,
            "inputSchema": self.inputs_schema,
            "outputSchema": answer_schema(self.result_schema),
            "limits": dict(self.limits),
            "exampleInputs": [dict(example) for example in self.example_inputs],
            "trustLevelSupport": list(self.trust_levels),
            "executionMode": "sync_or_async",
        }
