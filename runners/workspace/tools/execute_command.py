"""The tool `execute_command`: run a script of the project (S4 §4.1)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictStr

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.call_context import require_confirmed, require_workspace
from runners.workspace.contract_schema import contract_schema
from runners.workspace.errors import BadArguments, ToolDisabled, WorkspaceFailed, WorkspaceTimeout
from runners.workspace.hints import localized_hint
from runners.workspace.scripts.package_scripts import FILE, Script, find_script, scripts_digest
from runners.workspace.scripts.running_scripts import run_script
from runners.workspace.scripts.script_output import ScriptOutput
from runners.workspace.workspace import ProjectWorkspace

MAX_ARGS, MAX_ARGS_BYTES = 100, 64 * 1024
RESERVE_SECONDS = 6.0  # of the call's time, reserved for stopping the script and returning output

REQUEST = contract_schema(
    "execute_command.request",
    {
        "scriptName": {"type": "string", "enum": ["dev", "build", "lint"]},
        "args": {"type": "array", "items": {"type": "string"}},
    },
    ["scriptName"],
)
RESPONSE = contract_schema(
    "execute_command.response",
    {
        "ok": {"type": "boolean"},
        "logs": {"type": "array", "items": {"type": "string"}},
    },
    ["ok"],
)


class ExecuteCommand(Closed):
    """The script to run, and its arguments."""

    script_name: StrictStr = Field(alias="scriptName")
    args: list[StrictStr] = Field(default_factory=list)


@tool(
    "execute_command",
    kind="workspace",
    effect=Effect.ONCE,
    timeout_ms=3_600_000,
    request=REQUEST,
    response=RESPONSE,
    developer=True,
)
async def execute_command(args: ExecuteCommand, ctx: ToolContext) -> Mapping[str, Any]:
    """Run a script of the project's package.json (dev, build or lint) in the project's root; return
    whether it succeeded and its output.

    Arguments are passed to the script unchanged; no shell parses them. A script that exceeds the
    time limit is stopped with the processes it started, as far as these can be found: E_TIMEOUT,
    with the output so far. Of a long output, the start and the end are returned. Developer mode
    only.
    """
    workspace = require_developer_mode(ctx)
    _check_args(args.args)
    scripts = await asyncio.to_thread(find_script, workspace, args.script_name)
    require_confirmed(ctx.confirmed_basis, scripts_digest(scripts), FILE)
    output = ScriptOutput()
    limit_ms = workspace.policy.command_timeout_ms
    seconds = max(0.0, min(limit_ms / 1000, ctx.seconds_left() - RESERVE_SECONDS))
    deadline = time.monotonic() + seconds
    status = 0
    for script in scripts:
        script_args = args.args if script.event == args.script_name else []
        output.add_line(f"> {script.event}: {script.command[:200]}")
        try:
            status = await run_script(script, script_args, workspace, output, deadline)
        except TimeoutError:
            raise _timed_out(workspace, script, seconds, output.lines(ctx.mask)) from None
        if status != 0:
            output.add_line(f"> {script.event} ended with {_exit_text(status)}")
            break
    return {"ok": status == 0, "logs": output.lines(ctx.mask)}


def require_developer_mode(ctx: ToolContext) -> ProjectWorkspace:
    """Return the call's workspace.

    Raises:
        ToolDisabled: The call has no workspace, or developer mode is off.
    """
    workspace = require_workspace(ctx)
    if not workspace.policy.developer:
        raise ToolDisabled(
            "This tool needs developer mode, which is off.",
            hint=localized_hint(
                workspace,
                zh="请以 developer 工具集启动，或设置 CONTINUITY_DEVELOPER=1。",
                en="Start with the developer toolset, or set CONTINUITY_DEVELOPER=1.",
            ),
        )
    return workspace


def _check_args(args: list[str]) -> None:
    """Reject arguments that cannot be passed to a program."""
    try:
        size = sum(len(arg.encode()) + 1 for arg in args)
    except UnicodeEncodeError:
        raise BadArguments("args is not valid Unicode.") from None
    if any("\0" in arg for arg in args):
        raise BadArguments("args contains a NUL character.")
    if len(args) > MAX_ARGS or size > MAX_ARGS_BYTES:
        raise BadArguments(
            f"args has more than {MAX_ARGS} arguments or {MAX_ARGS_BYTES} bytes.",
            details={"args": len(args), "bytes": size},
        )


def _timed_out(
    workspace: ProjectWorkspace, script: Script, seconds: float, logs: list[str]
) -> WorkspaceFailed:
    limit_ms = round(seconds * 1000)
    return WorkspaceTimeout(
        f"The script {script.event} did not finish within {limit_ms} ms; it and the processes that"
        " it started were stopped, as far as they could be found.",
        hint=localized_hint(
            workspace,
            zh="details.logs 是停止前的输出。长期运行的服务请自行启动。",
            en="details.logs is the output so far. Start a long-running server yourself.",
        ),
        details={"scriptName": script.event, "timeoutMs": limit_ms, "logs": logs},
    )


def _exit_text(status: int) -> str:
    return f"exit status {status}" if status <= 128 else f"signal {status - 128}"
