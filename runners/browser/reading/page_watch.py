"""Watch a page from the submit of a form on; wait until it reacts, or its search has happened."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from runners.browser.errors import ContextLost
from runners.browser.session.submit_watch import Shown, SubmitWatch, signature
from runners.browser.session.tab import Tab
from runners.errors import NavigationTimeout, SearchNotConfirmed, ToolFailed

STILL_SECONDS = 0.5
NOTHING_SECONDS = 4.0  # after which a page that shows and requests nothing did not search
REACTION_SECONDS = 3.0
LEARN_SECONDS = 1.2  # longer than a clock needs that shows seconds
BEGIN_SECONDS = 1.5
UNPROVEN_SECONDS = 2.0  # more, until a changed text has held still longer than a clock would
ANSWER_SECONDS = 5.0
POLL_SECONDS = 0.1


async def watch(tab: Tab, *, learns: bool = False) -> None:
    """Watch a tab from now on, just before a form is submitted.

    Args:
        learns: nothing is submitted yet: what the page requests and changes until the next call,
            it does by itself.
    """
    earlier = tab.submit_watch
    before = await _shown(tab, command="watchTexts", learns=learns)
    known = frozenset(signature("GET", url) for url in before.requested)
    if earlier is not None and earlier.before.documents == before.documents:
        known |= earlier.known | earlier.signatures
    tab.watch_submit(SubmitWatch(before, known))


async def observe_untouched(tab: Tab) -> None:
    """Watch a tab again from now on, after having learned what it requests and changes by itself
    for longer than a second.
    """
    await watch(tab, learns=True)
    until = time.monotonic() + 2 * LEARN_SECONDS
    while (await _shown(tab)).untouched_seconds < LEARN_SECONDS and time.monotonic() < until:
        await asyncio.sleep(POLL_SECONDS)
    await watch(tab)


async def has_begun(tab: Tab, query: str) -> bool:
    """Return whether a search that was submitted in a watched tab has begun, within BEGIN_SECONDS
    from now: the page requests something, navigates, or shows something, other than by itself.
    """
    until = time.monotonic() + BEGIN_SECONDS
    while (watch := tab.submit_watch) is not None:
        now = await _shown(tab)
        is_other = now.documents != watch.before.documents or now.url != watch.before.url
        if is_other or tab.is_leaving or watch.has_sent or watch.with_query(query) or now.touched:
            return True
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True  # of a tab that is not watched nothing is known


@contextlib.asynccontextmanager
async def watched_input(tab: Tab) -> AsyncIterator[Callable[[str], Awaitable[bool]]]:
    """Watch a tab while the block sends input; yields `has_begun` of this tab, which says whether
    the input started anything, also if the page does not answer any more.
    """
    with contextlib.suppress(ToolFailed):
        await watch(tab)

    async def has_effect(text: str) -> bool:
        with contextlib.suppress(ToolFailed):
            return await has_begun(tab, text)
        return True

    try:
        yield has_effect
    finally:
        tab.watch_submit(None)


async def since_submit(tab: Tab) -> dict[str, bool] | None:
    """Return {navigated, requested, changed}: what a watched tab did since, other than by itself;
    None if it is not watched.
    """
    if (watch := tab.submit_watch) is None:
        return None
    now = await _shown(tab)
    navigated = tab.is_leaving or now.documents != watch.before.documents
    return {"navigated": navigated, "requested": watch.has_sent, "changed": now.touched}


async def has_reacted(tab: Tab) -> bool | None:
    """Return whether a watched page requested or showed anything since, within REACTION_SECONDS
    from now; None if it is not watched. Ends the watch.
    """
    watch = tab.submit_watch
    if watch is None:
        return None
    until = time.monotonic() + REACTION_SECONDS
    try:
        while not watch.has_reaction(now := await _shown(tab)):
            late = time.monotonic() - until
            if late > 0 and not (watch.may_show_other(now) and late < UNPROVEN_SECONDS):
                return False
            await asyncio.sleep(POLL_SECONDS)
        return True
    finally:
        tab.watch_submit(None)


async def confirm_search(
    tab: Tab, query: str, *, has_results: bool, seconds: float
) -> tuple[str, list[str]]:
    """Wait until a watched search is seen to have happened and its results hold still; return what
    shows it, and warnings.

    Args:
        has_results: the caller knows that the results are shown; nothing is waited for.

    Raises:
        SearchNotConfirmed: Nothing shows that the search happened, or its request failed.
        NavigationTimeout: The results were still loading when the time was up.
    """
    watch = tab.submit_watch
    if watch is None:
        raise SearchNotConfirmed("No search was submitted.", details={"reason": "not_watched"})
    try:
        if has_results:
            return watch.evidence(query, await _shown(tab)) or "results", []
        return await _wait_for_results(tab, watch, query, seconds)
    finally:
        tab.watch_submit(None)


async def _wait_for_results(
    tab: Tab, watch: SubmitWatch, query: str, seconds: float
) -> tuple[str, list[str]]:
    began = time.monotonic()
    while True:
        now = await _shown(tab)
        waited = time.monotonic() - began
        is_ready = min(now.still_seconds, waited) >= STILL_SECONDS and not watch.is_loading(now)
        is_late = waited >= seconds
        evidence, is_busy = watch.evidence(query, now), watch.is_busy(query, now)
        if evidence and is_ready and (is_late or not is_busy):
            watch.check_answers(query)
            return evidence, ["The page was still requesting data."] if is_busy else []
        may_come = is_busy or watch.may_show_other(now)
        if is_late or (is_ready and not may_come and waited >= NOTHING_SECONDS):
            raise _not_confirmed(query, now, evidence, seconds)
        await asyncio.sleep(POLL_SECONDS)


async def _shown(tab: Tab, *, command: str = "shownState", **args: Any) -> Shown:
    """Return what the page shows; of a page that is being replaced, that it is busy."""
    documents, url = tab.documents, tab.page.url
    if not tab.is_leaving:
        with contextlib.suppress(ContextLost):
            state = await tab.run_command(command, args, seconds=ANSWER_SECONDS)
            return Shown(
                documents,
                url,
                **{name: state[name] for name in ("text", "loading", "busy", "touched", "changed")},
                still_seconds=state["stillMs"] / 1000,
                untouched_seconds=state["untouchedMs"] / 1000,
                requested=tuple(state.get("requested", ())),
            )
    return Shown(documents, url, busy=True)


def _not_confirmed(query: str, now: Shown, evidence: str, seconds: float) -> ToolFailed:
    if evidence:
        return NavigationTimeout(
            f"The search was sent, but its results were still loading after {seconds:g} s; give"
            " waitForResults a condition that holds once they are shown.",
            details={"url": now.url, "evidence": evidence},
        )
    return SearchNotConfirmed(
        f"The query “{query[:100]}” was entered and submitted, but no search happened: no request"
        " and no address has the query, and what the page shows did not change.",
        details={"reason": "nothing_happened", "url": now.url},
    )
