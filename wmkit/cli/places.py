"""Where things lie: the checkout that holds the services, and the folders beside it."""

import importlib.util
from pathlib import Path

from wmkit.domain.errors import InvalidRequest, NotFound


def root() -> Path:
    """The checkout (or image folder) from which the services run.

    Raises NotFound where only the client is installed.
    """
    spec = importlib.util.find_spec("services")
    places = list(spec.submodule_search_locations or ()) if spec else []
    for place in places:
        if (Path(place) / "worldmodel").is_dir():
            return Path(place).parent
    raise NotFound(
        "the services are not here: this command runs from a checkout of the repository, "
        "the installed package holds only the client"
    )


def shown(path: Path) -> str:
    """A path as people want to read it: relative where that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def find(path: str, what: str) -> Path:
    """An existing file or folder, looked for from here and from the checkout. Raises NotFound."""
    for base in (Path.cwd(), root()):
        found = (base / Path(path).expanduser()).resolve()
        if found.exists():
            return found
    raise NotFound(f"there is no {what} {path!r}", path)


def read_text(path: Path) -> str:
    """Raises InvalidRequest for what is no text file."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path} cannot be read: {error}") from None
