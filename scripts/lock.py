"""Write requirements/*.lock from the environment that runs this.

    .venv/bin/python scripts/lock.py

Exact versions of everything that `wmr1[dev]` needs (cpu.lock) and, for the images, that each
service needs; nothing that merely happens to be installed. To move versions:
`pip install --upgrade` what should move, run the tests, lock.
"""

import re
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FOLDER = Path(__file__).parent.parent / "requirements"
SERVICES = ("renderer", "worldmodel", "policy", "rollout", "trainer")
HEADER = """\
# Exact versions of everything that {what} on a CPU.
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
        if name not in (root, "wmr1"):
            # A local suffix such as +cpu names a build that other indexes do not have.
            found[name] = package.version.partition("+")[0]
        for line in package.requires or ():
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": wanted}):
                todo += [(canonicalize_name(need.name), each) for each in ("", *need.extras)]
    return found


def write(name: str, what: str, pins: dict[str, str]) -> None:
    lines = [f"{package}=={version}" for package, version in sorted(pins.items())]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", line) for line in lines), lines
    text = HEADER.format(what=what) + "\n".join(lines) + "\n"
    (FOLDER / f"{name}.lock").write_text(text, encoding="utf-8")
    print(f"{name}.lock: {len(lines)} packages")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    # hatchling too: the build then needs nothing that is not locked.
    build = closure("hatchling", "") | {"hatchling": distribution("hatchling").version}
    write("cpu", "the services and their tests need", closure("wmr1", "dev") | build)
    for service in SERVICES:
        write(service, f"the {service} service needs", closure("wmr1", service))


if __name__ == "__main__":
    main()
