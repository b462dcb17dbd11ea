"""Trajectories as files: one file each, readable without this code (docs/trajectories.md).

    file        a trajectory and its blobs as one safetensors file, and back
    film        a filmstrip as one HTML page

What a trajectory is stands in `wmkit.domain.episode`, what must hold of one in
`wmkit.domain.validation`.
"""

from wmkit.trajectories.file import Bundle, collect, named_blobs, pack, store, unpack

__all__ = ["Bundle", "collect", "named_blobs", "pack", "store", "unpack"]
