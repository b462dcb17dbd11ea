"""Tasks in Messages."""

from dataclasses import replace
from random import Random

from services.worldmodel.phone.apps.threads import Message, Messages, Thread
from services.worldmodel.phone.look import NAMES
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.task import edited
from services.worldmodel.tasks.template import Draft, Template, change, wordings
from services.worldmodel.tasks.touch import Look

APP = "Messages"
LIST = Frame("list")
ANSWERS = ("Yes", "No", "Later", "On my way", "Call me", "Thanks", "At home", "Not today")
DELETE = (
    "Delete the messages of {}.",
    "Delete the conversation with {}.",
    "Remove {} from Messages.",
)
ERRANDS = ("Milk", "Bread", "Eggs", "Soap", "Rice", "Tea")


def _thread(rng: Random, messages: Messages) -> Thread:
    """One of the conversations, read."""
    return replace(rng.choice(messages.threads), unread=False)


def _reply(rng: Random, phone: Phone, _seed: int) -> Draft:
    messages: Messages = phone.of(APP)
    thread, words = _thread(rng, messages), rng.choice(ANSWERS)
    sentences = wordings(
        ("Reply {1} to {0}.", "Answer {0} with {1} in Messages.", "Write {1} to {0}."),
        thread.name,
        words,
    )
    start = messages.having(thread)
    return change(phone, sentences, APP, start, start.sending(thread.name, words))


def _new(rng: Random, phone: Phone, _seed: int) -> Draft:
    messages: Messages = phone.of(APP)
    name = rng.choice([n for n in NAMES if messages.thread(n) is None])
    words = rng.choice(ANSWERS)
    sentences = wordings(
        (
            "Send {0} the message {1}.",
            "Start a conversation with {0} that says {1}.",
            "Write a new message to {0}: {1}",
        ),
        name,
        words,
    )
    return change(phone, sentences, APP, messages, messages.sending(name, words))


def _two(rng: Random, phone: Phone, _seed: int) -> Draft:
    """The same words to two people."""
    messages: Messages = phone.of(APP)
    first, second = (t.name for t in rng.sample(messages.threads, 2))
    words = rng.choice(ANSWERS)
    sentences = wordings(
        ("Reply {2} to {0} and to {1}.", "Write {2} to both {0} and {1}.", "Tell {0} and {1}: {2}"),
        first,
        second,
        words,
    )
    start = messages
    for name in (first, second):
        thread = start.thread(name)
        assert thread is not None
        start = start.having(replace(thread, unread=False))
    want = start.sending(first, words).sending(second, words)
    return change(phone, sentences, APP, start, want)


def _delete(rng: Random, phone: Phone, _seed: int) -> Draft:
    messages: Messages = phone.of(APP)
    name = rng.choice(messages.threads).name
    return change(phone, wordings(DELETE, name), APP, messages, messages.without(name))


def _delete_maybe(rng: Random, phone: Phone, seed: int) -> Draft:
    """On odd seeds there is no conversation with that person."""
    if seed % 2 == 0:
        return _delete(rng, phone, seed)
    messages: Messages = phone.of(APP)
    name = rng.choice([n for n in NAMES if messages.thread(n) is None])
    look = Look(APP, (LIST,), to_end=True)
    return Draft(wordings(DELETE, name), phone.data, phone.data, look, feasible=False)


def _mute(muted: bool) -> Template:
    sentences = (
        ("Mute {}.", "Mute {} in Messages.", "Silence the messages of {}.")
        if muted
        else ("Unmute {}.", "Unmute {} in Messages.", "Let the messages of {} ring again.")
    )

    def draft(rng: Random, phone: Phone, _seed: int) -> Draft:
        messages: Messages = phone.of(APP)
        thread = replace(_thread(rng, messages), muted=not muted)
        start = messages.having(thread)
        want = start.having(replace(thread, muted=muted))
        return change(phone, wordings(sentences, thread.name), APP, start, want)

    return Template("messages_mute" if muted else "messages_unmute", (APP,), "toggle", draft)


def _read(rng: Random, phone: Phone, _seed: int) -> Draft:
    messages: Messages = phone.of(APP)
    thread = replace(rng.choice(messages.threads), unread=True)
    words = wordings(
        ("Read the new message of {}.", "Open the unread message of {}.", "Mark {} as read."),
        thread.name,
    )
    start = messages.having(thread)
    return change(phone, words, APP, start, start.having(replace(thread, unread=False)))


