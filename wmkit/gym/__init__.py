"""The world model as Gymnasium environments: `wmr1/Phone-v0`, alone or many at once.

    import gymnasium
    import wmkit.gym  # registers the environment

    env = gymnasium.make("wmr1/Phone-v0", worldmodel="localhost:50051")
    envs = gymnasium.make_vec("wmr1/Phone-v0", num_envs=16, worldmodel="localhost:50051")

Needs `pip install "wmr1[gym]"` and a running world model with its renderer (`wmr1 up`).
"""

try:
    import gymnasium as _gymnasium
except ImportError as error:
    raise ImportError('wmkit.gym needs Gymnasium: pip install "wmr1[gym]"') from error

from wmkit.gym.env import PhoneEnv
from wmkit.gym.spaces import action_from_space, action_space, action_to_space
from wmkit.gym.vector import PhoneVectorEnv

__all__ = [
    "ENV_ID",
    "PhoneEnv",
    "PhoneVectorEnv",
    "action_from_space",
    "action_space",
    "action_to_space",
]

ENV_ID = "wmr1/Phone-v0"

if ENV_ID not in _gymnasium.registry:
    _gymnasium.register(
        ENV_ID,
        entry_point="wmkit.gym.env:PhoneEnv",
        vector_entry_point="wmkit.gym.vector:PhoneVectorEnv",
    )
