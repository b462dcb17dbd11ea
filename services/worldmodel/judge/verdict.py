"""Votes: the schema they follow, how a text is read as one, how several make a verdict. Pure.

Whatever is not surely a success or a failure is unsure: unsure episodes are masked, so a
judge that stumbles costs an episode, never a wrong reward.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wmkit.domain.tasks import Judgement, Verdict

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "verdict": {"type": "string", "enum": [verdict.value for verdict in Verdict]},
    },
    "required": ["reason", "verdict"],
    "additionalProperties": False,
}
"""The reason comes first: a model that has written it down judges better."""

_WORDS = {
    "success": Verdict.SUCCESS,
    "true": Verdict.SUCCESS,
    "yes": Verdict.SUCCESS,
    "failure": Verdict.FAILURE,
    "fail": Verdict.FAILURE,
    "failed": Verdict.FAILURE,
    "false": Verdict.FAILURE,
    "no": Verdict.FAILURE,
    "unsure": Verdict.UNSURE,
}


@dataclass(frozen=True, slots=True)
class Vote:
    verdict: Verdict
    reason: str


def read_vote(text: str) -> Vote:
    """The last JSON object of an answer that states a verdict; UNSURE where there is none.

    `verdict` or `success` may hold it, as a word or as true and false; a text "false" is
    false. Two statements that contradict each other are no verdict.
    """
    found = Vote(Verdict.UNSURE, "the judge's answer cannot be read")
    for data in _objects(text):
        stated = {
            _verdict(value)
            for key, value in data.items()
            if str(key).lower() in ("verdict", "success")
        }
        if len(stated) == 1 and (verdict := stated.pop()) is not None:
            found = Vote(verdict, str(data.get("reason", ""))[:1000])
        elif stated:
            found = Vote(Verdict.UNSURE, "the judge's answer cannot be read")
    return found


def count(votes: Sequence[Vote], judge: str) -> Judgement:
    """The verdict of more than half of the votes, with the reason of the first that gave it."""
    verdict, number = Counter(vote.verdict for vote in votes).most_common(1)[0]
    tally = f"{number} of {len(votes)} votes"
    if 2 * number <= len(votes):
        said = ", ".join(vote.verdict.value for vote in votes)
        reason = f"no verdict has more than half of the votes ({said})"
        return Judgement(verdict=Verdict.UNSURE, reason=reason, judge=judge)
    reason = next(vote.reason for vote in votes if vote.verdict is verdict)
    if len(votes) > 1:
        reason = f"{reason} ({tally})"
    return Judgement(verdict=verdict, reason=reason, judge=judge)


def _verdict(value: Any) -> Verdict | None:
    if isinstance(value, bool):
        return Verdict.SUCCESS if value else Verdict.FAILURE
    return _WORDS.get(value.strip().lower()) if isinstance(value, str) else None


def _objects(text: str) -> list[dict[str, Any]]:
    """All JSON objects of a text that are not inside another one, in their order."""
    decoder = json.JSONDecoder()
    out: list[dict[str, Any]] = []
    # Each brace that opens nothing costs a scan to the end at most; answers are short.
    at = text.find("{")
    while at >= 0:
        try:
            data, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(data, dict):
                out.append(data)
        at = text.find("{", end)
    return out
