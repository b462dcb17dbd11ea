"""Draws the twenty pictures of docs/phone/: every app, both themes, the system's own screens.

    python scripts/phone_album.py [docs/phone]

Needs Chromium on the PATH. The states are fixed, so that a picture changes only with the phone.
"""

import io
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from services.worldmodel.phone import APPS, Phone, boot, html, step
from services.worldmodel.phone.state import Due, Frame, Nav
from services.worldmodel.phone.system import NOISE
from wmkit.domain.actions import Scroll, Type

SIZE = (360, 800)
SEED = 4


def phone(dark: bool = False, font: int = 100) -> Phone:
    """A phone with two notifications, in a theme and text size."""
    plain = boot(SEED)
    settings = plain.of("Settings").having("Night", dark)
    data = tuple((name, settings if name == "Settings" else part) for name, part in plain.data)
    system = replace(plain.system, font_percent=font, notices=NOISE[:2])
    return replace(plain, system=system, data=data)


def at(base: Phone, app: str, *pages: str, scroll: int = 0) -> Phone:
    """An app open on its first page that goes through pages of these kinds."""
    for stack in APPS[app].pages(base.of(app)):
        if tuple(frame.page for frame in stack) == pages:
            shown = (*stack[:-1], replace(stack[-1], scroll=scroll))
            return replace(base, nav=Nav(app, ((app, shown),)))
    raise SystemExit(f"{app} has no page {' > '.join(pages)}")


def album() -> Iterator[tuple[str, Phone]]:
    """(name, phone) of every picture."""
    light, dark = phone(), phone(dark=True)
    yield "home", light
    yield "home-dark", step(dark, Scroll("right"))
    yield "shade", step(light, Scroll("up"))
    yield "shade-dark", step(dark, Scroll("up"))
    yield "settings", at(light, "Settings", "main", "category")
    yield "clock-dark", at(dark, "Clock", "Alarms", scroll=1)
    yield "notes", step(at(light, "Notes", "list", "edit"), Type("Soap and keys"))
    contact = at(dark, "Contacts", "People", "contact")
    item = contact.nav.stacks[0][1][-1].item
    asked = (Frame("People"), Frame("contact", item, dialog=item))
    yield "contacts-dark", replace(contact, nav=Nav("Contacts", (("Contacts", asked),)))
    yield "messages", at(light, "Messages", "list", "thread")
    yield "phone-dark", at(dark, "Phone", "Keypad")
    yield "calendar", at(light, "Calendar", "Days")
    yield "files-dark", at(dark, "Files", "Folders", "folder")
    yield "gallery", at(light, "Gallery", "Photos")
    yield "calculator-dark", at(dark, "Calculator", "keypad")
    yield "music", at(light, "Music", "Songs", "player")
    yield "shop", at(phone(font=115), "Shop", "Shop", "category")
    yield "shop-dark", at(dark, "Shop", "Shop", "category", "item")
    yield "mail", at(light, "Mail", "Inbox")
    yield "browser-dark", at(phone(dark=True, font=115), "Browser", "start", "page")
    mail = at(light, "Mail", "Inbox", "letter")
    soon = replace(mail, system=replace(mail.system, due=(Due("battery", 1),)))
    yield "interruption", step(soon, Scroll("down"))


def main(folder: Path) -> None:
    browser_path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if browser_path is None:
        raise SystemExit("no Chromium on the PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1080, "height": 2400})
        for name, state in album():
            page.set_content(html(state))
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            small = picture.resize(SIZE, Image.Resampling.LANCZOS)
            small.quantize(128).save(folder / f"{name}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/phone"))
