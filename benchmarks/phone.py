"""The scripted phone by itself: transitions per second, fork, memory of live states.

    python benchmarks/phone.py [--chains 60] [--steps 60] [--live 1000] [--rounds 5] [--seed 0]

Writes benchmarks/results/phone.json and prints it; about 20 s on one core. One process, one
thread, no HTML. Chains of random play over all apps are recorded first; then every chain is
played again from a start that is rebuilt from its bytes, so that no screen and no digest of it
is known beforehand, and only `step` and `digest` are timed. Process time is used: other work on
the machine disturbs it less than the clock on the wall, which stands beside it.
"""

import argparse
import gc
import json
import platform
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from services.worldmodel.phone import APPS, Phone, boot, digest, dumps, elements, loads, step
from wmkit.domain.actions import Action, Back, Home, OpenApp, Scroll, Tap, Type

RESULTS = Path(__file__).parent / "results" / "phone.json"
Chain = tuple[bytes, tuple[Action, ...]]


def record(seed: int, steps: int) -> Chain:
    """A start and random actions on what is on the screen, beginning in a random app."""
    rng = random.Random(f"phone/{seed}")
    start = boot(seed, varied=seed % 2 == 1)
    phone, actions = start, []
    for i in range(steps):
        live = [e.at for e in elements(phone) if e.clickable]
        others: list[Action] = [Back(), Home(), Scroll("down"), Scroll("up"), Type("Milk")]
        action: Action = Tap(rng.choice(live)) if rng.random() < 0.8 else rng.choice(others)
        if i % 20 == 0:
            action = OpenApp(rng.choice(list(APPS)))
        actions.append(action)
        phone = step(phone, action)
    return dumps(start), tuple(actions)


def transitions(chains: list[Chain]) -> tuple[float, float]:
    """Transitions with their state ids per second of process time and of wall time."""
    starts = [loads(start) for start, _ in chains]
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    for phone, (_, actions) in zip(starts, chains, strict=True):
        for action in actions:
            phone = step(phone, action)
            digest(phone)
    count = sum(len(actions) for _, actions in chains)
    return count / (time.process_time() - cpu), count / (time.perf_counter() - wall)


def timed_us(work: Callable[[], Any], times: int) -> float:
    """Microseconds of process time per call."""
    begin = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begin) / times * 1e6


def resident_mb() -> float:
    """Resident memory of this process (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def live_mb(count: int, seed: int) -> float:
    """Growth of the process by `count` unrelated live states, each drawn and with its id."""
    gc.collect()
    before = resident_mb()
    held: list[Phone] = []
    for i in range(count):
        phone = boot(seed + i, varied=i % 2 == 1)
        for action in (OpenApp(list(APPS)[i % len(APPS)]), Scroll("down")):
            phone = step(phone, action)
        digest(phone)
        elements(phone)
        held.append(phone)
    gc.collect()
    assert len({phone.digest for phone in held}) == count
    return resident_mb() - before


def measure(chains: int, steps: int, live: int, rounds: int, seed: int) -> dict[str, Any]:
    memory = live_mb(live, 10_000 + seed)
    recorded = [record(seed + i, steps) for i in range(chains)]
    rates = [transitions(recorded) for _ in range(rounds)]
    phone = loads(recorded[0][0])
    digest(phone)
    payload = dumps(phone)
    # A state is a value that nothing changes, so a fork is another name for it. What is timed
    # is more: a separate top-level object, as somebody would make it who keeps both in a table.
    fork = timed_us(lambda: replace(phone), 20_000)
    restore = timed_us(lambda: loads(payload), 300)
    per_s = statistics.median(cpu for cpu, _ in rates)
    return {
        "ratios": {
            "transitions_over_5000_per_s": round(per_s / 5000, 2),
            "fork_of_100_us": round(fork / 100, 4),
            "memory_of_200_mb_per_1000": round(memory / live * 1000 / 200, 3),
        },
        "transitions_per_cpu_s": [round(cpu) for cpu, _ in rates],
        "transitions_per_wall_s": [round(wall) for _, wall in rates],
        "fork_us": round(fork, 3),
        "restore_from_bytes_us": round(restore, 1),
        "payload_bytes": len(payload),
        "live_states": live,
        "live_states_mb": round(memory, 1),
        "apps": len(APPS),
        "chains": chains,
        "steps": steps,
        "rounds": rounds,
        "seed": seed,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chains", type=int, default=60)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--live", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    figures = measure(**vars(parser.parse_args()))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
