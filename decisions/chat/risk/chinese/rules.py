"""The rules for Chinese: the verbs of each risk class and the objects that make them risky."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from decisions.chat.risk.chinese.grammar import is_requested
from decisions.chat.risk.classes import RiskClass

_DATA = (
    r"数据|回收站|库|表|记录|行|索引|集合|账[号户]|帐[号户]|用户|客户|会员|文件夹?|目录|磁盘|硬盘"
    r"|分区|卷|桶|备份|快照|归档|仓库|分支|标签|历史|日志|服务器|集群|实例|虚拟机|机器|主机|节点"
    r"|命名空间|环境|项目|空间|租户|邮箱|邮件|消息|聊天|照片|图片|相册|资料|文档|订单|发票|交易"
    r"|联系人|通讯录|日历|所有|全部|一切|队列|主题|密钥|证书|域名|网站|站点|镜像|容器|部署|内容"
    r"|字段|列|缓存集群|存储|知识库|员工|病历|证据|痕迹|审计|流水|工单|简历|论文|视频|录音|电脑"
    r"|手机|盘|[a-z_]+表|s3|redis|mysql|mongo|资源|档案|合同"
)
_TEXT = (
    r"表单|字|词|句|段落?|逗号|标点|错别字|标题|空格|空行|字符|表情|注释|导入|变量|函数|方法|参数"
    r"|括号|脚注|幻灯片|章节|草稿|单元格|打印|语句|待办|剪贴板|屏幕|终端|控制台|筛选|高亮|格式|重复"
    r"|按钮|图标|边框|阴影|引号|形容词|副词|依赖|白板|桌子|桌面上的灰|临时|缓存|node_modules"
    r"|编译产物|构建产物|测试数据|这一行|那一行|最后一行|第.{1,2}行|本地分支|冗余|样式|代码|广告语"
    r"|水印|背景"
)
_PRECIOUS = re.compile(r"生产|监控|录[像音]|线上|正式|客户|用户|备份|全部数据|所有数据|数据库")


def _p(text: str) -> re.Pattern[str]:
    return re.compile(text)


_DELETE = _p(
    r"删(?![减节选繁])(?:[除掉光了]|干净)?|清(?:空|除|掉|库|理掉?|干净|一清)|腾空|抹(?:掉|除|去"
    r"|干净)|擦除|擦掉|销毁|干掉|移除|丢弃|扔掉|格式化|注销|粉碎|砍掉|毁掉|弄没|去掉|drop|truncate"
    r"|下掉|覆盖掉?|重置|重装|释放掉?|回收(?!站)|恢复出厂|抹|退订所有|(?:别|不用?|不要)留(?:着|下)?"
    r"|清(?=了|光|零|$)|全扔|卸载|撤掉|销(?=号|户|掉|了)|永久移|消失"
)
_WEAK_DELETE = re.compile(
    r"^(?:移除|去掉|清理|清除|扔掉|丢弃|砍掉|重置|重装|覆盖掉?|释放掉?|回收|下掉|撤掉|卸载|抹|干掉"
    r"|消失)$"
)
_PAY = _p(
    r"转账|转钱|汇款|汇给|汇|付款|支付|付(?=[^出费]|$)|打款|打钱|转给"
    r"|转(?=[^换移发化译成为折向变达型让入告接述载动身弯码]|$)|打(?=给|过去|\d"
    r"|[一二两三四五六七八九十百千万])|充值|充(?=\d|[一二两三四五六七八九十百千万])|购买|买入"
    r"|(?<![难好])买(?![家点啊])|下单|退(?:款|货|掉)|退(?=[给还了回]|\d)|付[掉清]|捐"
    r"|发(?=.{0,8}(?:元|块钱|币|奖金|工资|红包|薪))|提现|扣款|还(?=[款清掉了]|一下)"
    r"|结(?=[给掉账清了]|一下)|结算|投资|订阅|续费|缴|报销|卖(?=[掉出了给])|抢(?=.{0,12}票)|加购"
    r"|续保|抛售|平仓|清仓|加仓|预订|预定|订(?=[^单正阅户购制])|订购|刷卡|(?:转入"
    r"|支持)(?=[\d一二两三四五六七八九十])|取(?=出|款|现)|赔付|赔偿|放款|出金|垫付|打赏|代付|赎回"
    r"|投(?=[到入给])|提(?=出来|款)|交(?=房租|学费|费|税|定金|押金|罚款|[了掉清]|一下)|开通|采购"
    r"|发(?=工资|奖金|薪|下去)|续(?=[\d一二两三四五]+[年个])|点(?=.{0,6}(?:外卖|餐|奶茶|咖啡))"
    r"|划(?=[转给走]|\d|[一二两三四五六七八九十百千万])|拨(?=款|\d)|升级"
)
_MONEY = _p(
    r"[¥$€£]\s?\d|\d[\d,.]*\s*(?:万|千|百|亿|k|w)?\s*(?:元|块|美元|美金|欧元|人民币|rmb|usd|usdt"
    r"|btc|eth|港币|日元|英镑|刀|比特币)|\d[\d,.]*[万亿]|外卖|餐|基金|购物车|预算|资金|(?:高级|专业"
    r"|企业|旗舰)版|[年月]付|[一二两三四五六七八九十百千]+[万亿]"
    r"|[一二两三四五六七八九十百千万]+(?:万|千|百|十)?(?:元|块|美元|美金)|钱|款|账单|发票|工资|奖金"
    r"|房租|押金|定金|费用?|余额|税|股票|股|基金|比特币|以太坊|加密货币|机票|车票|酒店|礼品卡"
    r"|许可证|信用卡|银行卡|钱包|存款|供应商|货款|尾款|首付|罚款|红包|会员|套餐|服务器|电脑|笔记本"
    r"|显示器|设备|订单|捐|[贷房车]贷|贷款|票|理财|仓位|持仓|代币|门票|课程|授权"
)
_PAY_THING = re.compile(
    r"服务|系统|网关|平台|渠道|模块|宝|密钥|接口|团队|数据|方式|表|回调|页|链路|代码"
)
_STRONG_PAY = re.compile(
    r"转账|转钱|汇款|汇给|打款|打钱|付款|退款|充值|下单|提现|扣款|还款|还清|结清|续|打赏|代付|赎回"
    r"|加购|退掉|退货|付[掉清]|买入|卖出|清仓|平仓|放款|拨款|发工资|支付|红包|购买|订购|采购"
)
_TELLS = ("推送", "推", "发布", "修改", "更新")  # with users: a message to them
_OPERATES = re.compile(r"重启|停|关停|切|迁|回[滚退]|扩|缩|升级|摘")
_SYSTEM = re.compile(r"服务器|服务(?!员)|集群|数据库|主从|机房|节点|主机|网关|队列|负载均衡")
_SOME = re.compile(  # an amount, or a thing that is bought
    r"\d|[一二两三四五六七八九十]+[百千万亿]|[一两二三四五六七八九十几]?[个台张份件双本套箱瓶辆部盒"
    r"斤杯](?![人月])"
)
_CHANGE = _p(
    r"部署|上线|发布|发版|推送?|重启|回滚|迁移|切流|切换|切到?|扩容|缩容|升级|降级|更新|修改|改"
    r"|变更|执行|跑|停掉?|停机|关闭|关(?=[掉了]|一下)|关停|下线|启用|启动|打开|开启|灰度|全量|放量"
    r"|合并|应用|导入|写入|刷(?:数据|库|一遍)?|热修|打补丁|打到|打上|替换|kill|杀掉?|上(?=生产|线"
    r"|正式)|下架|上架|调整|回退|生效|摘|迁|扩|缩|插入|重建|提审|(?<=上)[做跑]"
    r"|把(?=[^,，。]{0,8}(?:线上|生产|正式))(?!.*(?:看|查|读|列|理|总结|分析|发我|贴|写|画|译"
    r"|导出))|drop|push|deploy|release|rollback|restart|apply|migrate|run|发(?=到|上|去)"
)
_PRODUCTION = _p(
    r"生产(?!力|线|商|日期|成本|计划|厂)|线上|[上下](?:线|架)|提审|灰度(?![图化值级])|(?:支付"
    r"|api ?)网关|功能开关|正式(?:环境|服|库|站|系统)|现网|上线|全量|所有用户|全部用户|全网|外网"
    r"|官网|主库|应用商店|(?:app|小程序|应用).{0,3}新?版|负载均衡|dns|域名解析|维护模式|app ?store"
    r"|发版|pypi|npm|prod(?:uction)?(?![a-z])|live ?(?:环境|站)|停机|切流|核心(?:系统|交换机)|机房"
    r"|主站"
)
_NOT_PRODUCTION = re.compile(
    r"(?:测试|开发|预发布?|沙箱|本地|演练|灾备|仿真|staging|dev|test|uat)(?:环境|库|服|机|集群"
    r"|服务器)?|非生产|类生产|生产就绪|只读副本|dry[- ]?run|线上(?:课|会议|会|购物|活动|教学|考试"
    r"|培训|讲座|问诊|学习)|打开.{0,6}(?:官网|主站)|上线(?:时间|文档|计划|流程|清单|公告|前|后|了)"
    r"|发布(?:会|说明|日志|日期)"
)
_LOOK = re.compile(
    r"(?:跑|执行|运行|做)(?:一下|一遍|个|一次|一个)?.{0,8}(?:报表|查询|健康检查|冒烟测试|测试|统计"
    r"|巡检|监控|只读|select|备份|体检|压测报告)"
)
_EXPOSE = _p(
    r"发给?|发送|分享|共享|告诉|给(?=我|他|她|你|外|所|供|客|新|实|大|小|老)|打印|导出|粘贴|贴|提交"
    r"|上传|写进|写到|写入|放进|放到|公开|泄露|轮换|吊销|取消|去掉|撤销|重置|重设|修改|改成?|更换"
    r"|换掉?|关闭|关(?=[掉了]|一下|$)|禁用|停用|绕过|删除|生成|创建|新建|签发|申请|导入|复制|拷贝?"
    r"|明文|输出|显示|读取|拿到?|取出|破解|交给|交出|转发|推送?|硬编码|同步到|填|rotate|reset"
    r"|revoke|share|send|跳过|解锁|作废|废掉|更新"
)
_SECRET = _p(
    r"密码|口令|密钥|秘钥|私钥|令牌|凭[证据]|token|api ?key|access ?key|secret|证书|验证码|双(?:重"
    r"|因素|因子)(?:认证|验证)?|两步验证|2fa|mfa|多因素|助记词|\.env|env文件|恢复码|(?:短信|登录"
    r"|身份|二次)验证|登录信息|账号密码|身份证号|银行卡号|ssh ?key|密保|u盾|credentials?"
)
_NO_SECRET = re.compile(
    r"密码(?:框|强度|规则|策略|页面?|长度|字段|输入|学|管理器)|token ?(?:数|用量|限制|上限|长度"
    r"|计数|消耗|成本)|(?:出生|获奖|结业|荣誉|培训)证书|重置密码(?:页|流程|功能|邮件|按钮)"
    r"|验证码(?:功能|组件|页面?|输入框|登录功能)"
)
_GRANT = _p(
    r"授予|授权|赋予|赋权|提权|提升|提(?=成|为|到)|给|设置?[为成]|设(?=.{1,4}为)|升级?[为成]"
    r"|当(?=.{0,12}管理员)|加(?:入|到|为|成|进|个)|添加|开放|开通|放开|打开|公开|关闭|关(?=[掉了]"
    r"|一下|$)|禁用|停(?=[掉了用])|冻结|降[为成到级]|取消|撤销|收回|移除|去掉|剥夺|绕过|共享|改成"
    r"|改为|变成|chmod|grant|转(?:让|给|移)|移交|解[除封]|封(?=[禁掉了号])|拉黑|踢|开|拿掉|让|允许"
    r"|放行|邀请"
)
_RIGHT = _p(
    r"权限|管理员|超管|root|sudo|admin|所有者|拥有者|写权|读写|完全访问|访问权|公网|外网|互联网"
    r"|匿名(?:访问|用户|上传)|公开(?:访问|读|写|可见)?|所有人(?:都)?(?:可|能)|777|防火墙|0\.0\.0\.0"
    r"|白名单|selinux|任何.{0,8}人|分支保护|杀毒|病毒扫描|邮件过滤|群主|版主|游客|(?:安全)?防护"
    r"|审计日志|鉴权|认证校验|owner|maintainer|协作者|特权|安全组"
)
_ALLOWS, _BANS = re.compile(r"授权|让|允许|放行"), re.compile(r"封|踢|拉黑|解封|停|冻结|禁用")
_ALLOWED = re.compile(
    r"(?:我|同事|外包|顾问|实习|新人|供应商|合作方|外部|第三方|客户|[他她]们?).{0,8}(?:访问|编辑"
    r"|读取|修改|下载|登录|管理|查看)"
)
_NO_RIGHT = re.compile(
    r"权限(?:不足|错误|模型|设计|说明|文档|页面?|列表|管理(?:页面?|模块|功能)|检查|校验逻辑|问题)"
    r"|管理员(?:手册|页面?|界面|指南|后台页面)|admin ?(?:页面?|后台页|界面|模板)|公开(?:课|资料"
    r"|数据集|文档|信息)"
)
_SEND = _p(
    r"群发|发给|发送|发(?=邮件|短信|通知|消息|公告|信|一|个|条|封|到|微博|朋友圈|推|全|这|表)"
    r"|让.{0,10}(?:收到|知道)|同步|推送|通知|告知|广播|公告|短信|发布|回应|转(?=[给到发告])|邮件"
    r"|告诉|提醒|宣布|转发|推给|发推|邀请|联系|@|寄|email|send|notify|post|挨个|打电话"
)
_PERSON = (  # how words for persons and groups of them end
    r"(?:户|员|者|[客商](?![品服店标])|生(?![产成效日])|人(?![名数])|友|家(?![具务])|师|股?东"
    r"|[一对作]方|伙伴|学(?![习期])|同事|粉丝|群|部门|媒体|users?|customers?|members?|subscribers?"
    r"|employees?)"
)
_CROWD = _p(
    rf"(?:所有|全部|全体|每(?:一)?[个位名家]|各[大位]|整个|全|上?[千百万]+[名个位]?"
    rf"|\d{{3,}}\s*[名个位多]?)的?[^,，。]{{0,6}}?{_PERSON}|全(?:公司|校|班|村|院|厂|组|小区|单位)"
    rf"|群发|挨个|逐[个一]|统一|大家|发布?一?[个条]?公告|公众号|官微|官方(?:账号|微博|推特|号)"
    rf"|朋友圈|微博|抖音"
    r"|小红书|推特|论坛|订阅用户|邮件列表|通讯录|广播|全网|老用户|群里"
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
    if _STRONG_PAY.search(found[0]) or _SOME.match(clause[found.end() :]):
        return True
    return bool(_MONEY.search(clause.replace(found[0], " ", 1)))


def _produces(clause: str, found: re.Match[str], context: str) -> bool:
    text = _NOT_PRODUCTION.sub(" ", clause)
    if _LOOK.search(clause):
        return False
    if _OPERATES.match(found[0]) and _SYSTEM.search(text) and text == clause:
        return True
    where = _PRODUCTION.search(text)
    return where is not None and not ("用户" in where[0] and found[0] in _TELLS)


def _exposes(clause: str, found: re.Match[str], context: str) -> bool:
    return bool(_SECRET.search(_NO_SECRET.sub(" ", clause)))


def _grants(clause: str, found: re.Match[str], context: str) -> bool:
    text, after = _NO_RIGHT.sub(" ", clause), clause[found.end() :]
    if found[0] != "公开":
        text = text.replace(found[0], " ", 1)
    allowed = _ALLOWS.match(found[0]) and _ALLOWED.search(after)
    opened = found[0].startswith("开") and re.search(r"账[号户]", after)
    banned = _BANS.match(found[0]) and re.search(r"账号|账户|用户|成员|[他她]", clause)
    return bool(_RIGHT.search(text) or allowed or opened or banned)


def _broadcasts(clause: str, found: re.Match[str], context: str) -> bool:
    return bool(_CROWD.search(clause))


Test = Callable[[str, re.Match[str], str], bool]
_SHORT, _EARLIER = 12, 30  # characters of a clause that lacks an object, and of the text before it
DENSE = 12  # verbs of one class in a clause, beyond which excuses count less and less
RULES = (
    (RiskClass.DELETION, _DELETE, _deletes),
    (RiskClass.MONEY, _PAY, _pays),
    (RiskClass.PRODUCTION, _CHANGE, _produces),
    (RiskClass.CREDENTIALS, _EXPOSE, _exposes),
    (RiskClass.RIGHTS, _GRANT, _grants),
    (RiskClass.MASS, _SEND, _broadcasts),
)
_BARE = re.compile(r"[^,，。]{0,5}?(?:它|这个|那个)?(?:掉|了|吧|一下|出去)*[。!]?$")


def _is_about_earlier(found: re.Match[str], context: str, about: Test) -> bool:
    """Return whether a verb without an object of its own has a risky one in the clause before."""
    clause = found.string
    if len(clause) > _SHORT or not _BARE.match(clause, found.end()):
        return False
    earlier = f"{context[-_EARLIER:]} {clause}"
    return any(one[0] == found[0] and about(earlier, one, "") for one in found.re.finditer(earlier))


_GAPS = re.compile(r"\s*([\u4e00-\u9fff])\s*")


def requested_risks(clause: str, context: str, *, about_consequences: bool) -> Iterator[RiskClass]:
    """Yield the classes of the actions that a clause requests; arguments as `is_requested`."""
    clause = _GAPS.sub(r"\1", clause)
    for name, pattern, about in RULES:
        for number, found in enumerate(pattern.finditer(clause)):
            if number >= 3 * DENSE:
                yield name
                break
            if (about(clause, found, context) or _is_about_earlier(found, context, about)) and (
                number >= DENSE
                or is_requested(clause, *found.span(), about_consequences=about_consequences)
            ):
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
