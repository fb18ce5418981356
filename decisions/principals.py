"""Who is calling, as every part below the doors sees it."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, replace
from typing import Literal

from django.db import IntegrityError, connection, transaction

from decisions.audit import Deed, record
from decisions.errors import Forbidden, InvalidInput, NotAuthenticated
from decisions.keys import mac
from decisions.models import Tenant, Token, User, Workspace

TrustLevel = Literal["local", "remote"]
SCOPES = frozenset(
    f"{area}:{verb}"
    for area in ("runs", "artifacts", "sessions", "tools", "continuity", "tasks", "audit")
    for verb in ("read", "write")
) | {"targets:admin", "confirm"}
DEFAULT_SCOPES = SCOPES - {"targets:admin", "confirm"}
LOCAL = "local"  # names of the tenant and workspace that stdio, the demo and the admin act in
_TOKEN_PREFIX = "cty_"  # noqa: S105  (a public prefix: secret scanners find leaked tokens by it)


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller: its workspace bounds every query, its scopes every call, its trust level every
    address.

    Attributes:
        id: `local`, `token:<tok_…>` or `admin:<username>`; what idempotency keys and audit rows
            name.
        user_id: whom it acts for; None where it may act for any user of the workspace.
    """

    id: str
    tenant_id: str
    workspace_id: str
    scopes: frozenset[str]
    trust: TrustLevel
    user_id: str | None = None

    def require(self, scope: str) -> None:
        """Refuse a call for which the scope is missing.

        Raises:
            Forbidden: details.scope names it.
        """
        if scope not in self.scopes:
            raise Forbidden(f"This token lacks the scope {scope}.", details={"scope": scope})

    def at_trust(self, trust: TrustLevel) -> Principal:
        """Return this principal as seen through a door that grants another trust level."""
        return replace(self, trust=trust)


def ensure_workspace(name: str = LOCAL, tenant_name: str = LOCAL) -> Workspace:
    """Return the workspace of this name, made with its tenant when new. Safe to call from many
    processes at once.
    """
    found = Workspace.objects.filter(name=name, tenant__name=tenant_name).first()
    if found:
        return found
    try:
        with transaction.atomic():
            tenant, _ = Tenant.objects.get_or_create(name=tenant_name)
            workspace, _ = Workspace.objects.get_or_create(tenant=tenant, name=name)
            return workspace
    except IntegrityError:  # another process was first
        return Workspace.objects.get(name=name, tenant__name=tenant_name)


def local_principal() -> Principal:
    """Return the principal of this machine's own user: stdio, the demo, management commands."""
    workspace = ensure_workspace()
    return Principal(LOCAL, workspace.tenant_id, workspace.id, SCOPES - {"confirm"}, "local")


def admin_principal(username: str, *, tenant_id: str, workspace_id: str) -> Principal:
    """Return the principal of a person at the admin site, acting on one workspace's rows."""
    return Principal(f"admin:{username}", tenant_id, workspace_id, SCOPES, "local")


def _digest(token: str) -> str:
    return mac("token", token.encode())


def create_token(
    *,
    name: str,
    workspace: str = LOCAL,
    user: str | None = None,
    scopes: frozenset[str] = DEFAULT_SCOPES,
    trust: TrustLevel = "remote",
    actor: str = "command",
) -> str:
    """Make a bearer token and return it; it cannot be shown again. Workspace and user are made when
    new.

    Raises:
        InvalidInput: An empty name, or a scope that does not exist (details.unknown).
    """
    unknown = sorted(scopes - SCOPES)
    if unknown:
        raise InvalidInput(
            f"Unknown scopes: {', '.join(unknown)}. Known: {', '.join(sorted(SCOPES))}.",
            details={"unknown": unknown},
        )
    if not name.strip():
        raise InvalidInput("A token needs a name, so that it can be told from others later.")
    secret = _TOKEN_PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        place = ensure_workspace(workspace)
        person = User.objects.get_or_create(workspace=place, user_id=user)[0] if user else None
        token = Token.objects.create(
            name=name, digest=_digest(secret), workspace=place, user=person,
            scopes=sorted(scopes), trust=trust,
        )  # fmt: skip
        record(
            Deed("token.created", actor, "token", token.id, place.tenant_id, place.id,
                 {"name": name, "scopes": sorted(scopes), "trust": trust})
        )  # fmt: skip
    return secret


# Every call of every door asks this; the ORM takes far longer to word it than a database to answer.
_BY_DIGEST = """
    SELECT token.id, token.scopes, token.trust, place.id, place.tenant_id, person.user_id
    FROM decisions_token token
    JOIN decisions_workspace place ON place.id = token.workspace_id
    LEFT JOIN decisions_user person ON person.id = token.user_id
    WHERE token.digest = %s AND token.revoked_at IS NULL
"""


def authenticate(secret: str) -> Principal:
    """Return the principal of a bearer token, one query.

    Raises:
        NotAuthenticated: Unknown, revoked or malformed: all read the same.
    """
    refused = NotAuthenticated("The bearer token is not valid here.")
    if not secret.startswith(_TOKEN_PREFIX) or len(secret) > 128 or not secret.isascii():
        raise refused
    with connection.cursor() as cursor:
        cursor.execute(_BY_DIGEST, [_digest(secret)])
        found = cursor.fetchone()
    if found is None:
        raise refused
    token_id, scopes, trust, workspace_id, tenant_id, user_id = found
    return Principal(
        id=f"token:{token_id}",
        tenant_id=tenant_id,
        workspace_id=workspace_id,
        scopes=frozenset(json.loads(scopes)),
        trust="local" if trust == "local" else "remote",
        user_id=user_id,
    )


def throttle_key(secret: str) -> str:
    """Return a short name for a credential that reveals nothing of it: for counters."""
    return hashlib.sha256(secret.encode()).hexdigest()[:24]
