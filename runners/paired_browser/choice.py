"""Targets of kind `plugin`: the browsers that a caller paired, and which one of them a task uses.

A browser is its own target: its id is the target id of the calls in it. No other caller finds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

from django.db.models import F, QuerySet

from decisions.foundation.errors import Conflict, InvalidInput, TargetNotFound
from decisions.foundation.infra.preconditions import Precondition
from decisions.foundation.validation.storable import storable_text
from runners.models import PluginClient, TargetKind
from runners.paired_browser.pairing.selectors import is_connected, is_healthy

if TYPE_CHECKING:
    from runners.targets.targets import Caller

ANY_PAIRED = TargetKind.PLUGIN.value  # the target id for "one of my browsers"
ID_PREFIX = "plc_"
SELECTED = "selectedClientId"  # of inputs and tasks: the browser that their actions use


class NoBrowserPaired(Conflict):
    """The caller has paired no browser."""

    code = "PLUGIN_OFFLINE"
    recovery = (
        "Pair one: install the Continuity extension in your browser (docs/extension.md) and give it"
        " a ticket, from the page Browsers of the admin, POST /plugin/ticket or `manage.py"
        " plugin_ticket`. Or omit the target: then a browser of the worker is used."
    )


@dataclass(frozen=True, slots=True)
class PairedBrowser:
    """The paired browser that performs a call, and what the call is for it.

    Attributes:
        action_id: the idempotency key of the call in the browser.
        is_sent: an earlier worker may have sent the action: only its result is collected.
        expected_origin: the origin that policy judged; on another one nothing is changed.
    """

    client_id: str
    task_id: str
    task_title: str
    action_id: str
    is_sent: bool = False
    expected_origin: str = ""


@dataclass(frozen=True, slots=True)
class BrowserChoice:
    """What a request chose: a folder or runner, and a paired browser; None: the default."""

    target_id: str | None
    client_id: str | None


def is_paired_browser(target_id: str | None) -> bool:
    """Return whether a target id names a browser that a person paired, or any of the caller's."""
    return target_id is not None and (target_id == ANY_PAIRED or target_id.startswith(ID_PREFIX))


def paired_browsers(caller: Caller) -> QuerySet[PluginClient]:
    """Return the browsers that this caller paired and did not revoke."""
    return PluginClient.objects.filter(
        tenant_id=caller.tenant_id,
        workspace_id=caller.workspace_id,
        principal_id=caller.principal_id,
        revoked_at__isnull=True,
    )


def find_paired_browser(caller: Caller, client_id: str) -> PluginClient:
    """Return a browser of the caller.

    Raises:
        TargetNotFound: It does not exist, was revoked, or is another caller's.
    """
    found = paired_browsers(caller).filter(id=storable_text(client_id)).first()
    if found is None:
        raise TargetNotFound(f"You have no paired browser {client_id[:64]!r}.")
    return found


def choose_paired_browser(caller: Caller, wanted: str) -> PluginClient:
    """Return the browser that a caller wants: the one named; with `plugin` the only one that is
    connected, else the one that was used last.

    Raises:
        TargetNotFound: As `find_paired_browser`.
        NoBrowserPaired: The caller has none.
    """
    if wanted != ANY_PAIRED:
        return find_paired_browser(caller, wanted)
    order = F("last_used_at").desc(nulls_last=True), F("last_seen_at").desc(), "id"
    clients = list(paired_browsers(caller).order_by(*order))
    if not clients:
        raise NoBrowserPaired("You have paired no browser.")
    connected = [client for client in clients if is_connected(client)]
    healthy = [client for client in connected if is_healthy(client)]
    return (healthy or connected or clients)[0]


def split_choice(caller: Caller, target_id: str | None, selected: str | None) -> BrowserChoice:
    """Return what `targetId` and `selectedClientId` of a request choose.

    Raises:
        InvalidInput: They name two browsers.
        TargetNotFound, NoBrowserPaired: As `choose_paired_browser`.
    """
    if selected is not None and not is_paired_browser(selected):
        raise InvalidInput(
            f"{SELECTED}: it has to be a plc_… id, or {ANY_PAIRED} for any of yours."
        )
    named = [one for one in (target_id, selected) if one is not None and is_paired_browser(one)]
    precise = {one for one in named if one != ANY_PAIRED}
    if len(precise) > 1:
        raise InvalidInput(f"targetId, {SELECTED}: they name two browsers; name one.")
    folder = None if is_paired_browser(target_id) else target_id
    if not named:
        return BrowserChoice(folder, None)
    wanted = next(iter(precise), ANY_PAIRED)
    return BrowserChoice(folder, choose_paired_browser(caller, wanted).id)


def with_paired_browser(caller: Caller, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's inputs with the browser that they choose in `selectedClientId`, and a folder
    or runner alone in `targetId`.

    Raises:
        InvalidInput, TargetNotFound, NoBrowserPaired: As `split_choice`.
    """
    choice = split_choice(caller, inputs.get("targetId"), inputs.get(SELECTED))
    rest = {name: value for name, value in inputs.items() if name not in ("targetId", SELECTED)}
    chosen = {"targetId": choice.target_id, SELECTED: choice.client_id}
    return rest | {name: value for name, value in chosen.items() if value is not None}


def state_of_browser(client: PluginClient) -> str:
    """Return the state of a browser as a target: for what a person confirms."""
    return f"{client.id} {client.created_at.astimezone(UTC).isoformat()}"


def is_still_paired(client: PluginClient) -> Precondition:
    """Return the precondition that a browser is its caller's and was not revoked."""
    return Precondition(
        "EXISTS (SELECT 1 FROM runners_pluginclient"
        " WHERE id = %s AND principal_id = %s AND workspace_id = %s AND revoked_at IS NULL)",
        (client.id, client.principal_id, client.workspace_id),
    )
