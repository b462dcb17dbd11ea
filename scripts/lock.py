"""Write requirements/cpu.lock from the environment that runs this.

    .venv/bin/python scripts/lock.py

Exact versions of everything that `wmr1[dev]` needs, and nothing that merely happens to be
installed. To move versions: `pip install --upgrade` what should move, run the tests, lock.
"""

import re
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).parent.parent / "requirements" / "cpu.lock"
HEADER = """\
# Exact versions of everything that the services and their tests need, on a CPU.
# Written by `make lock`; do not edit.
"""


def closure(root: str, extra: str) -> dict[str, str]:
    """Names and versions of all that `root[extra]` needs, directly or not."""
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    todo = [(root, extra)]
    while todo:
        name, wanted = todo.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        package = distribution(name)
        if name != root:
            # A local suffix such as +cpu names a build that other indexes do not have.
            found[name] = package.version.partition("+")[0]
        for line in package.requires or ():
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": wanted}):
                todo += [(canonicalize_name(need.name), each) for each in ("", *need.extras)]
    return found


def main() -> None:
    # hatchling too: the build then needs nothing that is not locked.
    pins = closure("wmr1", "dev") | closure("hatchling", "")
    pins["hatchling"] = distribution("hatchling").version
    pins.pop("wmr1", None)
    lines = [f"{name}=={version}" for name, version in sorted(pins.items())]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", line) for line in lines), lines
    LOCK.parent.mkdir(exist_ok=True)
    LOCK.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} packages in {LOCK}")


if __name__ == "__main__":
    main()
