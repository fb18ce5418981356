"""Authority: what a caller may do with a row that belongs to another caller (docs/trust.md).

Every entry point asks here, directly or through the one query that reads the row: REST, MCP,
WebSockets, the admin, commands, and what is submitted later in a caller's name.

A row belongs to the principal that created it, and has that caller's workspace, user and trust
level. Seeing it needs all of these:

- the row's workspace;
- a trust level that is not below the row's: a page that a local caller reads may be one that a
  remote caller cannot reach, and its text is in the row;
- for a credential that is limited to users: the row is one of these users', or its own.

Who sees a row may also stop it. Who steers it (answers, sends a message, takes over, gives back,
types into its page, retries) does so with the lower trust level of both, and in a paired browser
only if they paired it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Protocol

from django.db.models import F, Q, TextField, Value
from django.db.models.functions import Replace
from django.db.models.lookups import Exact

from decisions.foundation.errors import Forbidden
from decisions.identity.principals import ADMIN, Principal, TrustLevel, as_trust

# What a credential may write. One that has any of these scopes confirms nothing: what it wrote may
# be what it would confirm.
WRITES = frozenset(
    {"runs:write", "tasks:write", "tools:write", "artifacts:write", "sessions:write"}
    | {"targets:admin"}
)
CONFIRM = "confirm"  # the scope that confirms calls


class _Belongs(Protocol):
    @property
    def principal_id(self) -> str | None: ...


class Owned(_Belongs, Protocol):
    """A row that belongs to a caller. A `trust` or `principal_id` of None is unknown: the row is
    older than the column.
    """

    @property
    def tenant_id(self) -> str: ...

    @property
    def workspace_id(self) -> str: ...

    @property
    def user_id(self) -> str | None: ...

    @property
    def trust(self) -> str | None: ...


def is_operator(principal: Principal) -> bool:
    """Return whether the caller is a person who signed in to the admin."""
    return principal.id.startswith(ADMIN)


def lower_trust(*levels: str | None) -> TrustLevel:
    """Return the lowest of trust levels; one that is unknown is remote."""
    return "local" if all(level == "local" for level in levels) else "remote"


def sees(principal: Principal, row: Owned) -> bool:
    """Return whether a row exists for the caller. For a row whose trust level is unknown, remote
    callers are refused.
    """
    return (
        row.workspace_id == principal.workspace_id
        and (principal.trust == "local" or row.trust == "remote")
        and (
            principal.acts_for is None
            or row.user_id in principal.acts_for
            or row.principal_id == principal.id
        )
    )


def seen_by(principal: Principal) -> Q:
    """Return the same as `sees` as the condition of a query."""
    condition = shared_by(principal)
    if principal.acts_for is not None:
        condition &= Q(user_id__in=principal.acts_for) | Q(principal_id=principal.id)
    return condition


def shared_by(principal: Principal) -> Q:
    """Return the condition of rows of the workspace whose owner the query names beside it (uploads,
    `subscribers_seen_by`).
    """
    condition = Q(workspace_id=principal.workspace_id)
    return condition if principal.trust == "local" else condition & Q(trust="remote")


def users_text(users: Collection[str] | None) -> str | None:
    """Return the users that a credential is limited to as a text in which SQL finds one of them;
    None for any user.
    """
    return None if users is None else "".join(map(_user_text, sorted(users)))


def _user_text(user_id: str) -> str:
    """Return a user_id as JSON without a quote inside, so that it is in the text of no other."""
    return '"' + json.dumps(user_id)[1:-1].replace('"', "u0022") + '"'


def subscribers_seen_by(principal: Principal) -> Q:
    """Return the condition of the subscribers (`subscribers_of`) that exist for the caller: those
    of its workspace; for a credential that is limited to users, those that are limited to some of
    these, or its own.
    """
    condition = shared_by(principal)
    if principal.acts_for is None:
        return condition
    others: F | Replace = F("users")  # of these users, what remains without the credential's
    for user_id in principal.acts_for:
        text = Value(_user_text(user_id), TextField())
        others = Replace(others, text, Value("", TextField()), output_field=TextField())
    return condition & (Q(created_by=principal.id) | Q(Exact(others, Value("", TextField()))))


def subscribers_of(row: Owned) -> tuple[str, list[str | None]]:
    """Return the same as `sees` as an SQL condition, with its parameters, on the subscribers `w`
    that a row is sent to: they have the trust level, id and `users_text` of who subscribed.
    """
    user = "" if row.user_id is None else _user_text(row.user_id)
    text = (
        "w.workspace_id = %s AND w.trust IN ('local', %s) AND (w.users IS NULL"
        " OR replace(w.users, %s, '') <> w.users OR w.created_by = %s)"
    )
    return text, [row.workspace_id, row.trust, user, row.principal_id]


def sees_whole_workspace(principal: Principal) -> bool:
    """Return whether `seen_by` hides no row of the caller's workspace."""
    return principal.trust == "local" and principal.acts_for is None


