"""What batching gains, and what our layers cost above a bare vLLM.

    python benchmarks/policy.py [--rounds 5] [--requests 16] [--tokens 40]

`batching_speedup`: throughput of the policy service (engine `transformers`, its own process, over
gRPC) for 16 requests at once, against 16 one after the other. The model is the tiny policy with
its weights drawn anew, so that every answer runs to its limit; the requests are those of two
groups of eight, which look at one screen each.
`vllm_vs_bare`: throughput of the engine `vllm` behind the policy's own port against the same
AsyncLLM called directly with ready prompts, both on a tiny random Qwen3-VL. It needs vLLM's CPU
build (`make test-vllm` installs it) and is left out, with a note, where that is missing.

The two sides of a ratio take turns, `--rounds` times each after one round to warm up; the ratio
is that of the medians. Writes benchmarks/results/policy.json. Takes a minute, and a few with vLLM.
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
OUT = Path(__file__).parent / "results" / "policy.json"
VLLM_PYTHON = ROOT / ".venv-vllm" / "bin" / "python"

Side = Callable[[int], Awaitable[int]]
"""One round of a side, told its number; returns the tokens that it generated."""


async def compare(sides: dict[str, Side], rounds: int) -> dict[str, float]:
    """Median tokens per second of each side, played in turn."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for round_ in range(rounds + 1):
        for name, play in sides.items():
            begin = time.perf_counter()
            tokens = await play(round_)
            if round_:
                rates[name].append(tokens / (time.perf_counter() - begin))
    return {name: round(statistics.median(values), 1) for name, values in rates.items()}


def seeds(round_: int, requests: int) -> list[int]:
    """Other seeds in each round: the same request would be answered from a cache."""
    return [1000 * round_ + i for i in range(requests)]


# --- batching ------------------------------------------------------------------------------


