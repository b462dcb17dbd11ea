"""The pure core: actions, dialects, transcripts, episodes, rewards, advantages, errors.

Imports the standard library and pydantic only; never grpc, redis, torch or a service.
"""
