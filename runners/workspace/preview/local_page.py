"""Pages on this machine, as the tools of a workspace open them: in the run's browser, with cookies
and a tab of their own, and with no way to anywhere else.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from runners.browser.interaction.page_reader import PageReader
from runners.browser.parameters import RESERVE_SECONDS, ExtractOptions
from runners.browser.session.session import BrowserSession
from runners.browser.session.tab import Tab
from runners.errors import (
    AddressNotAllowed,
    ElementNotFound,
    InvalidTarget,
    NavigationTimeout,
    ToolFailed,
    ToolTimeout,
)
from runners.network.address import DEFAULT_PORTS, check_address
from runners.network.loopback import LoopbackOnly
from runners.tools.base import ToolContext
from runners.workspace.errors import (
    BadArguments,
    NotSupported,
    PolicyViolation,
    PreviewFailed,
    WorkspaceFailed,
    WorkspaceTimeout,
)
from runners.workspace.hints import localized_hint
from runners.workspace.workspace import Workspace

LOCAL_URL = r"^https?://(localhost|127\.0\.0\.1)(:[0-9]+)?(/.*)?$"
NO_PAGE = "about:blank"
TITLE_ONLY = ExtractOptions.model_validate({"pageInfo": False, "content": False})
_ANY_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x1f]*")
_FAILURES: tuple[tuple[type[ToolFailed], type[WorkspaceFailed]], ...] = (
    (ElementNotFound, WorkspaceTimeout),  # it was waited for
    (NavigationTimeout, WorkspaceTimeout),
    (ToolTimeout, WorkspaceTimeout),
    (InvalidTarget, BadArguments),
    (ToolFailed, PreviewFailed),
)


def check_local_url(url: str, workspace: Workspace) -> str:
    """Return an address as it will be opened.

    Raises:
        PolicyViolation: It is not on this machine by the seed's pattern, not on one of the
            workspace's hosts, or on a port of ours.
        BadArguments: It is no address.
    """
    if not _ANY_URL.fullmatch(url):
        raise BadArguments("url is no address.")
    policy = workspace.policy
    if not re.fullmatch(LOCAL_URL, url):
        raise _not_local(workspace)
    try:
        checked = check_address(url, "local")
    except InvalidTarget as refused:
        raise BadArguments(f"url: {refused.message}") from None
    parts = urlsplit(checked)
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    if parts.hostname not in policy.allowed_hosts or port in policy.own_ports:
        raise _not_local(workspace)
    return checked


@contextlib.asynccontextmanager
async def local_tab(ctx: ToolContext, workspace: Workspace) -> AsyncIterator[Tab]:
    """Lease the tab that the calls of a run, or of a named session, on one project share; what goes
    wrong with it inside is raised as a workspace's failure.

    Raises:
        NotSupported: The call has no browser.
        PreviewFailed, WorkspaceTimeout, PolicyViolation, BadArguments: As the page does.
    """
    if ctx.browser is None:
        raise NotSupported("This call has no browser; call the tool as a step of a run.")
    session = _session(ctx.browser, workspace)
    with _page_failures(workspace):
        async with session.run_tab(fresh=True) as tab:
            yield tab


async def open_address(tab: Tab, url: str, *, seconds: float) -> Mapping[str, Any]:
    """Open an address and wait until its page has loaded; return its url, httpStatus and warnings.

    It is loaded anew also where it is shown already.
    """
    end = time.monotonic() + seconds
    if tab.page.url.partition("#")[0] == url.partition("#")[0]:
        await tab.navigate(NO_PAGE, seconds=seconds)
    return await PageReader(TITLE_ONLY, None, end + RESERVE_SECONDS).of(tab, url)


async def reread_page(tab: Tab, *, seconds: float) -> Mapping[str, Any]:
    """Wait until what was done to the open page has had its effect; return what `open_in` does."""
    end = time.monotonic() + seconds
    return await PageReader(TITLE_ONLY, None, end + RESERVE_SECONDS).of_present(tab)


def require_local_page(tab: Tab, workspace: Workspace) -> None:
    """Make sure that the tab shows a page of this machine.

    Raises:
        PreviewFailed: No call before opened one.
        PolicyViolation: It shows another.
    """
    if not tab.page.url.startswith(("http://", "https://")):
        raise PreviewFailed(
            "No page is open.",
            hint=localized_hint(
                workspace,
                zh="请先用 action=open 打开页面。",
                en="Open a page first, with action open.",
            ),
        )
    check_local_url(tab.page.url, workspace)


def _session(outer: BrowserSession, workspace: Workspace) -> BrowserSession:
    """Return the pages of one project; a run that works on two has two, with their own cookies."""
    policy = workspace.policy
    rule = LoopbackOnly(hosts=policy.allowed_hosts, closed_ports=policy.own_ports)
    key = f"pages of {workspace.root} with {rule}"
    kept = outer.resources.get(key)
    if not isinstance(kept, BrowserSession):
        kept = outer.resources[key] = outer.isolated_session(rule)
    return kept


@contextlib.contextmanager
def _page_failures(workspace: Workspace) -> Iterator[None]:
    try:
        yield
    except WorkspaceFailed:
        raise
    except AddressNotAllowed as refused:
        raise _not_local(workspace, str(refused.details.get("host", ""))) from None
    except ToolFailed as failed:
        kind = next(ours for theirs, ours in _FAILURES if isinstance(failed, theirs))
        raise kind(failed.message, details=failed.details) from None


def _not_local(workspace: Workspace, host: str = "") -> PolicyViolation:
    hosts = ", ".join(workspace.policy.allowed_hosts)
    what = f"{host[:253]} is not a place" if host else "This address is not a place"
    return PolicyViolation(
        f"{what} on this machine that pages here may reach.",
        hint=localized_hint(
            workspace,
            zh=f"只允许 http(s)://{{{hosts}}}，且不得是本服务自身的端口。",
            en=f"Pages on {hosts} alone are opened, and not on this service's own ports.",
        ),
        details={"host": host[:253]} if host else None,
    )
