"""Tasks that carry what was read in one app into another, or need several apps in turn."""

from dataclasses import replace
from random import Random

from services.worldmodel.phone.apps.browser import Browser
from services.worldmodel.phone.apps.calculator import Calculator
from services.worldmodel.phone.apps.calendar import Calendar, Event, day_name
from services.worldmodel.phone.apps.clock import PRESETS, Clock
from services.worldmodel.phone.apps.contacts import Contacts
from services.worldmodel.phone.apps.goods import CATEGORY, Line, Order, Shop, money
from services.worldmodel.phone.apps.mail import Mail
from services.worldmodel.phone.apps.notes import Notes
from services.worldmodel.phone.apps.settings import Settings
from services.worldmodel.phone.apps.sites import SUFFIX, Site
from services.worldmodel.phone.apps.songs import Music
from services.worldmodel.phone.apps.threads import Messages
from services.worldmodel.phone.look import NAMES
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.task import edited
from services.worldmodel.tasks.template import Draft, Template, wordings
from services.worldmodel.tasks.templates.calendar import free_titles
from services.worldmodel.tasks.templates.contacts import strangers
from services.worldmodel.tasks.templates.mail import with_letter
from services.worldmodel.tasks.touch import Look

PRICE_NOTE = (
    "Create a note titled {0} with the price of the {0} in Shop.",
    "Look up in Shop what the {0} costs and write it into a note titled {0}.",
    "Write a note called {0} that holds the price of the {0}, as Shop gives it.",
)
EVENT = (
    "Put the {0} of my mail {0} into Calendar: it is on {1}, the time stands in the mail.",
    "Add the event {0} on {1} to Calendar; its time is in the mail {0}.",
    "The mail {0} says at what time it starts on {1}: add {0} to Calendar.",
)
SUM = (
    "Add the price of the {0} in Shop and the amount of the mail {1} in the Calculator. "
    "What is the sum?",
    "What do the {0} in Shop and the {1} in Mail come to? Add them in the Calculator, in this "
    "order.",
    "Work out in the Calculator: the price of the {0} (Shop) plus the amount of the {1} (Mail). "
    "Tell me the sum.",
)
SUM_NOTE = (
    "Add the price of the {0} in Shop and the amount of the mail {1} in the Calculator, and "
    "write the sum into a note titled {2}.",
    "In the Calculator, work out the price of the {0} (Shop) plus the amount of the {1} (Mail). "
    "Then create a note titled {2} with the sum.",
    "Note titled {2}: what the {0} in Shop and the mail {1} come to, added in the Calculator in "
    "this order.",
)
NUMBER = (
    "Send {1} the number of {0} by message.",
    "Look up the number of {0} in Contacts and send it to {1} in Messages.",
    "{1} asks for the number of {0}: send it in Messages.",
)
CODE = (
    "Send {0} a message with the code from my mail Login.",
    "Read the code in the mail Login and send it to {0} in Messages.",
    "{0} needs the code of the mail Login: send it by message.",
)
WEATHER_NOTE = (
    "Create a note titled {0} with the temperature of {0} from {1}.",
    "See {1} for the temperature of {0} and write it into a note titled {0}.",
    "Write a note called {0} that says how warm it is there, as {1} has it.",
)
RATE_REPLY = (
    "Reply to the mail {0} with the rate of the {1} from {2}.",
    "Look up the {1} on {2} and answer the mail {0} with it.",
    "The mail {0} asks what a {1} costs: reply with what {2} says.",
)
BUY_AND_WRITE = (
    "Buy a {0}, and nothing else; then mail {1} with the subject {0} and the text {2}.",
    "Order one {0} in Shop, then write to {1} by mail: subject {0}, text {2}.",
    "Get a {0} from the Shop and send {1} a mail about {0} that says {2}.",
)
EVENING = (
    "Turn on Silent, play {0} and start a Timer for {1} min.",
    "Put on {0} in Music, start the {1} min Timer, and switch Silent on.",
    "Silent on, Timer for {1} min, and play the song {0}.",
)
IF_WARM = (
    "If {0} has more than {1} degrees on {2}, turn on the {3} alarm; otherwise turn it off.",
    "Look at {2}: set the alarm {3} to on when it is warmer than {1} °C in {0}, else to off.",
    "When {2} gives {0} more than {1} °C, the {3} alarm should be on, if not, off.",
)
SUMS = ("Total", "Costs", "Sum", "Bill")
SAID = ("Ordered", "Bought", "Coming", "Surprise")


def _item(name: str, noted: str, use: str) -> Look:
    page = (Frame("Shop"), Frame("category", CATEGORY[name]), Frame("item", name))
    return Look("Shop", page, noted=noted, use=use)


def _letter(subject: str, noted: str, use: str) -> Look:
    return Look("Mail", (Frame("Inbox"), Frame("letter", subject)), noted=noted, use=use)


