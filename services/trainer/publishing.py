"""What the policy service has of a run: under which name, at which version, and how it gets more.

It computes no weights; `services.trainer.learner` does.
"""

from collections.abc import Sequence

from services.trainer.gather import PATIENCE_S, patiently
from services.trainer.jobs import Sender
from services.trainer.rundir import RunDir
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.generation import PolicyInfo
from wmkit.ports import BlobStore, Policy


class Publisher:
    """`policy_id` and `version` are those of the latest weights; -1 before any.

    `attempt` counts how often the run was ended and resumed.
    """

    def __init__(
        self, run_id: str, policy: Policy, blobs: BlobStore, folder: RunDir, attempt: int
    ) -> None:
        self.policy_id = run_id
        self.version = -1
        self._run_id = run_id
        self._policy = policy
        self._blobs = blobs
        self._folder = folder
        self._attempt = attempt

    @property
    def sender(self) -> Sender:
        """Who asks for episodes now."""
        return Sender(self._run_id, self.policy_id, self.version, self._attempt)

    async def info(self) -> PolicyInfo:
        return await patiently(self._policy.info, PATIENCE_S)

    async def publish(self, version: int, weights: bytes, probe: Sequence[float]) -> None:
        """Hand these weights to the policy service as that version.

        Raises what blob store and policy raise.
        """
        digest = await patiently(lambda: self._blobs.put(weights), PATIENCE_S)
        await patiently(
            lambda: self._policy.update_weights(self.policy_id, version, digest, probe=probe),
            PATIENCE_S,
        )
        if version != self.version:  # a resumed run publishes its version once more
            self._folder.append_version(version, digest)
        self.version = version

    async def check_processor(self, processor: str, checkpoint: str) -> None:
        """Raises InvalidRequest when the policy encodes otherwise than `checkpoint` does, whose
        tokenizer and image processor have the digest `processor`."""
        theirs = (await self.info()).processor
        if theirs != processor:
            raise InvalidRequest(
                f"the policy service encodes text and pictures in another way than "
                f"{checkpoint} (processor {theirs[:12]}, here {processor[:12]}): start it with "
                "the same checkpoint"
            )

    async def step_aside(self) -> None:
        """Take another name if the policy service has a newer version than this one.

        What is loaded there comes from updates that will be made again, and no policy goes
        back to an older version; so it is another policy from here on.
        """
        info = await self.info()
        if info.policy_id == self.policy_id and info.version > self.version:
            name, _, life = self.policy_id.partition("~")  # "run", "run~1", "run~2"
            self.policy_id = f"{name}~{int(life or 0) + 1}"
