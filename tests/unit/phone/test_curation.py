"""Curated tasks: selected by one measurement, described by another, and measurable again."""

import json
from pathlib import Path
from random import Random

import pytest

from services.worldmodel.tasks import TEMPLATES, make, slips
from services.worldmodel.tasks.curation import CURATED, SHARES, Reference, curate, dump, load
from services.worldmodel.tasks.splits import split_of


def test_without_slips_the_reference_is_the_expert_and_with_them_it_is_worse() -> None:
    tasks = [make(name, 11) for name in TEMPLATES]
    assert all(slips.play(task, 0.0, Random(1)) for task in tasks)
    wins = sum(slips.play(task, 0.5, Random(i)) for i, task in enumerate(tasks))
    assert 0 < wins < len(tasks)


def test_a_curated_task_is_sometimes_solved_and_says_by_whom() -> None:
    reference = Reference(slip=0.4, tries=8)
    tasks = curate(40, reference)
    assert len({(task.template, task.seed) for task in tasks}) == 40
    for task in tasks:
        assert 0 < task.screen_passes < task.screen_tries == 8
        assert 0 <= task.passes <= task.tries == 8
        assert task.split == split_of(TEMPLATES[task.template], task.seed)
        assert task.reference == "expert-slips-0.4"
    assert sum(task.split == "train" for task in tasks) == 28


def test_the_same_command_gives_the_same_file_and_a_reader_gives_it_back(tmp_path: Path) -> None:
    reference = Reference(slip=0.4, tries=8, seed=3)
    first, second = curate(20, reference), curate(20, reference)
    assert first == second
    file = tmp_path / "hard.jsonl"
    file.write_text(dump(first, {"slip": 0.4}))
    assert load(file) == ({"slip": 0.4}, first)
    assert json.loads(file.read_text().splitlines()[1])["goal"] == first[0].goal


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"recipe": {}}\n{"template": "x"}\n')
    with pytest.raises(ValueError, match=r"bad\.jsonl: line 2 is no curated task"):
        load(file)
    file.write_text("junk\n")
    with pytest.raises(ValueError, match="line 1 holds no recipe"):
        load(file)


def test_the_shipped_file_describes_tasks_that_exist() -> None:
    recipe, tasks = load(CURATED)
    assert len(tasks) == len({str(task.ref) for task in tasks}) == 2000
    assert recipe["tries"] >= 8 and recipe["command"].startswith("wmr1 tasks curate -n 2000")
    for split, share in SHARES.items():
        assert sum(task.split == split for task in tasks) == round(2000 * share)
    for task in Random(0).sample(tasks, 100):
        made = make(task.template, task.seed)
        assert (made.goal, made.complexity, made.kind) == (task.goal, task.complexity, task.kind)
        assert split_of(TEMPLATES[task.template], task.seed) == task.split
        assert 0 < task.passes + task.screen_passes < task.tries + task.screen_tries
