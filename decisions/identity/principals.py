"""Principals: the authenticated callers, with workspace, scopes and trust level; bearer tokens."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.models import Q

from decisions.audit.record import AuditEvent, record
from decisions.foundation.errors import Forbidden, InvalidInput, NotAuthenticated, TokenExpired
from decisions.foundation.security.keys import mac, macs
from decisions.models import Tenant, Token, User, Workspace

TrustLevel = Literal["local", "remote"]
SCOPES = frozenset(
    f"{area}:{verb}"
    for area in ("runs", "artifacts", "sessions", "tools", "continuity", "tasks", "audit")
    for verb in ("read", "write")
) | {"targets:admin", "confirm", "metrics:read"}
_AUDIT_SCOPES = frozenset({"audit:read", "audit:write"})
DEFAULT_SCOPES = SCOPES - {"targets:admin", "confirm", "metrics:read"}
# No whitespace, slash, control character or leading dot: a user_id is part of URL paths.
USER_ID_PATTERN = r"^[^\s./\\\x00-\x1f\x7f][^\s/\\\x00-\x1f\x7f]*$"
LOCAL = "local"  # name of the tenant and the workspace of stdio, the demo and the admin site
ADMIN = "admin:"  # prefix of the ids of users of the admin site
_PURPOSE = "token"  # key-derivation purpose of the tokens' digests
_TOKEN_PREFIX = "cty_"  # noqa: S105  (a public prefix: secret scanners find leaked tokens by it)


def as_trust(text: str) -> TrustLevel:
    """Return the trust level that a stored text names; any text but local means remote."""
    return "local" if text == "local" else "remote"


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller.

    Attributes:
        id: `local`, `token:<tok_…>` or `admin:<username>`; used in idempotency keys and audit rows.
        tenant_id, workspace_id: every query is restricted to this workspace.
        scopes: the calls that it may make.
        trust: restricts the network addresses and templates that its runs may use.
        acts_for: the user_ids that it may act for; None for any user of the workspace.
        permission: what an admin user must still be permitted for a connection to stay open.
    """

    id: str
    tenant_id: str
    workspace_id: str
    scopes: frozenset[str]
    trust: TrustLevel
    acts_for: frozenset[str] | None = None
    permission: str = ""

    @property
    def user_id(self) -> str | None:
        """The user it acts for if that is exactly one: the default user of its decisions."""
        return next(iter(self.acts_for)) if self.acts_for and len(self.acts_for) == 1 else None

    def may_act_for(self, user_id: str) -> bool:
        """Return whether the caller may act for this user (S2's user_id), existing or not."""
        return self.acts_for is None or user_id in self.acts_for

    def require(self, scope: str) -> None:
        """Raise if the caller lacks the scope.

        Raises:
            Forbidden: The scope is missing; details.scope names it.
        """
        if scope not in self.scopes:
            raise Forbidden(f"This token lacks the scope {scope}.", details={"scope": scope})

    def with_trust(self, trust: TrustLevel) -> Principal:
        """Return this principal with another trust level, such as that of a remote request."""
        return replace(self, trust=trust)


def principal_data(principal: Principal) -> dict[str, Any]:
    """Return a principal as JSON, to store it with a ticket for later."""
    acts_for = None if principal.acts_for is None else sorted(principal.acts_for)
    return {
        "id": principal.id,
        "tenantId": principal.tenant_id,
        "actsFor": acts_for,
        "workspaceId": principal.workspace_id,
        "scopes": sorted(principal.scopes),
        "trust": principal.trust,
        "permission": principal.permission,
    }


def principal_from(data: Mapping[str, Any]) -> Principal:
    """Return the principal that `principal_data` returned as JSON."""
    return Principal(
        id=data["id"],
        tenant_id=data["tenantId"],
        workspace_id=data["workspaceId"],
        scopes=frozenset(data["scopes"]),
        trust=as_trust(data["trust"]),
        acts_for=None if data["actsFor"] is None else frozenset(data["actsFor"]),
        permission=data.get("permission", ""),  # older code creates tickets without it
    )


def ensure_workspace(name: str = LOCAL, tenant_name: str = LOCAL) -> Workspace:
    """Return the workspace of this name, creating it and its tenant if needed. Safe to call
    concurrently.
    """
    named = Workspace.objects.filter(name=name, tenant__name=tenant_name)
    found = named.first()
    if found:
        return found
    with transaction.atomic():  # where a row exists by now, it stays
        Tenant.objects.bulk_create([Tenant(name=tenant_name)], ignore_conflicts=True)
        tenant = Tenant.objects.get(name=tenant_name)
        Workspace.objects.bulk_create([Workspace(tenant=tenant, name=name)], ignore_conflicts=True)
        return named.get()


def ensure_user(*, workspace_id: str, user_id: str) -> None:
    """Create a workspace's user if needed. Safe to call concurrently."""
    User.objects.get_or_create(workspace_id=workspace_id, user_id=user_id)


def local_principal() -> Principal:
    """Return the principal of this machine's user: for stdio, the demo, management commands."""
    workspace = ensure_workspace()
    return Principal(LOCAL, workspace.tenant_id, workspace.id, SCOPES - {"confirm"}, "local")


def admin_id(username: str) -> str:
    """Return the principal id of an admin user, which audit rows have as the actor."""
    return f"{ADMIN}{username}"


def admin_principal(username: str, *, tenant_id: str, workspace_id: str) -> Principal:
    """Return the principal of an admin user who acts on one workspace's rows."""
    return Principal(admin_id(username), tenant_id, workspace_id, SCOPES, "local")


def default_scopes(acts_for: Collection[str]) -> frozenset[str]:
    """Return the default scopes of a new token. One restricted to users gets no audit scopes,
    because the audit log has rows about other users.
    """
    return DEFAULT_SCOPES - _AUDIT_SCOPES if acts_for else DEFAULT_SCOPES


