"""`wmr1 tasks curate`: choose hard tasks by measurement, or measure the chosen ones again."""

from dataclasses import asdict
from math import sqrt
from pathlib import Path
from random import Random

from wmkit.cli.console import counting, out
from wmkit.domain.errors import InvalidRequest, WMError


def curate(count: int, slip: float, tries: int, seed: int, to: Path) -> None:
    """Write `count` curated tasks. Raises InvalidRequest when too few candidates are hard."""
    from services.worldmodel.tasks.curation import Reference, dump
    from services.worldmodel.tasks.curation import curate as choose

    reference = Reference(slip=slip, tries=tries, seed=seed)
    with counting() as progress:
        bar = progress.add_task("", total=None)

        def advance(what: str, done: int, of: int) -> None:
            doing = {"screen": "looking for hard tasks", "record": "measuring the chosen ones"}
            progress.update(bar, description=doing[what], completed=done, total=of)

        try:
            tasks = choose(count, reference, advance)
        except ValueError as error:
            raise InvalidRequest(f"{error}; try a higher --slip") from None
    recipe = {
        "command": f"wmr1 tasks curate -n {count} --slip {slip:g} --tries {tries} --seed {seed}",
        "reference": reference.name,
        "reference_digest": reference.digest,
        **asdict(reference),
    }
    to.write_text(dump(tasks, recipe), encoding="utf-8")
    passed = sum(task.passes for task in tasks) / sum(task.tries for task in tasks)
    out.print(f"{len(tasks)} tasks in {to}; {reference.name} solves {passed:.1%} of its tries")


def recheck(count: int, path: Path | None) -> None:
    """Measure `count` curated tasks again with fresh chance.

    Raises WMError when the counts differ by more than chance allows (|z| > 3).
    """
    from services.worldmodel.tasks.curation import CURATED, Reference, load, measure

    recipe, tasks = load(path or CURATED)
    reference = Reference(**{key: recipe[key] for key in ("slip", "tries", "screen_tries", "seed")})
    if reference.digest != recipe["reference_digest"]:
        out.print("[yellow]the phone or the reference has changed since it was curated[/yellow]")
    chosen = Random(count).sample(tasks, min(count, len(tasks)))
    again = measure([task.ref for task in chosen], reference, reference.tries, "again")
    before = [task.passes for task in chosen]
    spread = sqrt(
        sum(2 * variance(a + b, 2 * reference.tries) for a, b in zip(before, again, strict=True))
    )
    z = (sum(again) - sum(before)) / spread if spread else 0.0
    n = len(chosen) * reference.tries
    out.print(
        f"{len(chosen)} tasks x {reference.tries} tries: {sum(before) / n:.1%} recorded, "
        f"{sum(again) / n:.1%} now, z = {z:+.2f}"
    )
    if abs(z) > 3:
        raise WMError("the counts differ by more than chance allows")


def variance(passes: int, tries: int) -> float:
    """Variance of a count of half the tries, at the pooled rate: (tries / 2) p (1 - p)."""
    rate = passes / tries
    return tries / 2 * rate * (1 - rate)
