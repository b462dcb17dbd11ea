"""The trainer: trajectories in, better weights out.

It plays no episode itself (rollout workers do, through the job queue) and serves no tokens
(the policy service does). Importing this package pulls in neither torch nor gRPC.
"""
