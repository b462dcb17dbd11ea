"""Judgements by request id: a call that is repeated hears the first one's verdict.

A model judge votes by sampling, so asking again could change a reward. Kept in Redis and so
shared by replicas, successes only, for `KEPT_S` after the verdict; nothing else about judging.
"""

import json
from collections.abc import Awaitable, Callable

from services.worldmodel.index import Index
from services.worldmodel.leases import Leases
from wmkit.blobs import digest
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.tasks import Judgement

KEPT_S = 600.0


class Verdicts:
    """Remembers judgements under the keys of an index."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._leases = Leases(index)

    async def once(
        self, request_id: str, question: object, judge: Callable[[], Awaitable[Judgement]]
    ) -> Judgement:
        """The judgement of the first call with this id that had one.

        `question` is everything that was asked, as JSON data. Raises InvalidRequest for a known
        id with another question, and what `judge` raises.
        """
        key = f"judge:{digest(request_id.encode())}"
        asked = digest(json.dumps(question, sort_keys=True).encode())

        async def look() -> Judgement | None:
            record = await self._index.get(key)
            if record is None:
                return None
            known = json.loads(record)
            if known["asked"] != asked:
                raise InvalidRequest(
                    f"request id {request_id[:80]!r} was used for another request", "request_id"
                )
            return Judgement.model_validate(known["judgement"])

        async def work() -> Judgement:
            judgement = await judge()
            record = {"asked": asked, "judgement": judgement.model_dump(mode="json")}
            await self._index.put(key, json.dumps(record).encode(), KEPT_S)
            return judgement

        return (await self._leases.once(key, look, work))[0]
