"""A stack that is shot at while it plays episodes, and the books afterwards.

    python -m tests.chaos --seed 1 [--episodes 200] [--kills 2]

The supervisor of `wmr1 up` restarts what dies: Redis (append-only), renderer with its browser,
world model, policy (the tiny one), rollout worker. Each of them, and the browser alone, is
killed with SIGKILL `--kills` times, in random order, when a random share of the episodes has
ended and it serves again. Prints the seed and what was found; exit code 1 when the books are
wrong. `tests/e2e/test_chaos.py` is a smaller one.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from services.worldmodel.backends.scripted import Scripted
from tests.processes import descendants
from tests.worldmodel_fakes import Process
from wmkit.blobs import open_blobs
from wmkit.cli.stack import Layout, Stack, free_ports
from wmkit.cli.stack.child import Phase
from wmkit.domain.actions import Action, from_dict
from wmkit.domain.episode import EpisodeSpec, Job, Result, ResultStatus, Trajectory
from wmkit.domain.errors import Unavailable
from wmkit.domain.tasks import TaskRef, Verdict
from wmkit.domain.transition import Purpose
from wmkit.domain.validation import problems
from wmkit.ports import BlobStore, Ledger
from wmkit.queue.redis import RedisJobQueue
from wmkit.trajectories import named_blobs

ROOT = Path(__file__).parents[1]
VICTIMS = ("rollout", "renderer", "worldmodel", "policy", "browser", "redis")
SERVICES = ("renderer", "worldmodel", "policy", "rollout")
TEMPLATES = ("settings_turn_on", "clock_alarm_on", "notes_pin", "contacts_star")
RUN = "chaos"
GROUP = 4
PATIENCE_S = 900.0


@dataclass
class Report:
    seed: int
    seconds: float = 0.0
    killed: Counter[str] = field(default_factory=Counter)
    restarts: dict[str, int] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    reasons: Counter[str] = field(default_factory=Counter)
    played_twice: int = 0
    wrong: list[str] = field(default_factory=list)
    """What must not be; empty when the books are right."""


def jobs(seed: int, count: int) -> list[Job]:
    spec = EpisodeSpec(
        prompt="compact",
        image_scale=0.15,
        history=1,
        max_new_tokens=64,
        max_calls_per_thought=1,
        max_calls=3,
        timeout_s=120,
    )
    return [
        Job(
            job_id=f"{RUN}/{n}",
            run_id=RUN,
            phase="train-0",
            task=TaskRef(template=TEMPLATES[n // GROUP % len(TEMPLATES)], seed=n // GROUP),
            group=n // GROUP,
            member=n % GROUP,
            seed=seed * 1_000_003 + n,
            spec=spec,
        )
        for n in range(count)
    ]


async def storm(folder: Path, seed: int, episodes: int, kills: int) -> Report:
    """Play `episodes` while everything is killed `kills` times, and audit what is left."""
    report, rng, began = Report(seed), random.Random(seed), time.monotonic()
    blobs = folder / "blobs"
    layout = Layout(
        root=ROOT,
        folder=folder,
        logs=folder / "log",
        ports=free_ports(("redis", *SERVICES)),
        settings={
            "WMR1_BLOBS": str(blobs),
            "WMR1_CHECKPOINT": str(ROOT / "examples" / "tiny-policy"),
            "WMR1_RECLAIM_AFTER_S": "3",
        },
    )
    shots = [victim for victim in VICTIMS for _ in range(kills)]
    rng.shuffle(shots)
    plan = list(zip(sorted(rng.random() * 0.9 for _ in shots), shots, strict=True))
    asked = jobs(seed, episodes)
    url = f"redis://{layout.address('redis')}/0"
    with Stack(layout) as stack:
        await asyncio.to_thread(stack.wait_ready, PATIENCE_S)
        async with RedisJobQueue(url) as queue:
            await queue.submit(asked)
            results = await _play(queue, stack, plan, episodes, report)
            report.restarts = {child.spec.name: child.restarts for child in stack.children}
            report.ledger = await queue.ledger(RUN)
            again, _ = await queue.results(RUN, "0", 10 * episodes, 0)
            if list(again) != results:
                report.wrong.append("the stream of results reads otherwise the second time")
    await audit(asked, results, open_blobs(str(blobs)), report)
    report.seconds = time.monotonic() - began
    return report


async def _play(
    queue: RedisJobQueue,
    stack: Stack,
    plan: list[tuple[float, str]],
    episodes: int,
    report: Report,
) -> list[Result]:
    """All results; shoots by the plan on the way."""
    results: list[Result] = []
    cursor, end = "0", time.monotonic() + PATIENCE_S
    while len(results) < episodes or plan:
        if time.monotonic() > end:
            report.wrong.append(f"only {len(results)} of {episodes} jobs ended; left: {plan}")
            break
        with suppress(Unavailable):
            found, cursor = await queue.results(RUN, cursor, 1000, 200)
            results += found
        if plan and (len(results) >= plan[0][0] * episodes) and _shoot(stack, plan[0][1]):
            report.killed[plan.pop(0)[1]] += 1
    return results


def _shoot(stack: Stack, victim: str) -> bool:
    """Kill it if it serves; False when it is still on its way up."""
    name = "renderer" if victim == "browser" else victim
    (child,) = (child for child in stack.children if child.spec.name == name)
    if child.phase is not Phase.SERVING or child.pid is None:
        return False
    pid = child.pid
    if victim == "browser":
        browsers = [p for p in descendants(pid) if _is_browser(p)]
        if not browsers:
            return False
        pid = browsers[0]
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return True


def _is_browser(pid: int) -> bool:
    """Not one of its helpers, nor the shell script by which distributions start it."""
    try:
        program = os.readlink(f"/proc/{pid}/exe")
        command = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False
    return "chrom" in os.path.basename(program) and "--type=" not in command


async def audit(
    asked: Sequence[Job], results: Sequence[Result], blobs: BlobStore, report: Report
) -> None:
    """Every job once, every retained trajectory whole, and as the world really is."""
    by_id = {job.job_id: job for job in asked}
    wrong, ledger = report.wrong, report.ledger
    if (ledger.requested, ledger.ended) != (len(asked), len(asked)):
        wrong.append(f"the ledger does not balance: {ledger}")
    if sorted(result.job_id for result in results) != sorted(by_id):
        wrong.append("not every job has exactly one result")
    counted = Counter(result.status for result in results)
    if any(counted[status] != getattr(ledger, status) for status in ResultStatus):
        wrong.append(f"results and ledger differ: {counted}, {ledger}")
    kept = Counter(result.trajectory for result in results if result.trajectory)
    wrong += [f"trajectory {name} counts {n} times" for name, n in kept.items() if n > 1]
    world = Process(Scripted()).world
    for result in results:
        if result.status is not ResultStatus.ACCEPTED:
            report.reasons[result.reason.partition(" (while")[0]] += 1
            if not result.reason:
                wrong.append(f"{result.job_id} is {result.status} without a reason")
        if not result.trajectory:
            if result.status is ResultStatus.ACCEPTED:
                wrong.append(f"{result.job_id} is accepted without a trajectory")
            continue
        played = Trajectory.model_validate_json(await blobs.get(result.trajectory))
        report.played_twice += played.job.attempt > 0
        found = problems(played)
        if played.job.model_copy(update={"attempt": 0}) != by_id[result.job_id]:
            found.append("it is another job's")
        found += [f"blob {b} is lost" for b in named_blobs(played) if not await blobs.has(b)]
        found += await _replayed(world, played)
        wrong += [f"{result.job_id}: {problem}" for problem in found]


async def _replayed(world: object, played: Trajectory) -> list[str]:
    """The episode walked again in a world of our own: an infrastructure failure that passed
    for a screen, an end or a verdict shows here."""
    from services.worldmodel.world import World

    assert isinstance(world, World)
    if played.judgement.verdict is Verdict.UNSURE:
        return ["a predicate is never unsure"]
    created = await world.create_state(played.task.ref)
    state, log, found = created.state.state_id, list[Action](), []
    for step in played.steps:
        if step.state_id != state:
            return [f"step {step.index} stands on another state than the world's"]
        if step.outcome is None:
            continue
        assert step.action is not None
        log.append(from_dict(step.action))
        answer = await world.step(state, log[-1], purpose=Purpose.COMMIT)
        assert answer.state is not None
        state = answer.state.state_id
    if played.final_state_id != state:
        found.append("it ends in another state than the world's")
    verdict = await world.judge(
        played.task.ref,
        state,
        answer=played.answer,
        finish_status=played.finish_status,
        first_state_id=created.state.state_id,
        actions=log,
    )
    if verdict.verdict is not played.judgement.verdict:
        found.append(f"the verdict is {played.judgement.verdict}, ours {verdict.verdict}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--kills", type=int, default=2)
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(storm(Path(folder), seed, args.episodes, args.kills))
    print(f"{report.seconds:.0f} s, killed {dict(report.killed)}, restarted {report.restarts}")
    print(f"{report.ledger}, {report.played_twice} accepted after a failed attempt")
    for reason, count in report.reasons.most_common():
        print(f"  {count} lost to: {reason}")
    for sentence in report.wrong:
        print(f"WRONG: {sentence}")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
