"""The embedded stack: redis, web, worker and scheduler of one home, kept together by a supervisor.

What the doors need of it is here; it imports neither the parts nor anything heavy.
"""

from runs.stack.errors import StackProblem
from runs.stack.locks import Membership
from runs.stack.start import ensure_stack
from runs.stack.state import StackInfo, is_up, stack_info

__all__ = ["Membership", "StackInfo", "StackProblem", "ensure_stack", "is_up", "stack_info"]
