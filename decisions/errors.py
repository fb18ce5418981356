"""What the caller may not do, or got wrong: refused before anything happens.

    Refused
    ├── InvalidInput          a value is missing, malformed or out of range
    │   ├── MalformedBody     the bytes are no acceptable JSON at all
    │   │   └── NotUnicode    a text in it cannot be written as UTF-8
    │   ├── BodyTooLarge      more bytes than this door takes
    │   ├── UnsupportedBody   a content type or encoding that is not taken
    │   └── ConfirmTokenInvalid   S2's one answer to every confirmation that fails
    ├── NotAuthenticated      no usable credential
    ├── Forbidden             a credential without the scope
    │   ├── TrustNotAllowed   not for callers of this trust level
    │   └── ForbiddenUser     not for this user_id (S2)
    ├── NotFound              unknown, another workspace's, or past its time
    │   ├── TemplateNotFound
    │   ├── TemplateVersionUnsupported
    │   ├── RunNotFound
    │   ├── SessionNotFound
    │   │   └── NoSuchSession   it was asked for by its own address
    │   ├── ArtifactNotFound
    │   ├── ArtifactExpired
    │   ├── WebhookNotFound
    │   ├── ToolNotFound
    │   ├── TargetNotFound
    │   ├── DecisionNotFound
    │   └── OutcomeNotFound   no decision of this user waits for its outcome (S2)
    ├── Conflict              true when asked a moment ago, or by somebody else
    │   ├── VersionConflict   it is not in the version any more that was read (S2)
    │   ├── OutcomeReported   the decision has another outcome already (S2)
    │   ├── DecisionNotConfirmed  nobody said yes to it (S2)
    │   └── IdempotencyConflict   the key was used for another body (S2)
    ├── TooManyRequests       over the caller's rate
    ├── NotReady              what the call needs cannot be had now
    ├── PolicyDenied          a policy rule, or a person, said no
    └── ConfirmationRequired  a person has to say yes first

Each API maps these to its own form (config/api_errors.py, mcp_server/protocol/results.py); the
codes are S0's.
"""

from __future__ import annotations

from typing import Any, ClassVar

from decisions.next_actions import NextAction, next_actions_after


