"""The language of pages: the switch between languages, and the texts of the scripts."""

from __future__ import annotations

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
    """Return the URL of the scripts' texts in the page's language (of UNFOLD's SCRIPTS)."""
    return reverse("script_texts", args=[translation.get_language() or settings.LANGUAGE_CODE])


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
