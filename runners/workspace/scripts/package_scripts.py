"""Find the scripts of a project's package.json and run them with the shell, as npm does.

Node itself is not needed; programs in `node_modules/.bin` are found. A script is shell code that
the project defines. The caller's arguments are never parsed by the shell, which gets them as "$@".
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.child_environment import child_environment
from runners.workspace.errors import PathNotFound, PolicyViolation
from runners.workspace.files.paths import is_unicode
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.hints import localized_hint
from runners.workspace.workspace import ProjectWorkspace

FILE = "package.json"
MAX_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Script:
    """One command line of package.json.

    Attributes:
        event: the script's name (npm's lifecycle event).
        package: name and version of the package, if it has them.
    """

    event: str
    command: str
    package: Mapping[str, str]

    def argv(self, args: Sequence[str] = ()) -> list[str]:
        """Return the command line that runs the script with these arguments."""
        command = f'{self.command} "$@"' if args else self.command
        return ["/bin/sh", "-c", command, self.event, *args]

    def env(self, root: Path) -> dict[str, str]:
        """Return its environment: a few inherited variables, and those that npm sets."""
        inherited = child_environment()
        path = os.pathsep.join([str(root / "node_modules/.bin"), inherited["PATH"] or os.defpath])
        npm = {f"npm_package_{key}": value for key, value in self.package.items()}
        npm |= {"npm_lifecycle_event": self.event, "npm_lifecycle_script": self.command}
        npm |= {"npm_package_json": str(root / FILE), "INIT_CWD": str(root), "PWD": str(root)}
        return {**inherited, **npm, "PATH": path}


def find_script(workspace: ProjectWorkspace, name: str) -> list[Script]:
    """Return a script of package.json with its pre and post scripts, in the order to run them
    (`prebuild`, `build`, `postbuild`).

    Raises:
        PolicyViolation: The policy does not allow the script, or package.json does not define it.
        PathNotFound: The workspace's folder does not exist any more.
        PathDenied, BadArguments, TooLarge, DiskFailed: package.json cannot be read.
    """
    allowed = workspace.policy.allowed_commands
    if name not in allowed:
        raise PolicyViolation(
            f"The script {name[:64]!r} is not allowed.",
            hint=localized_hint(
                workspace,
                zh=f"允许的脚本：{', '.join(allowed) or '无'}。",
                en=f"Allowed scripts: {', '.join(allowed) or 'none'}.",
            ),
            details={"scriptName": name[:64], "allowedCommands": list(allowed)},
        )
    content = _read(workspace)
    scripts = _text_entries(content.get("scripts"))
    if name not in scripts:
        raise PolicyViolation(
            f"{FILE} has no script {name!r}.",
            hint=localized_hint(
                workspace,
                zh=f"请先在 {FILE} 的 scripts 中写入该脚本。",
                en=f"Add the script under scripts in {FILE} first.",
            ),
            details={"scriptName": name, "scripts": [one[:64] for one in sorted(scripts)[:50]]},
        )
    package = {
        key: value for key, value in _text_entries(content).items() if key in {"name", "version"}
    }
    events = (f"pre{name}", name, f"post{name}")
    return [Script(event, scripts[event], package) for event in events if event in scripts]


def scripts_digest(scripts: Sequence[Script]) -> str:
    """Return the SHA-256 of scripts as they will run, with what they get of package.json."""
    values = [[script.event, script.command, script.package] for script in scripts]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _read(workspace: ProjectWorkspace) -> Mapping[str, Any]:
    with Sandbox(workspace.root, workspace.policy.forbidden) as sandbox:
        try:
            content = json.loads(sandbox.read(FILE, limit=MAX_BYTES))
        except PathNotFound:
            raise PolicyViolation(
                f"The workspace has no {FILE}, so it has no scripts.",
                hint=localized_hint(
                    workspace,
                    zh=f"只能运行 {FILE} 中列出的脚本。",
                    en=f"Only scripts defined in {FILE} can be run.",
                ),
            ) from None
        except (ValueError, RecursionError):
            raise PolicyViolation(
                f"{FILE} is not valid JSON, so its scripts cannot be read.",
                hint=localized_hint(
                    workspace, zh=f"请先修正 {FILE}。", en=f"Correct {FILE} first."
                ),
            ) from None
    return content if isinstance(content, dict) else {}


def _text_entries(content: object) -> dict[str, str]:
    """Return the entries whose values are text that can be passed to a program and sent as JSON."""
    if not isinstance(content, dict):
        return {}
    return {
        key: value
        for key, value in content.items()
        if isinstance(value, str)
        and value.strip()
        and "\0" not in value
        and "\0" not in key
        and is_unicode(key)
        and is_unicode(value)
    }
