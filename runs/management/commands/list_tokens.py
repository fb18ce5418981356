"""`manage.py list_tokens`: list the bearer tokens and when they expire."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from decisions.foundation.presentation.formatting import ago
from decisions.identity.tokens import EXPIRY_WARNING, token_state
from decisions.models import Token
from runs.operations.home.prepare import prepare_home


class Command(BaseCommand):
    """Prints a line per token that is not revoked, the next to expire first; never a secret."""

    help = "List the tokens that are not revoked, with their state and expiry."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the tokens; on stderr, how many expire soon."""
        prepare_home()
        tokens = list(
            Token.objects.filter(revoked_at__isnull=True).select_related("workspace__tenant")
        )
        tokens.sort(key=lambda token: (token.expires_at is None, token.expires_at, token.name))
        for token in tokens:
            expiry = "no expiry" if token.expires_at is None else ago(token.expires_at)
            place = f"{token.workspace.tenant.name}/{token.workspace.name}"
            line = f"{token.id}  {token_state(token):<12}  {expiry:<12}  {place}  {token.name}"
            self.stdout.write(line)
        soon = sum(token_state(token) == "expires soon" for token in tokens)
        if soon:
            self.stderr.write(
                f"{soon} of {len(tokens)} expire within {EXPIRY_WARNING.days} days: create new"
                " ones with `manage.py create_token` before their callers are refused."
            )
