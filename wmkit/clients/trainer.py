"""Client of the trainer service."""

import secrets
from collections.abc import AsyncIterator, Sequence

from wmr1.trainer.v1 import trainer_pb2 as pb
from wmr1.trainer.v1 import trainer_pb2_grpc

from wmkit import convert
from wmkit.clients.base import Client
from wmkit.domain.runs import Run, RunEvent


class TrainerClient(Client):
    """Starts, lists, cancels, resumes and watches training runs."""

    _what = "the trainer"
    _stub_class = trainer_pb2_grpc.TrainerServiceStub

    async def create_run(self, recipe_toml: str, *, request_id: str = "") -> Run:
        """Queue a run. Calling again with the same `request_id` returns the same run.

        Raises InvalidRequest for a recipe that does not hold, BadCheckpoint for its model.
        """
        # gRPC sends a call again when the connection breaks; that must not make two runs.
        request = pb.CreateRunRequest(
            recipe_toml=recipe_toml, request_id=request_id or secrets.token_hex(8)
        )
        return convert.run_from_pb((await self._call(self._stub.CreateRun, request)).run)

    async def get_run(self, run_id: str) -> Run:
        """Raises RunNotFound."""
        request = pb.GetRunRequest(run_id=run_id)
        return convert.run_from_pb((await self._call(self._stub.GetRun, request)).run)

    async def list_runs(self) -> Sequence[Run]:
        answer = await self._call(self._stub.ListRuns, pb.ListRunsRequest())
        return [convert.run_from_pb(run) for run in answer.runs]

    async def cancel_run(self, run_id: str) -> Run:
        """Raises RunNotFound."""
        request = pb.CancelRunRequest(run_id=run_id)
        return convert.run_from_pb((await self._call(self._stub.CancelRun, request)).run)

    async def resume_run(self, run_id: str) -> Run:
        """Queue a run again that ended early, to go on from its last saved state.

        Raises RunNotFound, and InvalidRequest for a run that has succeeded.
        """
        request = pb.ResumeRunRequest(run_id=run_id)
        return convert.run_from_pb((await self._call(self._stub.ResumeRun, request)).run)

    async def watch_run(self, run_id: str) -> AsyncIterator[RunEvent]:
        """Past events of the run, then new ones until it ends. Raises RunNotFound."""
        request = pb.WatchRunRequest(run_id=run_id)
        async for message in self._watch(self._stub.WatchRun, request):
            yield convert.event_from_pb(message)
