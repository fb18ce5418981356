"""Whether a verb in a Chinese clause is a request: not a question, negation, narration, discussion
or noun made of the verb.
"""

from __future__ import annotations

import re

# Phrases with a "not" that negates no verb.
_UNUSED = re.compile(
    r"不可(?:恢复|逆|撤销|挽回)|不留(?:任何)?(?:痕迹|备份|底)?|不再(?:需要|使用|用)的?|不(?:需要|用"
    r"|活跃|必要|常用|要)了?的|没(?:有)?人?[^,，。]{1,4}的|没用|无用的?|未(?:使用|激活|付款|支付"
    r"|登录|认证)的?|没有?(?:登录|活跃|付款|激活|使用)过?的?|别忘(?:了|记)?|不要忘(?:了|记)|不得不"
    r"|不能不|不仅|不只|不光|不但|不用(?:问|管|等|确认|审批|备份|担心|走|再)|不要(?:问|犹豫|再问|等"
    r"|备份|的)|别(?:问|犹豫|废话|等|管|再问|墨迹|的|人)|没问题|毫不|无需(?:确认|审批|备份)"
    r"|不必(?:确认|等|问)|不(?:走|经过?)(?:审批|流程|确认)|不管|不小心|跳过|能不能|可不可以|要不要"
    r"|是不是|会不会|有没有"
)
_NOT = re.compile(
    r"(?:不要|不准|不许|禁止|切勿|请勿|勿|不能|不可以?|不得|不应该?|不该|无需|不必|不用|没有|没|未"
    r"|并非|避免|防止|而不是|不会|不想|不打算|别|不|取消|停止|阻止|暂停|暂缓|以防|免得"
    r"|千万别)[^,，、。]{0,8}$"
)
_QUESTION = re.compile(
    r"如何|怎么(?!还不)|怎样|为什么|为何|什么|哪[些个里种儿]|是否|[吗呢么]$|多少"
    r"|(?<![那这好])几[个种条次]|区别|该.{1,12}还是|会不会|应不应该|该不该|要不要|是不是|有没有"
    r"|能不能|可不可以|多久|谁|差别|[吗呢]\?"
)
_POLITE = re.compile(
    r"(?:能不能|能否|可否|可以|可不可以|是否可以|能|方便)(?:请)?(?:你|您|麻烦你)?(?:帮|替|给|为"
    r"|麻烦|现在|直接|马上|立刻|立即)|麻烦|劳驾|拜托|帮我|请(?:你|您|帮|把|将|立|马|直接|现在|尽快"
    r"|协助)|(?:能不能|能|可以|可不可以)(?:你|您)?把"
)
_CONDITION = re.compile(
    r"^(?:如果|假如|要是|万一|假设|倘若|若|一旦|当|除非|每当|即使|就算|在.{0,12}(?:之?前|之?后|时)"
    r"|.{0,14}(?:之?前|之时|的时候)$)"
)
_PAST = re.compile(
    r"(?:(?:昨天|昨晚|刚才|刚刚|上周|上个?月|前天|之前|以前|去年|早上)(?!的)|曾经?|已经?|已被"
    r"|(?<!所)有人)[^,，。]{0,14}$|被[^,，。]{0,6}$|(?:他|她|他们|黑客|攻击者|用户|客户|同事|系统"
    r"|脚本|程序|这个命令|该命令|命令|接口|工具)(?:可以|会|能|将|可能)[^,，。]{0,6}$"
)
_BY_MISTAKE = re.compile(r"(?:误|不小心|意外)[^,，。]{0,14}$")
_DISCUSSED = re.compile(
    r"解释|说明|介绍|描述|讲讲|讲解|讲一下|说说|告诉我|列出|列一下|查看|查询|查一下|查查|看看"
    r"|看一下|检查|统计|搜索|查找|找出|分析|总结|翻译|写(?:一|个|篇|段|份|封|好|出|下|代码|脚本"
    r"|文档|测试)|编写|撰写|起草|草拟|拟一|设计|实现|开发|生成|模拟|演练|预览|讨论|比较|对比|评估"
    r"|评审|审查|审核一下|学习|了解|研究|教我|教程|恢复|还原|撤销|回忆|防止|避免|阻止|(?<!分支)保护"
    r"|监控(?![录视])|提醒|示例|举例|想知道|好奇|担心|怕|听说|据说|建议|考虑|思考|复盘|回顾|关于"
    r"|测试一下|润色|改写|加(?:个|一个|上)|增加|新增一?个|添加一?个|规划|计划|准备一份|讲过|说过"
    r"|提到|学过|介绍过"
)
_COMPOUND = re.compile(
    r"^(?:掉|了)?(?:功能|按钮|操作|接口(?!的)|语句|命令|流程|逻辑|策略|规则|文档|说明|记录|方法"
    r"|步骤|原理|页面|模块|测试(?![集环账服机库组])|用例|方案|计划|教程|做成|整理|汇总|手册"
    r"|注意事项|指南|的|机制|失败|成功|时间|状态|日期|前|后|时|之前|之后|对|与|和|模板|场景|规范"
    r"|标记|风险|率|量|标准|比例|能力|方式|额度|清单|经验|脚本|通知书|过程|权限不足)"
)
_NARRATED = re.compile(r"[掉完光]?了(?!吧|一?下|它|$)")
_ORDERED = re.compile(r"把|将|请|帮|替|都|全|先|就|再|直接|赶紧|马上|立刻|快|得|要|给我")
_SCHEDULED = re.compile(r"定时|自动|每天|每周|每晚|每月|计划任务|cron")
_ENACTED_NOUN = re.compile(
    r"(?:执行|进行|开始|启动|批准|同意|确认|发起|做|操作|完成|办理|走)(?:一下|一次|个|一笔|这笔"
    r"|该)?$"
)