def owns_session(principal: Principal, session: _Belongs) -> bool:
    """Return whether a named browser session of the workspace exists for the caller: its cookies
    are signed in as its owner, so it is shared with operators alone.
    """
    return session.principal_id == principal.id or is_operator(principal)


def acting_on(principal: Principal, row: Owned) -> Principal:
    """Return the caller as which an action on a row is done: with the lower trust level of both.
    For an answer, a message, a retry, a copy of a run, and what starts runs in another's name.
    """
    return principal.with_trust(lower_trust(principal.trust, row.trust))


def at_own_page(principal: Principal, row: Owned) -> Principal:
    """Return who paired a browser as the caller of what they do there to a row of theirs: the page
    is before their eyes, whatever the trust level with which the browser was paired.
    """
    return principal.with_trust(as_trust(row.trust or ""))


def caller_behind(row: Owned) -> Principal:
    """Return the caller of a run or task, without scopes, for what it reads on its own."""
    users = None if row.user_id is None else frozenset({row.user_id})
    return Principal(
        row.principal_id or "",
        row.tenant_id,
        row.workspace_id,
        frozenset(),
        as_trust(row.trust or ""),
        users,
    )


def check_steers(principal: Principal, row: Owned, browser_id: str | None) -> None:
    """Check that the caller may answer, message, give back or type into a row that it sees.

    Args:
        browser_id: the paired browser that the row's calls act in. It obeys who paired it, which is
            who created the row: the words of others would reach it as that person's.

    Raises:
        Forbidden: It acts in a browser that another caller paired.
    """
    if browser_id is not None and row.principal_id != principal.id:
        raise Forbidden(
            "It acts in a browser that another caller paired, and only that caller answers, sends"
            " messages and gives the page back there.",
            details={"selectedClientId": browser_id},
        )


def check_takes_over(principal: Principal, row: Owned, browser_id: str | None) -> None:
    """Check that the caller may stop the agent on a page and act there. An operator may, also in a
    browser that another person paired: the takeover only stops the agent there.

    Raises:
        Forbidden: As `check_steers`.
    """
    if not is_operator(principal):
        check_steers(principal, row, browser_id)


def may_confirm(principal: Principal, decision: Owned) -> bool:
    """Return whether a credential may confirm a call by its scope `confirm`, without a person.

    It may neither have requested the call nor have written what led to it: an answer, a message, an
    upload, a file. So it holds no scope that writes these, and acts for no user, since another
    token of that user may have written them. People, who sign in, follow a signed link or sit at a
    terminal, are not asked here.
    """
    return (
        is_confirmer(principal)
        and principal.acts_for is None
        and decision.principal_id != principal.id
        and sees(principal, decision)
    )


def is_own_request(decision: _Belongs, *, by: str, how: str) -> bool:
    """Return whether an answer is that of the decision's own requester, which does not count: of a
    credential over the API. A person may confirm what they requested, as long as no rule says that
    another one has to.
    """
    return how == "api" and decision.principal_id == by


def gets_links(created_by: str) -> bool:
    """Return whether a webhook receives links that confirm calls: one that a person created in the
    admin. A credential that creates one would confirm its own words by it.
    """
    return created_by.startswith(ADMIN)


def is_confirmer(principal: Principal) -> bool:
    """Return whether the credential confirms calls of others, and so writes nothing itself."""
    return CONFIRM in principal.scopes and not principal.scopes & WRITES
