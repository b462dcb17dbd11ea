"""A training step here and in TRL's GRPOTrainer: time and peak memory. Generation is left out.

    python benchmarks/trainer.py [--rounds 3] [--steps 20] [--long 200] [--threads 1]

Both train the shipped tiny policy on the same samples (every one with a picture of its own, so
that none is encoded twice for free): same tokens, same micro-batch size, float32, AdamW, the
`dapo` loss with the same clipping, with and without gradient checkpointing. Each contestant
is a process of its own, the two take turns, and the ratios are those of medians over the rounds;
the worse of the two cases counts. Memory is the peak of the resident set during the steps, less
what was resident before the first (imports, weights, samples). TRL's step is what its trainer
does with generated completions: `_compute_loss` per micro-batch, backward, clipping, optimizer.
Its image path is the model's own, so it needs no torchvision here. Then this trainer takes `--long`
steps: the resident set must not grow. Writes benchmarks/results/trainer.json; about three
minutes on two quiet cores.
"""

import argparse
import gc
import io
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "trainer.json"
CHECKPOINT = ROOT / "examples" / "tiny-policy"
SAMPLES, MICRO, PROMPT, ANSWER = 32, 8, 120, 48
SEED = 0


def resident(field: str) -> float:
    """MB of this process: VmRSS now, or VmHWM at its highest since `forget_peak`."""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise ValueError(field)


def forget_peak() -> None:
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", "utf-8")


def make_learner(checkpointing: bool) -> tuple[Any, list[Any], dict[str, bytes]]:
    import numpy as np
    from PIL import Image

    from services.trainer.batches import Sample
    from services.trainer.learner import Learner
    from services.trainer.recipe import Recipe
    from wmkit.blobs import digest
    from wmkit.domain.episode import ImageRef

    optimizer = {"gradient_checkpointing": checkpointing, "warmup": 0}
    recipe = {"checkpoint": str(CHECKPOINT), "tasks": {"templates": ["a"]}, "optimizer": optimizer}
    learner = Learner(Recipe.model_validate(recipe))
    pick, draw = random.Random(SEED), np.random.default_rng(SEED)
    chat, samples, images = learner.loaded.chat, [], {}
    words = chat.text_ids("".join(map(chr, range(32, 127))))
    for number in range(SAMPLES):
        out = io.BytesIO()
        Image.fromarray(draw.integers(0, 256, (320, 128, 3), dtype=np.uint8)).save(out, "PNG")
        data = out.getvalue()
        images[digest(data)] = data
        pixels = learner.loaded.images.encode(data)
        text = [pick.choice(words) for _ in range(PROMPT)]
        shown = [chat.vision_start_id, *[chat.image_id] * pixels.tokens, chat.vision_end_id]
        answer = [pick.choice(words) for _ in range(ANSWER)]
        ids = (*text, *shown, *answer)
        before = len(text) + len(shown)
        samples.append(
            Sample(
                name=f"sample {number}",
                episode=f"episode {number}",
                token_ids=ids,
                mask=(0,) * before + (1,) * ANSWER,
                logprobs=(0.0,) * before + (-4.0,) * ANSWER,
                images=(ImageRef(digest=pixels.digest, grid_thw=pixels.grid_thw),),
                processor=learner.processor,
                advantage=1.0 - 2.0 * (number % 2),
            )
        )
    tokens = MICRO * len(samples[0].token_ids)
    optimizer_section = learner.recipe.optimizer.model_copy(update={"micro_batch_tokens": tokens})
    learner.recipe = learner.recipe.model_copy(update={"optimizer": optimizer_section})
    return learner, samples, images


def ours(checkpointing: bool) -> Callable[[], object]:
    learner, samples, images = make_learner(checkpointing)
    return lambda: learner.update(samples, images)


def theirs(checkpointing: bool) -> Callable[[], object]:
    import torch
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    learner, samples, images = make_learner(checkpointing)
    loaded = learner.loaded
    if checkpointing:  # TRL switches it on itself
        loaded.model.gradient_checkpointing_disable()
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        bf16=False,
        report_to=[],
        per_device_train_batch_size=MICRO,
        gradient_accumulation_steps=SAMPLES // MICRO,
        num_generations=MICRO,
        max_completion_length=ANSWER,
        gradient_checkpointing=checkpointing,
        loss_type="dapo",
        epsilon=0.2,
        epsilon_high=0.28,
        delta=3.0,
        learning_rate=1e-6,
        weight_decay=0.01,
    )
    trainer = GRPOTrainer(
        model=loaded.model,
        reward_funcs=lambda **_: [0.0],
        args=config,
        train_dataset=Dataset.from_dict({"prompt": ["a"]}),
        processing_class=loaded.tokenizer,
    )
    trainer.create_optimizer()
    if checkpointing:
        loaded.model.gradient_checkpointing_enable({"use_reentrant": False})
    trainer.current_gradient_accumulation_steps = SAMPLES // MICRO
    loaded.model.train()

    def micro_batch(start: int) -> dict[str, Any]:
        chosen = samples[start : start + MICRO]
        pixels = [loaded.images.encode(images[s.images[0].digest]) for s in chosen]
        ids = torch.tensor([s.token_ids for s in chosen])
        prompt, answer = ids[:, :-ANSWER], ids[:, -ANSWER:]
        return {
            "prompt_ids": prompt,
            "prompt_mask": torch.ones_like(prompt),
            "completion_ids": answer,
            "completion_mask": torch.ones_like(answer),
            "advantages": torch.tensor([s.advantage for s in chosen]),
            "old_per_token_logps": torch.tensor([s.logprobs[-ANSWER:] for s in chosen]),
            "num_items_in_batch": torch.tensor(SAMPLES * ANSWER),
            "pixel_values": torch.cat([p.pixel_values for p in pixels]),
            "image_grid_thw": torch.tensor([p.grid_thw for p in pixels]),
            "num_images": [1] * MICRO,
            "mm_token_type_ids": (ids == loaded.chat.image_id).int(),
        }

    def step() -> None:
        for start in range(0, SAMPLES, MICRO):
            loss = trainer._compute_loss(loaded.model, micro_batch(start))
            trainer.accelerator.backward(loss)
        torch.nn.utils.clip_grad_norm_(loaded.model.parameters(), 1.0)
        trainer.optimizer.step()
        trainer.optimizer.zero_grad()

    return step


