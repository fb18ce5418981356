"""Prepare the run of a submit: its template, valid inputs without secrets, subject, and limits;
nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

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
from decisions.foundation.infra.ids import new_id
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
from runs.models import DEVELOPER_TARGET, TRACE, Run, RunStatus
from runs.queue.slots import count_free_slots
from runs.search.labels import check_labels
from runs.submission.secret_inputs import name_secrets, split_secrets
from runs.task_templates.base import StepPlan, TaskTemplate
from runs.task_templates.registry import find_template
from runs.task_templates.subjects import subject_line

OUTPUT_SCHEMA = "outputSchema"
LABELS = "labels"


@dataclass(frozen=True, slots=True)
class NewRun:
    """A valid submit: the unsaved run, and what is judged and written with it.

    Attributes:
        run: its inputs have `***` in place of secret values.
        options: as the caller gave them, without the idempotency key.
        secrets: the secret inputs by dotted path; written only sealed.
        created_session: the session that the run leaves open; written with the run.
        inputs_digests: keyed digests of the masked inputs, one per configured key, newest first.
    """

    run: Run
    principal: Principal
    template: TaskTemplate
    options: Mapping[str, Any]
    secrets: Mapping[str, str] = field(repr=False)
    plan: list[StepPlan]
    created_session: BrowserSession | None
    key: str | None
    inputs_digests: tuple[str, ...]

    def as_call(self, *, key: str) -> ToolCallRequest:
        """Return the submit as a tool call for policy and confirmations; its target is the
        template. A confirmation is bound to the secret inputs too.
        """
        run, uses_session = self.run, not self.run.owns_session and self.created_session is None
        args = {
            "templateId": run.template_id,
            "inputs": run.inputs,
            "options": self.options,
            **({"sessionId": run.session_id} if uses_session else {}),
        }
        secrets = {"secretInputs": dict(self.secrets)} if self.secrets else {}
        return tool_call_request(
            self.principal,
            SUBMIT,
            args | secrets,
            target_id=run.template_id,
            key=key,
            display_args=args,
            shown_args={**args, "inputs": name_secrets(self.template, run.inputs)},
        )


def prepare_run(
    *,
    principal: Principal,
    template_id: str,
    inputs: Mapping[str, Any],
    session_id: str | None,
    options: Mapping[str, Any],
    is_message: bool = False,
) -> NewRun:
    """Return the run of a submit, valid for its template.

    Args:
        is_message: the run belongs to a message of a task, so the template may be an unlisted one.

    Raises:
        InvalidInput: The inputs or options are invalid.
        TemplateNotFound, TemplateVersionUnsupported: There is no such template or version.
        TrustNotAllowed: The template is not for the caller's trust level. Audited.
        SessionNotFound: The session does not exist, was closed, or is another workspace's.
        Forbidden: The caller lacks a scope.
    """
    principal.require("runs:write")
    template = find_template(template_id, is_listed=not is_message)
    _check_version(template, options.get("templateVersion"))
    _check_trust(principal, template)
    valid = _valid_inputs(template, inputs, options)
    complete = template.complete_inputs(valid, principal)
    masked, secrets = split_secrets(template, complete)
    masker = Masker(secrets.values())  # a secret may be repeated in another input, or in a label
    subject = storable_text(subject_line(masker.text(template.subject(masked))) or template.name)
    mode = _mode(template, complete, options.get("mode", "auto"))
    created = _session_to_create(principal, template, session_id, complete)
    named = created.id if created is not None else session_id
    plan = template.plan(masked)
    run = _unsaved_run(
        principal,
        template,
        mode=mode,
        timeout_ms=_timeout_ms(options, mode),
        inputs=masked,
        holds_secrets=bool(secrets),
        subject=subject,
        options=_stored_options(principal, options),
        labels=masker.value(options.get(LABELS)) or None,
        session_id=named or new_id("sess_"),
        owns_session=named is None,
        shared=named is None and template.shares_steps(masked),
        total_steps=len(plan),
    )
    return NewRun(
        run=run,
        principal=principal,
        template=template,
        options={name: value for name, value in options.items() if name != "idempotencyKey"},
        secrets=secrets,
        plan=plan,
        created_session=created,
        key=options.get("idempotencyKey"),
        inputs_digests=_digests(masked, session_id),
    )


def _unsaved_run(principal: Principal, template: TaskTemplate, **columns: Any) -> Run:
    now = datetime.now(UTC)
    return Run(
        id=new_id("run_"),
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        principal_id=principal.id,
        user_id=principal.user_id,
        trust=principal.trust,
        template_id=template.template_id,
        template_version=template.version,
        status=RunStatus.QUEUED,
        last_seq=1,
        created_at=now,
        updated_at=now,
        **columns,
    )


# --- template -------------------------------------------------------------------------------------


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


# --- inputs ---------------------------------------------------------------------------------------


def _valid_inputs(
    template: TaskTemplate, inputs: Mapping[str, Any], options: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the inputs, with options.outputSchema, as the template's model parses them; an error
    shows an example.
    """
    inputs = _with_output_schema(template, inputs, options)
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