def is_requested(clause: str, start: int, end: int, *, about_consequences: bool) -> bool:
    """Return whether the verb at this position of a clause is requested.

    Args:
        about_consequences: its sentence asks about consequences.
    """
    before, after = clause[:start], clause[end:]
    plain = _UNUSED.sub("", before)
    polite = bool(_POLITE.search(clause))
    if not polite and (_QUESTION.search(clause) or about_consequences):
        return False
    if _NOT.search(plain) or _CONDITION.search(clause) or _is_past(before):
        return False
    if _NARRATED.match(after) and before and not _ORDERED.search(before):
        return False
    if _COMPOUND.search(after) and not _ENACTED_NOUN.search(before):
        return False
    return not (_DISCUSSED.search(_UNUSED.sub("", before)) and not _SCHEDULED.search(before))


def _is_past(before: str) -> bool:
    """Return whether words place the verb after them in the past; after 把 they tell its object."""
    return bool(_PAST.search(re.split("[把将]", before)[0]) or _BY_MISTAKE.search(before))


_CONSEQUENCE = re.compile(
    r"会(?:有什么|怎[样么]|不会|发生|出现)|有什么(?:影响|风险|后果|区别)|安全吗|怎么办|什么后果"
    r"|(?:该|要)注意什么|需要.{0,10}吗|可行吗|有必要吗|行不行|合适吗|合理吗|对吗"
)


def asks_consequences(sentence: str) -> bool:
    """Return whether a sentence asks about the consequences of an action."""
    return bool(_CONSEQUENCE.search(sentence))


_DOES = re.compile(r"执行|运行|跑|输入|敲|应用|粘贴")
_DO_IT = re.compile(
    r"^(?:好的?|行|嗯|那|那么|可以|是的|没问题|对|,|\s)*(?:就(?:这么|这样)?(?:办|做|干|执行|删)"
    r"|(?:直接|马上|立刻|赶紧|快)?(?:做|执行|动手|开始|干|搞|删|发|转|付|上)(?:吧|了吧|它)|照(?:做"
    r"|办)|确认执行|同意执行|批准执行|按(?:这个|上面|你说)的?(?:方案|步骤|命令)?(?:做|执行|来|办)"
    r"|替我做了?|直接(?:来|做|执行|办))"
)


def requests_execution(clause: str) -> bool:
    """Return whether a clause requests the execution of quoted text."""
    return any(
        is_requested(clause, one.start(), one.end(), about_consequences=False)
        for one in _DOES.finditer(clause)
    )


def refers_back(clause: str) -> bool:
    """Return whether a clause requests an action mentioned before ("do it")."""
    return bool(_DO_IT.search(clause))


def is_question(clause: str) -> bool:
    """Return whether a clause asks for information."""
    return bool(_QUESTION.search(clause)) and not _POLITE.search(clause)
