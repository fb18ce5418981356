"""The tools of the reference runner by name. To add one, add a file to `tools/` and a line here."""

from __future__ import annotations

from functools import cache
from typing import Any

from runners.docker_runner.tool import RunnerTool
from runners.docker_runner.tools.bash import bash_exec
from runners.docker_runner.tools.files import file_list, file_read, file_write
from runners.docker_runner.tools.http_request import http_request
from runners.docker_runner.tools.plain import echo, math_add, text_upper

TOOLS: dict[str, RunnerTool] = {
    tool.name: tool
    for tool in (
        bash_exec,
        echo,
        file_list,
        file_read,
        file_write,
        http_request,
        math_add,
        text_upper,
    )
}


@cache
def published() -> dict[str, Any]:
    """Return the response to GET /tools: all tools with the schemas of their arguments."""
    return {"tools": [tool.published() for _, tool in sorted(TOOLS.items())]}
