"""Recipes: what is refused, with which sentence, and that nothing is lost in writing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.recipe import Recipe
from services.trainer.recipe_toml import dumps, parse
from wmkit.cli import training
from wmkit.domain.errors import InvalidRequest, UnknownTask

MINIMAL = """
checkpoint = "examples/tiny-policy"
[tasks]
templates = ["a", "b"]
"""
RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


def refused(text: str) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        parse(text)
    assert "\n" not in caught.value.message
    return caught.value


def test_defaults_fill_what_a_minimal_recipe_leaves_out() -> None:
    recipe = parse(MINIMAL)
    assert (recipe.schedule.groups, recipe.schedule.group_size) == (8, 8)
    assert (recipe.loss.clip_low, recipe.loss.clip_high, recipe.loss.dual_clip) == (0.2, 0.28, 3)
    assert (recipe.reward.alpha, recipe.reward.beta, recipe.reward.gamma) == (1, 0.5, 0.1)
    assert recipe.reward.shaping == "gated"
    assert recipe.tasks.eval_n == 256
    assert recipe.control == "none"


def test_evaluation_plays_as_training_does_but_greedily() -> None:
    recipe = parse(MINIMAL + "[episode]\nmax_calls = 3\ntemperature = 0.7\n")
    assert recipe.eval_episode.temperature == 0
    assert recipe.eval_episode.model_copy(update={"temperature": 0.7}) == recipe.episode


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("not toml", "recipe_toml", "is no TOML"),
        (MINIMAL + "tamplates = []", "tasks.tamplates", "did you mean 'templates'?"),
        ("chekpoint = 'x'\n[tasks]\ntemplates = ['a']", "chekpoint", "did you mean 'checkpoint'?"),
        (MINIMAL + "[optimizer]\nlearning = 1", "optimizer.learning", "known: lr, betas"),
        (MINIMAL + "[episode]\ntemprature = 1", "episode.temprature", "'temperature'"),
        ("[tasks]\ntemplates = ['a']", "checkpoint", "lacks 'checkpoint'"),
        (MINIMAL + "[optimizer]\nlr = -1", "optimizer.lr", "greater than 0"),
        (MINIMAL + "[optimizer]\nlr = nan", "optimizer.lr", "finite number"),
        (MINIMAL + "[optimizer]\nbetas = [0.9, 1.0]", "optimizer.betas", "[0, 1)"),
        (MINIMAL + "[schedule]\ngroup_size = 1", "schedule.group_size", "greater than or equal"),
        (MINIMAL + "[episode]\ntemperature = 0.0", "episode", "temperature above 0"),
        (MINIMAL + "[reward]\nshaping = 'paper'\nwm_term = 'useful'", "reward", "gated"),
        (MINIMAL + "train_seeds = [5, 5]", "tasks.train_seeds", "from < to"),
        ("name = 'a/b'\n" + MINIMAL, "name", "letters, digits"),
        ("control = 'shuffle'\n" + MINIMAL, "control", "shuffle_rewards"),
    ],
)
def test_every_mistake_is_one_sentence_that_names_its_key(
    text: str, field: str, words: str
) -> None:
    error = refused(text)
    assert error.field == field
    assert words in error.message


def test_a_template_listed_twice_is_refused() -> None:
    assert "names 'a' twice" in refused(MINIMAL.replace('"b"', '"a"')).message


@pytest.mark.parametrize(
    ("train", "held", "overlap"),
    [((0, 10), (10, 20), False), ((10, 20), (0, 10), False), ((0, 11), (10, 20), True),
     ((0, 100), (40, 60), True), ((40, 60), (0, 100), True)],
)  # fmt: skip
def test_held_out_seeds_must_not_be_trained_on(
    train: tuple[int, int], held: tuple[int, int], overlap: bool
) -> None:
    text = MINIMAL + f"train_seeds = {list(train)}\neval_seeds = {list(held)}\neval_n = 4\n"
    if overlap:
        assert "overlap" in refused(text).message
    else:
        assert parse(text).tasks.eval_seeds == held


def test_an_evaluation_larger_than_its_seed_range_is_refused() -> None:
    # 2 templates x 3 seeds hold 6 instances
    fits = MINIMAL + "eval_seeds = [2000000, 2000003]\neval_n = "
    assert parse(fits + "6").tasks.eval_n == 6
    assert "too few seeds" in refused(fits + "7").message


@given(
    lr=st.floats(1e-12, 1e3),
    dialect=st.text(max_size=20),
    seed=st.integers(0, 2**62),
    templates=st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4, unique=True),
)
def test_a_written_recipe_reads_back_equal(
    lr: float, dialect: str, seed: int, templates: list[str]
) -> None:
    recipe = Recipe.model_validate(
        {
            "checkpoint": dialect,
            "seed": seed,
            "tasks": {"templates": templates},
            "optimizer": {"lr": lr},
            "episode": {"dialect": dialect},
        }
    )
    assert parse(dumps(recipe)) == recipe


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.name)
def test_shipped_recipes_hold(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As `--dry-run` sees them: keys, values, templates; what it prints is a recipe again."""
    assert path.stem == parse(path.read_text("utf-8")).name.replace("-", "_")
    training.train(str(path), {}, "", dry_run=True)
    assert parse(capsys.readouterr().out) == parse(path.read_text("utf-8"))


def test_the_recipes_of_the_published_run_are_here_with_its_numbers() -> None:
    names = {path.stem for path in RECIPES}
    sizes = ("3b", "7b")
    assert {"demo", "wm_r1_tiny", "baseline_grpo_tiny"} <= names
    assert {
        f"{kind}_{size}" for kind in ("wm_r1_paper", "baseline_grpo") for size in sizes
    } <= names
    for path in RECIPES:
        recipe = parse(path.read_text("utf-8"))
        if path.stem.startswith("wm_r1_paper"):
            reward = recipe.reward
            assert (reward.alpha, reward.beta, reward.gamma) == (1.0, 0.5, 0.1)
            assert reward.shaping == "paper"
            assert recipe.episode.max_calls == 5
            optimizer = recipe.optimizer
            assert (optimizer.lr, optimizer.betas) == (1e-6, (0.9, 0.999))
            assert (optimizer.weight_decay, optimizer.grad_clip, optimizer.epochs) == (0.01, 1.0, 1)
            assert recipe.schedule.iterations * recipe.schedule.groups == 2000
        if path.stem.startswith("baseline"):
            assert recipe.episode.max_calls == recipe.episode.max_calls_per_thought == 0


def test_a_dry_run_refuses_a_template_that_does_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text('checkpoint = "x"\n[tasks]\ntemplates = ["settings_turn_onn"]\n', "utf-8")
    with pytest.raises(UnknownTask, match="did you mean settings_turn_on"):
        training.train(str(path), {}, "", dry_run=True)


def test_the_control_differs_from_the_demo_by_the_shuffle_alone() -> None:
    folder = RECIPES[0].parent
    demo, control = (
        parse((folder / name).read_text("utf-8")) for name in ("demo.toml", "demo_shuffled.toml")
    )
    assert control.control == "shuffle_rewards"
    same = {"control": "none", "name": demo.name}
    assert control.model_copy(update=same) == demo


def test_every_setting_explains_itself() -> None:
    def fields(model: Any) -> Iterator[tuple[str, str | None]]:
        for name, field in model.model_fields.items():
            nested = field.annotation
            if isinstance(nested, type) and hasattr(nested, "model_fields"):
                yield from fields(nested)
            elif model.__name__ != "EpisodeSpec":
                yield f"{model.__name__}.{name}", field.description

    assert [name for name, text in fields(Recipe) if not text] == []
