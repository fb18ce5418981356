"""A submit, judged: which template, which mode, how long; refused before anything is written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import orjson
from django.conf import settings
from pydantic import ValidationError

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import ToolCallRequest, tool_call_request
from decisions.errors import (
    InvalidInput,
    TemplateNotFound,
    TemplateVersionUnsupported,
    TrustNotAllowed,
)
from decisions.identity.principals import Principal
from decisions.infra.trace_context import current_traceparent
from decisions.next_actions import SEE_TEMPLATE, next_action
from decisions.security.keys import macs
from decisions.validation.json_schema import check
from runners.browser_sessions import find_session, new_session
from runners.models import BrowserSession
from runners.targets.targets import Caller
from runners.targets.workspaces import developer_target_of
from runs.models import DEVELOPER_TARGET, TRACE, Run
from runs.submission.output_schema import check_output_schema
from runs.submission.secret_inputs import split_secrets
from runs.task_templates.base import StepPlan, TaskTemplate
from runs.task_templates.registry import get_template, list_templates

Mode = Literal["sync", "async"]

OUTPUT_SCHEMA = "outputSchema"
SUBMIT = "run_task_template"  # what a submit is called in rules of policy


@dataclass(frozen=True, slots=True)
class Submission:
    """Everything about a run that is known before its row exists.

    Attributes:
        inputs: with `***` in place of what is secret.
        secrets: the secret inputs by dotted path; never written but sealed.
        session: the named session that the run uses.
        makes_session: that one's row is new, and written with the run.
        inputs_digests: of the inputs without their secrets, under each configured key, the newest
            first.
    """

    principal: Principal
    template: TaskTemplate
    inputs: Mapping[str, Any]
    secrets: Mapping[str, str] = field(repr=False)
    options: Mapping[str, Any]
    plan: list[StepPlan]
    mode: Mode
    timeout_ms: int
    session: BrowserSession | None
    makes_session: bool
    key: str | None
    inputs_digests: tuple[str, ...]

    @property
    def stored_options(self) -> dict[str, Any]:
        """The options as the run's row keeps them: with the target for which this process is in
        developer mode, which the worker's command line does not say, and the trace that the request
        is part of, where it brought one.
        """
        developing = developer_target_of(Caller.of(self.principal))
        known = {DEVELOPER_TARGET: developing, TRACE: current_traceparent()}
        return {**self.options, **{name: said for name, said in known.items() if said}}


@dataclass(frozen=True, slots=True)
class SubmittedRun:
    """An accepted run: it is durable by the time the caller reads this."""

    run_id: str
    session_id: str
    status: str
    mode: Mode
    deduplicated: bool
    inputs_match: bool | None
    timeout_ms: int
    # The caller asked for auto: after 55 s it is answered with the handle instead of the result.
    is_auto_mode: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the answer to a submit that does not wait."""
        answer: dict[str, Any] = {
            "runId": self.run_id,
            "sessionId": self.session_id,
            "status": self.status,
            "mode": self.mode,
            "deduplicated": self.deduplicated,
        }
        return answer | ({} if self.inputs_match is None else {"inputsMatch": self.inputs_match})


class Turn(Protocol):
    """A message of a task, on its way to become a run (`runs.conversations.messages`)."""

    @property
    def key(self) -> str:
        """The caller's key of the message; empty without one."""

    def take(self, run: Run) -> None:
        """Place the run in its task, in the transaction that writes it and before that; one that
        is not `ready` afterwards waits there until its turn comes.
        """


def validate_submission(
    *,
    principal: Principal,
    template_id: str,
    inputs: Mapping[str, Any],
    session_id: str | None,
    options: Mapping[str, Any],
    slot_is_free: bool,
) -> Submission:
    """Check a submit against its template and return what it amounts to.

    Raises:
        InvalidInput, TemplateNotFound, TemplateVersionUnsupported, TrustNotAllowed,
        SessionNotFound, Forbidden.
    """
    principal.require("runs:write")
    if "outputSchema" in options:
        check_output_schema(options["outputSchema"])
    template = _template(template_id, options.get("templateVersion"))
    _check_trust(principal, template)
    asked = _with_output_schema(template, inputs, options)
    plain = template.complete_inputs(_judged(template, asked), principal)
    mode = _mode(template, plain, options.get("mode", "auto"), slot_is_free)
    session = _session(principal, session_id, template, plain)
    shown, secrets = split_secrets(template, plain)
    return Submission(
        principal=principal,
        template=template,
        inputs=shown,
        secrets=secrets,
        options={key: value for key, value in options.items() if key != "idempotencyKey"},
        plan=template.plan(shown),
        mode=mode,
        timeout_ms=_timeout_ms(options, mode),
        session=session,
        makes_session=session is not None and session_id is None,
        key=options.get("idempotencyKey"),
        inputs_digests=_digests(shown, session_id),
    )