def _site(address: str, noted: str, use: str) -> Look:
    page = (Frame("start"), Frame("page", address))
    return Look("Browser", page, noted=noted, use=use, typed=("Address", address))


def _page(browser: Browser, host: str) -> Site:
    site = browser.site(host + SUFFIX)
    assert site is not None
    return site


def _price_note(rng: Random, phone: Phone, _seed: int) -> Draft:
    notes: Notes = phone.of("Notes")
    item = rng.choice(phone.of("Shop").items)
    price = money(item.cents)
    want = edited(phone.data, Notes=notes.adding(item.name, price))
    words = wordings(PRICE_NOTE, item.name)
    return Draft(words, phone.data, want, _item(item.name, price, "Notes"))


def _event(rng: Random, phone: Phone, _seed: int) -> Draft:
    calendar: Calendar = phone.of("Calendar")
    known = [title for title in ("Dentist", "Party", "Meeting") if title in free_titles(calendar)]
    if not known:
        calendar = calendar.without("Meeting")
        calendar = replace(
            calendar, invites=tuple((p, t) for p, t in calendar.invites if t != "Meeting")
        )
        known = ["Meeting"]
    name, day = rng.choice(known), rng.randrange(14)
    event = Event(name, day, 5 * rng.randrange(7 * 12, 20 * 12))
    mail = with_letter(rng, phone.of("Mail"), name)
    mail = mail.changing(name, lines=(f"Date {day_name(day)}", f"Starts {event.time}"))
    start = edited(phone.data, Calendar=calendar, Mail=mail)
    want = edited(start, Calendar=calendar.adding(event))
    words = wordings(EVENT, name, day_name(day))
    return Draft(words, start, want, _letter(name, event.time, "Calendar"))


