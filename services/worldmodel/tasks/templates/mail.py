"""Tasks in Mail."""

from dataclasses import replace
from random import Random

from services.worldmodel.phone.apps.letters import SUBJECTS, lines
from services.worldmodel.phone.apps.mail import NAME, Letter, Mail
from services.worldmodel.phone.look import NAMES
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.answers import AnswerType
from services.worldmodel.tasks.task import edited
from services.worldmodel.tasks.template import Draft, Template, change, wordings
from services.worldmodel.tasks.touch import Look

APP = NAME
INBOX = Frame("Inbox")
STAR = ("Star the mail {}.", "Put a star on the mail {}.", "Mark {} in Mail with a star.")
ARCHIVE = ("Archive the mail {}.", "Move {} to the archive in Mail.", "Put the mail {} away.")
DELETE = ("Delete the mail {}.", "Move the mail {} to the trash.", "Throw {} away in Mail.")
PURGE = (
    "Delete the mail {} from the trash for good.",
    "The mail {} lies in the trash: delete it for ever.",
    "Remove {} from Mail's trash.",
)
UNREAD = ("Mark the mail {} as unread.", "Set {} in Mail to unread.", "Make the mail {} unread.")
RESTORE = (
    "Move the mail {} back to the inbox.",
    "Bring {} back into the inbox of Mail.",
    "Get the mail {} back from where it was put away.",
)
REPLY = (
    "Reply {1} to the mail {0}.",
    "Answer the mail {0} with {1}.",
    "Write {1} as a reply to {0} in Mail.",
)
WRITE = (
    "Write a mail to {0} with the subject {1} and the text {2}.",
    "Mail {0}: subject {1}, text {2}.",
    "Send {0} a mail about {1} that says {2}.",
)
COUNT = (
    "How many mails in my inbox are unread?",
    "Count the new mails in the inbox.",
    "What is the number of unread mails?",
)
IF = (
    "If the mail {0} is from {1}, star it; otherwise archive it.",
    "Star {0} in Mail when {1} sent it, else move it to the archive.",
    "When {1} wrote the mail {0}, give it a star, and archive it if not.",
)
WORDS = ("Thanks", "Yes", "No", "Later", "Done", "Sorry", "Great", "Maybe")
TOPICS = ("Hello", "Keys", "Visit", "Garden", "Movie", "Bikes")
QUESTIONS: dict[str, tuple[str, AnswerType, tuple[str, ...]]] = {
    "amount": (
        "Amount",
        "money",
        ("What is the amount in the mail {}?", "How much is {}, by mail?", "Read {}: how much?"),
    ),
    "date": (
        "Date",
        "date",
        (
            "On which date is the {}, by mail?",
            "Look into the mail {}: on which day is it?",
            "What date does the mail {} give?",
        ),
    ),
    "time": (
        "Starts",
        "time",
        (
            "When does the {} start, by mail?",
            "Look into the mail {}: at what time does it start?",
            "What time does the mail {} give?",
        ),
    ),
    "list": (
        "Bring",
        "list",
        (
            "What am I to bring, by the mail {}?",
            "List what the mail {} asks me to bring.",
            "Which things does the mail {} want me to bring?",
        ),
    ),
}


def _draft(
    phone: Phone, words: tuple[str, ...], start: Mail, subject: str, **changes: object
) -> Draft:
    return change(phone, words, APP, start, start.changing(subject, **changes))


def _inbox(rng: Random, mail: Mail) -> Letter:
    return rng.choice(mail.within("Inbox"))


def with_letter(rng: Random, mail: Mail, subject: str, **changes: object) -> Mail:
    """The mails with one of that subject in the inbox, in place of another where it is new."""
    if mail.letter(subject) is None:
        old = rng.choice(mail.within("Inbox"))
        new = Letter(subject, old.sender, lines(rng, subject), old.unread, old.starred)
        kept = (new if x.subject == old.subject else x for x in mail.letters)
        mail = replace(mail, letters=tuple(kept))
    return mail.changing(subject, folder="Inbox", **changes)


def _star(rng: Random, phone: Phone, _seed: int) -> Draft:
    mail: Mail = phone.of(APP)
    name = _inbox(rng, mail).subject
    start = mail.changing(name, starred=False)
    return _draft(phone, wordings(STAR, name), start, name, starred=True)


def _move(rng: Random, phone: Phone, folder: str, sentences: tuple[str, ...]) -> Draft:
    mail: Mail = phone.of(APP)
    name = _inbox(rng, mail).subject
    return _draft(phone, wordings(sentences, name), mail, name, folder=folder)


def _archive(rng: Random, phone: Phone, _seed: int) -> Draft:
    return _move(rng, phone, "Archive", ARCHIVE)


