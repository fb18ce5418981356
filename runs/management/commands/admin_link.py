"""`manage.py admin_link`: print a new log-in link for the admin site of this machine."""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from decisions.foundation.errors import Refused
from decisions.identity.one_time_login import create_login_path
from runs.operations.home.errors import StackError
from runs.operations.home.prepare import prepare_home
from runs.operations.home.state import live_info


class Command(BaseCommand):
    """Prints a link that signs in the first visitor who opens it."""

    help = "Print a link that signs you in at the admin site. It works once, within 15 minutes."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the link alone on stdout, so that a script can open it."""
        try:
            prepare_home()
            path = create_login_path()
        except (StackError, Refused) as problem:
            self.stderr.write(str(problem))
            sys.exit(1)
        if settings.PUBLIC_URL:
            self.stdout.write(settings.PUBLIC_URL + path)
            return
        info = live_info()
        if info is None:
            self.stderr.write(
                "The stack is not up: start it with `manage.py up`, then open this path there."
            )
        self.stdout.write(f"{info.url if info else ''}{path}")
