"""What every blob store promises, on a folder and in memory."""

from pathlib import Path

import pytest

from wmkit.blobs import MemoryBlobs, digest, open_blobs
from wmkit.domain.errors import CorruptBlob, InvalidRequest, NotFound
from wmkit.ports import BlobStore

# The first test vector of the BLAKE3 paper's repository: the empty input.
EMPTY = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"


@pytest.fixture(params=["folder", "memory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    url = "memory://" if request.param == "memory" else str(tmp_path / "deep" / "blobs")
    return open_blobs(url)


async def test_bytes_come_back_under_their_digest(blobs: BlobStore) -> None:
    assert await blobs.put(b"") == EMPTY
    name = await blobs.put(b"\x00\xffscreen")
    assert await blobs.get(EMPTY) == b""
    assert await blobs.get(name) == b"\x00\xffscreen"


async def test_equal_bytes_have_one_name(blobs: BlobStore) -> None:
    assert await blobs.put(b"a") == await blobs.put(b"a") != await blobs.put(b"b")


async def test_has_tells_what_is_there(blobs: BlobStore) -> None:
    assert not await blobs.has(EMPTY)
    await blobs.put(b"")
    assert await blobs.has(EMPTY)


async def test_a_missing_blob_is_named(blobs: BlobStore) -> None:
    with pytest.raises(NotFound) as caught:
        await blobs.get(EMPTY)
    assert caught.value.resource == EMPTY
    assert EMPTY in caught.value.message


@pytest.mark.parametrize("name", ["", "../../etc/passwd", EMPTY.upper(), EMPTY + "0"])
async def test_only_digests_are_looked_up(blobs: BlobStore, name: str) -> None:
    with pytest.raises(InvalidRequest, match="is no digest"):
        await blobs.get(name)
    with pytest.raises(InvalidRequest, match="is no digest"):
        await blobs.has(name)


async def test_a_folder_keeps_blobs_in_shards(tmp_path: Path) -> None:
    await open_blobs(f"file://{tmp_path}").put(b"")
    assert (tmp_path / EMPTY[:2] / EMPTY[2:]).read_bytes() == b""


async def test_another_process_sees_the_folder(tmp_path: Path) -> None:
    name = await open_blobs(str(tmp_path)).put(b"shared")
    assert await open_blobs(str(tmp_path)).get(name) == b"shared"


async def test_a_damaged_blob_is_never_returned(tmp_path: Path) -> None:
    blobs = open_blobs(str(tmp_path))
    name = await blobs.put(b"weights")
    (tmp_path / name[:2] / name[2:]).write_bytes(b"weightz")
    with pytest.raises(CorruptBlob, match=name):
        await blobs.get(name)


async def test_putting_again_mends_a_blob_that_was_cut_short(tmp_path: Path) -> None:
    blobs = open_blobs(str(tmp_path))
    name = await blobs.put(b"weights")
    (tmp_path / name[:2] / name[2:]).write_bytes(b"wei")
    await blobs.put(b"weights")
    assert await blobs.get(name) == b"weights"


async def test_putting_what_is_there_writes_nothing(tmp_path: Path) -> None:
    blobs = open_blobs(str(tmp_path))
    name = await blobs.put(b"once")
    file = tmp_path / name[:2] / name[2:]
    before = file.stat().st_ino, file.stat().st_mtime_ns
    await blobs.put(b"once")
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == before


async def test_memory_does_not_alias_the_callers_buffer() -> None:
    blobs, buffer = MemoryBlobs(), bytearray(b"abc")
    name = await blobs.put(buffer)  # type: ignore[arg-type]
    buffer[0] = 0
    assert await blobs.get(name) == b"abc"
    assert name == digest(b"abc")


def test_an_unknown_kind_of_store_is_one_sentence() -> None:
    with pytest.raises(InvalidRequest) as caught:
        open_blobs("gopher://host/blobs")
    assert "\n" not in caught.value.message


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequest, match="Not a directory"):
        open_blobs(str(tmp_path / "file" / "blobs"))
