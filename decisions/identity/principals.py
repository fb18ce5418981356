"""Who is calling, as every part below the doors sees it."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from django.contrib.auth import get_user_model
from django.db import IntegrityError, connection, transaction

from decisions.audit.record import AuditEvent, record
from decisions.errors import Forbidden, InvalidInput, NotAuthenticated
from decisions.models import Tenant, Token, User, Workspace
from decisions.security.keys import mac, macs

TrustLevel = Literal["local", "remote"]
SCOPES = frozenset(
    f"{area}:{verb}"
    for area in ("runs", "artifacts", "sessions", "tools", "continuity", "tasks", "audit")
    for verb in ("read", "write")
) | {"targets:admin", "confirm", "metrics:read"}
_AUDIT_SCOPES = frozenset({"audit:read", "audit:write"})
DEFAULT_SCOPES = SCOPES - {"targets:admin", "confirm", "metrics:read"}
# No white space, slash, control character or leading dot: a user_id stands in paths.
USER_ID_PATTERN = r"^[^\s./\\\x00-\x1f\x7f][^\s/\\\x00-\x1f\x7f]*$"
LOCAL = "local"  # names of the tenant and workspace that stdio, the demo and the admin act in
_PURPOSE = "token"  # what their digests are keyed for
_TOKEN_PREFIX = "cty_"  # noqa: S105  (a public prefix: secret scanners find leaked tokens by it)


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller: its workspace bounds every query, its scopes every call, its trust level every
    address.

    Attributes:
        id: `local`, `token:<tok_…>` or `admin:<username>`; what idempotency keys and audit rows
            name.
        acts_for: the user_ids that it may act for; None where it may act for any user of the
            workspace.
    """

    id: str
    tenant_id: str
    workspace_id: str
    scopes: frozenset[str]
    trust: TrustLevel
    acts_for: frozenset[str] | None = None

    @property
    def user_id(self) -> str | None:
        """Whom it acts for where that is one user alone: what it does unasked is theirs."""
        return next(iter(self.acts_for)) if self.acts_for and len(self.acts_for) == 1 else None

    def may_act_for(self, user_id: str) -> bool:
        """Tell whether it may act for this user (S2's user_id).

        A credential that names users may act for these alone, and whether another one exists makes
        no difference. Any other may act for whomever its workspace has or comes to have: see
        `ensure_user`.
        """
        return self.acts_for is None or user_id in self.acts_for

    def require(self, scope: str) -> None:
        """Refuse a call for which the scope is missing.

        Raises:
            Forbidden: details.scope names it.
        """
        if scope not in self.scopes:
            raise Forbidden(f"This token lacks the scope {scope}.", details={"scope": scope})

    def with_trust(self, trust: TrustLevel) -> Principal:
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


def ensure_user(*, workspace_id: str, user_id: str) -> User:
    """Return a workspace's user, made on first use. Safe to call from many processes at once."""
    found = User.objects.filter(workspace_id=workspace_id, user_id=user_id).first()
    return found or User.objects.get_or_create(workspace_id=workspace_id, user_id=user_id)[0]


def local_principal() -> Principal:
    """Return the principal of this machine's own user: stdio, the demo, management commands."""
    workspace = ensure_workspace()
    return Principal(LOCAL, workspace.tenant_id, workspace.id, SCOPES - {"confirm"}, "local")


def admin_principal(username: str, *, tenant_id: str, workspace_id: str) -> Principal:
    """Return the principal of a person at the admin site, acting on one workspace's rows."""
    return Principal(f"admin:{username}", tenant_id, workspace_id, SCOPES, "local")


