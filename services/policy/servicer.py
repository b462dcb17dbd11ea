"""`PolicyService` over gRPC: protobuf in and out, repeated requests answered from the memo."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from wmr1.policy.v1 import policy_pb2 as pb
from wmr1.policy.v1 import policy_pb2_grpc as rpc

from services.policy.memo import Memo
from wmkit import convert
from wmkit.blobs import digest
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.generation import Generation, NcclTransfer, Sampling, Turn
from wmkit.ports import Policy

NAME: str = pb.DESCRIPTOR.services_by_name["PolicyService"].full_name


class ServedPolicy(Policy, Protocol):
    """What the service needs beyond `wmkit.ports.Policy`."""

    async def generate(
        self,
        turns: Sequence[Turn],
        sampling: Sampling,
        *,
        policy_id: str = "",
        min_version: int = 0,
        request_id: str = "",
        images: Mapping[str, bytes] = ...,
    ) -> Generation: ...

    async def receive_weights(
        self,
        policy_id: str,
        version: int,
        transfer: NcclTransfer,
        *,
        probe: Sequence[float] = (),
        abort: bool = False,
    ) -> int: ...


class PolicyServicer(rpc.PolicyServiceServicer):  # type: ignore[misc]
    def __init__(self, policy: ServedPolicy, memo: Memo) -> None:
        self._policy = policy
        self._memo = memo

    async def Generate(self, request: pb.GenerateRequest, context: Any) -> pb.GenerateResponse:
        call = convert.generate_call_from_pb(request)

        async def produce() -> pb.GenerateResponse:
            generation = await self._policy.generate(
                call.turns,
                call.sampling,
                policy_id=call.policy_id,
                min_version=call.min_version,
                images=call.images,
            )
            return convert.generation_to_pb(generation)

        if not call.request_id:
            return await produce()

        async def serialized() -> bytes:
            data: bytes = (await produce()).SerializeToString()
            return data

        body = digest(request.SerializeToString(deterministic=True))
        answer = await self._memo.once(("Generate", call.request_id), body, serialized)
        response: pb.GenerateResponse = pb.GenerateResponse.FromString(answer)
        return response

    async def UpdateWeights(
        self, request: pb.UpdateWeightsRequest, context: Any
    ) -> pb.UpdateWeightsResponse:
        if not request.policy_id:
            raise InvalidRequest("policy_id is empty; name the run", "policy_id")
        if request.version < 0:
            raise InvalidRequest(f"version {request.version} is negative", "version")
        by_file, by_nccl = bool(request.weights_digest), request.HasField("nccl")
        if by_file == by_nccl:
            raise InvalidRequest("give weights_digest or nccl, one of them", "weights_digest")
        begin = time.perf_counter()
        probe, abort = list(request.probe_logprobs), request.in_flight == pb.IN_FLIGHT_ABORT
        if by_nccl:
            transfer = convert.transfer_from_pb(request.nccl)
            version = await self._policy.receive_weights(
                request.policy_id, request.version, transfer, probe=probe, abort=abort
            )
        else:
            version = await self._policy.update_weights(
                request.policy_id, request.version, request.weights_digest, probe=probe, abort=abort
            )
        return pb.UpdateWeightsResponse(
            policy_id=request.policy_id,
            version=version,
            load_ms=(time.perf_counter() - begin) * 1000,
        )

    async def GetInfo(self, request: pb.GetInfoRequest, context: Any) -> pb.GetInfoResponse:
        return convert.info_to_pb(await self._policy.info())
