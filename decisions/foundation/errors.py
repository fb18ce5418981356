"""Refusals: errors of a call that are raised before anything was done.

    Refused
    ├── InvalidInput          a value is missing, malformed or out of range
    │   ├── MalformedBody     the body is not acceptable JSON
    │   │   └── NotUnicode    a string in it cannot be encoded as UTF-8
    │   ├── BodyTooLarge      the body is larger than the endpoint accepts
    │   ├── UnsupportedBody   a content type or encoding that is not supported
    │   └── ConfirmTokenInvalid   S2's one error for every confirmation that fails
    ├── NotAuthenticated      no valid credential
    │   └── TokenExpired      the token was valid until its expiry
    ├── Forbidden             the credential lacks the scope
    │   ├── TrustNotAllowed   not for callers of this trust level
    │   └── ForbiddenUser     not for this user_id (S2)
    ├── NotFound              unknown, another workspace's, or expired
    │   ├── TemplateNotFound
    │   ├── TemplateVersionUnsupported
    │   ├── RunNotFound
    │   ├── SessionNotFound
    │   │   └── NoSuchSession   the session itself was requested, not a run in it
    │   ├── ArtifactNotFound
    │   ├── ArtifactExpired
    │   ├── WebhookNotFound
    │   ├── ToolNotFound
    │   ├── TargetNotFound
    │   ├── DecisionNotFound
    │   └── OutcomeNotFound   no decision of this user waits for its outcome (S2)
    ├── Conflict              the resource is not in the state that the call needs
    │   ├── VersionConflict   it was changed since the caller read it (S2)
    │   ├── NotAsShown        the answer names another digest than that of the decision
    │   │   └── DecisionOutdated   what its call works on has changed since the request
    │   ├── OutcomeReported   the decision has another outcome already (S2)
    │   ├── DecisionNotConfirmed  the decision needs a confirmation first (S2)
    │   └── IdempotencyConflict   the key was used for another body (S2)
    ├── TooManyRequests       over the caller's rate limit
    ├── NotReady              a dependency of the call is unavailable
    ├── PolicyDenied          a policy rule denied the call, or a person refused it
    └── ConfirmationRequired  a person has to confirm the call first
        └── RunNeedsConfirmation  the call's run is suspended until then, and makes the call itself

Each API maps these to its own form (config/api_errors.py, mcp_server/protocol/results.py); the
codes are S0's.
"""

from __future__ import annotations

from typing import Any, ClassVar

from decisions.foundation.next_actions import NextAction, next_actions_after


class Refused(Exception):
    """A call that was not carried out, with the reason for the caller.

    Args:
        recovery: what the caller can do, if that is not what the class says.

    Attributes:
        is_recorded: the audit log has a row about this refusal already.
    """

    code: ClassVar[str] = "EXECUTION_ERROR"
    http_status: int = 400
    retryable: ClassVar[bool] = False
    recovery = "Check the call and its preconditions, then submit it again."

    def __init__(
        self,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        next_actions: list[NextAction] | None = None,
        recovery: str = "",
    ) -> None:
        super().__init__(message)
        if recovery:
            self.recovery = recovery
        self.message = message
        self.details = details or {}
        self.next_actions = next_actions_after(self.code) if next_actions is None else next_actions
        self.is_recorded = False

    def as_dict(self) -> dict[str, Any]:
        """Return the error body of every API: errorCode, message, details, retryable, recovery,
        and nextActions where there are any.
        """
        body = {
            "errorCode": self.code,
            "message": self.message,
            "details": self.details,
            "retryable": self.retryable,
            "recovery": self.recovery,
        }
        return body | ({"nextActions": self.next_actions} if self.next_actions else {})


def as_dict(refused: Refused) -> dict[str, Any]:
    """Return the default error body of a refusal, for APIs without an error format of their own."""
    return refused.as_dict()


class InvalidInput(Refused):
    """A value is missing, malformed or out of range."""

    code = "INVALID_PARAMETER"
    recovery = "Correct the range or type of the parameter named in the message."


class MalformedBody(InvalidInput):
    """The body is not acceptable JSON."""


class NotUnicode(MalformedBody):
    """A string in the JSON contains a lone surrogate."""


class BodyTooLarge(InvalidInput):
    """The body has more bytes than the endpoint accepts."""

    http_status = 413
    recovery = "Send a smaller body."


class UnsupportedBody(InvalidInput):
    """A content type or content encoding that is not supported."""

    http_status = 415
    recovery = "Send application/json without a content encoding."


class ConfirmTokenInvalid(InvalidInput):
    """No waiting confirmation has this decision, user and token.

    An unknown, foreign, wrong, used, revoked or expired token gives the same error (S2).
    """

    code = "invalid_or_expired_confirm_token"
    recovery = "Request a new decision, then confirm it with its token before the token expires."


class NotAuthenticated(Refused):
    """The call has no valid credential."""

    code = "UNAUTHENTICATED"
    http_status = 401
    recovery = (
        "Send an Authorization: Bearer header with a token created by `manage.py create_token`."
    )


class TokenExpired(NotAuthenticated):
    """The bearer token was valid until its expiry. Only a caller that has the token gets this."""

    recovery = "Create a new token with `manage.py create_token` or in the admin, and send that."


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
    """The credential may not act for this user_id, whether or not such a user exists."""

    code = "forbidden_user"
    recovery = "Use a user_id that the token may act for, or a token that may act for this user."


