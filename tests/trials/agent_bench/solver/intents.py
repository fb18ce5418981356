"""Intents: what a person wants on a page, by visible labels. Each becomes turns with calls."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.agent.model_turns import Call
from tests.trials.agent_bench.solver.observation import page_field
from tests.trials.agent_bench.solver.view import ModelView, NotOnPage, Turns

FIELDS = "input|textarea|textbox|searchbox|combobox|spin"
PAGES = 20  # of one list that is paged through


class Intent(ABC):
    """One thing to do."""

    @abstractmethod
    def turns(self, view: ModelView) -> Turns:
        """Yield the calls of each turn; the view has their results when it is resumed."""


@dataclass(frozen=True)
class Open(Intent):
    """Open an address."""

    url: str

    def turns(self, view: ModelView) -> Turns:
        """Open it in the task's tab."""
        yield _turn("task_start", url=self.url, reuseExistingTab=bool(view.tab))


@dataclass(frozen=True)
class Press(Intent):
    """Click the element with a label. `accept` and `text` answer the dialog that it opens."""

    label: str
    role: str = ""
    accept: bool | None = None
    text: str | None = None
    nth: int = 0

    def turns(self, view: ModelView) -> Turns:
        """Look for it, and click it; once more if its page replaced it meanwhile."""
        arguments: dict[str, Any] = {}
        if self.accept is not None:
            text = {} if self.text is None else {"text": self.text}
            arguments["dialog"] = {"accept": self.accept, **text}
        for _ in range(2):
            element = yield from view.look_for(self.label, self.role, self.nth)
            yield view.call("browser_click", clickId=element.number, **arguments)
            if not view.is_element_gone:
                return
            yield view.observe()


@dataclass(frozen=True)
class Fill(Intent):
    """Type a text into the field with a label; `text` may name what was found before."""

    label: str
    text: str
    submit: bool = False

    def turns(self, view: ModelView) -> Turns:
        """Look for the field, and type."""
        element = yield from view.look_for(self.label, FIELDS)
        text = self.text.format(**view.found)
        yield view.call("browser_type", clickId=element.number, text=text, submit=self.submit)


@dataclass(frozen=True)
class Tick(Intent):
    """Tick a check box, or choose a radio button, unless it is."""

    label: str
    role: str = "checkbox|radio|switch"

    def turns(self, view: ModelView) -> Turns:
        """Click it if its state differs."""
        element = yield from view.look_for(self.label, self.role)
        if not element.is_checked:
            yield view.call("browser_click", clickId=element.number)


@dataclass(frozen=True)
class Choose(Intent):
    """Choose options of a list by their labels."""

    label: str
    options: Sequence[str]

    def turns(self, view: ModelView) -> Turns:
        """Select them."""
        element = yield from view.look_for(self.label, "select|combobox|listbox")
        yield view.call("browser_select", clickId=element.number, options=list(self.options))


@dataclass(frozen=True)
class Hover(Intent):
    """Move the mouse over the element with a label."""

    label: str
    role: str = ""

    def turns(self, view: ModelView) -> Turns:
        """Hover over it."""
        element = yield from view.look_for(self.label, self.role)
        yield view.call("browser_hover", clickId=element.number)


@dataclass(frozen=True)
class Keys(Intent):
    """Press a key, once or several times."""

    key: str
    times: int = 1

    def turns(self, view: ModelView) -> Turns:
        """Press it."""
        yield view.call("browser_press_key", key=self.key, times=self.times)


@dataclass(frozen=True)
class Back(Intent):
    """Go back in the tab's history."""

    def turns(self, view: ModelView) -> Turns:
        """Go back."""
        yield view.call("browser_go_back")


@dataclass(frozen=True)
class Drag(Intent):
    """Drag one element onto another, or by a distance."""

    source: str
    target: str = ""
    by: tuple[int, int] | None = None

    def turns(self, view: ModelView) -> Turns:
        """Look for both, and drag."""
        source = yield from view.look_for(self.source)
        if self.by is not None:
            x, y = self.by
            yield view.call("browser_drag", clickId=source.number, dx=x, dy=y)
            return
        target = yield from view.look_for(self.target)
        yield view.call("browser_drag", clickId=source.number, toClickId=target.number)


@dataclass(frozen=True)
class Upload(Intent):
    """Choose a file of the workspace for a file field."""

    label: str
    path: str

    def turns(self, view: ModelView) -> Turns:
        """Upload it."""
        element = yield from view.look_for(self.label, "input|file")
        yield view.call("browser_upload", clickId=element.number, files=[{"path": self.path}])


