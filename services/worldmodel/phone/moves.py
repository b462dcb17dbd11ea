"""How a phone changes: an app's reply put in place with its effects, apps brought to the front.

Every function takes a phone and gives the next one, or the same where nothing changes.
"""

from dataclasses import replace

from services.worldmodel.phone.app import App, Reply
from services.worldmodel.phone.apps import APPS
from services.worldmodel.phone.effects import Ask, Effect, Notify, Open, Toast
from services.worldmodel.phone.state import HOME, Frame, Nav, Notice, Part, Phone, Prompt, Stack
from services.worldmodel.phone.system import NOTICES


def navigate(phone: Phone, **changes: object) -> Phone:
    """The phone with fields of `nav` replaced."""
    nav: Nav = replace(phone.nav, **changes)  # type: ignore[arg-type]
    return phone if nav == phone.nav else replace(phone, nav=nav)


def put(phone: Phone, data: Part, stack: Stack) -> Phone:
    """The phone with the front app's data and stack replaced, every list kept in range."""
    front = phone.nav.front
    if any(frame.scroll for frame in stack):
        stack = tuple(_in_range(front, data, frame) for frame in stack)
    nav = phone.nav
    if stack != nav.stack(front):
        nav = replace(nav, stacks=tuple((a, stack if a == front else s) for a, s in nav.stacks))
    kept = phone.data
    if data != phone.of(front):
        kept = tuple((name, data if name == front else part) for name, part in kept)
    if nav is phone.nav and kept is phone.data:
        return phone
    return replace(phone, nav=nav, data=kept)


def _in_range(app: str, data: Part, frame: Frame) -> Frame:
    """The frame scrolled no further than its list goes, which may have become shorter."""
    if frame.scroll == 0:
        return frame
    listing = APPS[app].listing(data, frame)
    last = listing.last if listing else 0
    return replace(frame, scroll=last) if frame.scroll > last else frame


def reply(phone: Phone, said: Reply[Part]) -> Phone:
    """The phone after the app in front has reacted, its effects carried out in order."""
    app = phone.nav.front
    phone = put(phone, said.data, said.stack)
    for effect in said.effects:
        phone = carry_out(phone, app, effect)
    return phone


def carry_out(phone: Phone, app: str, effect: Effect) -> Phone:
    """Do what an app asks for."""
    match effect:
        case Toast(words):
            return navigate(phone, toast=words)
        case Open():
            return follow(phone, effect)
        case Notify(title, text, page, item):
            return notify(phone, Notice(app, title, text, page, item))
        case Ask(permission, then):
            assert phone.nav.front == app, "only the app in front may ask"
            if (app, permission) in phone.system.granted:
                return tapped(phone, then)
            return navigate(phone, prompt=Prompt(app, permission, then))


def tapped(phone: Phone, key: str) -> Phone:
    """The app in front gets a key."""
    front = phone.nav.front
    return reply(phone, APPS[front].tap(phone.of(front), phone.nav.stack(front), key))


def notify(phone: Phone, notice: Notice) -> Phone:
    """A notification on top of the others; the same one again moves up."""
    others = tuple(n for n in phone.system.notices if n != notice)
    notices = (notice, *others)[:NOTICES]
    return replace(phone, system=replace(phone.system, notices=notices))


def follow(phone: Phone, link: Open) -> Phone:
    """Open a page of an app, with fields filled in; a toast where there is no such app."""
    app = APPS.get(link.app)
    if app is None:
        return navigate(phone, toast=f"{link.app} is not installed")
    if not link.page:
        return bring(phone, link.app)
    said = _linked(app, phone.of(link.app), link)
    frame = said.stack[-1]
    known = app.fields(frame)
    typed = dict(frame.fields) | {k: v for k, v in link.fields if k in known and v}
    stack = (*said.stack[:-1], replace(frame, fields=tuple(sorted(typed.items()))))
    return reply(bring(phone, link.app), Reply(said.data, stack, said.effects))


def _linked(app: App[Part], data: Part, link: Open) -> Reply[Part]:
    if app.link is not None:
        return app.link(data, link.page, link.item)
    for stack in app.pages(data):
        if (stack[-1].page, stack[-1].item) == (link.page, link.item):
            return Reply(data, stack)
    return Reply(data, (app.root,))


def bring(phone: Phone, name: str) -> Phone:
    """Bring an app to the front, where it was left; unknown names change nothing."""
    if name not in APPS:
        return phone
    nav = phone.nav
    if nav.front == name:
        return navigate(phone, shade=False, shift=False)
    stack = nav.stack(name) or (APPS[name].root,)
    others = tuple((a, s) for a, s in nav.stacks if a != name)
    return navigate(phone, front=name, stacks=(*others, (name, stack)), shade=False, shift=False)


def go_to(phone: Phone, front: str) -> Phone:
    """Home or the recent apps; home shows its first page."""
    page = 0 if front == HOME else phone.nav.page
    return navigate(phone, front=front, page=page, shade=False, shift=False)


def top(phone: Phone, **changes: object) -> Phone:
    """The phone with fields of the frame in front replaced."""
    front = phone.nav.front
    stack = phone.nav.stack(front)
    frame: Frame = replace(stack[-1], **changes)  # type: ignore[arg-type]
    return put(phone, phone.of(front), (*stack[:-1], frame))


def leave(phone: Phone) -> Phone:
    """Leave the page on top; leaving the last one goes home and resets the app."""
    front = phone.nav.front
    stack = phone.nav.stack(front)
    if len(stack) > 1:
        return put(phone, phone.of(front), stack[:-1])
    root = (APPS[front].root,)
    stacks = tuple((a, root if a == front else s) for a, s in phone.nav.stacks)
    return navigate(phone, front=HOME, stacks=stacks, page=0)
