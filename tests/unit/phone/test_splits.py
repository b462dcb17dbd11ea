"""Splits: every instance has one home, and what is held out was never trained on."""

from collections import Counter
from random import Random

import pytest

from services.worldmodel.tasks import TEMPLATES
from services.worldmodel.tasks.splits import (
    HELD_OUT_APPS,
    SPLITS,
    draw,
    split_of,
    split_of_template,
)

TEMPLATE_LIST = list(TEMPLATES.values())
DEMO = (
    "settings_turn_on", "settings_turn_off", "settings_timeout", "clock_alarm_on",
    "clock_alarm_off", "clock_delete_alarm", "clock_timer", "notes_pin", "notes_unpin",
    "notes_delete", "contacts_star", "contacts_unstar", "contacts_call", "contacts_delete",
)  # fmt: skip


def test_what_the_demo_trains_on_is_for_training() -> None:
    assert {split_of_template(TEMPLATES[name]) for name in DEMO} == {"train"}


def test_the_ranges_of_seeds_do_not_touch() -> None:
    train = TEMPLATES["settings_turn_on"]
    seeds = (0, 999_999, 1_000_000, 2_999_999, 3_000_000, 3_999_999, 4_000_000)
    assert [split_of(train, seed) for seed in seeds] == [
        "train", "train", None, None, "held_out_seeds", "held_out_seeds", None,
    ]  # fmt: skip


@pytest.mark.parametrize("split", SPLITS)
def test_what_is_drawn_is_of_the_split_distinct_and_even(split: str) -> None:
    refs = draw(split, TEMPLATE_LIST, 120, Random(5))  # type: ignore[arg-type]
    assert {split_of(TEMPLATES[ref.template], ref.seed) for ref in refs} == {split}
    assert len(set(map(str, refs))) == 120
    counts = Counter(ref.template for ref in refs).values()
    assert max(counts) - min(counts) <= 1


def test_no_leak_from_training_into_what_is_held_out() -> None:
    """Not by name, not by app, and not by content: no goal on the same phone twice."""
    drawn = {split: draw(split, TEMPLATE_LIST, 150, Random(7)) for split in SPLITS}
    trained = drawn["train"]
    templates = {ref.template for ref in trained}
    apps = {app for name in templates for app in TEMPLATES[name].apps}
    assert not apps & HELD_OUT_APPS
    assert not templates & {ref.template for ref in drawn["held_out_templates"]}
    assert not templates & {ref.template for ref in drawn["held_out_apps"]}

    def content(split: str) -> set[tuple[str, str]]:
        made = (TEMPLATES[ref.template].make(ref.seed) for ref in drawn[split])  # type: ignore[index]
        return {(task.goal, task.start.digest) for task in made}

    seen = content("train")
    for split in SPLITS[1:]:
        assert not seen & content(split)
