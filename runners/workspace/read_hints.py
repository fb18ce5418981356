"""What a caller can do about a read that failed, in the workspace's two languages (S4 §7)."""

from __future__ import annotations

from runners.workspace.errors import BadArguments, NotText, NotThere, PathDenied, TooLarge, TooSlow
from runners.workspace.write_hints import Hints

READ_HINTS: Hints = {
    PathDenied: (
        "请使用项目根目录内的相对路径，且不得是链接或被屏蔽的名称。",
        "Use a path relative to the project's root that is no link and no forbidden name.",
    ),
    NotThere: ("请用 list_files 查看有哪些文件。", "See with list_files what there is."),
    NotText: ("仅能读取 UTF-8 文本文件。", "Only UTF-8 text files can be read."),
    TooLarge: (
        "请用 search_files 查找需要的内容，或缩小范围。",
        "Find what you need with search_files, or ask for less.",
    ),
    TooSlow: ("请缩小目录或匹配范围。", "Name a folder further down, or a narrower pattern."),
    BadArguments: ("请按照工具的参数说明修改。", "See the tool's schema and correct the argument."),
}
