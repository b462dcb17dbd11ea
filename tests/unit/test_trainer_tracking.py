"""Trackers: the real ones where they are installed, each read back from what it wrote."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from services.trainer import tracking
from services.trainer.tracking import Nothing, Patient, open_tracker
from wmkit.domain.errors import InvalidRequest

LINES = [{"success": 0.25, "reward": -1.0}, {"success": 0.5, "reward": 2.0}]


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def test_without_its_package_a_tracker_is_refused_and_the_default_keeps_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "_installed", lambda _: False)
    assert isinstance(open_tracker("auto", "run", tmp_path, {}), Nothing)
    assert isinstance(open_tracker("none", "run", tmp_path, {}), Nothing)
    for name in ("trackio", "tensorboard", "wandb"):
        with pytest.raises(InvalidRequest, match=r"wmr1\[trackers\]"):
            open_tracker(name, "run", tmp_path, {})  # type: ignore[arg-type]


def test_a_tracker_that_fails_is_switched_off_and_not_the_run() -> None:
    calls: list[int] = []

    class Broken:
        def log(self, step: int, metrics: Any) -> None:
            calls.append(step)
            raise OSError("disk full")

        def close(self) -> None:
            raise OSError("disk full")

    tracker = Patient(Broken(), "run")
    for step in (1, 2, 3):
        tracker.log(step, {})
    assert calls == [1]
    tracker.close()


@pytest.mark.skipif(not installed("tensorboard"), reason="needs tensorboard")
def test_tensorboard_keeps_every_value(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tracker = open_tracker("tensorboard", "run", tmp_path, {"seed": 1})
    for step, line in enumerate(LINES, 1):
        tracker.log(step, line)
    tracker.close()
    kept = EventAccumulator(str(tmp_path / "tensorboard"))
    kept.Reload()
    for name in LINES[0]:
        values = [(event.step, event.value) for event in kept.Scalars(name)]
        assert values == [(i, line[name]) for i, line in enumerate(LINES, 1)]
