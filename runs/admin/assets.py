"""URLs of the admin's static files; the setting UNFOLD names these functions."""

from __future__ import annotations

from django.http import HttpRequest
from django.templatetags.static import static


def admin_css(request: HttpRequest) -> str:
    """Return the URL of the common styles."""
    return static("continuity/admin.css")


def runs_css(request: HttpRequest) -> str:
    """Return the URL of the styles of dashboard, runs and tasks."""
    return static("continuity/runs.css")


def admin_js(request: HttpRequest) -> str:
    """Return the URL of the script that refreshes pages."""
    return static("continuity/admin.js")


def favicon(request: HttpRequest) -> str:
    """Return the URL of the favicon."""
    return static("continuity/mark.svg")
