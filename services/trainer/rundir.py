"""The folder of one run, and the only code that writes into it.

config.toml         the resolved recipe
run.json            id, status, error: enough to list the run after a restart
.alive              locked by the trainer whose run it is, for as long as that lives
metrics.jsonl       one line per iteration (docs/metrics.md)
trajectories.jsonl  one line per job: how it ended, digest of its trajectory
versions.jsonl      one line per published version: digest of its weights in the blob store
states/             what a resumed run goes on from, one folder per saved iteration
checkpoint/         a complete checkpoint folder
best/               another one: the weights that did best in validation
summary.json        before, after, improvement, ledger
report.html         the same for people
"""

import fcntl
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from services.trainer.gather import Episode
from services.trainer.groups import succeeded
from wmkit.domain.episode import ResultStatus
from wmkit.ports import Ledger

LOGS = ("metrics.jsonl", "trajectories.jsonl", "versions.jsonl")


class RunDir:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._claim: TextIO | None = None

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    def create(self, config_toml: str) -> None:
        self.path.mkdir(parents=True)
        self._write("config.toml", config_toml)

    def claim(self) -> bool:
        """Take the run for this process; False while another one that lives has it."""
        if self._claim is None:
            file = (self.path / ".alive").open("w")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                return False
            self._claim = file
        return True

    def release(self) -> None:
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def config(self) -> str:
        """The resolved recipe."""
        return (self.path / "config.toml").read_text("utf-8")

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        self._write(name, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    def read_json(self, name: str) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.path / name).read_text("utf-8"))
        return data

    def write_report(self, html: str) -> None:
        self._write("report.html", html)

    def append_metrics(self, line: Mapping[str, Any]) -> None:
        self._append("metrics.jsonl", line)

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl, oldest first."""
        path = self.path / "metrics.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]

    def append_episode(self, episode: Episode) -> None:
        job, result, trajectory = episode.job, episode.result, episode.trajectory
        line = {
            "job_id": job.job_id,
            "phase": job.phase,
            "task": str(job.task),
            "group": job.group,
            "member": job.member,
            "status": result.status.value,
            "reason": result.reason,
            "trajectory": result.trajectory,
        }
        if trajectory is not None:
            line |= {"success": succeeded(trajectory), "ending": trajectory.ending.value}
        self._append("trajectories.jsonl", line)

    def append_version(self, version: int, digest: str) -> None:
        self._append("versions.jsonl", {"version": version, "weights": digest})

    def save_checkpoint(self, write: Callable[[Path], None], name: str = "checkpoint") -> None:
        """Let `write` fill a new folder, then put it in place of the old one."""
        fresh, place = self.path / f"{name}.new", self.path / name
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        write(fresh)
        shutil.rmtree(place, ignore_errors=True)
        fresh.rename(place)

    def save_state(self, iteration: int, write: Callable[[Path], None], keep: int) -> None:
        """Let `write` fill a new state and, once it is whole, drop all but the `keep` newest."""
        states = self.path / "states"
        fresh = states / "new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        write(fresh)
        place = states / f"{iteration:06d}"
        shutil.rmtree(place, ignore_errors=True)
        fresh.rename(place)
        for old in self._states()[:-keep]:
            shutil.rmtree(old)

    def latest_state(self) -> Path | None:
        return next(iter(reversed(self._states())), None)

    def drop_states(self) -> None:
        shutil.rmtree(self.path / "states", ignore_errors=True)

    def log_sizes(self) -> dict[str, int]:
        """Bytes of each growing file."""
        paths = {name: self.path / name for name in LOGS}
        return {name: p.stat().st_size if p.exists() else 0 for name, p in paths.items()}

    def cut_logs(self, sizes: Mapping[str, int]) -> None:
        """Take off what was appended after `log_sizes` said `sizes`."""
        for name in LOGS:
            path = self.path / name
            if path.exists():
                os.truncate(path, min(path.stat().st_size, sizes.get(name, 0)))

    def ended(self) -> Ledger:
        """How the jobs in trajectories.jsonl ended."""
        path = self.path / "trajectories.jsonl"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        counts = Counter(str(json.loads(line)["status"]) for line in lines)
        return Ledger(requested=len(lines), **{s.value: counts[s.value] for s in ResultStatus})

    def _states(self) -> list[Path]:
        return sorted((self.path / "states").glob("[0-9]*"))

    def _append(self, name: str, line: Mapping[str, Any]) -> None:
        with (self.path / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")

    def _write(self, name: str, text: str) -> None:
        """Whole or not at all: a reader never sees half a file."""
        fresh = self.path / f".{name}.new"
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, self.path / name)
