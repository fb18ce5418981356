"""What a caller can do about a write that failed, in the workspace's language (S4 §7)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from runners.workspace.errors import (
    BadArguments,
    LintFailed,
    NotText,
    NotThere,
    ParseFailed,
    PathDenied,
    PolicyViolation,
    TooLarge,
    TooSlow,
    WorkspaceFailed,
    WriteConflict,
)
from runners.workspace.workspace import Workspace

Hints = Mapping[type[WorkspaceFailed], tuple[str, str]]
_HINTS: Hints = {
    PolicyViolation: (
        "请先用相同的 path、content、mode 并以 dryRun: true 预演，确认差异后再写入"
        "（预演 15 分钟内有效）。",
        "Call again with the same path, content and mode and dryRun: true, look at the diff, then"
        " write; a preview holds for 15 minutes.",
    ),
    WriteConflict: (
        "请重新读取文件并重新预演；若使用了 idempotencyKey，请为新内容换一个新的键。",
        "Read the file and preview again; with other content use a new idempotencyKey.",
    ),
    PathDenied: (
        "请使用项目根目录内的相对路径，且不得是链接或被屏蔽的名称。",
        "Use a path relative to the project's root that is no link and no forbidden name.",
    ),
    NotThere: ("请用 list_files 查看有哪些文件。", "See with list_files what there is."),
    NotText: ("仅支持 UTF-8 文本。", "Only UTF-8 text can be written."),
    ParseFailed: ("请将文件保存为 UTF-8 文本。", "Save the file as UTF-8 text."),
    LintFailed: (
        "请确认这是 WebGAL 脚本；可先修正 details.firstLine 附近的错误。",
        "See that it is a WebGAL script; begin to mend it at details.firstLine.",
    ),
    TooLarge: ("请把内容拆分成多个文件。", "Split the content into several files."),
    TooSlow: (
        "请缩小范围后重试，或给出更长的时间。",
        "Ask for less at once, or give it more time.",
    ),
    BadArguments: ("请按照工具的参数说明修改。", "See the tool's schema and correct the argument."),
}


@contextlib.contextmanager
def hinting(workspace: Workspace, of: Hints = _HINTS) -> Iterator[None]:
    """Give a failure of a block its hint where it has none."""
    try:
        yield
    except WorkspaceFailed as failed:
        if failed.hint is None and (hints := of.get(type(failed))) is not None:
            failed.hint = hints[workspace.policy.language == "EN"]
        raise
