"""The encoded pictures that samples name, out of the blob store."""

import asyncio
from collections.abc import Sequence

from services.trainer.batches import Sample
from services.trainer.gather import patiently
from wmkit.domain.errors import NotFound, WMError
from wmkit.ports import BlobStore

FETCHES = 32
"""How many are asked for at the same time."""


async def fetch_pictures(
    blobs: BlobStore, samples: Sequence[Sample], patience_s: float
) -> dict[str, bytes]:
    """The pictures of all samples, by digest. Raises WMError for one that is not there."""
    gate = asyncio.Semaphore(FETCHES)

    async def get(digest: str, sample: str) -> bytes:
        async with gate:
            try:
                return await patiently(lambda: blobs.get(digest), patience_s)
            except NotFound:
                raise WMError(
                    f"{sample}: its picture {digest[:12]} is not in the blob store"
                ) from None

    needed = {ref.digest: sample.name for sample in samples for ref in sample.images}
    data = await asyncio.gather(*(get(digest, name) for digest, name in needed.items()))
    return dict(zip(needed, data, strict=True))