class Refused(Exception):
    """A call that is answered with a reason instead of being done."""

    code: ClassVar[str] = "EXECUTION_ERROR"
    http_status: int = 400
    retryable: ClassVar[bool] = False
    recovery: ClassVar[str] = "Check the call and its preconditions, then submit it again."

    def __init__(
        self,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        next_actions: list[NextAction] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = details or {}
        known = next_actions_after(self.code)
        self.next_actions = known if next_actions is None else next_actions
        self.is_recorded = False  # the audit log tells of it already

    def as_dict(self) -> dict[str, Any]:
        """Return the one error shape of every door: errorCode, message, details, retryable,
        recovery, and nextActions where there are any.
        """
        told = {
            "errorCode": self.code,
            "message": self.message,
            "details": self.details,
            "retryable": self.retryable,
            "recovery": self.recovery,
        }
        return told | ({"nextActions": self.next_actions} if self.next_actions else {})


def as_dict(refused: Refused) -> dict[str, Any]:
    """Return a refusal as doors tell it that have no words of their own for it."""
    return refused.as_dict()


class InvalidInput(Refused):
    """A value is missing, malformed or out of range."""

    code = "INVALID_PARAMETER"
    recovery = "Correct the range or type of the parameter named in the message."


class MalformedBody(InvalidInput):
    """The bytes are no acceptable JSON at all."""


class NotUnicode(MalformedBody):
    """A text in the JSON holds half a surrogate pair."""


class BodyTooLarge(InvalidInput):
    """More bytes than this door takes."""

    http_status = 413
    recovery = "Send a smaller body."


class UnsupportedBody(InvalidInput):
    """A content type or content encoding that is not taken."""

    http_status = 415
    recovery = "Send application/json without a content encoding."


class ConfirmTokenInvalid(InvalidInput):
    """No confirmation with this decision, user and token waits: unknown, foreign, wrong, used,
    burned and expired read the same (S2).
    """

    code = "invalid_or_expired_confirm_token"
    recovery = "Ask for the decision anew, and confirm it with the token of that answer in time."


class NotAuthenticated(Refused):
    """No usable credential came with the call."""

    code = "UNAUTHENTICATED"
    http_status = 401
    recovery = "Send an Authorization: Bearer header with a token made by `manage.py create_token`."


class Forbidden(Refused):
    """The credential lacks the scope that the call needs."""

    code = "FORBIDDEN"
    http_status = 403
    recovery = "Use a token that has the scope named in details.scope."


class TrustNotAllowed(Forbidden):
    """The caller's trust level may not do this."""

    code = "TRUST_LEVEL_NOT_ALLOWED"
    http_status = 400
    recovery = "Switch the trust level, or use a template that supports it."


class ForbiddenUser(Forbidden):
    """The credential may not act for this user_id; whether there is such a user makes no
    difference.
    """

    code = "forbidden_user"
    recovery = "Use a user_id that the token may act for, or a token that may act for this user."


class NotFound(Refused):
    """Unknown, another workspace's, or past its time: all three read the same."""

    http_status = 404


class TemplateNotFound(NotFound):
    """No template has this id."""

    code = "TEMPLATE_NOT_FOUND"
    http_status = 400
    recovery = "Correct templateId, or list the templates and update the client's copy of the list."


class TemplateVersionUnsupported(NotFound):
    """The template exists, but not in the version asked for."""

    code = "TEMPLATE_VERSION_UNSUPPORTED"
    http_status = 400
    recovery = "Switch the template version, or upgrade the server."


class RunNotFound(NotFound):
    """No run with this id is visible to the caller."""

    code = "RUN_NOT_FOUND"
    recovery = "Check the runId and its time to live; submit again if necessary."


class SessionNotFound(NotFound):
    """No open session with this id belongs to the caller."""

    code = "SESSION_NOT_FOUND"
    http_status = 400
    recovery = "Make the session anew and try the task again."


class NoSuchSession(SessionNotFound):
    """The same where the session itself is what was asked for, not a run in it."""

    http_status = 404


class ArtifactNotFound(NotFound):
    """No artifact with this id is visible to the caller."""

    code = "ARTIFACT_NOT_FOUND"
    recovery = "Check the artifactId and the run it belongs to."


class ArtifactExpired(NotFound):
    """The artifact existed; its time to live is over and its bytes are gone."""

    code = "ARTIFACT_EXPIRED"
    http_status = 410
    recovery = "Read artifacts within their time to live, or run the task again to make it anew."


class WebhookNotFound(NotFound):
    """No webhook, or no delivery of it, with this id is visible to the caller."""

    code = "WEBHOOK_NOT_FOUND"
    recovery = "List the webhooks, or the webhook's deliveries, and use an id from there."


class ToolNotFound(NotFound):
    """No tool of this name can be called here."""

    code = "TOOL_NOT_FOUND"
    recovery = "List the tools, and use a name from there."


class TargetNotFound(NotFound):
    """No target with this id is visible to the caller."""

    code = "TARGET_NOT_FOUND"
    recovery = "List the targets, and use an id from there."


class DecisionNotFound(NotFound):
    """No decision with this id is visible to the caller, or it waits for nobody."""

    code = "DECISION_NOT_FOUND"
    recovery = "Take the id from the inbox of the admin site, or from the answer that named it."


class OutcomeNotFound(NotFound):
    """No decision with this id waits for an outcome of this user (S2)."""

    code = "pending_outcome_not_found"
    recovery = "Take decision_id from the answer of continuity_chat to this user."


class Conflict(Refused):
    """True when asked a moment ago, or by somebody else."""

    code = "CONFLICT"
    http_status = 409


class VersionConflict(Conflict):
    """It is not in the version any more that If-Match names (S2)."""

    code = "version_conflict"
    http_status = 412
    recovery = "Read it again, then write with the version that it has now."


class OutcomeReported(Conflict):
    """The decision has an outcome already, and this is another (S2)."""

    code = "pending_outcome_not_found"
    recovery = "Nothing more is to be reported: a decision has one outcome."


class DecisionNotConfirmed(Conflict):
    """A high-risk decision whose outcome is reported before anybody confirmed it (S2)."""

    code = "decision_not_confirmed"
    recovery = "Have a person confirm the decision, act, then report the outcome."


class IdempotencyConflict(Conflict):
    """The idempotency_key was used for another body within its 24 hours."""

    code = "idempotency_conflict"
    recovery = "Use a new idempotency_key for a new message."


class TooManyRequests(Refused):
    """The caller is over its rate."""

    code = "TOO_MANY_REQUESTS"
    http_status = 429
    retryable = True
    recovery = "Wait a second, then go on at a lower rate."


class NotReady(Refused):
    """What the call needs cannot be had now: a home, a stack, a database."""

    http_status = 503
    retryable = True
    recovery = "Run `manage.py doctor` on the machine of this server, then call again."


class PolicyDenied(Refused):
    """A policy rule, or the person who was asked, said no."""

    code = "POLICY_DENIED"
    http_status = 403
    recovery = "Ask an operator to allow this tool for the workspace, or do without it."


class ConfirmationRequired(Refused):
    """A person has to confirm the call first; it was not done. details has decisionId and
    expiresAt.
    """

    code = "CONFIRMATION_REQUIRED"
    http_status = 202
    retryable = True
    recovery = "Have a person confirm it, then make the same call with the same key again."
