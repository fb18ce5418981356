"""Make a target, or have the one of this id be something else: `manage.py add_target --id target_x
--endpoint URL [--auth-token …] [--config JSON] [--allow TOOL,…|*]`.
"""

from __future__ import annotations

import sys
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from decisions.audit.record import command_actor
from decisions.errors import Refused
from decisions.identity.principals import LOCAL, ensure_workspace
from runners.models import ExecutionTarget, TargetKind
from runners.targets.runner_endpoint import endpoint_of, probe_target
from runners.targets.targets import TargetSays, allow_on_target, put_target
from runs.installation.home.prepare import prepare_home


class Command(BaseCommand):
    """Print the target's id on a line of its own on stdout; what was done goes to stderr."""

    help = "Make a target that tools are executed on, or change the one of this id."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what a target is, whose, and which of its tools are allowed."""
        parser.add_argument("--id", help="target_ and what you like; made up otherwise")
        parser.add_argument("--name", help="how people tell it from others (default: its id)")
        kinds = [str(kind) for kind in TargetKind.values]
        parser.add_argument(
            "--kind",
            choices=kinds,
            default=str(TargetKind.DOCKER_RUNNER),
            help="(default: %(default)s)",
        )
        parser.add_argument("--endpoint", help="where a docker-runner takes its POST")
        parser.add_argument(
            "--auth-token",
            help="what it is called with; - reads it from stdin, so that no list of processes"
            " shows it; as it was where left out, none where empty",
        )
        parser.add_argument("--config", default="{}", metavar="JSON", help='{"timeoutMs": 60000}')
        parser.add_argument(
            "--allow",
            default="",
            metavar="TOOL,…|*",
            help="tools that may be called on it without a person; * is all of them, those of high"
            " risk too",
        )
        parser.add_argument("--default", action="store_true", help="for calls that name no target")
        parser.add_argument("--disabled", action="store_true", help="calls of it are denied")
        parser.add_argument(
            "--workspace", default=LOCAL, help="made when new (default: %(default)s)"
        )
        parser.add_argument("--tenant", default=LOCAL, help="made when new (default: %(default)s)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make or change the target, then its rules."""
        prepare_home()
        actor = command_actor()
        tools = [tool for tool in options["allow"].replace(" ", "").split(",") if tool]
        try:
            target = put_target(_says(options), target_id=options["id"], actor=actor)
            allow_on_target(target, tools, actor=actor)
        except Refused as refused:
            raise CommandError(refused.message) from None
        self.stderr.write(_told(target, options["workspace"], tools))
        if target.kind == TargetKind.DOCKER_RUNNER and endpoint_of(target):
            self.stderr.write(_found(probe_target(target, actor=actor)))
        self.stdout.write(target.id)


def _says(options: dict[str, Any]) -> TargetSays:
    place = ensure_workspace(options["workspace"], options["tenant"])
    try:
        config = orjson.loads(options["config"])
    except orjson.JSONDecodeError:
        config = None
    if not isinstance(config, dict):
        raise CommandError("--config is no JSON object.")
    return TargetSays(
        tenant_id=place.tenant_id,
        workspace_id=place.id,
        kind=options["kind"],
        name=options["name"] or options["id"] or options["kind"],
        endpoint=options["endpoint"],
        auth_token=_read(options["auth_token"]),
        is_default=options["default"],
        enabled=not options["disabled"],
        config=config,
    )


def _read(given: str | None) -> str | None:
    return sys.stdin.readline().strip() if given == "-" else given


def _found(probed: ExecutionTarget) -> str:
    """Return what asking the runner came to: a target may be made before its runner is started."""
    if probed.probe_error is not None:
        return f"Its runner does not answer yet: {probed.probe_error}"
    if probed.catalogue_error is not None:
        return f"Its runner answers. {probed.catalogue_error}"
    names = ", ".join(offer["name"] for offer in probed.catalogue)
    return f"Its runner answers; {f'it offers {names}' if names else 'it publishes no tools'}."


def _told(target: ExecutionTarget, workspace: str, tools: list[str]) -> str:
    allowed = f"; allowed on it: {', '.join(tools)}" if tools else "; no rule was made for it"
    return (
        f"Target {target.name!r} of workspace {workspace!r} is version {target.version}{allowed}."
    )
