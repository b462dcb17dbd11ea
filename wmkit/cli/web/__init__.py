"""A page on this machine where a person plays a task: `wmr1 play TASK --web`.

One phone, one person, loopback only. Not the web service of the stack.
"""

from wmkit.cli.web.serve import play_web

__all__ = ["play_web"]