def create_token(
    *,
    name: str,
    workspace: str = LOCAL,
    tenant: str = LOCAL,
    users: Collection[str] = (),
    scopes: frozenset[str] | None = None,
    trust: TrustLevel = "remote",
    lifetime: timedelta | None = None,
    actor: str = "command",
) -> str:
    """Create a bearer token and return it in clear, which is not stored; audited. Commits.

    Creates the tenant, the workspace and the users if needed.

    Args:
        users: the user_ids that it may act for; empty for any user of the workspace.
        scopes: by default `default_scopes`.
        lifetime: the token expires after this time; None for a token that does not expire.

    Raises:
        InvalidInput: The name is empty, a scope does not exist (details.unknown), or a user_id is
            malformed.
    """
    acts_for = sorted({clean_user_id(user_id) for user_id in users if user_id.strip()})
    scopes = default_scopes(acts_for) if scopes is None else scopes
    _check_name_and_scopes(name, scopes)
    expires_at = None if lifetime is None else datetime.now(UTC) + lifetime
    secret = _TOKEN_PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        owner = ensure_workspace(workspace, tenant)
        for user_id in acts_for:
            ensure_user(workspace_id=owner.id, user_id=user_id)
        token = Token.objects.create(
            name=name,
            digest=mac(_PURPOSE, secret.encode()),
            workspace=owner,
            acts_for=acts_for,
            scopes=sorted(scopes),
            trust=trust,
            expires_at=expires_at,
        )
        details = {"name": name, "scopes": sorted(scopes), "trust": trust, "actsFor": acts_for}
        if expires_at is not None:
            details["expiresAt"] = expires_at.isoformat(timespec="seconds")
        owner_ids = owner.tenant_id, owner.id
        record(AuditEvent("token.created", actor, "token", token.id, *owner_ids, details))
    return secret


def _check_name_and_scopes(name: str, scopes: frozenset[str]) -> None:
    unknown = sorted(scopes - SCOPES)
    if unknown:
        raise InvalidInput(
            f"Unknown scopes: {', '.join(unknown)}. Known: {', '.join(sorted(SCOPES))}.",
            details={"unknown": unknown},
        )
    if not name.strip():
        raise InvalidInput("A token needs a name.")


def clean_user_id(text: str) -> str:
    """Return a user_id without surrounding whitespace.

    Raises:
        InvalidInput: It is empty, too long, has characters that the API does not accept, or
            invisible ones.
    """
    user_id = text.strip()
    fits = len(user_id) <= 128 and re.fullmatch(USER_ID_PATTERN, user_id)
    if not fits or not user_id.isprintable():
        raise InvalidInput(
            "A user_id has 1 to 128 printable characters, without spaces and slashes, and does not"
            " begin with a dot."
        )
    return user_id


# Raw SQL: every API call runs this query, and the ORM takes far longer to compile it than the
# database takes to run it.
_BY_DIGEST = """
    SELECT token.id, token.scopes, token.trust, workspace.id, workspace.tenant_id, token.acts_for,
        token.expires_at <= %s
    FROM decisions_token token
    JOIN decisions_workspace workspace ON workspace.id = token.workspace_id
    WHERE token.digest IN ({digests}) AND token.revoked_at IS NULL
"""


def authenticate(secret: str) -> Principal:
    """Return the principal of a bearer token; one query.

    Raises:
        NotAuthenticated: The token is unknown, revoked or malformed: all give the same error.
        TokenExpired: The token was valid until its expiry.
    """
    refused = NotAuthenticated("The bearer token is not valid here.")
    if not secret.startswith(_TOKEN_PREFIX) or len(secret) > 128 or not secret.isascii():
        raise refused
    digests = macs(_PURPOSE, secret.encode())
    now = connection.ops.adapt_datetimefield_value(datetime.now(UTC))
    with connection.cursor() as cursor:
        statement = _BY_DIGEST.format(digests=", ".join(["%s"] * len(digests)))
        cursor.execute(statement, (now, *digests))
        found = cursor.fetchone()
    if found is None:
        raise refused
    token_id, scopes, trust, workspace_id, tenant_id, acts_for, has_expired = found
    if has_expired:
        raise TokenExpired("The bearer token has expired.")
    return Principal(
        id=f"token:{token_id}",
        tenant_id=tenant_id,
        workspace_id=workspace_id,
        scopes=frozenset(json.loads(scopes)),
        trust=as_trust(trust),
        acts_for=frozenset(json.loads(acts_for)) or None,
    )


def is_credential_active(principal: Principal) -> bool:
    """Return whether the principal's token is neither revoked nor expired and acts for the same
    users as then; of an admin user, whether it is still active, staff, and has the principal's
    permission.

    Long-lived connections (WebSocket, SSE) check it periodically.
    """
    kind, _, name = principal.id.partition(":")
    if kind == "token":
        users = Token.objects.filter(valid_token(), id=name).values_list("acts_for", flat=True)
        return [frozenset(one) or None for one in users] == [principal.acts_for]
    if kind != "admin":
        return True
    staff = get_user_model().objects.filter(username=name, is_active=True, is_staff=True).first()
    return staff is not None and (not principal.permission or staff.has_perm(principal.permission))


def valid_token() -> Q:
    """Return the condition of tokens that are neither revoked nor expired."""
    expired = Q(expires_at__isnull=False, expires_at__lte=datetime.now(UTC))
    return Q(revoked_at__isnull=True) & ~expired


def throttle_key(secret: str) -> str:
    """Return a short digest of a credential, for rate counters."""
    return hashlib.sha256(secret.encode()).hexdigest()[:24]
