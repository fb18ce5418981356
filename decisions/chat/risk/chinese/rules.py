"""The rules for Chinese: the verbs of each risk class and the objects that make them risky."""

from __future__ import annotations

import re
from collections.abc import Iterator

from decisions.chat.risk.chinese.grammar import is_requested
from decisions.chat.risk.classes import RiskClass

_DATA = (
    r"数据|库|表|记录|行|索引|集合|账[号户]|帐[号户]|用户|客户|会员|文件夹?|目录|磁盘|硬盘|分区"
    r"|卷|桶|备份|快照|归档|仓库|分支|标签|历史|日志|服务器|集群|实例|虚拟机|机器|主机|节点"
    r"|命名空间|环境|项目|空间|租户|邮箱|邮件|消息"
    r"|聊天|照片|图片|相册|资料|文档|订单|发票|交易|联系人|通讯录|日历|所有|全部|一切|队列|主题"
    r"|密钥|证书|域名|网站|站点|镜像|容器|部署|内容|字段|列|缓存集群|存储|知识库|员工|病历|证据"
    r"|痕迹|审计|流水|工单|简历|论文|视频|录音|电脑|手机|盘|[a-z_]+表|s3|redis|mysql|mongo|资源"
    r"|档案|合同"
)
_TEXT = (
    r"字|词|句|段落?|逗号|标点|错别字|标题|空格|空行|字符|表情|注释|导入|变量|函数|方法|参数"
    r"|括号|脚注|幻灯片|章节|草稿|单元格|打印|语句|待办|剪贴板|屏幕|终端|控制台|筛选|高亮|格式"
    r"|重复|按钮|图标|边框|阴影|引号|形容词|副词|依赖|白板|桌子|桌面上的灰|临时|缓存"
    r"|node_modules|编译产物|构建产物|测试数据|这一行|那一行|最后一行|第.{1,2}行|本地分支|冗余"
    r"|样式|代码|广告语|水印|背景"
)
_PRECIOUS = re.compile(r"生产|线上|正式|客户|用户|备份|全部数据|所有数据|数据库")


def _p(text: str) -> re.Pattern[str]:
    return re.compile(text)


