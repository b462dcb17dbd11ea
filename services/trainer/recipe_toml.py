"""Recipes as TOML text: parsed with one clear sentence per mistake, and written back.

The writer knows what recipes hold (strings, numbers, booleans, lists of them, tables); it
is no general TOML writer.
"""

import difflib
import json
import math
import tomllib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from services.trainer.recipe import Recipe
from wmkit.domain.errors import InvalidRequest

R = TypeVar("R", bound=BaseModel)


def parse(text: str) -> Recipe:
    """Read the recipe of a run. Raises InvalidRequest, see `parse_as`."""
    return parse_as(Recipe, text)


def parse_as(kind: type[R], text: str) -> R:
    """Read a recipe of that kind.

    Raises InvalidRequest with one sentence that names the key; an unknown key comes with
    the nearest known name.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidRequest(f"the recipe is no TOML: {error}", field="recipe_toml") from None
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        details = error.errors()
        # An unknown key explains the missing one that it was meant to be, so it goes first.
        first = next((d for d in details if d["type"] == "extra_forbidden"), details[0])
        raise InvalidRequest(_sentence(kind, first), field=_path(first)) from None


def dumps(recipe: BaseModel) -> str:
    """The whole recipe, defaults included; `parse(dumps(r)) == r`."""
    data = recipe.model_dump()
    tables = {key: value for key, value in data.items() if isinstance(value, Mapping)}
    lines = [f"{key} = {_value(value)}" for key, value in data.items() if key not in tables]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _path(detail: ErrorDetails) -> str:
    return ".".join(str(part) for part in detail["loc"])


def _sentence(kind: type[BaseModel], detail: ErrorDetails) -> str:
    path = _path(detail)
    match detail["type"]:
        case "extra_forbidden":
            known = _keys_beside(kind, detail)
            near = difflib.get_close_matches(str(detail["loc"][-1]), known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            return f"the recipe has an unknown key {path!r}; {hint}"
        case "missing":
            return f"the recipe lacks {path!r}"
        case "value_error":
            return f"recipe key {path!r}: {detail['msg'].removeprefix('Value error, ')}"
        case _:
            return f"recipe key {path!r} is {detail['input']!r}: {detail['msg']}"


def _keys_beside(kind: type[BaseModel], detail: ErrorDetails) -> list[str]:
    model = kind
    for part in detail["loc"][:-1]:
        annotation = model.model_fields[str(part)].annotation
        assert isinstance(annotation, type) and issubclass(annotation, BaseModel)
        model = annotation
    return list(model.model_fields)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # DEL is the one character that JSON leaves bare and TOML forbids.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else str(value)
        case list() | tuple():
            return "[" + ", ".join(_value(item) for item in value) + "]"
        case _:
            raise TypeError(f"no TOML for {type(value).__name__}")
