"""Recorded episodes: their file format, how an action is matched, how files are packed.

The world model that plays them is `services.worldmodel.backends.replay`.
"""