def _archive_maybe(rng: Random, phone: Phone, seed: int) -> Draft:
    """On odd seeds there is no such mail."""
    if seed % 2 == 0:
        return _archive(rng, phone, seed)
    name = rng.choice([s for s in SUBJECTS if phone.of(APP).letter(s) is None])
    look = Look(APP, (INBOX,), to_end=True)
    return Draft(wordings(ARCHIVE, name), phone.data, phone.data, look, feasible=False)


def _delete(rng: Random, phone: Phone, _seed: int) -> Draft:
    return _move(rng, phone, "Trash", DELETE)


def _purge(rng: Random, phone: Phone, _seed: int) -> Draft:
    mail: Mail = phone.of(APP)
    name = rng.choice(mail.within("Trash")).subject
    return change(phone, wordings(PURGE, name), APP, mail, mail.without(name))


def _unread(rng: Random, phone: Phone, _seed: int) -> Draft:
    mail: Mail = phone.of(APP)
    name = _inbox(rng, mail).subject
    start = mail.changing(name, unread=False)
    return _draft(phone, wordings(UNREAD, name), start, name, unread=True)


def _restore(rng: Random, phone: Phone, _seed: int) -> Draft:
    mail: Mail = phone.of(APP)
    name = rng.choice((*mail.within("Archive"), *mail.within("Trash"))).subject
    return _draft(phone, wordings(RESTORE, name), mail, name, folder="Inbox")


def _reply(rng: Random, phone: Phone, _seed: int) -> Draft:
    mail: Mail = phone.of(APP)
    letter, text = _inbox(rng, mail), rng.choice(WORDS)
    want = mail.sending(letter.sender, f"Re: {letter.subject}", text)
    return change(phone, wordings(REPLY, letter.subject, text), APP, mail, want)


def _write(rng: Random, phone: Phone, _seed: int) -> Draft:
    mail: Mail = phone.of(APP)
    to, subject, text = rng.choice(NAMES), rng.choice(TOPICS), rng.choice(WORDS)
    want = mail.sending(to, subject, text)
    return change(phone, wordings(WRITE, to, subject, text), APP, mail, want)


def _ask(kind: str) -> Template:
    """A question about one line of a mail that has such a line."""
    word, answer_type, sentences = QUESTIONS[kind]
    subjects = [s for s, said in SUBJECTS.items() if any(x.split()[0] == word for x in said)]

    def draft(rng: Random, phone: Phone, _seed: int) -> Draft:
        name = rng.choice(subjects)
        mail = with_letter(rng, phone.of(APP), name)
        letter = mail.letter(name)
        assert letter is not None
        data = edited(phone.data, **{APP: mail})
        look = Look(APP, (INBOX, Frame("letter", name)))
        words = wordings(sentences, name)
        return Draft(words, data, data, look, letter.detail(word), answer_type)

    return Template(f"mail_{kind}", (APP,), "lookup", draft)


def _count(rng: Random, phone: Phone, _seed: int) -> Draft:
    mail: Mail = phone.of(APP)
    for letter in mail.within("Inbox"):
        mail = mail.changing(letter.subject, unread=rng.random() < 0.5)
    data = edited(phone.data, **{APP: mail})
    count = str(sum(letter.unread for letter in mail.within("Inbox")))
    return Draft(COUNT, data, data, Look(APP, (INBOX,), to_end=True), count, "count")


def _if(rng: Random, phone: Phone, _seed: int) -> Draft:
    """The sender stands where the two buttons are."""
    mail: Mail = phone.of(APP)
    name, asked = _inbox(rng, mail).subject, rng.choice(NAMES)
    sender = asked if rng.random() < 0.5 else rng.choice([n for n in NAMES if n != asked])
    start = mail.changing(name, sender=sender, starred=False)
    right = {"starred": True} if sender == asked else {"folder": "Archive"}
    return _draft(phone, wordings(IF, name, asked), start, name, **right)


TEMPLATES = (
    Template("mail_star", (APP,), "toggle", _star),
    Template("mail_archive", (APP,), "list", _archive),
    Template("mail_archive_maybe", (APP,), "infeasible", _archive_maybe),
    Template("mail_delete", (APP,), "list", _delete),
    Template("mail_purge", (APP,), "list", _purge),
    Template("mail_unread", (APP,), "toggle", _unread),
    Template("mail_restore", (APP,), "list", _restore),
    Template("mail_reply", (APP,), "form", _reply),
    Template("mail_write", (APP,), "form", _write),
    *(_ask(kind) for kind in QUESTIONS),
    Template("mail_count_unread", (APP,), "lookup", _count),
    Template("mail_if_sender", (APP,), "conditional", _if),
)
