"""What is told of a script: where, of what kind, in Chinese or in English (S4 §2.2, §7)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

Kind = Literal["syntax", "resource", "style"]

# What is said, by its name: (Chinese, English).
_SAID = {
    "no_end": ("语句没有以英文分号“;”结尾", "The statement does not end with “;”"),
    "add_end": ("在行尾加上“;”", "Put “;” at the end of the line"),
    "wide_end": (
        "把行尾的全角分号“；”改为英文分号“;”",
        "Write “;” for the full-width “；” at the end of the line",
    ),
    "unknown": ("未知指令“{word}”", "Unknown command “{word}”"),
    "meant": ("是否想写“{near}”？", "Did you mean “{near}”?"),
    "nearest": (
        "最接近的指令是“{near}”；如果“{word}”是说话人，请写成“say:… -speaker={word};”",
        "The nearest command is “{near}”; if “{word}” is a speaker, write “say:… -speaker={word};”",
    ),
    "blank": (
        "“{word}”前后有空白，引擎会把它当作说话人",
        "There are blanks around “{word}”, so the engine takes it for a speaker",
    ),
    "no_blank": ("写成“{word}:”，不留空白", "Write “{word}:” without blanks"),
    "wide_colon": (
        "“{word}”后面是全角冒号“：”，引擎会把这一行当作对话",
        "A full-width “：” follows “{word}”, so the engine takes the line for speech",
    ),
    "colon": ("改为英文冒号：“{word}:”", "Write “{word}:”"),
    "speaker": ("“{word}”会被当作说话人", "“{word}” is taken for a speaker"),
    "json": (
        "“{where}”不是合法的 JSON（第 {at} 个字符处）",
        "“{where}” is no valid JSON (at character {at})",
    ),
    "mend_json": (
        "检查引号、逗号和括号是否成对",
        "Check the quotes, commas and brackets",
    ),
    "minus": (
        "负号前不要留空白：“ -”会开始一个参数",
        "Leave no blank before a minus sign: “ -” begins an argument",
    ),
    "lost": (
        "最后一行以反斜杠结尾，引擎会丢弃这条语句",
        "The last line ends with a backslash, so the engine drops this statement",
    ),
    "no_backslash": ("删除行尾的反斜杠", "Remove the backslash at the end of the line"),
    "no_file": ("找不到{kind}“{path}”", "There is no {kind} “{path}”"),
    "near_file": ("最接近的文件：{near}", "The closest file: {near}"),
    "any_file": (
        "检查文件名；list_project_resources 会列出现有资源",
        "Check the name; list_project_resources lists what is there",
    ),
    "no_label": ("本场景中没有标签“{name}”", "This scene has no label “{name}”"),
    "near_label": ("最接近的标签：{near}", "The closest label: {near}"),
    "other_scene": (
        "标签“{name}”在场景“{scene}”中；标签只在同一场景内有效，请用 changeScene",
        "“{name}” is a label of scene “{scene}”; labels hold within a scene, use changeScene",
    ),
    "add_label": ("添加“label:{name};”", "Add “label:{name};”"),
    "tab": ("行内有制表符", "The line holds a tab"),
    "no_tab": ("用空格代替制表符", "Write blanks instead of the tab"),
    "trailing": ("行尾有多余的空白", "There are blanks at the end of the line"),
    "no_trailing": ("删除行尾空白", "Remove them"),
    "after_end": (
        "上一行已用“;”结束，这一行成了注释，不会执行",
        "“;” ended the statement above, so this line is a comment and does nothing",
    ),
    "end_last": ("把“;”移到最后一行的末尾", "Put “;” at the end of the last line only"),
    "more": ("另有 {count} 条 style 提示未列出", "{count} more of kind style are not listed"),
    "background": ("背景", "background"),
    "figure": ("立绘", "figure"),
    "bgm": ("背景音乐", "music"),
    "vocal": ("语音或音效", "sound"),
    "video": ("视频", "video"),
    "scene": ("场景", "scene"),
}


class DiagnosticText(NamedTuple):
    """A sentence by its name in _SAID, with what stands in it."""

    name: str
    facts: Mapping[str, Any] = MappingProxyType({})

    def render(self, language: str) -> str:
        """Return it in Chinese (ZH) or English (EN); a fact that is a Said is put in words too."""
        facts = {
            key: fact.render(language) if isinstance(fact, DiagnosticText) else fact
            for key, fact in self.facts.items()
        }
        return _SAID[self.name][language == "EN"].format_map(facts)


class Diagnostic(NamedTuple):
    """One thing that is wrong with a script; `line` counts from 1."""

    line: int
    kind: Kind
    message: DiagnosticText
    hint: DiagnosticText

    def as_dict(self, language: str) -> dict[str, Any]:
        """Return it as S4 §2.2 shows it."""
        return {
            "line": self.line,
            "kind": self.kind,
            "message": self.message.render(language),
            "fixHint": self.hint.render(language),
        }


def truncated(text: str) -> str:
    """Return a piece of a script short enough for a message."""
    return text if len(text) <= 80 else f"{text[:79]}…"