def _count(_rng: Random, phone: Phone, _seed: int) -> Draft:
    messages: Messages = phone.of(APP)
    count = sum(thread.unread for thread in messages.threads)
    words = (
        "How many conversations are unread?",
        "Count the unread conversations.",
        "How many people wrote something that is unread?",
    )
    look = Look(APP, (LIST,), to_end=True)
    return Draft(words, phone.data, phone.data, look, str(count), "count")


def planted(rng: Random, messages: Messages, said: str) -> tuple[Messages, Thread]:
    """The data where somebody has said something, with an answer after it."""
    thread = _thread(rng, messages)
    after = (Message(said), Message("Thanks a lot", mine=True))
    thread = replace(thread, messages=(*thread.messages, *after))
    return messages.having(thread), thread


def _time(rng: Random, phone: Phone, _seed: int) -> Draft:
    time = f"{rng.randrange(7, 22):02d}:{rng.choice((0, 15, 30, 45)):02d}"
    start, thread = planted(rng, phone.of(APP), f"Meet me at {time}")
    words = wordings(
        (
            "At what time does {} want to meet?",
            "When am I to meet {}?",
            "What time did {} suggest in Messages?",
        ),
        thread.name,
    )
    data = edited(phone.data, Messages=start)
    return Draft(words, data, data, Look(APP, (LIST, Frame("thread", thread.name))), time, "time")


def _code(rng: Random, phone: Phone, _seed: int) -> Draft:
    code = str(rng.randrange(1000, 10000))
    start, thread = planted(rng, phone.of(APP), f"The code is {code}")
    words = wordings(
        ("Which code did {} send?", "What is the code of {}?", "Find the code that {} wrote."),
        thread.name,
    )
    data = edited(phone.data, Messages=start)
    return Draft(words, data, data, Look(APP, (LIST, Frame("thread", thread.name))), code, "count")


def _if_asked(rng: Random, phone: Phone, _seed: int) -> Draft:
    """What was asked for decides which of two answers is right."""
    messages: Messages = phone.of(APP)
    thread = _thread(rng, messages)
    asked, other = rng.sample(ERRANDS, 2)
    said = rng.choice((asked, other))
    thread = replace(thread, messages=(*thread.messages, Message(f"Do we need {said}?")))
    words = wordings(
        (
            "Reply Yes if {0} asks about {1}, otherwise No.",
            "If {0} asks about {1}, reply Yes; otherwise reply No.",
            "Answer {0}: Yes if it is about {1}, else No.",
        ),
        thread.name,
        asked,
    )
    start = messages.having(thread)
    want = start.sending(thread.name, "Yes" if said == asked else "No")
    return change(phone, words, APP, start, want)


def _mute_writer(rng: Random, phone: Phone, _seed: int) -> Draft:
    """Somebody who wrote nearly the same is muted already."""
    messages: Messages = phone.of(APP)
    names = [t.name for t in rng.sample(messages.threads, 3)]
    times = [f"{hour}:{rng.choice(('00', '30'))}" for hour in rng.sample(range(10, 20), 3)]
    start = messages
    for name, time, muted in zip(names, times, (False, True, False), strict=True):
        said = (Message("Good morning", mine=True), Message(f"Meet me at {time}"))
        start = start.having(Thread(name, said, muted=muted))
    words = wordings(
        (
            "Mute whoever wants to meet at {}.",
            "Mute the person who wrote: Meet me at {}",
            "Silence the one who wants to meet at {}.",
        ),
        times[0],
    )
    kept = start.thread(names[0])
    assert kept is not None
    return change(phone, words, APP, start, start.having(replace(kept, muted=True)))


TEMPLATES = (
    Template("messages_reply", (APP,), "form", _reply),
    Template("messages_new", (APP,), "form", _new),
    Template("messages_two_replies", (APP,), "form", _two),
    Template("messages_delete", (APP,), "list", _delete),
    Template("messages_delete_maybe", (APP,), "infeasible", _delete_maybe),
    _mute(True),
    _mute(False),
    Template("messages_read", (APP,), "list", _read),
    Template("messages_count_unread", (APP,), "lookup", _count),
    Template("messages_time", (APP,), "lookup", _time),
    Template("messages_code", (APP,), "lookup", _code),
    Template("messages_if_asked", (APP,), "conditional", _if_asked),
    Template("messages_mute_writer", (APP,), "distractor", _mute_writer),
)
