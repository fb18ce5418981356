"""Django's admin as an application whose pages are loaded with the URLs, not by every command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.contrib.admin import autodiscover
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks


class LazyAdminConfig(SimpleAdminConfig):
    """The admin, of which the URLs load the pages: they were half of a command's start."""

    def ready(self) -> None:
        """Register Django's checks of the admin, as its own configuration does."""
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(check_pages, checks.Tags.admin)


def check_pages(app_configs: Sequence[AppConfig] | None, **options: Any) -> list[Any]:
    """Load the pages and check them."""
    autodiscover()
    return list(check_admin_app(app_configs, **options))
