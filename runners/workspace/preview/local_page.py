"""Open pages on this machine for workspace tools: in the run's browser, in an isolated session.

The session has its own cookies and tab, and requests to any other host are blocked.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from runners.browser.parameters import RESERVE_SECONDS, ExtractOptions
from runners.browser.reading.page_reader import PageReader
from runners.browser.session.session import OpenBrowserSession
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
from runners.workspace.workspace import ProjectWorkspace

LOCAL_URL = r"^https?://(localhost|127\.0\.0\.1)(:[0-9]+)?(/.*)?$"
NO_PAGE = "about:blank"
ERROR_RESERVE_SECONDS = 5.0  # of a call's time, reserved for reporting an error
TITLE_ONLY = ExtractOptions.model_validate({"pageInfo": False, "content": False})
_ANY_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x1f]*")
_FAILURES: tuple[tuple[type[ToolFailed], type[WorkspaceFailed]], ...] = (
    (ElementNotFound, WorkspaceTimeout),  # the tool waited for it until the timeout
    (NavigationTimeout, WorkspaceTimeout),
    (ToolTimeout, WorkspaceTimeout),
    (InvalidTarget, BadArguments),
    (ToolFailed, PreviewFailed),
)


def browser_seconds(workspace: ProjectWorkspace, ctx: ToolContext) -> float:
    """Return how long the browser may take for the next part of the call."""
    limit = workspace.policy.browser_timeout_ms / 1000
    return max(0.1, min(limit, ctx.seconds_left() - ERROR_RESERVE_SECONDS))


def check_local_url(url: str, workspace: ProjectWorkspace) -> str:
    """Return the normalized URL if a page there may be opened.

    Raises:
        PolicyViolation: It does not match S4's pattern for local addresses, its host is not allowed
            in the workspace, or its port is one of this service.
        BadArguments: It is not a URL.
    """
    if not _ANY_URL.fullmatch(url):
        raise BadArguments("url is not a URL.")
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
async def local_tab(ctx: ToolContext, workspace: ProjectWorkspace) -> AsyncIterator[Tab]:
    """Yield the tab that all calls of one run or named session on this project share.

    A browser tool's error inside the block is converted to a workspace error.

    Raises:
        NotSupported: The call has no browser.
        PreviewFailed, WorkspaceTimeout, PolicyViolation, BadArguments: The page failed.
    """
    if ctx.browser is None:
        raise NotSupported("This call has no browser; call the tool as a step of a run.")
    session = _isolated_session(ctx.browser, workspace)
    with _page_failures(workspace):
        async with session.run_tab(fresh=True) as tab:
            yield tab


async def open_address(tab: Tab, url: str, *, seconds: float) -> Mapping[str, Any]:
    """Open an address and wait until its page has loaded; return its url, httpStatus and warnings.

    A page that is already open is loaded again.
    """
    end = time.monotonic() + seconds
    if tab.page.url.partition("#")[0] == url.partition("#")[0]:
        await tab.navigate(NO_PAGE, seconds=seconds)
    return await PageReader(TITLE_ONLY, None, end + RESERVE_SECONDS).open_and_read(tab, url)


async def reread_page(tab: Tab, *, seconds: float) -> Mapping[str, Any]:
    """Wait until the open page has settled after an action; return what `open_address` does."""
    end = time.monotonic() + seconds
    return await PageReader(TITLE_ONLY, None, end + RESERVE_SECONDS).read_current(tab)


def require_local_page(tab: Tab, workspace: ProjectWorkspace) -> None:
    """Raise unless the tab shows a page of this machine.

    Raises:
        PreviewFailed: No page is open.
        PolicyViolation: The page's address is not allowed.
    """
    if not tab.page.url.startswith(("http://", "https://")):
        raise PreviewFailed(
            "No page is open.",
            hint=localized_hint(
                workspace,
                zh="请先用 action=open 打开页面。",
                en="Open a page first, with action=open.",
            ),
        )
    check_local_url(tab.page.url, workspace)


def _isolated_session(
    run_session: OpenBrowserSession, workspace: ProjectWorkspace
) -> OpenBrowserSession:
    """Return the isolated session for one project; each project of a run has its own cookies."""
    policy = workspace.policy
    rule = LoopbackOnly(hosts=policy.allowed_hosts, closed_ports=policy.own_ports)
    key = f"pages of {workspace.root} with {rule}"
    session = run_session.resources.get(key)
    if not isinstance(session, OpenBrowserSession):
        session = run_session.resources[key] = run_session.isolated_session(rule)
    return session


@contextlib.contextmanager
def _page_failures(workspace: ProjectWorkspace) -> Iterator[None]:
    try:
        yield
    except WorkspaceFailed:
        raise
    except AddressNotAllowed as refused:
        raise _not_local(workspace, str(refused.details.get("host", ""))) from None
    except ToolFailed as failed:
        error = next(error for kind, error in _FAILURES if isinstance(failed, kind))
        raise error(failed.message, details=failed.details) from None


def _not_local(workspace: ProjectWorkspace, host: str = "") -> PolicyViolation:
    hosts = ", ".join(workspace.policy.allowed_hosts)
    subject = host[:253] if host else "This address"
    return PolicyViolation(
        f"{subject} is not on this machine, or a page may not open it.",
        hint=localized_hint(
            workspace,
            zh=f"只允许 http(s)://{{{hosts}}}，且不得是本服务自身的端口。",
            en=f"Only http(s) pages on {hosts} are allowed, except on this service's own ports.",
        ),
        details={"host": host[:253]} if host else None,
    )