def _priced(rng: Random, phone: Phone, unit: int) -> tuple[Phone, str, str, Calculator]:
    """A phone with an item and a mail to add up: (phone, item, subject, the sum worked out).

    Prices are multiples of `unit` cents, so that they are short to type.
    """
    shop: Shop = phone.of("Shop")
    name, subject = rng.choice(shop.items).name, rng.choice(("Invoice", "Refund", "Rent"))
    price, amount = (unit * rng.randint(500 // unit, 9900 // unit) for _ in range(2))
    items = tuple(replace(i, cents=price) if i.name == name else i for i in shop.items)
    mail = with_letter(rng, phone.of("Mail"), subject, lines=(f"Amount {money(amount)}",))
    start = edited(phone.data, Shop=replace(shop, items=items), Mail=mail)
    calculator: Calculator = phone.of("Calculator")
    worked_out = calculator.calculating(f"{price / 100:g}+{amount / 100:g}")
    return replace(phone, data=start), name, subject, worked_out


def _sum(rng: Random, phone: Phone, _seed: int) -> Draft:
    phone, name, subject, worked_out = _priced(rng, phone, 50)
    want = edited(phone.data, Calculator=worked_out)
    return Draft(
        wordings(SUM, name, subject),
        phone.data,
        want,
        _item(name, "price", "Calculator"),
        worked_out.history[-1].result,
        "money",
        also=(_letter(subject, "amount", "Calculator"),),
    )


def _sum_note(rng: Random, phone: Phone, _seed: int) -> Draft:
    phone, name, subject, worked_out = _priced(rng, phone, 100)
    notes, title = phone.of("Notes"), rng.choice(SUMS)
    total = worked_out.history[-1].result
    want = edited(phone.data, Calculator=worked_out, Notes=notes.adding(title, total))
    return Draft(
        wordings(SUM_NOTE, name, subject, title),
        phone.data,
        want,
        _item(name, "price", "Calculator"),
        also=(_letter(subject, "amount", "Calculator"),),
        order=("Calculator", "Notes"),
    )


def _number(rng: Random, phone: Phone, seed: int) -> Draft:
    """On odd seeds nobody of that name is in Contacts."""
    contacts: Contacts = phone.of("Contacts")
    messages: Messages = phone.of("Messages")
    people = Frame("People")
    if seed % 2:
        name = rng.choice(strangers(contacts))
        to = rng.choice([thread.name for thread in messages.threads if thread.name != name])
        look = Look("Contacts", (people,), to_end=True)
        return Draft(wordings(NUMBER, name, to), phone.data, phone.data, look, feasible=False)
    person = rng.choice(contacts.people)
    to = rng.choice([t.name for t in messages.threads if t.name != person.name])
    want = edited(phone.data, Messages=messages.sending(to, person.number))
    page = (people, Frame("contact", person.name))
    look = Look("Contacts", page, noted=person.number, use="Messages")
    return Draft(wordings(NUMBER, person.name, to), phone.data, want, look)


def _code(rng: Random, phone: Phone, _seed: int) -> Draft:
    messages: Messages = phone.of("Messages")
    mail = with_letter(rng, phone.of("Mail"), "Login")
    letter = mail.letter("Login")
    assert letter is not None
    code, to = letter.detail("Code"), rng.choice(messages.threads).name
    start = edited(phone.data, Mail=mail)
    want = edited(start, Messages=messages.sending(to, code))
    return Draft(wordings(CODE, to), start, want, _letter("Login", code, "Messages"))


def _weather_note(rng: Random, phone: Phone, _seed: int) -> Draft:
    notes: Notes = phone.of("Notes")
    site = _page(phone.of("Browser"), "weather")
    city, degrees = rng.choice(site.lines)
    want = edited(phone.data, Notes=notes.adding(city, degrees))
    words = wordings(WEATHER_NOTE, city, site.address)
    return Draft(words, phone.data, want, _site(site.address, degrees, "Notes"))


def _rate_reply(rng: Random, phone: Phone, _seed: int) -> Draft:
    mail: Mail = phone.of("Mail")
    site = _page(phone.of("Browser"), "rates")
    coin, rate = rng.choice(site.lines)
    letter = rng.choice(mail.within("Inbox"))
    want = edited(phone.data, Mail=mail.sending(letter.sender, f"Re: {letter.subject}", rate))
    words = wordings(RATE_REPLY, letter.subject, coin, site.address)
    return Draft(words, phone.data, want, _site(site.address, rate, "Mail"))


def _buy_and_write(rng: Random, phone: Phone, _seed: int) -> Draft:
    shop: Shop = replace(phone.of("Shop"), cart=())
    mail: Mail = phone.of("Mail")
    name = rng.choice([item.name for item in shop.items if item.in_stock])
    to, text = rng.choice(NAMES), rng.choice(SAID)
    order = Order((Line(name),), shop.price(name))
    start = edited(phone.data, Shop=shop)
    bought = replace(shop, orders=(*shop.orders, order))
    want = edited(start, Shop=bought, Mail=mail.sending(to, name, text))
    words = wordings(BUY_AND_WRITE, name, to, text)
    return Draft(words, start, want, order=("Shop", "Mail"))


def _evening(rng: Random, phone: Phone, _seed: int) -> Draft:
    music: Music = replace(phone.of("Music"), playing=False)
    clock: Clock = phone.of("Clock")
    settings: Settings = phone.of("Settings")
    if "Silent" not in dict(settings.toggles):
        name = next(n for n in ("Vibrate", "Clicks") if n in dict(settings.toggles))
        toggles = ((("Silent" if n == name else n), on) for n, on in settings.toggles)
        settings = replace(settings, toggles=tuple(toggles))
    title = rng.choice([s.title for s in music.songs if s.title != music.current])
    minutes = rng.choice(PRESETS)
    start = edited(phone.data, Music=music, Settings=settings.having("Silent", False))
    want = edited(
        start,
        Music=music.starting(title),
        Settings=settings.having("Silent", True),
        Clock=replace(clock, timer_min=minutes, timer_left_s=60 * minutes),
    )
    return Draft(wordings(EVENING, title, str(minutes)), start, want)


def _if_warm(rng: Random, phone: Phone, _seed: int) -> Draft:
    """The alarm is in the wrong state at the start, so that something has to be done."""
    clock: Clock = phone.of("Clock")
    site = _page(phone.of("Browser"), "weather")
    city, value = rng.choice(site.lines)
    degrees = int(value.partition(" ")[0])
    limit = degrees + rng.choice((-9, -4, -2, 1, 3, 8))
    label, warm = rng.choice(clock.alarms).label, degrees > limit
    start = edited(phone.data, Clock=clock.having(label, not warm))
    want = edited(start, Clock=clock.having(label, warm))
    words = wordings(IF_WARM, city, str(limit), site.address, label)
    return Draft(words, start, want, _site(site.address, "warm", "Clock"))


TEMPLATES = (
    Template("cross_price_note", ("Shop", "Notes"), "cross_app", _price_note),
    Template("cross_mail_event", ("Mail", "Calendar"), "cross_app", _event),
    Template("cross_sum", ("Calculator", "Shop", "Mail"), "cross_app", _sum),
    Template("cross_sum_note", ("Calculator", "Shop", "Mail", "Notes"), "cross_app", _sum_note),
    Template("cross_number_maybe", ("Messages", "Contacts"), "infeasible", _number),
    Template("cross_code", ("Messages", "Mail"), "cross_app", _code),
    Template("cross_weather_note", ("Browser", "Notes"), "cross_app", _weather_note),
    Template("cross_rate_reply", ("Mail", "Browser"), "cross_app", _rate_reply),
    Template("cross_buy_and_write", ("Shop", "Mail"), "cross_app", _buy_and_write),
    Template("cross_evening", ("Music", "Clock", "Settings"), "cross_app", _evening),
    Template("cross_if_warm", ("Clock", "Browser"), "conditional", _if_warm),
)
