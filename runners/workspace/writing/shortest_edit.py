"""The shortest edit script between two small lists of lines (Myers 1986, greedy algorithm)."""

from __future__ import annotations

from collections.abc import Sequence

Run = tuple[int, int, int]  # (i, j, length): a[i : i + length] == b[j : j + length]
_MAX_EDITS = 400  # with more, the lists have too little in common to be worth the search


def common_runs(a: Sequence[str], b: Sequence[str]) -> tuple[list[Run], int]:
    """Return the runs of equal lines that a shortest edit keeps, and the steps of the search.

    There are no runs if no line is common, or if more than 400 lines would have to change.
    """
    if set(a).isdisjoint(b):
        return [], len(a) + len(b)
    trace = _search(a, b)
    edits = len(trace)
    runs = _walk_back(trace, len(a), len(b)) if edits <= _MAX_EDITS else []
    return runs, edits * edits + len(a) + len(b)


def _search(a: Sequence[str], b: Sequence[str]) -> list[dict[int, int]]:
    """Return, for each number of edits, the furthest i reached on every diagonal (i - j)."""
    n, m = len(a), len(b)
    furthest = {1: 0}
    trace: list[dict[int, int]] = []
    for edits in range(min(n + m, _MAX_EDITS) + 1):
        trace.append(furthest.copy())
        low, high = -edits + 2 * max(0, edits - m), edits - 2 * max(0, edits - n)
        for k in range(low, high + 1, 2):
            down = k == -edits or (k != edits and furthest.get(k - 1, -1) < furthest.get(k + 1, -1))
            i = furthest[k + 1] if down else furthest[k - 1] + 1
            j = i - k
            while i < n and j < m and a[i] == b[j]:
                i += 1
                j += 1
            furthest[k] = i
            if i >= n and j >= m:
                return trace
    return [*trace, {}]


def _walk_back(trace: list[dict[int, int]], i: int, j: int) -> list[Run]:
    runs: list[Run] = []
    for edits in range(len(trace) - 1, -1, -1):
        furthest, k = trace[edits], i - j
        down = k == -edits or (k != edits and furthest.get(k - 1, -1) < furthest.get(k + 1, -1))
        from_k = k + 1 if down else k - 1
        from_i = furthest[from_k] if edits else 0
        from_j = from_i - from_k if edits else 0
        start_i, start_j = (from_i, from_j + 1) if down else (from_i + 1, from_j)
        if not edits:
            start_i = start_j = 0
        if i > start_i:
            runs.append((start_i, start_j, i - start_i))
        i, j = from_i, from_j
    return runs[::-1]