def _with_output_schema(
    template: TaskTemplate, inputs: Mapping[str, Any], options: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the inputs with options.outputSchema in them, for a template that honours it.

    Raises:
        InvalidInput: They have another one, or one that cannot be applied.
    """
    if OUTPUT_SCHEMA not in template.inputs_schema.get("properties", {}):
        return inputs
    own, given = inputs.get(OUTPUT_SCHEMA), options.get(OUTPUT_SCHEMA)
    if isinstance(own, dict) and given is None:
        check_output_schema(own)
    if own is not None and given is not None and own != given:
        raise InvalidInput("inputs.outputSchema: it is not that of options.outputSchema.")
    return inputs if given is None else {**inputs, OUTPUT_SCHEMA: given}


def _judged(template: TaskTemplate, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the inputs as the template has them; whoever gets them wrong is shown an example."""
    try:
        check(template.inputs_validator, inputs, where="inputs")
        return _plain(template, inputs)
    except InvalidInput as refusal:
        refusal.next_actions = [next_action("list_task_templates", SEE_TEMPLATE)]
        if template.example_inputs:
            refusal.details = {**refusal.details, "exampleInputs": template.example_inputs[0]}
        raise


def _plain(template: TaskTemplate, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the inputs as the template's model has them, with nothing filled in: JSON's 3.0 is an
    integer, and the model makes it one. What the schema cannot say, the model refuses here.
    """
    try:
        model = template.inputs_model.model_validate(inputs)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        path = ".".join(map(str, ("inputs", *first["loc"])))
        raise InvalidInput(f"{path}: {first['msg'].removeprefix('Value error, ')}") from None
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _digests(inputs: Mapping[str, Any], session_id: str | None) -> tuple[str, ...]:
    """Return keyed digests of inputs, for telling whether two submits ask for the same."""
    raw = orjson.dumps([inputs, session_id], option=orjson.OPT_SORT_KEYS)
    return macs("inputs", hashlib.sha256(raw).digest())


def _template(template_id: str, version: str | None) -> TaskTemplate:
    template = get_template(template_id)
    if template is None:
        known = [template.template_id for template in list_templates()]
        raise TemplateNotFound(
            f"There is no template {template_id[:64]!r}.", details={"templateIds": known}
        )
    if version is not None and version.split(".")[0] != template.version.split(".")[0]:
        raise TemplateVersionUnsupported(
            f"{template_id} is here in version {template.version}, not {version[:32]!r}.",
            details={"supported": template.version},
        )
    return template


def _check_trust(principal: Principal, template: TaskTemplate) -> None:
    """Refuse what this trust level may not run; refusals are audited, as every no of policy is."""
    if principal.trust in template.trust_levels:
        return
    details = {"templateId": template.template_id, "trustLevel": principal.trust}
    record(
        AuditEvent(
            "run.refused",
            principal.id,
            "template",
            template.template_id,
            principal.tenant_id,
            principal.workspace_id,
            {"errorCode": TrustNotAllowed.code, **details},
        )
    )
    refusal = TrustNotAllowed(
        f"{template.template_id} is not for callers of trust level {principal.trust}.",
        details=details,
    )
    refusal.is_recorded = True
    raise refusal


def _mode(
    template: TaskTemplate, inputs: Mapping[str, Any], asked: str, slot_is_free: bool
) -> Mode:
    if asked == "auto":
        return "sync" if slot_is_free and template.prefers_sync(inputs) else "async"
    return "sync" if asked == "sync" else "async"


def _timeout_ms(options: Mapping[str, Any], mode: Mode) -> int:
    asked = options.get("timeoutMs")
    if asked is None:
        return settings.SYNC_TIMEOUT_MS if mode == "sync" else settings.ASYNC_TIMEOUT_MS
    if options.get("mode") == "sync" and asked > settings.SYNC_TIMEOUT_MS:
        raise InvalidInput(
            f"options.timeoutMs: at most {settings.SYNC_TIMEOUT_MS} with mode sync; use async."
        )
    return int(asked)


def _session(
    principal: Principal, session_id: str | None, template: TaskTemplate, inputs: Mapping[str, Any]
) -> BrowserSession | None:
    """Return the session named, or the new one that such a run leaves open; None: its own."""
    if session_id is not None:
        return find_session(principal, session_id)
    if template.keeps_session:
        return new_session(principal, template.session_name(inputs))
    return None


def use_of_submission(submission: Submission, *, key: str) -> ToolCallRequest:
    """Return a submit as policy and people see it: the template is what it is aimed at."""
    session = None if submission.makes_session else submission.session
    args = {
        "templateId": submission.template.template_id,
        "inputs": submission.inputs,
        "options": submission.options,
        **({"sessionId": session.id} if session else {}),
    }
    return tool_call_request(
        submission.principal, SUBMIT, args, target_id=submission.template.template_id, key=key
    )