async def batching(rounds: int, requests: int, tokens: int) -> dict[str, float]:
    from wmkit.blobs import digest, open_blobs
    from wmkit.clients.policy import PolicyClient
    from wmkit.domain.generation import Picture, Sampling, Text, Turn

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkpoint = endless(folder / "checkpoint")
        async with redis(folder) as url, service(folder, url, checkpoint) as address:
            screens = [picture(i) for i in range(2)]
            pictures = [screens[i * 2 // requests] for i in range(requests)]
            blobs = open_blobs(str(folder / "blobs"))
            for data in pictures:
                await blobs.put(data)
            async with PolicyClient(address) as client:

                async def ask(i: int, seed: int) -> int:
                    turns = [
                        Turn("user", (Text(f"Goal: turn on {i}"), Picture(digest(pictures[i]))))
                    ]
                    answer = await client.generate(turns, Sampling(1.0, tokens, (), seed))
                    return len(answer.token_ids)

                async def together(round_: int) -> int:
                    chosen = enumerate(seeds(round_, requests))
                    return sum(await asyncio.gather(*(ask(i, seed) for i, seed in chosen)))

                async def in_a_row(round_: int) -> int:
                    return sum(
                        [await ask(i, seed) for i, seed in enumerate(seeds(round_, requests))]
                    )

                return await compare({"together": together, "in_a_row": in_a_row}, rounds)


def endless(folder: Path) -> Path:
    """The tiny policy, whose weights say nothing: it hardly ever ends its turn."""
    from tests import tiny_checkpoints
    from wmkit.modeling import load, save

    loaded = load(ROOT / "examples" / "tiny-policy")
    tiny_checkpoints.draw(loaded.model, seed=0)
    save(loaded, folder)
    return folder


@asynccontextmanager
async def redis(folder: Path) -> AsyncIterator[str]:
    binary = shutil.which("redis-server")
    if binary is None:
        raise SystemExit("redis-server is not installed")
    child = await asyncio.create_subprocess_exec(
        binary, "--port", "0", "--unixsocket", str(folder / "redis.sock"), "--save", "",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    async for line in child.stdout:
        if b"ready to accept" in line.lower():
            break
    try:
        yield f"unix://{folder}/redis.sock"
    finally:
        child.terminate()
        await child.wait()


@asynccontextmanager
async def service(folder: Path, redis_url: str, checkpoint: Path) -> AsyncIterator[str]:
    """The policy service as a process, on a free port and all cores."""
    environment = {
        "WMR1_PORT": "0",
        "WMR1_REDIS_URL": redis_url,
        "WMR1_BLOBS": str(folder / "blobs"),
        "WMR1_CHECKPOINT": str(checkpoint),
        "WMR1_TORCH_THREADS": str(min(2, os.cpu_count() or 1)),
    }
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "services.policy",
        cwd=ROOT,
        env=os.environ | environment,
        stderr=asyncio.subprocess.PIPE,
    )
    assert child.stderr is not None
    said: list[str] = []
    try:
        async for line in child.stderr:
            said.append(line.decode())
            if '"serving"' in said[-1]:
                yield json.loads(said[-1])["address"]
                return
        raise SystemExit(f"the policy service did not start: {''.join(said)}")
    finally:
        child.terminate()
        await child.wait()


def picture(seed: int) -> bytes:
    """A screenshot's worth of coloured blocks, 128 x 320."""
    import io
    import random

    from PIL import Image

    image = Image.new("RGB", (8, 20))
    drawn = random.Random(seed)
    for x in range(8):
        for y in range(20):
            image.putpixel(
                (x, y), (drawn.randrange(256), drawn.randrange(256), drawn.randrange(256))
            )
    out = io.BytesIO()
    image.resize((128, 320), Image.Resampling.NEAREST).save(out, "PNG")
    return out.getvalue()


# --- vLLM, inside its own environment --------------------------------------------------------


async def inside_vllm(rounds: int, requests: int, tokens: int) -> dict[str, float]:
    from services.policy.policy import LocalPolicy
    from services.policy.updates import Updates
    from services.policy.vllm_engine import VllmEngine
    from services.policy.vllm_llm import Options, last, parameters_for, prompt_for
    from tests import tiny_checkpoints
    from wmkit.blobs import MemoryBlobs, digest
    from wmkit.domain.generation import Picture, Sampling, Text, Turn
    from wmkit.modeling import load_processor

    with tempfile.TemporaryDirectory() as name:
        folder = tiny_checkpoints.make(Path(name) / "tiny", head_dim=32)
        engine = VllmEngine(load_processor(folder), Options(max_batch=requests))
        await engine.start()
        blobs = MemoryBlobs()
        pictures = [tiny_checkpoints.png(i) for i in range(requests)]
        for data in pictures:
            await blobs.put(data)
        policy = LocalPolicy(engine, blobs, Updates(engine, blobs, _Nothing(), "bench"))
        turns = [
            [Turn("user", (Text(f"Goal: turn on {i}"), Picture(digest(data))))]
            for i, data in enumerate(pictures)
        ]

        async def ours(round_: int) -> int:
            answers = await asyncio.gather(
                *(
                    policy.generate(turns[i], Sampling(1.0, tokens, (), seed))
                    for i, seed in enumerate(seeds(2 * round_, requests))
                )
            )
            return sum(len(answer.token_ids) for answer in answers)

        ready = []
        for i in range(requests):
            prompt = await policy._prompt(turns[i], Sampling(1.0, tokens), {})
            shown = [engine.processor.images.picture(image) for image in prompt.images]
            ready.append(prompt_for(engine.processor, prompt, shown))

        async def bare(round_: int) -> int:
            outputs = await asyncio.gather(
                *(
                    last(
                        engine._llm.generate(
                            ready[i],
                            parameters_for(engine.processor, Sampling(1.0, tokens, (), seed)),
                            f"bare-{seed}",
                        )
                    )
                    for i, seed in enumerate(seeds(2 * round_ + 1, requests))
                )
            )
            return sum(len(out.outputs[0].token_ids) for out in outputs)

        figures = await compare({"ours": ours, "bare": bare}, rounds)
        await engine.close()
        return figures


class _Nothing:
    async def get(self, key: str, /) -> None:
        return None

    async def set(self, key: str, value: str, /) -> None:
        return None


def with_vllm(arguments: Sequence[str], python: Path) -> dict[str, Any]:
    if not python.exists():
        return {"note": "left out: there is no .venv-vllm; `make test-vllm` makes it"}
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}",
        "VLLM_CPU_KVCACHE_SPACE": "1",
    }
    done = subprocess.run(
        [str(python), __file__, "--inside-vllm", *arguments],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    # vLLM logs there too.
    said = [
        line for line in done.stdout.decode().splitlines() if line.startswith('{"tokens_per_s"')
    ]
    found: dict[str, Any] = json.loads(said[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--vllm-python", type=Path, default=VLLM_PYTHON)
    parser.add_argument("--inside-vllm", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside_vllm:
        figures = asyncio.run(inside_vllm(chosen.rounds, chosen.requests, chosen.tokens))
        versions = {"vllm": version("vllm-cpu"), "torch": version("torch")}
        print(json.dumps({"tokens_per_s": figures, "versions": versions}))
        return
    rates = asyncio.run(batching(chosen.rounds, chosen.requests, chosen.tokens))
    print(f"transformers, tokens per second: {rates}", file=sys.stderr)
    ratios = {"batching_speedup": round(rates["together"] / rates["in_a_row"], 2)}
    arguments = [f"--{n}={getattr(chosen, n)}" for n in ("rounds", "requests", "tokens")]
    vllm = with_vllm(arguments, chosen.vllm_python)
    if "tokens_per_s" in vllm:
        side = vllm["tokens_per_s"]
        ratios["vllm_vs_bare"] = round(side["ours"] / side["bare"], 3)
    report = {
        "ratios": ratios,
        "transformers_tokens_per_s": rates,
        "vllm": vllm,
        "requests": chosen.requests,
        "tokens": chosen.tokens,
        "rounds": chosen.rounds,
        "seeds": "1000 * round + request",
        "python": platform.python_version(),
        "torch": version("torch"),
        "transformers": version("transformers"),
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
    }
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
