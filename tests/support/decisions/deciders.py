"""The three surfaces on which people decide, read and used as a person does: page by page."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO

from django.core.management import CommandError, call_command
from django.test import Client

from decisions.authorization.confirmation_links import confirmation_link
from decisions.models import Confirmation

PAGES_MAX = 200
_TAG = re.compile(r"<[^>]*>")
_MAIN = re.compile(r"<main.*</main>|<div class=\"cty-page\">.*", re.DOTALL)
_DIGEST = re.compile(r'name="shown" value="([0-9a-f]{64})"|--shown ([0-9a-f]{64})')


@dataclass(frozen=True)
class Seen:
    """What a person saw: the text of each page, and the digest that each page offered."""

    pages: list[str]
    digests: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.pages)


class Decider:
    """A person at one surface: `admin`, `link` or `command`."""

    def __init__(self, surface: str, superuser: Client) -> None:
        self.surface, self.superuser = surface, superuser

    def see(self, number: int) -> Seen:
        """Read every page about a decision."""
        pages, digests = [], []
        for page in range(1, PAGES_MAX):
            raw = self._page(number, page)
            digest = _DIGEST.search(raw)
            pages.append(raw if self.surface == "command" else text_of(raw))
            digests.append("" if digest is None else digest[1] or digest[2])
            if not self._has_more(raw):
                return Seen(pages, digests)
        raise AssertionError("the pages do not end")

    def decide(self, number: int, answer: str, shown: str) -> str:
        """Confirm or refuse with a digest, or have it requested anew (`renew`); return what the
        surface replies.
        """
        if self.surface == "command":
            option = {} if answer == "confirm" else {answer: True}
            return self._command(number, shown=shown, **option)
        form = {"shown": shown} if shown else {}
        if self.surface == "admin":
            url = f"/admin/decisions/decision/{number}/{answer}/"
            return text_of(self.superuser.post(url, form, follow=True).content.decode())
        url = confirmation_link(Confirmation.objects.get(decision_id=number))
        return text_of(Client().post(url, {**form, "answer": answer}).content.decode())

    def _page(self, number: int, page: int) -> str:
        if self.surface == "command":
            return self._command(number, page=page)
        if self.surface == "admin":
            url = f"/admin/decisions/decision/{number}/change/?page={page}"
            return self.superuser.get(url).content.decode()
        url = confirmation_link(Confirmation.objects.get(decision_id=number))
        return Client().get(f"{url}?page={page}").content.decode()

    def _has_more(self, raw: str) -> bool:
        found = re.search(r"[Pp]age (\d+) of (\d+)", raw)
        return found is not None and found[1] != found[2]

    @staticmethod
    def _command(number: int, **options: object) -> str:
        out = StringIO()
        try:
            call_command("confirm", str(number), stdout=out, stderr=out, **options)
        except CommandError as error:
            return f"{out.getvalue()}\n{error}"
        return out.getvalue()


def text_of(page: str) -> str:
    """Return the text of a page's content, without tags."""
    found = _MAIN.search(page)
    return html.unescape(_TAG.sub("", found[0] if found else page))


Surface = Callable[[str], Decider]
SURFACES = ("admin", "link", "command")