def default_scopes(acts_for: Collection[str]) -> frozenset[str]:
    """Return the scopes of a token that was made without naming any: where it names users, without
    those of the audit log, which tells of others too.
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
    actor: str = "command",
) -> str:
    """Make a bearer token and return it; it cannot be shown again. Tenant, workspace and users
    are made when new.

    Args:
        users: the user_ids that it may act for; none means any user of the workspace.
        scopes: by default `default_scopes`.

    Raises:
        InvalidInput: An empty name, a scope that does not exist (details.unknown), or a user_id
            that is none.
    """
    acts_for = sorted({clean_user_id(user_id) for user_id in users if user_id.strip()})
    scopes = default_scopes(acts_for) if scopes is None else scopes
    _check_wish(name, scopes)
    secret = _TOKEN_PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        place = ensure_workspace(workspace, tenant)
        for user_id in acts_for:
            ensure_user(workspace_id=place.id, user_id=user_id)
        token = Token.objects.create(
            name=name,
            digest=mac(_PURPOSE, secret.encode()),
            workspace=place,
            acts_for=acts_for,
            scopes=sorted(scopes),
            trust=trust,
        )
        told = {"name": name, "scopes": sorted(scopes), "trust": trust, "actsFor": acts_for}
        place_ids = place.tenant_id, place.id
        record(AuditEvent("token.created", actor, "token", token.id, *place_ids, told))
    return secret


def _check_wish(name: str, scopes: frozenset[str]) -> None:
    unknown = sorted(scopes - SCOPES)
    if unknown:
        raise InvalidInput(
            f"Unknown scopes: {', '.join(unknown)}. Known: {', '.join(sorted(SCOPES))}.",
            details={"unknown": unknown},
        )
    if not name.strip():
        raise InvalidInput("A token needs a name, so that it can be told from others later.")


def clean_user_id(text: str) -> str:
    """Return a user_id without the blanks around it.

    Raises:
        InvalidInput: It is empty or too long, the API would take it in no call, or it holds
            characters that nobody sees.
    """
    user_id = text.strip()
    fits = len(user_id) <= 128 and re.fullmatch(USER_ID_PATTERN, user_id)
    if not fits or not user_id.isprintable():
        raise InvalidInput(
            "A user_id is 1 to 128 printable characters, without blanks and slashes, and does not"
            " begin with a dot."
        )
    return user_id


# Every call of every door asks this; the ORM takes far longer to word it than a database to answer.
_BY_DIGEST = """
    SELECT token.id, token.scopes, token.trust, place.id, place.tenant_id, token.acts_for
    FROM decisions_token token
    JOIN decisions_workspace place ON place.id = token.workspace_id
    WHERE token.digest IN ({}) AND token.revoked_at IS NULL
"""


def authenticate(secret: str) -> Principal:
    """Return the principal of a bearer token, one query.

    Raises:
        NotAuthenticated: Unknown, revoked or malformed: all read the same.
    """
    refused = NotAuthenticated("The bearer token is not valid here.")
    if not secret.startswith(_TOKEN_PREFIX) or len(secret) > 128 or not secret.isascii():
        raise refused
    digests = macs(_PURPOSE, secret.encode())
    with connection.cursor() as cursor:
        cursor.execute(_BY_DIGEST.format(", ".join(["%s"] * len(digests))), digests)
        found = cursor.fetchone()
    if found is None:
        raise refused
    token_id, scopes, trust, workspace_id, tenant_id, acts_for = found
    return Principal(
        id=f"token:{token_id}",
        tenant_id=tenant_id,
        workspace_id=workspace_id,
        scopes=frozenset(json.loads(scopes)),
        trust="local" if trust == "local" else "remote",
        acts_for=frozenset(json.loads(acts_for)) or None,
    )


def is_credential_active(principal: Principal) -> bool:
    """Tell whether what a principal came with is still good: its token was not revoked since, or
    its login was not closed. Who keeps a line open asks now and then.
    """
    kind, _, name = principal.id.partition(":")
    if kind == "token":
        return Token.objects.filter(id=name, revoked_at__isnull=True).exists()
    logins = get_user_model().objects
    return kind != "admin" or logins.filter(username=name, is_active=True).exists()


def throttle_key(secret: str) -> str:
    """Return a short name for a credential that reveals nothing of it: for counters."""
    return hashlib.sha256(secret.encode()).hexdigest()[:24]
