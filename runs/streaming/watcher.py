"""A reader that waits for a change in a run, such as its end, and does not need the events."""

from __future__ import annotations

from collections.abc import Iterable

from runs.streaming.subscriber import Reader


class Watcher(Reader):
    """Wake a reader when an event of certain types is written. Use it on the event loop only.

    The reader reads the run, reports with `mark_read` how far the log went then, and calls `wait`.
    A notification that names only other types is ignored. One without types, which comes from a
    poll of the database, counts if the log has grown.

    Args:
        types: the event types after which the run is worth reading.
    """

    def __init__(self, types: frozenset[str]) -> None:
        super().__init__()
        self._types = types
        self._seq = 0
        self._unread_seq: int | None = None

    def mark_read(self, seq: int) -> None:
        """Record that the reader read the run when its log ended at `seq`."""
        self._seq = seq
        if self._unread_seq is not None and self._unread_seq <= seq:
            self._unread_seq = None

    def notify(self, seq: int, types: Iterable[str] | None) -> None:
        """Wake the reader if the log has reached `seq` with an event of its types."""
        if seq > self._seq and (types is None or not self._types.isdisjoint(types)):
            self._unread_seq = seq
            self.wake()

    def check_now(self) -> None:
        """Wake the reader whatever it has read."""
        self._unread_seq = self._seq + 1
        self.wake()

    async def wait(self, timeout_s: float) -> int | None:
        """Return the seq of the event that makes the run worth reading; None after the timeout or
        when the reader has to stop.
        """
        if self._unread_seq is None and not self.is_closed:
            await self.wait_until_woken(timeout_s)
        seq, self._unread_seq = self._unread_seq, None
        return seq
