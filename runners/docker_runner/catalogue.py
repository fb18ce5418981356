"""The tools of the reference runner by name. To add one: a file in `tools/`, and its line here."""

from __future__ import annotations

from functools import cache
from typing import Any

from runners.docker_runner.tool import Offered
from runners.docker_runner.tools.bash import bash_exec
from runners.docker_runner.tools.files import file_list, file_read, file_write
from runners.docker_runner.tools.http_request import http_request
from runners.docker_runner.tools.plain import echo, math_add, text_upper

TOOLS: dict[str, Offered] = {
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
    """Return the answer to `GET /tools`: what there is, with the schemas of the arguments."""
    return {"tools": [tool.published() for _, tool in sorted(TOOLS.items())]}
