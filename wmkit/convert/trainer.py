"""Training runs and their events on the wire."""

from wmr1.trainer.v1 import trainer_pb2 as pb

from wmkit.convert.enums import RUN_STATUS
from wmkit.domain.runs import Run, RunEvent


def run_to_pb(run: Run) -> pb.Run:
    return pb.Run(
        run_id=run.run_id,
        status=RUN_STATUS.to_pb(run.status),
        directory=run.directory,
        iteration=run.iteration,
        error=run.error,
        summary_json=run.summary_json,
    )


def run_from_pb(message: pb.Run) -> Run:
    return Run(
        run_id=message.run_id,
        status=RUN_STATUS.from_pb(message.status, "run.status"),
        directory=message.directory,
        iteration=message.iteration,
        error=message.error,
        summary_json=message.summary_json,
    )


def event_to_pb(event: RunEvent) -> pb.WatchRunResponse:
    return pb.WatchRunResponse(
        status=RUN_STATUS.to_pb(event.status),
        phase=event.phase,
        iteration=event.iteration,
        done=event.done,
        total=event.total,
        metrics=dict(event.metrics),
        message=event.message,
    )


def event_from_pb(message: pb.WatchRunResponse) -> RunEvent:
    return RunEvent(
        status=RUN_STATUS.from_pb(message.status, "status"),
        phase=message.phase,
        iteration=message.iteration,
        done=message.done,
        total=message.total,
        metrics=dict(message.metrics),
        message=message.message,
    )
