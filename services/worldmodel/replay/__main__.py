"""Packs recordings for the replay backend: pictures into the blob store, one line an episode.

    WMR1_BLOBS=var/blobs python -m services.worldmodel.replay SOURCE.jsonl PACKED.jsonl

SOURCE holds recordings (services/worldmodel/replay/recording.py), or is the
trajectories.jsonl of a training run. Then start the world model with WMR1_BACKENDS=replay
and WMR1_REPLAY=PACKED.jsonl.
"""

import asyncio
import sys
from pathlib import Path


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if "--help" in sys.argv else 2
    from services.worldmodel.replay.packing import pack
    from services.worldmodel.settings import WorldModelSettings
    from wmkit.blobs import open_blobs
    from wmkit.domain.errors import WMError
    from wmkit.settings import load

    source, target = map(Path, sys.argv[1:])
    try:
        count = asyncio.run(pack(source, target, open_blobs(load(WorldModelSettings).blobs)))
    except WMError as error:
        print(f"replay: {error.message}", file=sys.stderr)
        return 1
    print(f"{target}: {count} episodes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
