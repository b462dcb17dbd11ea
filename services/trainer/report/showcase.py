"""Which episodes a reader should see: what was learned, what was not, what was imagined."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.trainer.evaluation import Row

LEARNED = 3
IMAGINING = 3
LIMIT = 6


@dataclass(frozen=True, slots=True)
class Choice:
    """An episode and why it is shown; `after` is False where it was played before training."""

    row: Row
    caption: str
    after: bool


def choose(
    before: Sequence[Row], after: Sequence[Row], imagining: Sequence[Row] = ()
) -> list[Choice]:
    """At least three episodes with imagined steps where there are three, and others.

    A greedy agent that is sure of itself may ask nothing any more, so what the held-out
    episodes lack is taken from training: successes out of `imagining`, with the most calls first.
    """
    chosen = _held_out(before, after)
    missing = max(0, IMAGINING - sum(c.row.calls > 0 for c in chosen))
    dreams = _by_app(imagining)[:missing]
    return chosen + [Choice(r, "while training, sampled", after=True) for r in dreams]


def _held_out(before: Sequence[Row], after: Sequence[Row]) -> list[Choice]:
    """At most six episodes, at least three where there are three.

    First tasks that failed before and succeed after, with world-model calls and many steps
    preferred and apps in turn (one of them with its failed twin), then other successes,
    then a failure that is left.
    """
    earlier = {r.instance: r for r in before if r.success is not None and r.trajectory}
    later = [r for r in after if r.success is not None and r.trajectory]
    if not later:
        return [Choice(r, "before training", after=False) for r in _by_app(list(earlier.values()))][
            :LEARNED
        ]
    won = [
        r
        for r in later
        if r.success and (twin := earlier.get(r.instance)) is not None and not twin.success
    ]
    chosen: list[Choice] = []
    for r in _by_app(won)[:LEARNED]:
        if not chosen:
            chosen.append(Choice(earlier[r.instance], "before training", after=False))
        chosen.append(Choice(r, "after training; failed before", after=True))
    shown = {c.row.instance for c in chosen}
    kept = _by_app([r for r in later if r.success and r.instance not in shown])
    room = LEARNED + 1 - sum(c.after for c in chosen)
    chosen += [Choice(r, "after training", after=True) for r in kept[:room]]
    failed = _by_app([r for r in later if not r.success])
    missing = max(1, LEARNED - len(chosen))
    chosen += [Choice(r, "after training; still fails", after=True) for r in failed[:missing]]
    return chosen[:LIMIT]


def _by_app(rows: Sequence[Row]) -> list[Row]:
    """The most telling row of every app, then the second of every app, and so on."""
    apps: dict[str, list[Row]] = {}
    for r in sorted(rows, key=lambda r: (r.calls == 0, -r.calls, -r.length, r.instance)):
        apps.setdefault(r.app, []).append(r)
    rounds = max((len(of_app) for of_app in apps.values()), default=0)
    return [of_app[i] for i in range(rounds) for of_app in apps.values() if i < len(of_app)]
