"""What the system's own buttons do: keyboard, shade, permission prompt, interruption."""

from dataclasses import replace

from services.worldmodel.phone.apps.settings import Settings
from services.worldmodel.phone.effects import Open
from services.worldmodel.phone.moves import follow, navigate, tapped
from services.worldmodel.phone.state import Nav, Notice, Phone


def system_key(phone: Phone, verb: str, name: str) -> Phone:
    """React to the key `os.verb:name`; the keyboard's are the reducer's."""
    match verb:
        case "clear":
            return replace(phone, nav=Nav())
        case "shift":
            return navigate(phone, shift=not phone.nav.shift)
        case "tile":
            return _toggle(phone, name, not phone.of("Settings").on(name))
        case "notice":
            notice = phone.system.notices[int(name)]
            phone = navigate(_dismiss(phone, notice), shade=False)
            return follow(phone, Open(notice.app, notice.page, notice.item))
        case "dismiss":
            return _dismiss(phone, phone.system.notices[int(name)])
        case "clear-notices":
            return replace(phone, system=replace(phone.system, notices=()))
        case "allow" | "deny":
            return answer_prompt(phone, verb == "allow")
        case _:
            assert verb == "popup", verb
            return answer_popup(phone, name)


def answer_prompt(phone: Phone, allowed: bool) -> Phone:
    """Close the permission prompt; once allowed, the app goes on with what it was asked."""
    prompt = phone.nav.prompt
    assert prompt is not None
    phone = navigate(phone, prompt=None)
    if not allowed:
        return phone
    granted = tuple(sorted({*phone.system.granted, (prompt.app, prompt.permission)}))
    phone = replace(phone, system=replace(phone.system, granted=granted))
    return tapped(phone, prompt.then)


def answer_popup(phone: Phone, answer: str) -> Phone:
    """Close the interruption and do what the answer says."""
    phone = navigate(phone, popup="")
    match answer:
        case "saver":
            return _toggle(phone, "Saver", True)
        case "restart":
            return replace(phone, nav=Nav())
        case "answer":
            return navigate(phone, toast="Call ended")
        case _:
            assert answer == "close", answer
            return phone


def close_dialogs(phone: Phone) -> Phone:
    """Whatever the system asks is answered with no: what back, home and the like do."""
    return navigate(phone, popup="", prompt=None)


def count_down(phone: Phone) -> Phone:
    """One action has passed: the next interruption comes closer, or appears."""
    first, *rest = phone.system.due
    if phone.nav.popup:
        return phone
    if first.actions > 1:
        due = (replace(first, actions=first.actions - 1), *rest)
        return replace(phone, system=replace(phone.system, due=due))
    phone = replace(phone, system=replace(phone.system, due=tuple(rest)))
    return navigate(phone, popup=first.popup)


def _dismiss(phone: Phone, notice: Notice) -> Phone:
    notices = tuple(n for n in phone.system.notices if n != notice)
    return replace(phone, system=replace(phone.system, notices=notices))


def _toggle(phone: Phone, name: str, on: bool) -> Phone:
    """A toggle of Settings, wherever it is shown."""
    settings: Settings = phone.of("Settings")
    if settings.on(name) == on:
        return phone
    flipped = settings.having(name, on)
    data = tuple((app, flipped if app == "Settings" else part) for app, part in phone.data)
    return replace(phone, data=data)
