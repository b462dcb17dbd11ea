"""gRPC in front of `Runs`: protobuf in and out, nothing decided here."""

from collections.abc import AsyncIterator
from typing import Any

from wmr1.trainer.v1 import trainer_pb2 as pb
from wmr1.trainer.v1 import trainer_pb2_grpc as rpc

from services.trainer.runs import Record, Runs
from wmkit import convert


class TrainerServicer(rpc.TrainerServiceServicer):  # type: ignore[misc]
    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    async def CreateRun(self, request: Any, context: Any) -> Any:
        record = await self._runs.create(request.recipe_toml, request.request_id)
        return pb.CreateRunResponse(run=_run(record))

    async def GetRun(self, request: Any, context: Any) -> Any:
        return pb.GetRunResponse(run=_run(self._runs.get(request.run_id)))

    async def ListRuns(self, request: Any, context: Any) -> Any:
        runs = [_run(record, with_summary=False) for record in self._runs.list()]
        return pb.ListRunsResponse(runs=runs)

    async def CancelRun(self, request: Any, context: Any) -> Any:
        return pb.CancelRunResponse(run=_run(await self._runs.cancel(request.run_id)))

    async def ResumeRun(self, request: Any, context: Any) -> Any:
        return pb.ResumeRunResponse(run=_run(await self._runs.resume(request.run_id)))

    async def WatchRun(self, request: Any, context: Any) -> AsyncIterator[Any]:
        async for event in self._runs.watch(request.run_id):
            yield convert.event_to_pb(event)


def _run(record: Record, *, with_summary: bool = True) -> Any:
    return convert.run_to_pb(record.view(with_summary=with_summary))