_DELETE = _p(
    r"删除|删掉|删光|删干净|删库|删表|删了|删(?![减节选繁])|清空|清除|清掉|清库|清理掉|清理"
    r"|抹掉|抹除|抹去|抹干净|擦除|擦掉|销毁|干掉|移除|丢弃|扔掉|格式化|注销|粉碎|砍掉|毁掉|弄没"
    r"|去掉|drop|truncate|下掉|覆盖掉?|重置|重装|释放掉|抹|退订所有|不留(?:任何)?(?:痕迹|备份)"
    r"|清(?=了|光|零|$)|全扔|卸载|撤掉|销号|永久移|消失"
)
_WEAK_DELETE = re.compile(
    r"^(?:移除|去掉|清理|清除|扔掉|丢弃|砍掉|重置|重装|覆盖掉?|释放掉|下掉|撤掉|卸载|抹|干掉|消失)$"
)
_PAY = _p(
    r"转账|转钱|汇款|汇给|汇|付款|支付|付(?=[^出费]|$)|打款|打钱|转给"
    r"|转(?=[^换移发化译成为折向变达型让入告接述载动身弯码]|$)|打(?=给|过去|\d"
    r"|[一二三四五六七八九十百千万])|充值|充(?=\d|[一二三四五六七八九十百千万])|购买|买入"
    r"|买(?!家|点)|下单|退款|退(?=给|\d|还)|捐|发.{0,6}红包|提现|扣款|还款|还清|结清|结算"
    r"|结(?=给|掉|账)"
    r"|结了|投资|订阅|续费|缴|报销|卖出|卖掉|抛售|平仓|清仓|加仓|预订|预定"
    r"|订(?=[^单正阅户购制])|订购|刷卡|赔付|赔偿|放款|出金|垫付|打赏|代付|交(?=房租|学费|费|税"
    r"|定金|押金|罚款)|开通|采购|发(?=工资|奖金|薪)|划(?=转|\d|给|走)|拨(?=款|\d)|升级"
)
_MONEY = _p(
    r"[¥$€£]\s?\d|\d[\d,.]*\s*(?:万|千|百|亿|k|w)?\s*(?:元|块|美元|美金|欧元|人民币|rmb|usd"
    r"|usdt|btc|eth|港币|日元|英镑|刀|比特币)|\d[\d,.]*[万亿]"
    r"|[一二两三四五六七八九十百千万]+(?:万|千|百|十)?(?:元|块|美元|美金)|钱|款|账单|发票|工资"
    r"|奖金|房租|押金|定金|费用?|余额|税|股票|股|基金|比特币|以太坊|加密货币|机票|车票|酒店"
    r"|礼品卡|许可证|信用卡|银行卡|钱包|存款|供应商|货款|尾款|首付|罚款|红包|会员|套餐|服务器"
    r"|电脑|笔记本|显示器|设备|订单|捐|贷款|票|理财|仓位|持仓|代币|门票|课程|授权"
)
_PAY_THING = re.compile(
    r"服务|系统|网关|平台|渠道|模块|宝|密钥|接口|团队|数据|方式|表|回调|页|链路|代码"
)
_STRONG_PAY = re.compile(
    r"转账|转钱|汇款|汇给|打款|打钱|付款|退款|充值|下单|提现|扣款|还款|还清|结清|续费|打赏|代付"
    r"|买入|卖出|清仓|平仓|放款|拨款|发工资|支付|红包|购买|订购|采购"
)
_CHANGE = _p(
    r"部署|上线|发布|发版|推送?|重启|回滚|迁移|切流|切换|切到?|扩容|缩容|升级|降级|更新|修改|改"
    r"|变更|执行|跑|停掉?|停机|关闭|关掉|关停|下线|启用|启动|打开|开启|灰度|全量|放量|合并|应用"
    r"|导入|写入|刷(?:数据|库|一遍)?|热修|打补丁|打到|打上|替换|kill|杀掉?|上(?=生产|线|正式)"
    r"|下架|上架"
    r"|调整|drop|push|deploy|release|rollback|restart|apply|migrate|run|发(?=到|上|去)"
)
_PRODUCTION = _p(
    r"生产(?!力|线|商|日期|成本|计划|厂)|线上|正式(?:环境|服|库|站|系统)|现网|上线|全量"
    r"|所有用户|全部用户|全网|外网|官网|主库|应用商店|app ?store|发版|pypi|npm"
    r"|prod(?:uction)?(?![a-z])|live ?(?:环境|站)|停机|切流|核心(?:系统|交换机)|机房|主站"
)
_NOT_PRODUCTION = re.compile(
    r"(?:测试|开发|预发布?|沙箱|本地|演练|灾备|仿真|staging|dev|test|uat)(?:环境|库|服|机|集群"
    r"|服务器)?|非生产|类生产|生产就绪|只读副本|dry[- ]?run|上线(?:时间|文档|计划|流程|清单"
    r"|公告|前|后|了)|发布(?:会|说明|日志|日期)"
)
_LOOK = re.compile(
    r"(?:跑|执行|运行|做)(?:一下|一遍|个|一次|一个)?.{0,8}(?:报表|查询|健康检查|冒烟测试|测试"
    r"|统计|巡检|监控|只读|select|备份|体检|压测报告)"
)
_EXPOSE = _p(
    r"发给?|发送|分享|共享|告诉|给(?=我|他|她|你|外|所|供|客|新|实|大|小|老)|打印|导出|粘贴|贴"
    r"|提交|上传|写进|写到|写入|放进|放到|公开|泄露|轮换|吊销|撤销|重置|修改|改成?|更换|换掉?"
    r"|关闭|关掉|禁用|停用|绕过|删除|生成|创建|新建|签发|申请|导入|复制|拷贝?|明文|输出|显示"
    r"|读取|拿到?|取出|破解|交给|交出|转发|推送?|硬编码|同步到|填|rotate|reset|revoke|share"
    r"|send|跳过|解锁|作废|废掉|更新"
)
_SECRET = _p(
    r"密码|口令|密钥|秘钥|私钥|令牌|凭[证据]|token|api ?key|access ?key|secret|证书|验证码"
    r"|双(?:重|因素|因子)(?:认证|验证)?|两步验证|2fa|mfa|多因素|助记词|\.env|env文件|恢复码"
    r"|登录信息|账号密码|身份证号|银行卡号|ssh ?key|密保|u盾|credentials?"
)
_NO_SECRET = re.compile(
    r"密码(?:框|强度|规则|策略|页面?|长度|字段|输入|学|管理器)|token ?(?:数|用量|限制|上限|长度"
    r"|计数|消耗|成本)|(?:出生|获奖|结业|荣誉|培训)证书|重置密码(?:页|流程|功能|邮件|按钮)"
    r"|验证码(?:功能|组件|页面?|输入框|登录功能)"
)
_GRANT = _p(
    r"授予|授权|赋予|赋权|提权|提升|提(?=成|为|到)|给|设为|设成|设置?为|升为|升级为|加(?:入|到"
    r"|为|成|进|个)|添加|开放|开通|放开|打开|公开|关闭|关掉|禁用|停用|取消|撤销|收回|移除|去掉"
    r"|剥夺|绕过|共享|改成|改为|变成|chmod|grant|转让|移交|解除|封禁|拉黑|踢|开|拿掉|让|允许"
    r"|放行|邀请"
)
_RIGHT = _p(
    r"权限|管理员|超管|root|sudo|admin|所有者|拥有者|写权|读写|完全访问|访问权|公网|外网|互联网"
    r"|匿名访问|公开(?:访问|读|写|可见)?|所有人(?:都)?(?:可|能)|777|防火墙|0\.0\.0\.0|白名单"
    r"|selinux|任何人|分支保护|鉴权|认证校验|owner|maintainer|协作者|特权|安全组"
)
_NO_RIGHT = re.compile(
    r"权限(?:不足|错误|模型|设计|说明|文档|页面?|列表|管理(?:页面?|模块|功能)|检查|校验逻辑"
    r"|问题)|管理员(?:手册|页面?|界面|指南|后台页面)|admin ?(?:页面?|后台页|界面|模板)"
    r"|公开(?:课|资料|数据集|文档|信息)"
)
_SEND = _p(
    r"群发|发给|发送|发(?=邮件|短信|通知|消息|公告|信|一|个|条|封|到|微博|朋友圈|推|全)|推送"
    r"|通知|告知|广播|公告|短信|发布|邮件|告诉|提醒|宣布|转发|推给|发推|邀请|联系|@|寄|email"
    r"|send|notify|post|挨个|打电话"
)
_CROWD = _p(
    r"(?:所有|全部|全体|每(?:一)?(?:个|位)|各位|整个?|全|上?[千百万]+(?:名|个|位)?"
    r"|\d{3,}\s*(?:名|个|位|多)?)(?:的)?(?:\w{0,6})?(?:用户|客户|会员|员工|同事|粉丝|订阅者"
    r"|成员|家长|学生|患者|供应商|人|公司|联系人|伙伴|群|部门|买家|商家|代理|业主|司机|读者"
    r"|玩家|投资人|股东|通讯录|村民|居民)|群发|全员|全公司|全体|大家|公众号|官微|官方(?:账号"
    r"|微博|推特|号)|朋友圈|订阅用户|邮件列表|通讯录|广播|所有人|全网|老用户|群里|(?:所有|全部"
    r"|全体|每个).{0,4}(?:users?|customers?|members?|subscribers?|employees?)"
)
_KNOWN = re.compile(rf"(?P<text>{_TEXT})|(?P<data>{_DATA})")


