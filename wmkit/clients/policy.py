"""Client of the policy service."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from wmr1.policy.v1 import policy_pb2 as pb
from wmr1.policy.v1 import policy_pb2_grpc

from wmkit import convert
from wmkit.clients.base import Client, whole_text
from wmkit.domain.generation import Generation, NcclTransfer, PolicyInfo, Sampling, Turn

_NO_IMAGES: Mapping[str, bytes] = MappingProxyType({})


class PolicyClient(Client):
    """`wmkit.ports.Policy` over gRPC. `timeout_s` covers waiting in the server's queue too."""

    _what = "the policy"
    _stub_class = policy_pb2_grpc.PolicyServiceStub

    def __init__(self, address: str, *, timeout_s: float = 300.0, token: str | None = None) -> None:
        super().__init__(address, timeout_s=timeout_s, token=token)

    async def generate(
        self,
        turns: Sequence[Turn],
        sampling: Sampling,
        *,
        policy_id: str = "",
        min_version: int = 0,
        request_id: str = "",
        images: Mapping[str, bytes] = _NO_IMAGES,
    ) -> Generation:
        """Continue `turns`. Pictures travel as digests, or as bytes where `images` has them.

        Raises InvalidRequest, StalePolicyVersion, Overloaded, EngineDown, DeadlineExpired.
        """
        call = convert.GenerateCall(
            tuple(turns), sampling, policy_id, min_version, request_id, images
        )
        with whole_text():
            request = convert.generate_call_to_pb(call)
        answer = await self._call(self._stub.Generate, request)
        return convert.generation_from_pb(answer)

    async def update_weights(
        self,
        policy_id: str,
        version: int,
        weights_digest: str,
        *,
        probe: Sequence[float] = (),
        abort: bool = False,
    ) -> int:
        """Load weights from the blob store; returns the version that is loaded now.

        Raises BadCheckpoint, StalePolicyVersion, NotFound.
        """
        request = pb.UpdateWeightsRequest(
            policy_id=policy_id,
            version=version,
            weights_digest=weights_digest,
            probe_logprobs=probe,
            in_flight=pb.IN_FLIGHT_ABORT if abort else pb.IN_FLIGHT_FINISH,
        )
        loaded: int = (await self._call(self._stub.UpdateWeights, request)).version
        return loaded

    async def receive_weights(
        self,
        policy_id: str,
        version: int,
        transfer: NcclTransfer,
        *,
        probe: Sequence[float] = (),
        abort: bool = False,
    ) -> int:
        """Have the engine receive a broadcast; answers when the version is loaded.

        Raises as `update_weights`, InvalidRequest where the engine cannot receive.
        """
        request = pb.UpdateWeightsRequest(
            policy_id=policy_id,
            version=version,
            probe_logprobs=probe,
            in_flight=pb.IN_FLIGHT_ABORT if abort else pb.IN_FLIGHT_FINISH,
            nccl=convert.transfer_to_pb(transfer),
        )
        loaded: int = (await self._call(self._stub.UpdateWeights, request)).version
        return loaded

    async def info(self) -> PolicyInfo:
        return convert.info_from_pb(await self._call(self._stub.GetInfo, pb.GetInfoRequest()))