def _with_output_schema(
    template: TaskTemplate, inputs: Mapping[str, Any], options: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the inputs with options.outputSchema, if the template has that input.

    Raises:
        InvalidInput: The inputs have a different schema, or one that cannot be applied.
    """
    given = options.get(OUTPUT_SCHEMA)
    if OUTPUT_SCHEMA in options:
        check_output_schema(options[OUTPUT_SCHEMA])
    if OUTPUT_SCHEMA not in template.inputs_schema.get("properties", {}):
        return inputs
    own = inputs.get(OUTPUT_SCHEMA)
    if isinstance(own, dict) and given is None:
        check_output_schema(own)
    if own is not None and given is not None and own != given:
        raise InvalidInput("inputs.outputSchema: it differs from options.outputSchema; omit it.")
    return inputs if given is None else {**inputs, OUTPUT_SCHEMA: given}


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


# --- options --------------------------------------------------------------------------------------


def _session_to_create(
    principal: Principal, template: TaskTemplate, session_id: str | None, inputs: Mapping[str, Any]
) -> BrowserSession | None:
    """Return a new session for a template that leaves its session open; None if the run gets one of
    its own, or uses the named one, which must exist.
    """
    if session_id is not None:
        find_session(principal, session_id)
    elif template.keeps_session:
        return new_session(principal, template.session_name(inputs))
    return None


def _stored_options(principal: Principal, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without the labels, which have a column, and with what the worker cannot
    know: the target for which this process is in developer mode, and the trace context of the
    request.
    """
    if LABELS in options:
        check_labels(options[LABELS])
    target = developer_mode_target(Caller.of(principal))
    extras = {DEVELOPER_TARGET: target, TRACE: current_traceparent()}
    left_out = (LABELS, "idempotencyKey")
    given = {name: value for name, value in options.items() if name not in left_out}
    return {**given, **{name: value for name, value in extras.items() if value}}


def _mode(template: TaskTemplate, inputs: Mapping[str, Any], requested: str) -> str:
    if requested == "auto":  # wait only for a run that a worker could start at once
        return "sync" if template.prefers_sync(inputs) and count_free_slots() > 0 else "async"
    return "sync" if requested == "sync" else "async"


def _timeout_ms(options: Mapping[str, Any], mode: str) -> int:
    timeout_ms = options.get("timeoutMs")
    if timeout_ms is None:
        return int(settings.SYNC_TIMEOUT_MS if mode == "sync" else settings.ASYNC_TIMEOUT_MS)
    if options.get("mode") == "sync" and timeout_ms > settings.SYNC_TIMEOUT_MS:
        raise InvalidInput(
            f"options.timeoutMs: at most {settings.SYNC_TIMEOUT_MS} with mode sync; use async."
        )
    return int(timeout_ms)
