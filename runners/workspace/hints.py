"""Hints that tell a caller how to correct a failed call, in Chinese or English (S4 §7)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from runners.workspace.errors import (
    BadArguments,
    LintFailed,
    NotText,
    ParseFailed,
    PathDenied,
    PathNotFound,
    PolicyViolation,
    TooLarge,
    WorkspaceFailed,
    WorkspaceTimeout,
    WriteConflict,
)
from runners.workspace.workspace import ProjectWorkspace

# (Chinese, English) by the class of the error.
Hints = Mapping[type[WorkspaceFailed], tuple[str, str]]

_SAFE_PATH = (
    "请使用项目根目录内的相对路径，且不得是链接或被屏蔽的名称。",
    "Use a path relative to the project root that is neither a link nor a forbidden name.",
)
_LIST_FILES = ("请用 list_files 查看有哪些文件。", "Use list_files to see which files exist.")
_FIX_ARGUMENTS = (
    "请按照工具的参数说明修改。",
    "Correct the argument; the tool's schema describes it.",
)

READ_HINTS: Hints = {
    PathDenied: _SAFE_PATH,
    PathNotFound: _LIST_FILES,
    NotText: ("仅能读取 UTF-8 文本文件。", "Only UTF-8 text files can be read."),
    TooLarge: (
        "请用 search_files 查找需要的内容，或缩小范围。",
        "Use search_files to find what you need, or narrow the request.",
    ),
    WorkspaceTimeout: (
        "请缩小目录或匹配范围。",
        "Name a folder further down, or use a narrower pattern.",
    ),
    BadArguments: _FIX_ARGUMENTS,
}

WRITE_HINTS: Hints = {
    PolicyViolation: (
        "请先用相同的 path、content、mode 并以 dryRun: true 预演，确认差异后再写入"
        "（预演 15 分钟内有效）。",
        "First call with the same path, content and mode and dryRun: true, check the diff, then"
        " write; a preview is valid for 15 minutes.",
    ),
    WriteConflict: (
        "请重新读取文件并重新预演；若使用了 idempotencyKey，请为新内容换一个新的键。",
        "Read the file and preview the write again; use a new idempotencyKey for new content.",
    ),
    PathDenied: _SAFE_PATH,
    PathNotFound: _LIST_FILES,
    NotText: ("仅支持 UTF-8 文本。", "Only UTF-8 text can be written."),
    ParseFailed: ("请将文件保存为 UTF-8 文本。", "Save the file as UTF-8 text."),
    LintFailed: (
        "请确认这是 WebGAL 脚本；可先修正 details.firstLine 附近的错误。",
        "Check that this is a WebGAL script; start with the errors near details.firstLine.",
    ),
    TooLarge: ("请把内容拆分成多个文件。", "Split the content into several files."),
    WorkspaceTimeout: (
        "请缩小范围后重试，或给出更长的时间。",
        "Narrow the request, or allow more time, and try again.",
    ),
    BadArguments: _FIX_ARGUMENTS,
}


def localized_hint(workspace: ProjectWorkspace, *, zh: str, en: str) -> str:
    """Return the text in the workspace's language: Chinese unless its policy says English."""
    return en if workspace.policy.language == "EN" else zh


@contextlib.contextmanager
def add_hints(workspace: ProjectWorkspace, hints: Hints = WRITE_HINTS) -> Iterator[None]:
    """Set the hint of a WorkspaceFailed that the block raises without one."""
    try:
        yield
    except WorkspaceFailed as failed:
        if failed.hint is None and (texts := hints.get(type(failed))) is not None:
            zh, en = texts
            failed.hint = localized_hint(workspace, zh=zh, en=en)
        raise
