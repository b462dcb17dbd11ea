"""One trajectory as one safetensors file, with the blobs that it names.

Metadata: `format`, `format_version` and `trajectory`, the JSON document without the token
lists. Tensors: those lists, all segments one after the other, and each blob as bytes. The
token lists come back exactly: log-probabilities are stored as the doubles that they are.

The container is written and read here, for it is a length, a JSON header and bytes, and the
safetensors library has no stable way in without numpy; the tests read the files with it.
"""

import json
import struct
import sys
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pydantic import ValidationError

from wmkit.blobs import digest
from wmkit.domain.episode import FORMAT_VERSION, Trajectory
from wmkit.domain.errors import CorruptBlob, InvalidRequest, NotFound
from wmkit.ports import BlobStore

FORMAT = "wmr1-trajectory"
SUFFIX = ".safetensors"
LISTS = {  # by falling size, so that every tensor is aligned
    "logprobs": ("F64", "d"),
    "token_ids": ("I32", "i"),
    "versions": ("I32", "i"),
    "mask": ("U8", "B"),
}
BLOB = "blob/"
_SIZES = {"F64": 8, "I64": 8, "I32": 4, "U8": 1}


@dataclass(frozen=True, slots=True)
class Bundle:
    """A trajectory and blobs by digest: payloads of its states, pictures."""

    trajectory: Trajectory
    blobs: Mapping[str, bytes] = field(default_factory=dict)


def named_blobs(trajectory: Trajectory, *, pictures: bool = True) -> set[str]:
    """Digests that the trajectory names: payloads and, unless told otherwise, pictures."""
    found = set(trajectory.payloads.values())
    if pictures:
        found.add(trajectory.final_screenshot)
        for step in trajectory.steps:
            found.add(step.screenshot)
            found.update(call.screenshot for call in step.imagined)
            found.update(image.digest for image in step.segment.images)
    return found - {""}


async def collect(trajectory: Trajectory, blobs: BlobStore, *, pictures: bool = True) -> Bundle:
    """The trajectory with its blobs from a store. Raises NotFound for one that is missing."""
    found = {}
    for name in sorted(named_blobs(trajectory, pictures=pictures)):
        try:
            found[name] = await blobs.get(name)
        except NotFound:
            raise NotFound(
                f"{trajectory.job.job_id} names blob {name}, which the store lacks", name
            ) from None
    return Bundle(trajectory, found)


def pack(bundle: Bundle) -> bytes:
    """The bytes of the file; `unpack` gives the same bundle back, and the same digest."""
    document = bundle.trajectory.model_dump(mode="json")
    columns: dict[str, list[Any]] = {name: [] for name in LISTS}
    ends = [0]
    for step in document["steps"]:
        for name, column in columns.items():
            column += step["segment"].pop(name)
        ends.append(len(columns["token_ids"]))
    tensors = [("segments", "I64", _packed("q", ends))]
    tensors += [
        (name, dtype, _packed(code, columns[name])) for name, (dtype, code) in LISTS.items()
    ]
    tensors += [(BLOB + name, "U8", data) for name, data in sorted(bundle.blobs.items())]
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "trajectory": json.dumps(document, ensure_ascii=False),
    }
    header: dict[str, Any] = {"__metadata__": metadata}
    at = 0
    for name, dtype, data in tensors:
        shape = [len(data) // _SIZES[dtype]]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *(data for _, _, data in tensors)])


def unpack(data: bytes) -> Bundle:
    """Read a file.

    Raises InvalidRequest for what is no trajectory file of this version, CorruptBlob for a
    blob that does not match its name.
    """
    metadata, tensors = _read(data)
    if metadata.get("format") != FORMAT:
        raise InvalidRequest("this safetensors file holds no trajectory")
    if (version := metadata.get("format_version")) != str(FORMAT_VERSION):
        raise InvalidRequest(
            f"the trajectory has format version {version}, this code reads {FORMAT_VERSION}"
        )
    try:
        document = json.loads(metadata["trajectory"])
        ends = _unpacked("q", tensors["segments"])
        columns = {name: _unpacked(code, tensors[name]) for name, (_, code) in LISTS.items()}
        for step, (start, end) in zip(document["steps"], pairwise(ends), strict=True):
            for name, column in columns.items():
                if not 0 <= start <= end <= len(column):
                    raise ValueError(f"segment [{start}, {end}) lies outside {name}")
                step["segment"][name] = column[start:end]
        trajectory = Trajectory.model_validate(document)
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(f"the trajectory file is damaged: {_first(error)}") from None
    blobs = {
        name.removeprefix(BLOB): content
        for name, content in tensors.items()
        if name.startswith(BLOB)
    }
    for name, content in blobs.items():
        if (found := digest(content)) != name:
            raise CorruptBlob(f"blob {name} is damaged: its bytes have digest {found}")
    return Bundle(trajectory, blobs)


async def store(bundle: Bundle, blobs: BlobStore) -> str:
    """Put the blobs and the trajectory into a store; the trajectory's digest there."""
    for data in bundle.blobs.values():
        await blobs.put(data)
    return await blobs.put(bundle.trajectory.model_dump_json().encode())


def _packed(code: str, values: Iterable[Any]) -> bytes:
    numbers = array(code, values)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _unpacked(code: str, data: bytes) -> list[Any]:
    numbers = array(code, data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def _read(data: bytes) -> tuple[dict[str, str], dict[str, bytes]]:
    """Metadata, and the bytes of each tensor."""
    try:
        (length,) = struct.unpack_from("<Q", data)
        body = memoryview(data)[8 + length :]
        header = json.loads(data[8 : 8 + length])
        metadata = dict(header.pop("__metadata__", {}))
        tensors = {}
        for name, tensor in header.items():
            start, end = tensor["data_offsets"]
            if not 0 <= start <= end <= len(body):
                raise ValueError(f"{name} lies outside the file")
            tensors[name] = bytes(body[start:end])
    except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise InvalidRequest(f"this is no safetensors file: {error}") from None
    return metadata, tensors


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
    return f"{type(error).__name__}: {error}"
