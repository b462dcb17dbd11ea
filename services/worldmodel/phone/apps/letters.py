"""What stands in the mails of a phone: subjects, and the facts that each of them carries.

A line of a mail is a word and a value ("Amount $42.50"), so that a fact can be asked for.
"""

from random import Random

from services.worldmodel.phone.look import BLUE, BROWN, GREEN, INDIGO, ORANGE, PINK, RED, TEAL

MONTHS = ("May", "June", "July")
THINGS = ("Cake", "Tea", "Juice", "Plates", "Music", "Chairs", "Fruit", "Ice")
SUBJECTS: dict[str, tuple[str, ...]] = {
    "Invoice": ("Amount money", "Due date"),
    "Meeting": ("Starts time", "Room number"),
    "Flight": ("Departs time", "Gate number"),
    "Parcel": ("Arrives date", "Pieces number"),
    "Party": ("Date date", "Starts time"),
    "Refund": ("Amount money",),
    "Login": ("Code code",),
    "Picnic": ("Bring list",),
    "Concert": ("Date date", "Row number"),
    "Rent": ("Amount money", "Due date"),
    "Dentist": ("Date date", "Starts time"),
    "Survey": ("Questions number",),
    "Offer": ("Discount percent",),
    "Lunch": ("Starts time",),
}
LOOKS = {
    "Invoice": (GREEN, "coin"),
    "Meeting": (INDIGO, "person"),
    "Flight": (BLUE, "plane"),
    "Parcel": (BROWN, "gift"),
    "Party": (PINK, "flower"),
    "Refund": (TEAL, "coin"),
    "Login": (RED, "shield"),
    "Lunch": (ORANGE, "bowl"),
}


def lines(rng: Random, subject: str) -> tuple[str, ...]:
    """The lines of one mail."""
    return tuple(
        f"{word} {_value(rng, kind)}"
        for word, _, kind in (line.partition(" ") for line in SUBJECTS[subject])
    )


def _value(rng: Random, kind: str) -> str:
    match kind:
        case "money":
            return f"${rng.randint(5, 400)}.{rng.choice((5, 20, 50, 75, 95)):02d}"
        case "date":
            return f"{rng.randint(1, 28)} {rng.choice(MONTHS)}"
        case "time":
            return f"{rng.randint(7, 20):02d}:{rng.randrange(0, 60, 5):02d}"
        case "code":
            return f"{rng.randint(1000, 9999)}"
        case "list":
            return ", ".join(rng.sample(THINGS, 3))
        case "percent":
            return f"{rng.randrange(5, 60, 5)} %"
    assert kind == "number", kind
    return str(rng.randint(2, 40))
