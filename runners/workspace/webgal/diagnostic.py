"""Diagnostics of a script: line, kind and message, in Chinese or English (S4 §2.2, §7)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

Kind = Literal["syntax", "resource", "style"]

# Texts by name: (Chinese, English).
_TEXTS = {
    "no_end": ("语句没有以英文分号“;”结尾", "The statement does not end with “;”"),
    "add_end": ("在行尾加上“;”", "Put “;” at the end of the line"),
    "wide_end": (
        "把行尾的全角分号“；”改为英文分号“;”",
        "Replace the full-width “；” at the end of the line with “;”",
    ),
    "unknown": ("未知指令“{word}”", "Unknown command “{word}”"),
    "meant": ("是否想写“{near}”？", "Did you mean “{near}”?"),
    "nearest": (
        "最接近的指令是“{near}”；如果“{word}”是说话人，请写成“say:… -speaker={word};”",
        "The nearest command is “{near}”; if “{word}” is a speaker, write “say:… -speaker={word};”",
    ),
    "blank": (
        "“{word}”前后有空白，引擎会把它当作说话人",
        "“{word}” has spaces around it, so the engine treats it as a speaker",
    ),
    "no_blank": ("写成“{word}:”，不留空白", "Write “{word}:” without spaces"),
    "wide_colon": (
        "“{word}”后面是全角冒号“：”，引擎会把这一行当作对话",
        "A full-width “：” follows “{word}”, so the engine treats the line as speech",
    ),
    "colon": ("改为英文冒号：“{word}:”", "Write “{word}:”"),
    "speaker": ("“{word}”会被当作说话人", "“{word}” is treated as a speaker"),
    "json": (
        "“{where}”不是合法的 JSON（第 {at} 个字符处）",
        "“{where}” is not valid JSON (at character {at})",
    ),
    "check_json": (
        "检查引号、逗号和括号是否成对",
        "Check the quotes, commas and brackets",
    ),
    "minus": (
        "负号前不要留空白：“ -”会开始一个参数",
        "Leave no space before a minus sign: “ -” begins an argument",
    ),
    "lost": (
        "最后一行以反斜杠结尾，引擎会丢弃这条语句",
        "The last line ends with a backslash, so the engine drops this statement",
    ),
    "no_backslash": ("删除行尾的反斜杠", "Remove the backslash at the end of the line"),
    "no_file": ("找不到{kind}“{path}”", "The {kind} “{path}” does not exist"),
    "near_file": ("最接近的文件：{near}", "The closest file: {near}"),
    "any_file": (
        "检查文件名；list_project_resources 会列出现有资源",
        "Check the name; list_project_resources lists the existing files",
    ),
    "no_label": ("本场景中没有标签“{name}”", "This scene has no label “{name}”"),
    "near_label": ("最接近的标签：{near}", "The closest label: {near}"),
    "other_scene": (
        "标签“{name}”在场景“{scene}”中；标签只在同一场景内有效，请用 changeScene",
        "“{name}” is a label of scene “{scene}”; labels are valid in their scene only, use"
        " changeScene",
    ),
    "add_label": ("添加“label:{name};”", "Add “label:{name};”"),
    "tab": ("行内有制表符", "The line contains a tab"),
    "no_tab": ("用空格代替制表符", "Replace the tab with spaces"),
    "trailing": ("行尾有多余的空白", "The line has trailing whitespace"),
    "no_trailing": ("删除行尾空白", "Remove the trailing whitespace"),
    "after_end": (
        "上一行已用“;”结束，这一行成了注释，不会执行",
        "“;” ended the statement above, so this line is a comment and is not executed",
    ),
    "end_last": ("把“;”移到最后一行的末尾", "Put “;” at the end of the last line only"),
    "more": ("另有 {count} 条 style 提示未列出", "{count} more style diagnostics are not listed"),
    "background": ("背景", "background"),
    "figure": ("立绘", "figure"),
    "bgm": ("背景音乐", "music"),
    "vocal": ("语音或音效", "sound"),
    "video": ("视频", "video"),
    "scene": ("场景", "scene"),
}


class DiagnosticText(NamedTuple):
    """A text of _TEXTS by name, with the values of its placeholders."""

    name: str
    values: Mapping[str, Any] = MappingProxyType({})

    def render(self, language: str) -> str:
        """Return the text in Chinese (ZH) or English (EN); nested texts are rendered too."""
        values = {
            key: value.render(language) if isinstance(value, DiagnosticText) else value
            for key, value in self.values.items()
        }
        return _TEXTS[self.name][language == "EN"].format_map(values)


class Diagnostic(NamedTuple):
    """One problem of a script; `line` is 1-based."""

    line: int
    kind: Kind
    message: DiagnosticText
    hint: DiagnosticText

    def as_dict(self, language: str) -> dict[str, Any]:
        """Return the diagnostic in the form of S4 §2.2."""
        return {
            "line": self.line,
            "kind": self.kind,
            "message": self.message.render(language),
            "fixHint": self.hint.render(language),
        }


def truncated(text: str) -> str:
    """Return a part of a script, cut to 80 characters for a message."""
    return text if len(text) <= 80 else f"{text[:79]}…"
