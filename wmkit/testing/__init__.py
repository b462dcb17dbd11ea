"""Stand-ins that users may test their own agents with: no process, no browser, no model."""

from wmkit.blobs import MemoryBlobs
from wmkit.testing.policy import FakePolicy, read
from wmkit.testing.world import FakeWorldModel

__all__ = ["FakePolicy", "FakeWorldModel", "MemoryBlobs", "read"]
