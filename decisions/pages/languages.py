"""The language of pages: the switch between languages, and the texts of the scripts."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import translation
from django.views.decorators.http import require_POST
from django.views.i18n import JavaScriptCatalog, set_language

# Stores the posted language in a cookie and returns to the page; also for users who are not signed
# in, because the sign-in page has the switch too.
choose_language = require_POST(set_language)


def script_url(request: HttpRequest) -> str:
    """Return the URL of the scripts' texts in the page's language (of UNFOLD's SCRIPTS), with the
    version of the translations, so that browsers do not use those of an earlier release.
    """
    address = reverse("script_texts", args=[translation.get_language() or settings.LANGUAGE_CODE])
    return f"{address}?v={_version_of_texts()}"


@cache
def _version_of_texts() -> str:
    digest = hashlib.sha256()
    for folder in settings.LOCALE_PATHS:
        for catalogue in sorted(Path(folder).rglob("djangojs.mo")):
            digest.update(catalogue.read_bytes())
    return digest.hexdigest()[:12]


class ScriptTexts(JavaScriptCatalog):
    """A script that defines `gettext` with the translations of the texts of the other scripts."""

    packages = ["continuity"]

    def get_paths(self, packages: Any) -> list[str]:
        """Return the folder of our own translations."""
        return [str(path) for path in settings.LOCALE_PATHS]

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Return the script of the language in the path."""
        language = str(kwargs.pop("language"))
        if language not in dict(settings.LANGUAGES):
            raise Http404(f"There are no pages in the language {language}.")
        with translation.override(language):
            response: HttpResponse = super().get(request, *args, **kwargs)
        response["Cache-Control"] = "public, max-age=86400"
        return response
