"""Experiment trackers behind one small port. metrics.jsonl is written in any case; a tracker is
for looking at curves of many runs.

All of them write to this machine and ask no network: trackio into a database of its own,
tensorboard into event files and wandb (offline) into the run folder. Their packages are the
extra `trackers`; without it the default keeps no tracker.
"""

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import structlog

from services.trainer.recipe import TrackerName
from wmkit.domain.errors import InvalidRequest

log = structlog.get_logger(__name__)

PROJECT = "wmr1"


class Tracker(Protocol):
    def log(self, step: int, metrics: Mapping[str, float]) -> None: ...

    def close(self) -> None: ...


class Nothing:
    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        pass

    def close(self) -> None:
        pass


class Trackio:
    """`trackio show` opens what it keeps, in the folder TRACKIO_DIR."""

    def __init__(self, run_id: str, config: dict[str, Any]) -> None:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        import trackio

        self._run = trackio.init(
            project=PROJECT,
            name=run_id,
            config=config,
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        self._run.finish()


class TensorBoard:
    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(folder / "tensorboard"))  # type: ignore[no-untyped-call,unused-ignore]

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class Wandb:
    """`wandb sync` sends an offline run later, if somebody wants that."""

    def __init__(self, run_id: str, folder: Path, config: dict[str, Any]) -> None:
        import wandb

        self._run = wandb.init(
            project=PROJECT,
            name=run_id,
            id=run_id,
            dir=str(folder),
            config=config,
            mode="offline",
            resume="allow",
            settings=wandb.Settings(silent=True, console="off"),
        )

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        self._run.finish()


class Patient:
    """A tracker that may fail without ending the run: it is switched off with one warning."""

    def __init__(self, tracker: Tracker, run_id: str) -> None:
        self._tracker = tracker
        self._run_id = run_id

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        try:
            self._tracker.log(step, metrics)
        except Exception as error:  # whatever it raises: the numbers are in metrics.jsonl
            log.warning("the tracker is switched off", run_id=self._run_id, error=str(error))
            self._tracker = Nothing()

    def close(self) -> None:
        try:
            self._tracker.close()
        except Exception as error:
            log.warning("the tracker did not close", run_id=self._run_id, error=str(error))


def open_tracker(
    name: TrackerName, run_id: str, folder: Path, config: Mapping[str, Any]
) -> Tracker:
    """The tracker that a recipe names; "auto" is trackio where it is installed, else none.

    Raises InvalidRequest for one whose package is missing.
    """
    if name == "none" or (name == "auto" and not _installed("trackio")):
        return Nothing()
    if name != "auto" and not _installed(name):
        raise InvalidRequest(
            f'tracker = "{name}" needs its package: pip install "wmr1[trackers]", or set '
            'tracker = "none"',
            field="tracker",
        )
    settings = dict(config)
    match name:
        case "tensorboard":
            return Patient(TensorBoard(folder), run_id)
        case "wandb":
            return Patient(Wandb(run_id, folder, settings), run_id)
        case _:
            return Patient(Trackio(run_id, settings), run_id)


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
