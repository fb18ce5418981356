"""Validate a submit: template, trust, inputs, mode, timeout and session; nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from django.conf import settings
from pydantic import ValidationError

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import ToolCallRequest, tool_call_request
from decisions.authorization.policy import SUBMIT
from decisions.foundation.errors import (
    InvalidInput,
    TemplateVersionUnsupported,
    TrustNotAllowed,
)
from decisions.foundation.infra.trace_context import current_traceparent
from decisions.foundation.next_actions import SEE_TEMPLATE, next_action
from decisions.foundation.security.keys import macs
from decisions.foundation.security.masking import Masker
from decisions.foundation.validation.json_output import json_digest
from decisions.foundation.validation.json_schema import check
from decisions.foundation.validation.storable import storable_text
from decisions.identity.principals import Principal
from runners.browser_sessions import find_session, new_session
from runners.models import BrowserSession
from runners.targets.targets import Caller
from runners.targets.workspaces import developer_mode_target
from runs.agent.output_schema import check_output_schema
from runs.models import DEVELOPER_TARGET, TRACE, Run
from runs.search.labels import check_labels
from runs.submission.secret_inputs import name_secrets, split_secrets
from runs.task_templates.base import StepPlan, TaskTemplate
from runs.task_templates.registry import find_template
from runs.task_templates.subjects import subject_line

Mode = Literal["sync", "async"]

OUTPUT_SCHEMA = "outputSchema"
LABELS = "labels"


@dataclass(frozen=True, slots=True)
class Submission:
    """A valid submit: all that the run's rows are written from.

    Attributes:
        inputs: with `***` in place of secret values.
        secrets: the secret inputs by dotted path; written only sealed.
        session: the named session that the run uses; None for one of its own.
        subject: what the run is about, on one line.
        creates_session: `session` is new, and is written with the run.
        inputs_digests: keyed digests of the masked inputs, one per configured key, newest first.
    """

    principal: Principal
    template: TaskTemplate
    inputs: Mapping[str, Any]
    secrets: Mapping[str, str] = field(repr=False)
    options: Mapping[str, Any]
    subject: str
    plan: list[StepPlan]
    mode: Mode
    timeout_ms: int
    session: BrowserSession | None
    creates_session: bool
    key: str | None
    inputs_digests: tuple[str, ...]

    @property
    def stored_options(self) -> dict[str, Any]:
        """The options without the labels, which have a column, and with what the worker cannot
        know: the target for which this process is in developer mode, and the trace context of the
        request.
        """
        target = developer_mode_target(Caller.of(self.principal))
        extras = {DEVELOPER_TARGET: target, TRACE: current_traceparent()}
        given = {name: value for name, value in self.options.items() if name != LABELS}
        return {**given, **{name: value for name, value in extras.items() if value}}

    @property
    def labels(self) -> dict[str, str] | None:
        """The labels, without secret inputs; None without any."""
        given = self.options.get(LABELS) or {}
        masked: dict[str, str] = Masker(self.secrets.values()).value(given)
        return masked or None


@dataclass(frozen=True, slots=True)
class SubmittedRun:
    """The answer to a submit; the run is committed.

    Attributes:
        deduplicated: the run was created by an earlier submit with the same key, or by an earlier
            retry.
        inputs_match: whether that submit had the same inputs; None if the run is new.
        is_auto_mode: the caller chose mode auto: after 55 s it gets the handle instead of the
            result.
    """

    run_id: str
    session_id: str
    status: str
    mode: Mode
    deduplicated: bool
    inputs_match: bool | None
    timeout_ms: int
    is_auto_mode: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the handle: the answer of REST and MCP to a submit that does not wait."""
        answer: dict[str, Any] = {
            "runId": self.run_id,
            "sessionId": self.session_id,
            "status": self.status,
            "mode": self.mode,
            "deduplicated": self.deduplicated,
        }
        return answer | ({} if self.inputs_match is None else {"inputsMatch": self.inputs_match})


class PendingMessage(Protocol):
    """A message of a task for which a run is submitted (`runs.conversations.messages`)."""

    @property
    def key(self) -> str:
        """The message's idempotency key; empty without one."""

    def attach(self, run: Run) -> None:
        """Assign the unsaved run to its task, in the transaction that writes the run.

        Sets `run.ready` to false if earlier messages of the task are still being answered.
        """


def validate_submission(
    *,
    principal: Principal,
    template_id: str,
    inputs: Mapping[str, Any],
    session_id: str | None,
    options: Mapping[str, Any],
    is_slot_free: bool,
    is_message: bool = False,
) -> Submission:
    """Validate a submit against its template.

    Args:
        is_slot_free: a worker could start the run at once; for mode auto.
        is_message: the run belongs to a message of a task, so the template may be an unlisted one.

    Raises:
        InvalidInput: The inputs or options are invalid.
        TemplateNotFound, TemplateVersionUnsupported: There is no such template or version.
        TrustNotAllowed: The template is not for the caller's trust level. Audited.
        SessionNotFound: The session does not exist, was closed, or is another workspace's.
        Forbidden: The caller lacks a scope.
    """
    principal.require("runs:write")
    if "outputSchema" in options:
        check_output_schema(options["outputSchema"])
    if LABELS in options:
        check_labels(options[LABELS])
    template = find_template(template_id, is_listed=not is_message)
    _check_version(template, options.get("templateVersion"))
    _check_trust(principal, template)
    valid = _valid_inputs(template, _with_output_schema(template, inputs, options))
    complete = template.complete_inputs(valid, principal)
    mode = _mode(template, complete, options.get("mode", "auto"), is_slot_free)
    session = _session(principal, session_id, template, complete)
    masked, secrets = split_secrets(template, complete)
    return Submission(
        principal=principal,
        template=template,
        inputs=masked,
        secrets=secrets,
        options={key: value for key, value in options.items() if key != "idempotencyKey"},
        subject=_subject(template, masked, secrets),
        plan=template.plan(masked),
        mode=mode,
        timeout_ms=_timeout_ms(options, mode),
        session=session,
        creates_session=session is not None and session_id is None,
        key=options.get("idempotencyKey"),
        inputs_digests=_digests(masked, session_id),
    )


