"""What authorization shows and compares of a call, but only a part above it can read: `runs` and
`runners` know the run, its target, the files that it changes, and which calls there are.

`runs` provides it when Django starts (`runs.apps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decisions.models import Decision


@dataclass(frozen=True, slots=True)
class CallPreview:
    """What a call will do, in another form than its arguments: a command line or a diff.

    Attributes:
        basis: digest of what it was computed from, unless that is the arguments alone.
    """

    name: str
    text: str
    about: str
    is_diff: bool = False
    basis: str | None = None


@dataclass(frozen=True, slots=True)
class CallContext:
    """What stands beside the arguments of a call; texts may have any characters.

    Attributes:
        facts: names and texts: the goal, the tool's effect, …
        steps: what the run did before, oldest first.
        previews: what the call will do.
        basis: digest of what the previews were computed from; None where such a call has none.
    """

    facts: Sequence[tuple[str, str]] = ()
    steps: Sequence[str] = ()
    previews: Sequence[CallPreview] = ()
    basis: str | None = None


@dataclass(frozen=True, slots=True)
class KnownCall:
    """A call that this installation knows: a tool, and a target that it can be called on.

    Attributes:
        tool: the name; empty for a runner that does not say which tools it offers.
        target_id: empty for this installation itself.
        tenant_id, workspace_id: who may use the target; empty for everybody in that.
        principal_id: who alone may use it; empty for all of them.
        is_builtin: Continuity executes the tool itself.
        is_template: the target is a template, as in calls of run_task_template.
        covers: the other tools that it does the same as; rules on them restrict it.
        may_cover: those that it does the same as with some arguments, or on some pages.
    """

    tool: str
    target_id: str = ""
    target_name: str = ""
    tenant_id: str = ""
    workspace_id: str = ""
    principal_id: str = ""
    is_builtin: bool = False
    is_template: bool = False
    covers: frozenset[str] = frozenset()
    may_cover: frozenset[str] = frozenset()

    @property
    def runs_on(self) -> str:
        """The id of the target that executes it; empty for this installation."""
        return "" if self.is_template else self.target_id


@dataclass(frozen=True, slots=True)
class CallInformation:
    """The functions that authorization calls in the parts above it.

    Attributes:
        context_of: what stands beside the arguments of the call that a decision is about.
        basis_of: digest of what the preview of this call is computed from now: the file, the script
            or the rows that it changes. None for a call without such a preview.
        target_state_of: a text that every change of the target with this id changes; empty if there
            is no such target.
        list_known_calls: the calls that policy rules can be about.
    """

    context_of: Callable[[Decision], CallContext]
    basis_of: Callable[[Decision], str | None]
    target_state_of: Callable[[str], str]
    list_known_calls: Callable[[], Iterable[KnownCall]]