def _deletes(clause: str, found: re.Match[str], context: str) -> bool:
    """Return whether the verb deletes data, by the last known noun after it, before it, or in the
    context.
    """
    after, before = clause[found.end() :], clause[: found.start()]
    for phrase in (after, before, context):
        known = [one.lastgroup for one in _KNOWN.finditer(phrase)]
        if known:
            return known[-1] == "data" or bool(_PRECIOUS.search(phrase))
    return not _WEAK_DELETE.match(found[0])


def _pays(clause: str, found: re.Match[str], context: str) -> bool:
    if _PAY_THING.match(clause[found.end() :]):
        return False
    if _STRONG_PAY.search(found[0]):
        return True
    return bool(_MONEY.search(clause.replace(found[0], " ", 1)))


def _produces(clause: str, found: re.Match[str], context: str) -> bool:
    text = _NOT_PRODUCTION.sub(" ", clause)
    if _LOOK.search(clause):
        return False
    where = _PRODUCTION.search(text)
    if where is not None:
        return "用户" not in where[0] or found[0] not in ("推送", "推", "发布", "修改", "更新")
    bare = found[0] in ("部署", "发布", "重启", "回滚", "执行", "迁移", "推")
    return (
        bare
        and text == clause
        and len(clause) <= 8
        and bool(_PRODUCTION.search(_NOT_PRODUCTION.sub(" ", context)))
    )


def _exposes(clause: str, found: re.Match[str], context: str) -> bool:
    return bool(_SECRET.search(_NO_SECRET.sub(" ", clause)))


def _grants(clause: str, found: re.Match[str], context: str) -> bool:
    return bool(
        _RIGHT.search(
            _NO_RIGHT.sub(" ", clause).replace(found[0], " ", 1) if found[0] != "公开" else clause
        )
    )


def _broadcasts(clause: str, found: re.Match[str], context: str) -> bool:
    return bool(_CROWD.search(clause)) or (
        found[0] in ("发送", "推送", "发布") and bool(_CROWD.search(context)) and len(clause) <= 8
    )


DENSE = 12  # verbs of one class in a clause, beyond which no excuse counts
RULES = (
    (RiskClass.DELETION, _DELETE, _deletes),
    (RiskClass.MONEY, _PAY, _pays),
    (RiskClass.PRODUCTION, _CHANGE, _produces),
    (RiskClass.CREDENTIALS, _EXPOSE, _exposes),
    (RiskClass.RIGHTS, _GRANT, _grants),
    (RiskClass.MASS, _SEND, _broadcasts),
)
_GAPS = re.compile(r"\s*([\u4e00-\u9fff])\s*")


def requested_risks(clause: str, context: str, *, about_consequences: bool) -> Iterator[RiskClass]:
    """Yield the classes of the actions that a clause requests; arguments as `is_requested`."""
    clause = _GAPS.sub(r"\1", clause)
    for name, pattern, about in RULES:
        for number, found in enumerate(pattern.finditer(clause)):
            requested = number >= DENSE or is_requested(
                clause, found.start(), found.end(), about_consequences=about_consequences
            )
            if requested and about(clause, found, context):
                yield name
                break


def mentioned_risk(clause: str, context: str) -> RiskClass | None:
    """Return the risk class that a clause mentions, requested or not."""
    for name, pattern, about in RULES:
        for found in pattern.finditer(clause):
            loose = name is RiskClass.DELETION and re.search(_DATA, clause)
            if loose or about(clause, found, context):
                return name
    return None
