"""Train the tiny policy from nothing: `make tiny-policy`.

Collects demonstrations from the scripted phone's oracle, draws their screens in the renderer's
browser, learns a tokenizer, trains, and writes a checkpoint folder: about half an hour on two
cores. The shipped checkpoint was stopped early on purpose, so that there is something left for
reinforcement learning to do; README.md says how, and with which numbers.
"""

import argparse
import asyncio
import time
from collections.abc import Iterable
from pathlib import Path
from random import Random

import architecture
import torch
import vocabulary
from demonstrations import DIALECT, VIEW, Example, Examples, collect
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from screens import render
from training import Corpus, Screens, Trainer

from wmkit.domain import actions as act
from wmkit.domain.generation import Text
from wmkit.domain.screen import Point
from wmkit.modeling import load
from wmkit.modeling.images import ImageEncoder

# Far from every seed that the demo trains or evaluates on.
TRAIN_SEEDS = 1_000_000
CHECK_SEEDS = 2_000_000
VOCABULARY = 800


def phrases() -> list[str]:
    """The fixed pieces of what the agent reads and writes, one token each."""
    middle = Point(0.5, 0.5)
    out = ["Goal: ", "\nDone: ", "\nCalls: "]
    for action in (act.Tap(middle), act.LongPress(middle)):
        before = DIALECT.render(action, VIEW).split("<|box_start|>")[0]
        after = DIALECT.render(action, VIEW).split("<|box_end|>")[1]
        out += [f"</think>\nAction: {before}", before, after]
    for action in (
        act.Scroll("up"),
        act.Scroll("down"),
        act.Scroll("left"),
        act.Scroll("right"),
        act.Back(),
        act.Home(),
        act.Finish("success"),
        act.Finish("infeasible"),
    ):
        text = DIALECT.render(action, VIEW)
        out += [f"</think>\nAction: {text}", text]
    return list(dict.fromkeys(out))


def words(examples: Iterable[Example], fixed: list[str]) -> Iterable[str]:
    """What is left for the tokenizer to learn: the texts without their fixed pieces."""
    for example in examples:
        parts = [part for turn in example.prompt for part in turn.parts]
        texts = [part.text for part in parts if isinstance(part, Text)]
        texts += [piece for piece in example.script if isinstance(piece, str)]
        for text in texts:
            for piece in (*fixed, *vocabulary.SPECIAL, *vocabulary.TAGS):
                text = text.replace(piece, "\0")
            yield from (piece for piece in text.split("\0") if piece)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python examples/tiny-policy/cold_start", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--out", type=Path, default=Path("var/tiny-policy"))
    parser.add_argument("--steps", type=int, default=1600, help="length of the schedule")
    parser.add_argument("--stop", type=int, default=0, help="stop after this many steps (0: never)")
    parser.add_argument("--seeds", type=int, default=160, help="phones per skill to learn from")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument(
        "--continue-from", type=Path, help="train this checkpoint on, as the supervised control"
    )
    parser.add_argument("--seconds", type=float, help="train for this long instead of --steps")
    args = parser.parse_args()
    console = Console()

    console.print("Collecting demonstrations ...")
    examples = collect(range(TRAIN_SEEDS, TRAIN_SEEDS + args.seeds), Random(args.seed))
    held_out = collect(range(CHECK_SEEDS, CHECK_SEEDS + 12), Random(args.seed + 1))
    phones = examples.screens | held_out.screens
    bar = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"))
    with Progress(*bar, TimeElapsedColumn(), console=console) as progress:
        drawing = progress.add_task(f"Drawing {len(phones)} screens", total=len(phones), note="")
        pngs = asyncio.run(render(phones, lambda: progress.advance(drawing)))

        fixed = phrases()
        everything = [
            *examples.demonstrations,
            *examples.looking_ahead,
            *examples.pointing,
            *examples.reading,
        ]
        if args.continue_from:
            loaded = load(args.continue_from)
            tokenizer, model = loaded.tokenizer, loaded.model
        else:
            tokenizer = vocabulary.build(words(everything, fixed), fixed, VOCABULARY)
            model = architecture.create(tokenizer, args.seed)
        architecture.save(args.out, model, tokenizer)

        known = tokenizer.get_vocab()
        easy = [
            token
            for token in (*fixed, "<|box_start|>", "<|box_end|>", "<think>", *"(),")
            if token in known and not token.startswith("</think>")
        ]
        screens = Screens(ImageEncoder(args.out).encode, pngs)
        trainer = Trainer(model, tokenizer, screens, Examples(screens=phones), args.seed)
        corpus = Corpus(examples, tokenizer, easy)
        check = Corpus(held_out, tokenizer, easy)

        training = progress.add_task("Training", total=1.0, note="")
        began = time.monotonic()

        def schedule(step: int) -> float:
            if args.seconds:
                return (time.monotonic() - began) / args.seconds
            return 1.0 if step == args.stop else step / args.steps

        def report(step: int, losses: dict[str, float]) -> None:
            note = " ".join(f"{name} {value:.3f}" for name, value in losses.items())
            progress.update(training, completed=schedule(step), note=f"step {step} {note}")
            if step % 200 == 0:
                sample = check.demonstrations[:256]
                ahead = check.looking_ahead[:128]
                console.print(
                    f"step {step}: exact on held-out steps {trainer.exact(sample):.3f}, "
                    f"before blank tiles {trainer.exact(ahead):.3f}"
                )

        mature = args.continue_from is not None
        trainer.train(corpus, args.learning_rate, schedule, report, mature=mature)
    model.eval()
    architecture.save(args.out, model, tokenizer)
    console.print(f"Wrote {args.out}")


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