def _subject(template: TaskTemplate, masked: Mapping[str, Any], secrets: Mapping[str, str]) -> str:
    """Return the run's subject; a secret that another input repeats is masked in it."""
    line = Masker(secrets.values()).text(template.subject(masked))
    return storable_text(subject_line(line) or template.name)


def _with_output_schema(
    template: TaskTemplate, inputs: Mapping[str, Any], options: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the inputs with options.outputSchema, if the template has that input.

    Raises:
        InvalidInput: The inputs have a different schema, or one that cannot be applied.
    """
    if OUTPUT_SCHEMA not in template.inputs_schema.get("properties", {}):
        return inputs
    own, given = inputs.get(OUTPUT_SCHEMA), options.get(OUTPUT_SCHEMA)
    if isinstance(own, dict) and given is None:
        check_output_schema(own)
    if own is not None and given is not None and own != given:
        raise InvalidInput("inputs.outputSchema: it differs from options.outputSchema; omit it.")
    return inputs if given is None else {**inputs, OUTPUT_SCHEMA: given}


def _valid_inputs(template: TaskTemplate, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the inputs as the template's model parses them; an error shows an example."""
    try:
        check(template.inputs_validator, inputs, where="inputs")
        return _parsed(template, inputs)
    except InvalidInput as refusal:
        refusal.next_actions = [
            next_action("list_task_templates", SEE_TEMPLATE, templateId=template.template_id)
        ]
        if template.example_inputs:
            refusal.details = {**refusal.details, "exampleInputs": template.example_inputs[0]}
        raise


def _parsed(template: TaskTemplate, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the inputs as the template's model parses them, without defaults.

    The model converts 3.0 to an integer, and refuses what the schema cannot express.
    """
    try:
        model = template.inputs_model.model_validate(inputs)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        path = ".".join(map(str, ("inputs", *first["loc"])))
        raise InvalidInput(f"{path}: {first['msg'].removeprefix('Value error, ')}") from None
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _digests(inputs: Mapping[str, Any], session_id: str | None) -> tuple[str, ...]:
    """Return keyed digests of the inputs, to compare two submits."""
    return macs("inputs", json_digest([inputs, session_id]))


def _check_version(template: TaskTemplate, version: str | None) -> None:
    if version is not None and version.split(".")[0] != template.version.split(".")[0]:
        raise TemplateVersionUnsupported(
            f"{template.template_id} has version {template.version}, which cannot run"
            f" {version[:32]!r}.",
            details={"supported": template.version},
        )


def _check_trust(principal: Principal, template: TaskTemplate) -> None:
    """Refuse a template that this trust level may not run; the refusal is audited."""
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
        f"{template.template_id} is not allowed for callers of trust level {principal.trust}.",
        details=details,
    )
    refusal.is_recorded = True
    raise refusal


def _mode(
    template: TaskTemplate, inputs: Mapping[str, Any], requested: str, is_slot_free: bool
) -> Mode:
    if requested == "auto":
        return "sync" if is_slot_free and template.prefers_sync(inputs) else "async"
    return "sync" if requested == "sync" else "async"


def _timeout_ms(options: Mapping[str, Any], mode: Mode) -> int:
    timeout_ms = options.get("timeoutMs")
    if timeout_ms is None:
        return settings.SYNC_TIMEOUT_MS if mode == "sync" else settings.ASYNC_TIMEOUT_MS
    if options.get("mode") == "sync" and timeout_ms > settings.SYNC_TIMEOUT_MS:
        raise InvalidInput(
            f"options.timeoutMs: at most {settings.SYNC_TIMEOUT_MS} with mode sync; use async."
        )
    return int(timeout_ms)


def _session(
    principal: Principal, session_id: str | None, template: TaskTemplate, inputs: Mapping[str, Any]
) -> BrowserSession | None:
    """Return the named session, or a new one for a template that leaves its session open; None if
    the run gets a session of its own.
    """
    if session_id is not None:
        return find_session(principal, session_id)
    if template.keeps_session:
        return new_session(principal, template.session_name(inputs))
    return None


def submission_request(submission: Submission, *, key: str) -> ToolCallRequest:
    """Return the submit as a tool call for policy and confirmations; its target is the template. A
    confirmation is bound to the secret inputs too.
    """
    session = None if submission.creates_session else submission.session
    args = {
        "templateId": submission.template.template_id,
        "inputs": submission.inputs,
        "options": submission.options,
        **({"sessionId": session.id} if session else {}),
    }
    secrets = {"secretInputs": dict(submission.secrets)} if submission.secrets else {}
    return tool_call_request(
        submission.principal,
        SUBMIT,
        args | secrets,
        target_id=submission.template.template_id,
        key=key,
        display_args=args,
        shown_args={**args, "inputs": name_secrets(submission.template, submission.inputs)},
    )