@dataclass(frozen=True)
class SwitchTab(Intent):
    """Go on in another tab of the task: the newest one, or the first."""

    newest: bool = True

    def turns(self, view: ModelView) -> Turns:
        """List the tabs, and switch."""
        yield [Call("browser_list_tabs", {})]
        tabs = page_field(view.results[-1], "tabs")
        if not tabs:
            raise NotOnPage("the list of tabs")
        view.tab = int(tabs[-1 if self.newest else 0]["tabId"])  # in the order of their opening
        yield view.call("browser_switch_tab")


@dataclass(frozen=True)
class ScrollToEnd(Intent):
    """Scroll until nothing new comes."""

    def turns(self, view: ModelView) -> Turns:
        """Scroll."""
        yield view.call("browser_scroll", untilNothingNew=True)


@dataclass(frozen=True)
class ScrollList(Intent):
    """Scroll a list that shows few rows at a time: to the last element that was observed."""

    def turns(self, view: ModelView) -> Turns:
        """Scroll to it."""
        if not view.page.elements:
            raise NotOnPage("the list")
        yield view.call("browser_scroll", clickId=view.page.elements[-1].number)


@dataclass(frozen=True)
class WaitFor(Intent):
    """Wait until the page has a text."""

    text: str

    def turns(self, view: ModelView) -> Turns:
        """Wait, then read the page."""
        yield view.call("browser_wait_for_text", text=self.text)
        yield view.observe(full=True)


@dataclass(frozen=True)
class Find(Intent):
    """Keep the first group of a pattern under a name; further groups as name2, name3."""

    name: str
    pattern: str

    def turns(self, view: ModelView) -> Turns:
        """Read on until the page has it."""
        match = yield from view.look_for_text(self.pattern)
        for number, group in enumerate(match.groups() or [match[0]], 1):
            view.found[self.name if number == 1 else f"{self.name}{number}"] = group


@dataclass(frozen=True)
class FindInResult(Intent):
    """Keep the first group of a pattern in the last results (a download's text, for example)."""

    name: str
    pattern: str

    def turns(self, view: ModelView) -> Turns:
        """Search them."""
        yield from ()
        match = re.search(self.pattern, str(view.results))
        if match is None:
            raise NotOnPage(f"result {self.pattern}")
        view.found[self.name] = match[1]


@dataclass(frozen=True)
class Collect(Intent):
    """Keep all matches of a pattern, on the whole page and on those behind `next_label`."""

    name: str
    pattern: str
    next_label: str = ""

    def turns(self, view: ModelView) -> Turns:
        """Read each page whole."""
        kept: list[Any] = []
        for _ in range(PAGES):
            yield view.observe(full=True)
            kept += re.findall(self.pattern, view.page.text)
            while view.page.next is not None:
                yield view.observe(**{"from": view.page.next})
                kept += re.findall(self.pattern, view.page.text)
            element = view.page.find(self.next_label) if self.next_label else None
            if element is None or "disabled" in element.state:
                break
            yield view.call("browser_click", clickId=element.number)
        view.found[self.name] = list(dict.fromkeys(kept))


@dataclass(frozen=True)
class IfShown(Intent):
    """Do something only if an element with this label is there."""

    label: str
    intents: Sequence[Intent]

    def turns(self, view: ModelView) -> Turns:
        """Look at the newest observation alone."""
        if view.page.find(self.label) is not None:
            for intent in self.intents:
                yield from intent.turns(view)


@dataclass(frozen=True)
class Until(Intent):
    """Repeat intents until the page has a text."""

    pattern: str
    intents: Sequence[Intent]
    limit: int = 30

    def turns(self, view: ModelView) -> Turns:
        """Repeat them."""
        for _ in range(self.limit):
            if re.search(self.pattern, view.page.text):
                return
            for intent in self.intents:
                yield from intent.turns(view)
        raise NotOnPage(f"text {self.pattern}")


@dataclass(frozen=True)
class Answer(Intent):
    """Complete the task with a text, or with what a function makes of the texts found."""

    text: str | Callable[[dict[str, Any]], str] = "Done."

    def turns(self, view: ModelView) -> Turns:
        """Complete."""
        text = self.text(view.found) if callable(self.text) else self.text.format(**view.found)
        yield _turn("attempt_completion", result=text)


def _turn(name: str, **arguments: Any) -> list[Call]:
    """Return a turn with one call that names no tab."""
    return [Call(name, arguments)]
