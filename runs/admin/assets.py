"""Where the admin's own files are served from; UNFOLD in the settings names these functions."""

from __future__ import annotations

from django.http import HttpRequest
from django.templatetags.static import static


def admin_css(request: HttpRequest) -> str:
    """Return the address of the cards, labels and tables."""
    return static("continuity/admin.css")


def runs_css(request: HttpRequest) -> str:
    """Return the address of the dashboard's and the run page's styles."""
    return static("continuity/runs.css")


def admin_js(request: HttpRequest) -> str:
    """Return the address of the script that keeps pages up to date."""
    return static("continuity/admin.js")


def favicon(request: HttpRequest) -> str:
    """Return the address of the mark."""
    return static("continuity/mark.svg")