class NotFound(Refused):
    """Unknown, another workspace's, or expired: all three give the same error."""

    http_status = 404


class TemplateNotFound(NotFound):
    """No template has this id."""

    code = "TEMPLATE_NOT_FOUND"
    http_status = 400
    recovery = "Correct templateId, or list the templates and update the client's copy of the list."


class TemplateVersionUnsupported(NotFound):
    """The template exists, but not in the requested version."""

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
    recovery = "Create a new session, then try the task again."


class NoSuchSession(SessionNotFound):
    """SessionNotFound of a call on the session itself: HTTP 404 instead of 400."""

    http_status = 404


class ArtifactNotFound(NotFound):
    """No artifact with this id is visible to the caller."""

    code = "ARTIFACT_NOT_FOUND"
    recovery = "Check the artifactId and the run it belongs to."


class ArtifactExpired(NotFound):
    """The artifact's time to live is over and its bytes are deleted."""

    code = "ARTIFACT_EXPIRED"
    http_status = 410
    recovery = "Run the task again to create the artifact again; read it before it expires."


class WebhookNotFound(NotFound):
    """No webhook, or no delivery of it, with this id is visible to the caller."""

    code = "WEBHOOK_NOT_FOUND"
    recovery = "List the webhooks, or the webhook's deliveries, and use an id from there."


class ToolNotFound(NotFound):
    """The caller can call no tool of this name."""

    code = "TOOL_NOT_FOUND"
    recovery = "List the tools, and use a name from there."


class TargetNotFound(NotFound):
    """No target with this id is visible to the caller."""

    code = "TARGET_NOT_FOUND"
    recovery = "List the targets, and use an id from there."


class DecisionNotFound(NotFound):
    """No decision with this id is visible to the caller, or it needs no confirmation."""

    code = "DECISION_NOT_FOUND"
    recovery = "Take the id from the inbox of the admin site, or from the response that named it."


class OutcomeNotFound(NotFound):
    """No decision with this id waits for an outcome of this user (S2)."""

    code = "pending_outcome_not_found"
    recovery = "Take decision_id from the response of continuity_chat for this user."


class Conflict(Refused):
    """The resource is not in the state that the call needs, or was changed by another caller."""

    code = "CONFLICT"
    http_status = 409


class VersionConflict(Conflict):
    """The object is no longer in the version that If-Match names (S2)."""

    code = "version_conflict"
    http_status = 412
    recovery = "Read the object again, then write with its current version."


class NotAsShown(Conflict):
    """An answer to a decision does not name the digest of what the decision is about."""

    code = "shown_digest_mismatch"
    recovery = "Read the decision to its last page, then answer with the digest that it shows."

    def __init__(self, decision_id: int, message: str = "") -> None:
        super().__init__(
            message
            or f"Decision {decision_id} was not decided: read it to its last page, and answer with"
            " the digest of what is shown there.",
            details={"decisionId": decision_id},
        )


class DecisionOutdated(NotAsShown):
    """What the call of a decision works on has changed since the call was requested."""

    recovery = "Make the call again, or have its run request it anew; then answer the new decision."

    def __init__(self, decision_id: int, change: str) -> None:
        message = f"Decision {decision_id} cannot be confirmed any more. {change}"
        super().__init__(decision_id, message)


class OutcomeReported(Conflict):
    """The decision has a different outcome already (S2)."""

    code = "pending_outcome_not_found"
    recovery = "Report nothing more: a decision has one outcome."


class DecisionNotConfirmed(Conflict):
    """The outcome of a high-risk decision was reported before a person confirmed it (S2)."""

    code = "decision_not_confirmed"
    recovery = "Have a person confirm the decision, act, then report the outcome."


class IdempotencyConflict(Conflict):
    """The idempotency_key was used for another body within its 24 hours."""

    code = "idempotency_conflict"
    recovery = "Use a new idempotency_key for a new message."


class TooManyRequests(Refused):
    """The caller exceeds its rate limit."""

    code = "TOO_MANY_REQUESTS"
    http_status = 429
    retryable = True
    recovery = "Wait a second, then continue at a lower rate."


class NotReady(Refused):
    """A dependency of the call is unavailable: the home folder, the local stack, the database."""

    http_status = 503
    retryable = True
    recovery = "Run `manage.py doctor` on this server's machine, then call again."


class PolicyDenied(Refused):
    """A policy rule denied the call, or a person refused it."""

    code = "POLICY_DENIED"
    http_status = 403
    recovery = "Ask an operator to allow this tool for the workspace, or do without it."


class ConfirmationRequired(Refused):
    """A person has to confirm the call before it is made; details has decisionId and expiresAt."""

    code = "CONFIRMATION_REQUIRED"
    http_status = 202
    retryable = True
    recovery = "Have a person confirm it, then repeat the same call with the same key."


class RunNeedsConfirmation(ConfirmationRequired):
    """A person has to confirm the call; then its run, details.runId, makes it."""

    retryable = False
    recovery = (
        "Have a person confirm it; wait_task_run with details.runId returns the outcome. Do not"
        " repeat the call."
    )
