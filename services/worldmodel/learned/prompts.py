"""Prompt texts with named placeholders, from a TOML file. Fills them in; judges no content.

A file has the key `user` and, where the model takes one, `system`. A placeholder is `{name}`;
only the names that the model knows are placeholders, all other braces are text, so CSS and
JSON need no escaping.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wmkit.domain.errors import InvalidRequest

OWN = Path(__file__).parent / "prompts"
"""The texts that come with the service, in our own words."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """`system` is empty where the model gets no system turn."""

    system: str
    user: str

    def fill(self, values: Mapping[str, str]) -> "Prompt":
        """The texts with every placeholder replaced; what is filled in is not read again."""
        pattern = re.compile("|".join(rf"\{{{re.escape(name)}\}}" for name in values))

        def put(text: str) -> str:
            return pattern.sub(lambda found: values[found[0][1:-1]], text)

        return Prompt(put(self.system), put(self.user))


def read(path: str | Path, *, needs: Sequence[str], setting: str) -> Prompt:
    """Read a prompt file that must use every placeholder in `needs`.

    Raises InvalidRequest, which names `setting`, for a file that is no such prompt.
    """
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{setting}={path} cannot be read: {error}", field=setting) from None
    unknown = set(found) - {"system", "user"}
    texts = [found.get("system", ""), found.get("user")]
    if unknown or not all(isinstance(text, str) for text in texts):
        raise InvalidRequest(
            f"{setting}={path}: a prompt file has the text 'user' and may have 'system', "
            "nothing else",
            field=setting,
        )
    prompt = Prompt(texts[0].strip(), texts[1].strip())
    for name in needs:
        if f"{{{name}}}" not in prompt.system + prompt.user:
            raise InvalidRequest(f"{setting}={path} never says {{{name}}}", field=setting)
    return prompt
