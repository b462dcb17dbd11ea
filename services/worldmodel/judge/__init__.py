"""The model judge: did an episode reach its goal, judged by what its screens show.

model.py    ModelJudge: k votes, one verdict
verdict.py  schema of a vote, and how votes are read and counted
prompt.toml what the judge is told
exam.py     episodes whose truth is known
measure.py  the confusion matrix over them: `wmr1 judge measure`
"""

from services.worldmodel.judge.model import Case, ModelJudge

__all__ = ["Case", "ModelJudge"]
