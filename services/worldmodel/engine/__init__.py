"""Asking a model behind an OpenAI-compatible server.

client.py    Engine: slots, deadline, retries around one completion
wire.py      what is sent and how answers and faults are read
breaker.py   stops asking a server that is down
endpoint.py  which server and model; when two are the same
"""

from services.worldmodel.engine.client import Engine, Limits
from services.worldmodel.engine.endpoint import Endpoint
from services.worldmodel.engine.wire import Ask, Completion

__all__ = ["Ask", "Completion", "Endpoint", "Engine", "Limits"]
