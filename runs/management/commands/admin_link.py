"""`manage.py admin_link`: a fresh way into the admin site of this machine."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand

from decisions.errors import Refused
from decisions.identity.one_time_login import create_login_path
from runs.installation.home.errors import StackError
from runs.installation.home.prepare import prepare_home
from runs.installation.home.state import live_info


class Command(BaseCommand):
    """Print a link that signs its first visitor in."""

    help = "Print a link that signs you in at the admin site; it works once, for 15 minutes."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the address alone on stdout, so that it can be opened by a script."""
        try:
            prepare_home()
            path = create_login_path()
        except (StackError, Refused) as problem:
            self.stderr.write(str(problem))
            sys.exit(1)
        info = live_info()
        if info is None:
            self.stderr.write(
                "Nothing is up here: `manage.py up` starts it; then open this path on its address."
            )
        self.stdout.write(f"{info.url if info else ''}{path}")
