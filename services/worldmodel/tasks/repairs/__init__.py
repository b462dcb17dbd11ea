"""From an app's data as it is to the data as it should be: the next action, per app.

One function per app: it compares the two and puts the first difference right, undoing side
effects too. None means that nothing is left to do; what cannot be undone is given up.
"""

from collections.abc import Callable
from typing import Any

from services.worldmodel.phone.state import Phone
from services.worldmodel.tasks.repairs import (
    basic,
    browser,
    calculator,
    calendar,
    files,
    gallery,
    mail,
    messages,
    music,
    phone,
    shop,
)
from wmkit.domain.actions import Action

REPAIRS: dict[str, Callable[[Phone, Any, Any], Action | None]] = {
    "Settings": basic.settings,
    "Clock": basic.clock,
    "Notes": basic.notes,
    "Contacts": basic.contacts,
    "Messages": messages.messages,
    "Phone": phone.phone,
    "Calendar": calendar.calendar,
    "Files": files.files,
    "Gallery": gallery.gallery,
    "Calculator": calculator.calculator,
    "Music": music.music,
    "Shop": shop.shop,
    "Mail": mail.mail,
    "Browser": browser.browser,
}
