"""Search for the inputs of a parser that cost the most processor time, and how the time grows."""

from __future__ import annotations

import contextlib
import math
import random
import threading
import time
from dataclasses import dataclass, replace

from tests.trials.fuzz_cost.parsers import REFUSALS, Parser
from tests.trials.fuzz_cost.shapes import Shape, draw_shape

MAX_PAUSE_MS = 100.0
NO_COST_MS = 100.0  # less is never too high
LINEAR = 1.5  # the power of the size with which the time of a linear parser grows at most
ENOUGH_MS = 4000.0
_TRIAL_BYTES, _KEPT, _REPEATS = 8 * 1024, 3, 5
_REPEATED_MS = 500.0  # a longer measurement is not repeated: it is too high by far


@dataclass(frozen=True, slots=True)
class Cost:
    """The most costly input that was found, of the accepted size or of the size at which it took
    ENOUGH_MS.

    Attributes:
        power: of the size with which the time grows: 1 is linear, 2 quadratic.
        pause_ms: the most processor time it takes while no other thread of the process runs.
    """

    size_bytes: int
    ms: float
    power: float
    shape: str
    pause_ms: float = 0.0

    def is_too_high(self, parser: Parser) -> bool:
        """Return whether other threads wait for over 100 ms, the time grows faster than the input,
        or is over the parser's longest time. What a command reads in its own process may pause.
        """
        if self.ms <= NO_COST_MS:
            return False
        pauses = self.pause_ms > MAX_PAUSE_MS and not parser.is_offline
        return pauses or self.power > LINEAR or self.ms > parser.longest_ms


def worst_cost(parser: Parser, *, seconds: float, seed: int = 1) -> Cost:
    """Try shapes of a small size for most of the processor time; let the most costly ones grow."""
    draw, until = random.Random(f"{seed} {parser.name}"), time.thread_time() + seconds
    tried: list[tuple[float, str, Shape]] = []
    small = min(parser.max_bytes, _TRIAL_BYTES)
    while time.thread_time() < until - seconds / 3 or not tried:
        description, shape = draw_shape(draw, parser.fragments)
        tried.append((_ms(parser, shape(small)), description, shape))
    tried.sort(key=lambda one: one[0], reverse=True)
    grown = [_grown(parser, description, shape) for _, description, shape in tried[:_KEPT]]
    return max(grown, key=lambda cost: (cost.is_too_high(parser), cost.ms))


def _grown(parser: Parser, description: str, shape: Shape) -> Cost:
    """Return the cost at the accepted size, reached in steps."""
    times: list[tuple[str, float]] = []
    size = min(parser.max_bytes, _TRIAL_BYTES)
    while True:
        text = _within(shape(size), parser.max_bytes)
        ms = _ms(parser, text)
        times.append((text, ms if ms > _REPEATED_MS else min(ms, _ms(parser, text))))
        if size >= parser.max_bytes or times[-1][1] > ENOUGH_MS:
            break
        size = min(4 * size, parser.max_bytes)
    most = max(range(len(times)), key=lambda index: times[index][1])  # a larger one may be refused
    cost = _compared(description, times[max(0, most - 2)], times[most])
    if cost.ms <= _REPEATED_MS and cost.is_too_high(parser):
        # A busy machine makes a measurement longer, never shorter: the least of several counts.
        again = (
            (text, min(ms, *(_ms(parser, text) for _ in range(_REPEATS))))
            for text, ms in (times[max(0, most - 2)], times[most])
        )
        cost = _compared(description, *again)
    if cost.ms <= NO_COST_MS:
        return replace(cost, pause_ms=cost.ms)
    pauses = [_pause_ms(parser, times[most][0]) for _ in range(_REPEATS)]
    return replace(cost, pause_ms=min(pauses))


def _compared(description: str, small: tuple[str, float], large: tuple[str, float]) -> Cost:
    (text_before, ms_before), (text, ms) = small, large
    last, before = (len(one.encode(errors="replace")) for one in (text, text_before))
    is_measured = ms > 5 and ms_before > 0 and last > before
    power = math.log(ms / ms_before) / math.log(last / before) if is_measured else 1.0
    return Cost(last, ms, power, description)


def _within(text: str, max_bytes: int) -> str:
    return text.encode(errors="replace")[:max_bytes].decode(errors="ignore")


def _ms(parser: Parser, text: str) -> float:
    """Return the processor time that parsing a text took, refused or not."""
    try:
        prepared = parser.prepare(text)
    except ValueError:
        return 0.0
    started = time.thread_time()
    with contextlib.suppress(*REFUSALS):
        parser.parse(prepared)
    return (time.thread_time() - started) * 1000


def _pause_ms(parser: Parser, text: str) -> float:
    """Return the most processor time that parsing a text took while another thread did not run."""
    clock = time.pthread_getcpuclockid(threading.get_ident())
    has_ended, pauses = threading.Event(), [0.0]

    def run_often() -> None:
        last = time.clock_gettime(clock)
        while not has_ended.is_set():
            time.sleep(0.001)
            now = time.clock_gettime(clock)
            pauses.append(now - last)
            last = now

    prepared = parser.prepare(text)
    other = threading.Thread(target=run_often)
    other.start()
    try:
        with contextlib.suppress(*REFUSALS):
            parser.parse(prepared)
    finally:
        has_ended.set()
        other.join()
    return max(pauses) * 1000
