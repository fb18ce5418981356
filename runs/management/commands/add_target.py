"""`manage.py add_target`: create an execution target, or replace the fields of an existing one."""

from __future__ import annotations

import sys
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from decisions.audit.record import command_actor
from decisions.foundation.errors import Refused
from decisions.identity.principals import LOCAL, ensure_workspace
from runners.models import ExecutionTarget, TargetKind
from runners.targets.runner_endpoint import probe_target
from runners.targets.targets import TargetFields, allow_on_target, endpoint_of, put_target
from runs.operations.home.prepare import prepare_home


class Command(BaseCommand):
    """Prints the target's id on stdout, and what was done on stderr."""

    help = "Create a target that tools run on, or change the one with this id."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the target's fields, its workspace, and the tools to allow."""
        parser.add_argument("--id", help="target_ and any name; generated if left out")
        parser.add_argument("--name", help="its label in lists (default: its id)")
        kinds = [str(kind) for kind in TargetKind.values]
        parser.add_argument(
            "--kind",
            choices=kinds,
            default=str(TargetKind.DOCKER_RUNNER),
            help="(default: %(default)s)",
        )
        parser.add_argument(
            "--endpoint",
            help="the URL of a docker-runner; an address on loopback is opened for it alone",
        )
        parser.add_argument(
            "--auth-token",
            help="the token of its calls; - reads it from stdin, so that it is not in the list of"
            " processes; unchanged if left out, none if empty",
        )
        parser.add_argument("--config", default="{}", metavar="JSON", help='{"timeoutMs": 60000}')
        parser.add_argument(
            "--allow",
            default="",
            metavar="TOOL,…|*",
            help="tools that may be called on it without a confirmation; * allows all, also those"
            " with high risk",
        )
        parser.add_argument(
            "--reason", default="", help="why these tools are allowed; required with --allow"
        )
        parser.add_argument("--default", action="store_true", help="use it if a call names none")
        parser.add_argument("--disabled", action="store_true", help="deny calls on it")
        parser.add_argument(
            "--workspace", default=LOCAL, help="created if new (default: %(default)s)"
        )
        parser.add_argument("--tenant", default=LOCAL, help="created if new (default: %(default)s)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create or change the target, then its policy rules; then probe its runner."""
        tools = [tool for tool in options["allow"].replace(" ", "").split(",") if tool]
        reason = options["reason"].strip()
        if tools and not reason:
            raise CommandError("--allow needs a --reason: why these tools are allowed.")
        prepare_home()
        actor = command_actor()
        try:
            target = put_target(_says(options), target_id=options["id"], actor=actor)
            allow_on_target(target, tools, reason=reason, actor=actor)
        except Refused as refused:
            raise CommandError(refused.message) from None
        self.stderr.write(_describe(target, options["workspace"], tools))
        if target.kind == TargetKind.DOCKER_RUNNER and endpoint_of(target):
            self.stderr.write(_describe_probe(probe_target(target, actor=actor)))
        self.stdout.write(target.id)


def _says(options: dict[str, Any]) -> TargetFields:
    workspace = ensure_workspace(options["workspace"], options["tenant"])
    try:
        config = orjson.loads(options["config"])
    except orjson.JSONDecodeError:
        config = None
    if not isinstance(config, dict):
        raise CommandError("--config is not a JSON object.")
    return TargetFields(
        tenant_id=workspace.tenant_id,
        workspace_id=workspace.id,
        kind=options["kind"],
        name=options["name"] or options["id"] or options["kind"],
        endpoint=options["endpoint"],
        auth_token=_read(options["auth_token"]),
        is_default=options["default"],
        enabled=not options["disabled"],
        config=config,
        opens_address=True,
    )


def _read(given: str | None) -> str | None:
    return sys.stdin.readline().strip() if given == "-" else given


def _describe_probe(probed: ExecutionTarget) -> str:
    """Return whether the runner answered. A target may be created before its runner is started."""
    if probed.probe_error is not None:
        return f"Its runner does not answer yet: {probed.probe_error}"
    if probed.catalogue_error is not None:
        return f"Its runner answers. {probed.catalogue_error}"
    names = ", ".join(offer["name"] for offer in probed.catalogue)
    return f"Its runner answers; {f'it offers {names}' if names else 'it offers no tools'}."


def _describe(target: ExecutionTarget, workspace: str, tools: list[str]) -> str:
    allowed = f"; allowed on it: {', '.join(tools)}" if tools else "; no rule was created for it"
    opened = f"; {target.opened_address} is opened for it alone" if target.opened_address else ""
    named = f"Target {target.name!r} of workspace {workspace!r}"
    return f"{named} is version {target.version}{allowed}{opened}."
