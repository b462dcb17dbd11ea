"""Hard tasks by measurement: those that a named reference policy sometimes solves.

Two independent measurements. The first, `screen_tries` per candidate, selects: never and
always solved candidates are dropped. The second, `tries` per selected task, is what is
recorded as the task's pass count. A count that had also selected would look harder or easier
than the task is, and measuring again would not reproduce it.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from blake3 import blake3

from services.worldmodel import phone
from services.worldmodel.tasks import TEMPLATES, make, slips
from services.worldmodel.tasks.splits import SPLITS, Split, draw
from wmkit.domain.tasks import TaskRef

CURATED = Path(__file__).with_name("curated.jsonl")
SHARES: dict[Split, float] = {
    "train": 0.7,
    "held_out_seeds": 0.1,
    "held_out_templates": 0.1,
    "held_out_apps": 0.1,
}
_CHUNK = 32


@dataclass(frozen=True, slots=True)
class Reference:
    """The expert with slips. `digest` names the policy and the phone that it was measured on."""

    slip: float
    tries: int = 16
    screen_tries: int = 8
    seed: int = 0

    @property
    def name(self) -> str:
        return f"expert-slips-{self.slip:g}"

    @property
    def digest(self) -> str:
        """Hex BLAKE3 over this policy's source, its rate, and the sources of phone and tasks."""
        hasher = blake3(f"{self.slip}/{self.tries}/{self.screen_tries}/{self.seed}".encode())
        folders = (Path(phone.__file__ or "").parent, Path(__file__).parent)
        for file in sorted(file for folder in folders for file in folder.rglob("*.py")):
            hasher.update(file.name.encode() + b"\0" + file.read_bytes())
        return hasher.hexdigest()[:32]

    def passes(self, ref: TaskRef, tries: int, purpose: str) -> int:
        """How many of `tries` episodes succeed; `purpose` keeps measurements independent."""
        task = make(ref.template, ref.seed)
        rng = Random(f"{self.name}/{self.seed}/{purpose}/{ref}")
        return sum(slips.play(task, self.slip, rng) for _ in range(tries))


@dataclass(frozen=True, slots=True)
class Curated:
    """One line of the curated file. `screen_*` is the measurement that selected the task."""

    template: str
    seed: int
    split: Split
    kind: str
    apps: tuple[str, ...]
    goal: str
    complexity: int
    reference: str
    tries: int
    passes: int
    screen_tries: int
    screen_passes: int

    @property
    def ref(self) -> TaskRef:
        return TaskRef(template=self.template, seed=self.seed)


def curate(
    count: int,
    reference: Reference,
    advance: Callable[[str, int, int], None] = lambda *_: None,
    candidates_per_task: int = 4,
) -> list[Curated]:
    """`count` hard tasks over all splits, evenly over templates as far as they go.

    `advance` hears (what, done, of). Raises ValueError when too few candidates are hard.
    """
    rng = Random(f"curate/{reference.seed}")
    out: list[Curated] = []
    for split in SPLITS:
        wanted = round(count * SHARES[split])
        refs = draw(split, list(TEMPLATES.values()), candidates_per_task * wanted, rng)
        screened = measure(refs, reference, reference.screen_tries, "screen", advance)
        hard = [
            (ref, passes)
            for ref, passes in zip(refs, screened, strict=True)
            if 0 < passes < reference.screen_tries
        ]
        chosen = _evenly(hard, wanted)
        if len(chosen) < wanted:
            raise ValueError(
                f"{split}: only {len(hard)} of {len(refs)} candidates are hard, {wanted} are wanted"
            )
        counted = measure([ref for ref, _ in chosen], reference, reference.tries, "record", advance)
        for (ref, screen_passes), passes in zip(chosen, counted, strict=True):
            out.append(_line(ref, split, reference, passes, screen_passes))
    return out


def measure(
    refs: Sequence[TaskRef],
    reference: Reference,
    tries: int,
    purpose: str,
    advance: Callable[[str, int, int], None] = lambda *_: None,
) -> list[int]:
    """Pass counts of each task, on all cores."""
    chunks = [refs[i : i + _CHUNK] for i in range(0, len(refs), _CHUNK)]
    out: list[int] = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        work = partial(_count, reference, tries, purpose)
        for counts in pool.map(work, chunks):
            out += counts
            advance(purpose, len(out), len(refs))
    return out


def dump(tasks: Iterable[Curated], recipe: dict[str, Any]) -> str:
    """JSON lines: the recipe first, then a task a line."""
    rows = [{"recipe": recipe}, *(asdict(task) for task in tasks)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def load(path: Path = CURATED) -> tuple[dict[str, Any], list[Curated]]:
    """The recipe and the tasks of a curated file.

    Raises ValueError naming the file and line of a row that is none.
    """
    rows = path.read_text(encoding="utf-8").splitlines()
    try:
        recipe = json.loads(rows[0])["recipe"]
    except (IndexError, KeyError, TypeError, ValueError):
        raise ValueError(f"{path}: line 1 holds no recipe") from None
    return recipe, list(_read(path, rows[1:]))


def _read(path: Path, rows: Sequence[str]) -> Iterator[Curated]:
    for number, row in enumerate(rows, 2):
        try:
            data = json.loads(row)
            yield Curated(**data | {"apps": tuple(data["apps"])})
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: line {number} is no curated task: {error}") from None


def _count(reference: Reference, tries: int, purpose: str, refs: Sequence[TaskRef]) -> list[int]:
    return [reference.passes(ref, tries, purpose) for ref in refs]


def _evenly(hard: list[tuple[TaskRef, int]], wanted: int) -> list[tuple[TaskRef, int]]:
    """Round robin over templates, in the order drawn: no count decides who comes first."""
    waiting: dict[str, list[tuple[TaskRef, int]]] = {}
    for found in reversed(hard):
        waiting.setdefault(found[0].template, []).append(found)
    out: list[tuple[TaskRef, int]] = []
    while waiting and len(out) < wanted:
        for name in sorted(waiting):
            out.append(waiting[name].pop())
            if not waiting[name]:
                del waiting[name]
    return out[:wanted]


def _line(
    ref: TaskRef, split: Split, reference: Reference, passes: int, screen_passes: int
) -> Curated:
    task = make(ref.template, ref.seed)
    return Curated(
        template=ref.template,
        seed=ref.seed,
        split=split,
        kind=task.kind,
        apps=task.apps,
        goal=task.goal,
        complexity=task.complexity,
        reference=reference.name,
        tries=reference.tries,
        passes=passes,
        screen_tries=reference.screen_tries,
        screen_passes=screen_passes,
    )