def contest(who: str, checkpointing: bool, steps: int) -> dict[str, float]:
    """Seconds of a step (median) and MB at its peak, in this process."""
    step = {"ours": ours, "trl": theirs}[who](checkpointing)
    forget_peak()
    before = resident("VmRSS")
    times = []
    for number in range(steps + 3):
        began = time.perf_counter()
        step()
        if number >= 3:
            times.append(time.perf_counter() - began)
    peak = resident("VmHWM")
    return {"step_s": statistics.median(times), "peak_mb": peak - before, "process_mb": peak}


def long_run(steps: int) -> dict[str, Any]:
    """The resident set after every tenth of the steps, and where the time goes.

    `growth_mb` is that of the second half: before, the allocator is still settling.
    """
    import torch

    learner, samples, images = make_learner(False)
    spent = {"pack": 0.0, "forward": 0.0, "backward": 0.0, "optimizer": 0.0}

    def timed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                spent[name] += time.perf_counter() - began

        return wrapped

    learner.pack = timed("pack", learner.pack)
    learner.scorer.forward = timed("forward", learner.scorer.forward)
    learner.optimizer.step = timed("optimizer", learner.optimizer.step)
    torch.Tensor.backward = timed("backward", torch.Tensor.backward)  # type: ignore[method-assign]
    began, held = time.perf_counter(), []
    for number in range(1, steps + 1):
        learner.update(samples, images)
        if number % max(1, steps // 10) == 0:
            gc.collect()
            held.append(round(resident("VmRSS"), 1))
    whole = time.perf_counter() - began
    phases = {f"{name}_s": seconds / steps for name, seconds in spent.items()}
    rest = whole / steps - sum(phases.values())
    growth = held[-1] - held[len(held) // 2 - 1] if len(held) > 1 else 0.0
    return {"steps": steps, "growth_mb": round(growth, 1), "resident_mb": held, **phases,
            "rest_s": rest}  # fmt: skip


def apart(threads: int, *args: str) -> dict[str, Any]:
    """This script with `args` in a process of its own."""
    env = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}"}
    done = subprocess.run(
        [sys.executable, __file__, *args], env=env, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--long", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--contest", nargs=2, metavar=("WHO", "CASE"), help=argparse.SUPPRESS)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.contest:
        who, case = args.contest
        print(json.dumps(contest(who, case == "checkpointing", args.steps)))
        return
    if args.alone:
        print(json.dumps(long_run(args.long)))
        return
    cases: dict[str, Any] = {}
    for case in ("plain", "checkpointing"):
        rounds: dict[str, list[dict[str, float]]] = {"ours": [], "trl": []}
        for _ in range(args.rounds):
            for who, found in rounds.items():
                steps = ("--steps", str(args.steps))
                found.append(apart(args.threads, "--contest", who, case, *steps))
                print(f"{case} {who}: {found[-1]}", file=sys.stderr)
        middle = {
            who: {key: statistics.median(r[key] for r in found) for key in found[0]}
            for who, found in rounds.items()
        }
        cases[case] = {**middle, "rounds": rounds}

    def ratio(key: str) -> float:
        return max(case["ours"][key] / case["trl"][key] for case in cases.values())

    report = {
        "benchmark": "trainer",
        "ratios": {"step_vs_trl": ratio("step_s"), "memory_vs_trl": ratio("peak_mb")},
        "cases": cases,
        "long": apart(args.threads, "--alone", "--long", str(args.long)),
        "batch": {"samples": SAMPLES, "micro_batch": MICRO, "answer": ANSWER, "images": SAMPLES},
        "seed": SEED,
        "threads": args.threads,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("torch", "transformers", "trl")},
    }
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    print(json.dumps({key: report[key] for key in ("ratios", "long")}, indent=2))


if __name__ == "__main__":
    main()
