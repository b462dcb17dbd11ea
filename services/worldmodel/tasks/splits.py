"""Which task instances may be trained on, and three ways of being held out from it.

A template belongs to one split by its name and apps, for good: a new one needs no entry here
and moves no other. The demo's templates are all for training. Seeds from 1,000,000 to 2,999,999
are for demonstrations (cold starts) and belong to no split.
"""

from collections.abc import Sequence
from random import Random
from typing import Literal, get_args

from blake3 import blake3

from services.worldmodel.tasks.template import Template
from wmkit.domain.tasks import TaskRef

Split = Literal["train", "held_out_seeds", "held_out_templates", "held_out_apps"]
SPLITS: tuple[Split, ...] = get_args(Split)

HELD_OUT_APPS = frozenset({"Files", "Music"})
TRAIN_SEEDS = range(0, 1_000_000)
HELD_OUT_SEEDS = range(3_000_000, 4_000_000)

# About one template in seven; the salt was chosen so that the demo's are not among them.
_SALT, _ONE_IN = "held out/1", 7


def split_of_template(template: Template) -> Split:
    """The split of a template's instances; "train" where only the seed can hold one out."""
    if HELD_OUT_APPS.intersection(template.apps):
        return "held_out_apps"
    lot = blake3(f"{_SALT}/{template.name}".encode()).digest()[0]
    return "held_out_templates" if lot % _ONE_IN == 0 else "train"


def split_of(template: Template, seed: int) -> Split | None:
    """The split of one instance; None for seeds that belong to none.

    Held-out templates and apps keep to the held-out seeds too, so that no instance of theirs
    shares its phone's seed with one that was trained on.
    """
    split = split_of_template(template)
    if split == "train":
        if seed in TRAIN_SEEDS:
            return "train"
        return "held_out_seeds" if seed in HELD_OUT_SEEDS else None
    return split if seed in HELD_OUT_SEEDS else None


def draw(split: Split, templates: Sequence[Template], count: int, rng: Random) -> list[TaskRef]:
    """`count` distinct instances of a split, evenly over its templates, seeds at random.

    Raises ValueError when no template belongs to the split.
    """
    home = "train" if split == "held_out_seeds" else split
    names = [template.name for template in templates if split_of_template(template) == home]
    if not names:
        raise ValueError(f"no template belongs to the split {split!r}")
    seeds = TRAIN_SEEDS if split == "train" else HELD_OUT_SEEDS
    drawn: dict[str, list[int]] = {
        name: rng.sample(seeds, count // len(names) + 1) for name in names
    }
    return [
        TaskRef(template=names[i % len(names)], seed=drawn[names[i % len(names)]][i // len(names)])
        for i in range(count)
    ]
