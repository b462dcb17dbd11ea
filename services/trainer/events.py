"""What a run tells while it goes on, for any number of watchers that come at any time.

Milestones (a phase begins, an iteration or an evaluation is done, the run ends) are kept
and replayed; progress within a phase is only ever the newest.
"""

import asyncio
from collections.abc import AsyncIterator

from wmkit.domain.runs import RunEvent


class EventLog:
    """One writer on the event loop, many readers."""

    def __init__(self) -> None:
        self.milestones: list[RunEvent] = []
        self._progress: RunEvent | None = None
        self._news = asyncio.Event()

    def milestone(self, event: RunEvent) -> None:
        self.milestones.append(event)
        self._progress = None
        self._wake()

    def progress(self, event: RunEvent) -> None:
        self._progress = event
        self._wake()

    async def watch(self) -> AsyncIterator[RunEvent]:
        """All milestones so far, then milestones and progress until the run has ended."""
        seen = 0
        shown: RunEvent | None = None
        while True:
            news = self._news
            while seen < len(self.milestones):
                event = self.milestones[seen]
                seen += 1
                yield event
                if event.status.ended:
                    return
            if self._progress is not None and self._progress is not shown:
                shown = self._progress
                yield shown
                continue
            await news.wait()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
