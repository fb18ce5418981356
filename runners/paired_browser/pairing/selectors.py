"""Read the registry of paired browsers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from django.db.models import QuerySet

from decisions.foundation.validation.storable import storable_text
from decisions.identity.principals import Principal
from runners.models import PluginClient
from runners.paired_browser.errors import PairedBrowserNotFound

SEEN_S = 45.0  # a browser sends a ping every 20 s: one that was not seen for so long is offline
UNHEALTHY_AFTER = 2  # time-outs in a row
# In this order, because each names itself as the ones behind it too.
_BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Vivaldi/", "Vivaldi"), ("Chrome/", "Chrome"))
_SYSTEMS = (
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Android", "Android"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def connected_browsers() -> QuerySet[PluginClient]:
    """Return the browsers that are connected now."""
    since = datetime.now(UTC) - timedelta(seconds=SEEN_S)
    return PluginClient.objects.filter(connection_id__isnull=False, last_seen_at__gt=since)


def is_connected(client: PluginClient) -> bool:
    """Return whether a browser is connected now."""
    since = datetime.now(UTC) - timedelta(seconds=SEEN_S)
    return client.connection_id is not None and client.last_seen_at > since


def was_connected(client_id: str) -> bool:
    """Return whether a browser is connected, or was within the last SEEN_S."""
    since = datetime.now(UTC) - timedelta(seconds=SEEN_S)
    return PluginClient.objects.filter(
        id=client_id, revoked_at__isnull=True, last_seen_at__gt=since
    ).exists()


def is_healthy(client: PluginClient) -> bool:
    """Return whether a browser answers: the last two actions did not both time out."""
    return client.timeouts < UNHEALTHY_AFTER


def browsers_of(principal: Principal) -> QuerySet[PluginClient]:
    """Return the paired browsers of a principal, the last seen first."""
    rows = PluginClient.objects.filter(
        workspace_id=principal.workspace_id, principal_id=principal.id, revoked_at__isnull=True
    )
    return rows.order_by("-last_seen_at", "-id")


def browser_of(principal: Principal, client_id: str) -> PluginClient:
    """Return a paired browser of a principal.

    Raises:
        PairedBrowserNotFound: Unknown, revoked, or another's; the error does not say which.
    """
    client = browsers_of(principal).filter(id=storable_text(client_id)).first()
    if client is None:
        raise PairedBrowserNotFound(f"There is no paired browser {client_id[:64]}.")
    return client


def browser_name(user_agent: str) -> str:
    """Return the browser and its system, such as `Chrome on Linux`, from a user agent."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), "Browser")
    system = next((name for mark, name in _SYSTEMS if re.search(rf"\b{mark}\b", user_agent)), None)
    return browser if system is None else f"{browser} on {system}"
