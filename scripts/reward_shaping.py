"""Train the tiny policy under every reward variant, and write the table of docs/reward-shaping.md.

    .venv/bin/python scripts/reward_shaping.py train [--iterations 12] [--seeds 1 2 3]
    .venv/bin/python scripts/reward_shaping.py report runs/shaping-* [--write]

`train` runs one variant after the other on a stack of its own, `report` reads the run folders.
Only the reward differs between variants; all start from the same weights, take as many updates and
play the same held-out tasks.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).parent.parent
BASE = ROOT / "recipes" / "wm_r1_tiny.toml"
PAGE = ROOT / "docs" / "reward-shaping.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"

VARIANTS: dict[str, dict[str, object]] = {
    "gated": {"shaping": "gated", "wm_term": "none"},
    "gated-paper": {"shaping": "gated", "wm_term": "paper"},
    "gated-useful": {"shaping": "gated", "wm_term": "useful"},
    "paper-length": {"shaping": "paper", "wm_term": "none", "gamma": 0.0},
    "paper": {"shaping": "paper", "wm_term": "paper"},
}
"""What stands in [reward]; alpha 1, beta 0.5, gamma 0.1 (the paper's) unless it says otherwise."""


def recipe(variant: str, iterations: int) -> str:
    """The base recipe with another name, length and reward."""
    reward = {"alpha": 1.0, "beta": 0.5, "gamma": 0.1, **VARIANTS[variant]}
    table = "[reward]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in reward.items())
    text = re.sub(r"\[reward\]\n(?:[^\[]*\n)?(?=\[|\Z)", table + "\n", BASE.read_text("utf-8"))
    text = re.sub(r"(?m)^name = .*$", f'name = "shaping-{variant}"', text)
    text = re.sub(r"(?m)^max_train_s = .*$", f"iterations = {iterations}", text)
    made = tomllib.loads(text)
    assert made["reward"] == reward and made["schedule"]["iterations"] == iterations
    return text


def train(iterations: int, seeds: Sequence[int], variants: Sequence[str]) -> None:
    for variant in variants:
        path = ROOT / "var" / f"shaping-{variant}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(recipe(variant, iterations), "utf-8")
        for seed in seeds:
            command = [sys.executable, "-m", "wmkit.cli", "train", str(path), "--seed", str(seed)]
            subprocess.run(command, cwd=ROOT, check=True)


def row(folder: Path) -> tuple[str, dict[str, Any]]:
    """The variant of a run, and what it reached."""
    config = tomllib.loads((folder / "config.toml").read_text("utf-8"))
    summary = json.loads((folder / "summary.json").read_text("utf-8"))
    lines = [json.loads(x) for x in (folder / "metrics.jsonl").read_text("utf-8").splitlines()]
    tenth = max(1, len(lines) // 10)

    def ends(name: str) -> tuple[float, float]:
        return fmean(x[name] for x in lines[:tenth]), fmean(x[name] for x in lines[-tenth:])

    found = {
        "seed": config["seed"],
        "before": summary["before"]["success"],
        "after": summary["after"]["success"],
        "improvement": summary["improvement"],
        "calls": ends("calls"),
        "length": ends("length"),
    }
    return str(config["name"]).removeprefix("shaping-"), found


def report(folders: Sequence[Path]) -> str:
    """A Markdown table: a row for each run, by variant and seed."""
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for folder in folders:
        variant, found = row(folder)
        runs[variant].append(found)
    out = [
        "| reward | seed | before | after | paired difference [95 %] | p "
        "| calls per episode, first → last | steps, first → last |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for variant in sorted(runs, key=lambda v: list(VARIANTS).index(v)):
        for run in sorted(runs[variant], key=lambda r: r["seed"]):
            change = run["improvement"]
            low, high = (100 * end for end in change["ci95"])
            calls, steps = run["calls"], run["length"]
            out.append(
                f"| `{variant}` | {run['seed']} | {100 * run['before']:.1f} % "
                f"| {100 * run['after']:.1f} % "
                f"| {100 * change['mean']:+.1f} [{low:.1f}, {high:.1f}] "
                f"| {change['p_value']:.2g} | {calls[0]:.2f} → {calls[1]:.2f} "
                f"| {steps[0]:.1f} → {steps[1]:.1f} |"
            )
    return "\n".join(out) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train")
    training.add_argument("--iterations", type=int, default=12)
    training.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    training.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    reporting = commands.add_parser("report")
    reporting.add_argument("folders", type=Path, nargs="+")
    reporting.add_argument("--write", action="store_true", help="Put it into the page.")
    args = parser.parse_args()
    if args.command == "train":
        train(args.iterations, args.seeds, args.variants)
        return
    table = report(args.folders)
    if args.write:
        head, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        _, _, tail = rest.partition(END)
        PAGE.write_text(f"{head}{BEGIN}\n{table}{END}{tail}", "utf-8")
    print(table, end="")


if __name__ == "__main__":
    main()
