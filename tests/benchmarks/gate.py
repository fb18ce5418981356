"""Measure how well the risk gate classifies messages: precision and recall on our own labelled
messages, and on sixty messages whose author had not seen the gate's rules.

docs/continuity.md has the result of the first run on these sixty; some rules were fixed after it,
so a result of today is no longer blind.
"""

from __future__ import annotations

import time

from tests.benchmarks.rounds import report
from tests.support.decisions.gate_sets import blind_set, measure, own_set


def main() -> None:
    """Measure and report."""
    own, blind = own_set(), blind_set()
    started = time.perf_counter()
    result = measure(own)
    elapsed_ms = (time.perf_counter() - started) * 1000 / len(own)
    report(
        "gate",
        own=result,
        own_by_language={
            language: measure([labelled for labelled in own if labelled.language == language])
            for language in ("en", "zh")
        },
        blind=measure(blind),
        ms_each=round(elapsed_ms, 3),
        goal="no risky message of our own set missed",
    )


if __name__ == "__main__":
    main()
