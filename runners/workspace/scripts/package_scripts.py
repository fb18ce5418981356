"""The scripts of a project's package.json, and how one is run: by the shell, as npm does it.

Nothing of Node is needed for that, and what the project wants of it (`node_modules/.bin`) is
found. A script is a text for the shell by its nature; the caller's arguments never are: they come
to it as "$@".
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.workspace.errors import PathNotFound, PolicyViolation
from runners.workspace.files.paths import is_unicode
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.hints import localized_hint
from runners.workspace.workspace import Workspace

FILE = "package.json"
MAX_BYTES = 1024 * 1024
# What a program needs of its surroundings. Anything else may be a secret and stays here.
_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Script:
    """One command line of package.json.

    Attributes:
        event: its name there.
        package: name and version of the package, where it has them.
    """

    event: str
    command: str
    package: Mapping[str, str]

    def argv(self, args: Sequence[str] = ()) -> list[str]:
        """Return the program that runs it, with further arguments as they are."""
        command = f'{self.command} "$@"' if args else self.command
        return ["/bin/sh", "-c", command, self.event, *args]

    def env(self, root: Path) -> dict[str, str]:
        """Return its environment: a few variables of ours, and those that npm tells."""
        ours = {
            name: value
            for name, value in os.environ.items()
            if name in _PASSED_ON or name.startswith("LC_")
        }
        path = os.pathsep.join([str(root / "node_modules/.bin"), ours.get("PATH") or os.defpath])
        told = {f"npm_package_{key}": value for key, value in self.package.items()}
        told |= {"npm_lifecycle_event": self.event, "npm_lifecycle_script": self.command}
        told |= {"npm_package_json": str(root / FILE), "INIT_CWD": str(root), "PWD": str(root)}
        return {**ours, **told, "PATH": path}


def find_script(workspace: Workspace, name: str) -> list[Script]:
    """Return a script of package.json with what goes before and after it (`prebuild`, `build`,
    `postbuild`), in this order.

    Raises:
        PolicyViolation: The policy does not allow it, or package.json does not name it.
        PathNotFound: The workspace's folder is gone.
        PathDenied, BadArguments, TooLarge, DiskFailed: As reading package.json says.
    """
    allowed = workspace.policy.allowed_commands
    if name not in allowed:
        raise PolicyViolation(
            f"The script {name[:64]!r} is not one that may be run.",
            hint=localized_hint(
                workspace,
                zh=f"允许的脚本：{', '.join(allowed) or '无'}。",
                en=f"Scripts that may be run: {', '.join(allowed) or 'none'}.",
            ),
            details={"scriptName": name[:64], "allowedCommands": list(allowed)},
        )
    told = _read(workspace)
    scripts = _texts(told.get("scripts"))
    if name not in scripts:
        raise PolicyViolation(
            f"{FILE} names no script {name!r}.",
            hint=localized_hint(
                workspace,
                zh=f"请先在 {FILE} 的 scripts 中写入该脚本。",
                en=f"Name the script under scripts in {FILE} first.",
            ),
            details={"scriptName": name, "scripts": [one[:64] for one in sorted(scripts)[:50]]},
        )
    package = {key: value for key, value in _texts(told).items() if key in {"name", "version"}}
    events = (f"pre{name}", name, f"post{name}")
    return [Script(event, scripts[event], package) for event in events if event in scripts]


def _read(workspace: Workspace) -> Mapping[str, Any]:
    with Sandbox(workspace.root, workspace.policy.forbidden) as sandbox:
        try:
            told = json.loads(sandbox.read(FILE, limit=MAX_BYTES))
        except PathNotFound:
            raise PolicyViolation(
                f"The workspace has no {FILE}, so there is no script to run.",
                hint=localized_hint(
                    workspace,
                    zh=f"只能运行 {FILE} 中列出的脚本。",
                    en=f"Only scripts that {FILE} lists can be run.",
                ),
            ) from None
        except (ValueError, RecursionError):
            raise PolicyViolation(
                f"{FILE} is no valid JSON, so there is no script to run.",
                hint=localized_hint(workspace, zh=f"请先修正 {FILE}。", en=f"Mend {FILE} first."),
            ) from None
    return told if isinstance(told, dict) else {}


def _texts(told: object) -> dict[str, str]:
    """Return the entries of an object that are text a program, and an answer, can be given."""
    if not isinstance(told, dict):
        return {}
    return {
        key: value
        for key, value in told.items()
        if isinstance(value, str)
        and value.strip()
        and "\0" not in value
        and "\0" not in key
        and is_unicode(key)
        and is_unicode(value)
    }
