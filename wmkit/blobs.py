"""Content-addressed bytes: a blob's name is the BLAKE3 of its content, so it never changes.

A folder by default, object stores by URL (through obstore). Services neither list nor delete;
`ObjectBlobs.stored` and `delete` are for whoever collects garbage (`wmr1 gc`).
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wmkit.domain.errors import CorruptBlob, InvalidRequest, NotFound, Unavailable
from wmkit.ports import BlobStore

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_DIGEST = re.compile(r"[0-9a-f]{64}")


def digest(data: bytes) -> str:
    """BLAKE3 of `data`, 64 hex digits."""
    from blake3 import blake3

    return blake3(data).hexdigest()


def open_blobs(url: str) -> BlobStore:
    """Open the store at a folder (created when missing), `memory://` or an object-store URL.

    Raises InvalidRequest for a URL that no store understands or a folder that cannot be made.
    """
    if url.startswith("memory://"):
        return MemoryBlobs()
    if "://" not in url or url.startswith("file://"):
        from obstore.store import LocalStore

        folder = Path(url.removeprefix("file://")).expanduser().resolve()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidRequest(f"blob folder {folder}: {error.strerror}", "blobs") from None
        return ObjectBlobs(LocalStore(str(folder)))
    from obstore.exceptions import BaseError
    from obstore.store import from_url

    try:
        return ObjectBlobs(from_url(url))
    except (BaseError, ValueError) as error:
        raise InvalidRequest(f"blob store {url}: {_short(error)}", "blobs") from None


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """`changed` = seconds since 1970 when it was written."""

    digest: str
    size: int
    changed: float


class ObjectBlobs:
    """Blobs in an obstore store, keys sharded by the first byte: `ab/cdef...`.

    obstore's own coroutines abort the interpreter now and then when it exits (0.12.1,
    about one exit in ten), so its blocking calls run in threads; they are faster too.
    """

    def __init__(self, store: "ObjectStore") -> None:
        self._store = store

    async def put(self, data: bytes) -> str:
        """Store `data` atomically and return its digest; a blob that is there costs one look.

        Raises Unavailable when the store cannot be written.
        """
        return await asyncio.to_thread(self._put, data)

    async def get(self, digest: str) -> bytes:
        """The bytes named `digest`.

        Raises NotFound when there are none, CorruptBlob when they no longer match their
        name, Unavailable when the store does not answer.
        """
        return await asyncio.to_thread(self._get, digest)

    async def has(self, digest: str) -> bool:
        return await asyncio.to_thread(self._size, digest) is not None

    def stored(self) -> Iterator[StoredBlob]:
        """All blobs, in no order; other objects in the store are passed over.

        Raises Unavailable when the store does not answer.
        """
        from obstore.exceptions import BaseError

        try:
            for page in self._store.list():
                for entry in page:
                    name = str(entry["path"]).replace("/", "")
                    if _DIGEST.fullmatch(name) and _key(name) == entry["path"]:
                        changed = entry["last_modified"].timestamp()
                        yield StoredBlob(name, int(entry["size"]), changed)
        except (BaseError, OSError) as error:
            raise Unavailable(f"the blobs cannot be listed: {_short(error)}") from error

    def delete(self, digests: Sequence[str]) -> None:
        """Delete blobs; one that is gone already is none of these. Raises Unavailable."""
        from obstore.exceptions import BaseError

        try:
            for name in digests:
                with suppress(FileNotFoundError):
                    self._store.delete(_key(name))
        except (BaseError, OSError) as error:
            raise Unavailable(f"blobs cannot be deleted: {_short(error)}") from error

    def _put(self, data: bytes) -> str:
        from obstore.exceptions import BaseError

        name = digest(data)
        # A blob of another length was cut short by something else than this store: mend it.
        if self._size(name) != len(data):
            try:
                self._store.put(_key(name), data)
            except (BaseError, OSError) as error:
                raise Unavailable(f"blob {name} cannot be stored: {_short(error)}") from error
        return name

    def _get(self, name: str) -> bytes:
        from obstore.exceptions import BaseError

        try:
            data = bytes(self._store.get(_key(name)).bytes())
        except FileNotFoundError:
            raise _missing(name) from None
        except (BaseError, OSError) as error:
            raise Unavailable(f"blob {name} cannot be read: {_short(error)}") from error
        return _verified(name, data)

    def _size(self, name: str) -> int | None:
        from obstore.exceptions import BaseError

        try:
            return int(self._store.head(_key(name))["size"])
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as error:
            raise Unavailable(f"blob {name} cannot be looked up: {_short(error)}") from error


class MemoryBlobs:
    """The same contract in a dict, for tests and single processes."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    async def put(self, data: bytes) -> str:
        name = digest(data)
        self._blobs[name] = bytes(data)
        await asyncio.sleep(0)
        return name

    async def get(self, digest: str) -> bytes:
        _key(digest)
        await asyncio.sleep(0)
        try:
            return self._blobs[digest]
        except KeyError:
            raise _missing(digest) from None

    async def has(self, digest: str) -> bool:
        _key(digest)
        return digest in self._blobs


def _key(name: str) -> str:
    if not _DIGEST.fullmatch(name):
        raise InvalidRequest(f"{name[:80]!r} is no digest (64 lower-case hex digits)", "digest")
    return f"{name[:2]}/{name[2:]}"


def _missing(name: str) -> NotFound:
    return NotFound(f"there is no blob {name}", name)


def _verified(name: str, data: bytes) -> bytes:
    if (found := digest(data)) != name:
        raise CorruptBlob(f"blob {name} is damaged: its {len(data)} bytes have digest {found}")
    return data


def _short(error: Exception) -> str:
    """obstore's messages go on for a page of Rust structures after the first paragraph."""
    return str(error).partition("\n\n")[0]
