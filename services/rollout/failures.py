"""When an episode is lost to infrastructure: how long to wait, and what becomes of the job.

Nothing here is about the agent. What the agent does wrong is part of its episode; what
breaks around it raises EpisodeFailed and is never scored.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from wmkit.domain.errors import (
    BrowserCrashed,
    InvalidAction,
    InvalidRequest,
    Overloaded,
    PayloadTooLarge,
    Unavailable,
    WMError,
)

T = TypeVar("T")

LONGEST_PAUSE_S = 30.0


class EpisodeFailed(Exception):
    """The episode cannot be finished. `reason` is one sentence.

    `retryable`: the same job may succeed later, or on another worker. `hopeless`: the job
    itself is wrong (an unknown task, say) and no worker can ever play it.
    """

    def __init__(self, reason: str, *, retryable: bool, hopeless: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.hopeless = hopeless


async def patiently(call: Callable[[], Awaitable[T]], patience_s: float) -> T:
    """Repeat a call, which must be idempotent, while the service is busy or away.

    Waiting costs less than playing the episode again from its start. A busy service is
    waited for as long as the episode's own deadline allows, an unreachable one for
    `patience_s`. A crashed browser is not waited for: the call itself may have crashed it.
    """
    waited_s, pause_s = 0.0, 0.0
    while True:
        try:
            return await call()
        except Overloaded as error:
            pause_s = error.retry_after_s
        except BrowserCrashed:
            raise
        except Unavailable as error:
            pause_s = min(max(error.retry_after_s, 2 * pause_s), LONGEST_PAUSE_S)
            if waited_s + pause_s > patience_s:
                raise
            waited_s += pause_s
        # Jitter: many episodes meet the same busy service at the same moment.
        await asyncio.sleep(pause_s * random.uniform(0.75, 1.0))


@contextmanager
def infrastructure(doing: str) -> Iterator[None]:
    """Turn errors of ports into EpisodeFailed; `doing` completes "while ...".

    InvalidAction passes: it is about what the agent did.
    """
    try:
        yield
    except InvalidAction:
        raise
    except (InvalidRequest, PayloadTooLarge) as error:
        raise EpisodeFailed(
            f"{error.message} (while {doing})", retryable=False, hopeless=True
        ) from error
    except WMError as error:
        kind = type(error).__name__
        raise EpisodeFailed(f"{kind}: {error.message} (while {doing})", retryable=True) from error
