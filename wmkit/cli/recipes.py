"""Recipes on this side of the wire: read, adjusted by options, checked before anything starts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wmkit.cli import places
from wmkit.domain.errors import BadCheckpoint, InvalidRequest, NotFound

if TYPE_CHECKING:
    from services.trainer.recipe import Recipe


def read(path: str) -> "Recipe":
    """A recipe file. Raises NotFound, and InvalidRequest that names the key at fault."""
    from services.trainer.recipe_toml import parse

    return parse(places.read_text(places.find(path, "recipe")))


def changed(recipe: "Recipe", changes: Mapping[str, Any]) -> "Recipe":
    """The recipe with some keys set, `{"schedule.iterations": 0}`; None leaves a key as it is.

    Raises InvalidRequest for a value that the recipe does not allow.
    """
    from pydantic import ValidationError

    from services.trainer.recipe import Recipe

    data = recipe.model_dump()
    for path, value in changes.items():
        if value is not None:
            *tables, key = path.split(".")
            table = data
            for name in tables:
                table = table[name]
            table[key] = value
    try:
        return Recipe.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        reason = first["msg"].removeprefix("Value error, ")
        raise InvalidRequest(f"{path} = {first['input']!r}: {reason}", field=path) from None


def local(recipe: "Recipe") -> "Recipe":
    """The recipe with the full path of its checkpoint. Raises BadCheckpoint."""
    return changed(recipe, {"checkpoint": checkpoint(recipe.checkpoint)})


def checkpoint(path: str) -> str:
    """The full path of a checkpoint folder. Raises BadCheckpoint, in one sentence."""
    try:
        folder = places.find(path, "checkpoint folder")
    except NotFound as error:
        raise BadCheckpoint(error.message, field="checkpoint") from None
    if not folder.is_dir():
        raise BadCheckpoint(f"{path} is a file, not a checkpoint folder", field="checkpoint")
    if not (folder / "config.json").is_file() or not any(folder.glob("*.safetensors")):
        raise BadCheckpoint(
            f"{places.shown(folder)} is no checkpoint: it lacks config.json or *.safetensors",
            field="checkpoint",
        )
    return str(folder)
