"""What an app asks of the system when it reacts: small values, carried out by the reducer.

Apps never see each other's data. Whatever one app hands to another travels in an effect.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Toast:
    """A short message near the bottom of the screen until the next action."""

    words: str


@dataclass(frozen=True)
class Open:
    """Bring another app to the front on a page of its own; see `App.link`.

    `fields` fills text fields of that page, such as what is shared. For an app that this
    phone does not have a toast says so.
    """

    app: str
    page: str = ""
    item: str = ""
    fields: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Notify:
    """A notification in the shade; tapping it opens the app on that page ("" = as it is)."""

    title: str
    text: str = ""
    page: str = ""
    item: str = ""


@dataclass(frozen=True)
class Ask:
    """Ask for a permission ("Camera"); once it is granted the app's `tap` gets the key `then`.

    Granted before: at once. Denied: nothing more happens, and it is asked again next time.
    """

    permission: str
    then: str


Effect = Toast | Open | Notify | Ask
