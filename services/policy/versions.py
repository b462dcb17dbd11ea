"""Policy versions: (policy_id, n), n rising within a policy, and who may ask for which.

Pure rules; engines hold the current version and ask here before they answer or load.
"""

from dataclasses import dataclass

from wmkit.domain.errors import InvalidRequest, StalePolicyVersion


@dataclass(frozen=True, slots=True)
class Version:
    """The weights that are loaded. `digest` is "" for those of the checkpoint folder."""

    policy_id: str = ""
    version: int = 0
    digest: str = ""


def check_update(now: Version, new: Version) -> None:
    """Raises StalePolicyVersion for a version that is not above the loaded one of the same
    policy, InvalidRequest for the same version with other weights. Repeating `now` is fine."""
    if new == now or new.policy_id != now.policy_id:
        return
    if new.version == now.version:
        raise InvalidRequest(
            f"version {new.version} of {new.policy_id!r} is loaded with other weights",
            field="weights_digest",
        )
    if new.version < now.version:
        raise StalePolicyVersion(
            f"version {new.version} of {new.policy_id!r} is older than the loaded {now.version}"
        )


def check_request(now: Version, policy_id: str, min_version: int) -> None:
    """Raises StalePolicyVersion where `now` is another policy or older than `min_version`."""
    if policy_id not in ("", now.policy_id):
        loaded = f"policy {now.policy_id!r}" if now.policy_id else "the checkpoint's own policy"
        raise StalePolicyVersion(f"policy {policy_id!r} is not loaded, but {loaded}")
    if min_version > now.version:
        raise StalePolicyVersion(f"version {min_version} is not loaded yet, only {now.version}")


def replaced(new: Version) -> StalePolicyVersion:
    """What a request gets whose answer was ended by the update to `new`."""
    return StalePolicyVersion(
        f"the answer was ended by the update to version {new.version} of {new.policy_id!r}"
    )
