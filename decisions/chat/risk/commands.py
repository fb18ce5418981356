"""Shell commands and SQL that destroy, expose or change shared resources, anywhere in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from decisions.chat.risk.classes import RiskClass

_DELETES = re.compile(
    r"(?=\b[a-z]|[>:强])(?:"  # where a word begins: the rest is not tried inside of words
    r"\brm\s+(?:-\w+\s+|--\w[\w-]*\s+)*-{1,2}(?:\w*r\w*|recursive|force|f)\b|\brmdir\s+/s"
    r"|\bdel\s+/[fsq]|\brd\s+/s|\bdrop\s+(?:table|database|schema|view|index|user|role|column"
    r"|collection|keyspace|tablespace|partition)\s+\S+|\btruncate\s+(?:table\s+)?[\w.\"]+\s*(?:;|$"
    r"|cascade)|\bdelete\s+from\s+[\w.\"`\[]+|\balter\s+table\s+\S+\s+drop\b|\bmkfs(?:\.\w+)?\b"
    r"|\bdd\s+if=\S+\s+of=/dev/|\bshred\s+-|\bwipefs\b|\bformat\s+[a-z]:"
    r"|\bgit\s+push\s+(?:\S+\s+)*(?:--force(?:-with-lease)?|-f|--mirror|--delete|-d)\b"
    r"|\bgit\s+push\s+\S+\s+[:+]\S+|\bforce[- ]push(?:ed|ing)?\b|\bpush\b[^.\n]{0,30}\b(?:with"
    r"|by) force\b|强推|强制推送|\bgit\s+(?:filter-branch|filter-repo)|\bgit\s+reset\s+--hard\b"
    r"|\bgit\s+clean\s+-\w*f|\bgit\s+reflog\s+expire|\bkubectl\s+(?:\S+\s+)*delete\b"
    r"|\bterraform\s+destroy|\bpulumi\s+destroy|\bhelm\s+(?:uninstall|delete)|\bdocker\s+(?:system"
    r"|volume|image|container)\s+(?:prune|rm)|\bdocker-compose\s+down\s+-v"
    r"|\bdocker\s+compose\s+down\s+-v|\baws\s+s3\s+(?:rm|rb)\b|\baws\s+\S+\s+(?:delete"
    r"|terminate)-\S+|\bgsutil\s+(?:-m\s+)?rm\b|\bgcloud\s+.*\bdelete\b|\baz\s+.*\bdelete\b"
    r"|\bflush(?:all|db)\b|\bdb\.\w+\.(?:drop|remove|deletemany)\(|\bdropdatabase\("
    r"|\bfind\s+.*\s-delete\b|>\s*/dev/sd[a-z]|\bzfs\s+destroy|\blvremove\b|\bcrontab\s+-r\b"
    r"|\bgh\s+repo\s+delete|:\(\)\s*\{\s*:\|:&\s*\};:|\bremove-item\s+.*-recurse|\bdiskpart\b"
    r"|\bmanage\.py\s+flush\b|\bupdate\s+[\w.]+\s+set\s+(?![^;]*\bwhere\b))"
)
_PUBLISHES = re.compile(
    r"\b(?=[a-z])(?:\bnpm\s+publish\b|\btwine\s+upload\b|\bcargo\s+publish\b|\bgem\s+push\b"
    r"|\bpoetry\s+publish\b|\bterraform\s+apply\b|\bkubectl\s+(?:apply|rollout|scale|drain"
    r"|cordon)\b[^\n]*\bprod|\bdocker\s+push\b[^\n]*\bprod|\bhelm\s+upgrade\b[^\n]*\bprod"
    r"|\bgit\s+push\s+(?:heroku|production|prod)\b|\bshutdown\s+(?:-h|-r|now)|\bsystemctl\s+(?:stop"
    r"|restart|disable)\s+\S+|\bcap\s+production\b|\bansible-playbook\b[^\n]*\bprod)"
)
_OPENS = re.compile(
    r"\b(?=[a-z])(?:\bchmod\s+(?:-\w+\s+)*(?:0?777|a\+\w*w|o\+w)|\bgrant\s+(?:all|select|insert"
    r"|update|delete|superuser|create|[\w, ]+\s+on)\b.*\bto\b|\busermod\s+-a?g|\biptables\s+-f\b"
    r"|\bufw\s+disable|\bsetenforce\s+0|\bvisudo\b|\baws\s+iam\s+(?:attach|put|add|detach|remove"
    r"|create)-\S+|\badd-iam-policy-binding\b|\baz\s+role\s+assignment\s+create"
    r"|\bkubectl\s+create\s+(?:cluster)?rolebinding|\balter\s+(?:user|role)\b"
    r"|\bgit\s+push\b.*--no-verify\b.*\bprod|\baws\s+s3api\s+put-bucket-acl\b.*public)"
)
_SECRETS = re.compile(
    r"\b(?=[a-z])(?:\bcat\s+\S*(?:\.env|id_rsa|\.pem|credentials|shadow)\b"
    r"|\bprintenv\b.*\|\s*(?:curl|nc)|\bpasswd\s+root\b|\baws\s+iam\s+(?:create|delete"
    r"|update)-\S*key\b|\bkubectl\s+get\s+secrets?\b.*-o\b|\bvault\s+(?:read|kv get)\b)"
)
_RULES = (
    (RiskClass.DELETION, _DELETES),
    (RiskClass.PRODUCTION, _PUBLISHES),
    (RiskClass.RIGHTS, _OPENS),
    (RiskClass.CREDENTIALS, _SECRETS),
)


def commands(text: str) -> Iterator[tuple[RiskClass, int]]:
    """Yield the classes of the risky commands in a lower-case text, and the position of each."""
    for name, pattern in _RULES:
        for found in pattern.finditer(text):
            yield name, found.start()
            break
