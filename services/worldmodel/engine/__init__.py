"""Asking a model, behind an OpenAI-compatible server or in this process.

model.py     ModelClient: what both have in common
client.py    Engine, a server: slots, deadline, retries around one completion
in_process.py InProcess, a checkpoint: a queue in front of one thread
decoding.py  that thread's work, in torch; imported only where a checkpoint is configured
wire.py      what is sent and how answers and faults are read
breaker.py   stops asking a server that is down
endpoint.py  which server and model; when two are the same
"""

from services.worldmodel.engine.client import Engine, Limits
from services.worldmodel.engine.endpoint import Endpoint
from services.worldmodel.engine.model import Identity, ModelClient
from services.worldmodel.engine.wire import Ask, Completion

__all__ = ["Ask", "Completion", "Endpoint", "Engine", "Identity", "Limits", "ModelClient"]
