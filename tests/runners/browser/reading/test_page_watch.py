"""The watch of a page since its form was about to be submitted."""

from __future__ import annotations

import asyncio
import gc
import weakref
from types import SimpleNamespace
from typing import Any, cast

from runners.browser.reading.page_watch import has_reacted, watch
from runners.browser.session.tab import Tab


class NavigatingTab:
    """A tab whose page is being replaced, so that no script is called in it."""

    watch_submit = Tab.watch_submit

    def __init__(self) -> None:
        self.listeners: list[tuple[str, Any]] = []
        self.page = SimpleNamespace(
            url="http://shop.example/",
            on=lambda event, listener: self.listeners.append((event, listener)),
            remove_listener=lambda event, listener: self.listeners.remove((event, listener)),
        )
        self.documents, self.is_leaving, self.submit_watch = 1, True, None


def test_a_tab_whose_watch_nobody_ended_is_freed() -> None:
    tab = NavigatingTab()
    asyncio.run(watch(cast(Any, tab)))
    freed = weakref.ref(tab)
    del tab
    gc.collect()
    assert freed() is None


def test_a_watch_replaces_the_one_before_and_ends_with_its_answer() -> None:
    tab = NavigatingTab()

    async def watch_twice() -> bool | None:
        await watch(cast(Any, tab))
        await watch(cast(Any, tab))
        assert len({event for event, _ in tab.listeners}) == len(tab.listeners) == 5
        tab.documents += 1
        return await has_reacted(cast(Any, tab))

    assert asyncio.run(watch_twice()) is True
    assert (tab.listeners, asyncio.run(has_reacted(cast(Any, tab)))) == ([], None)
