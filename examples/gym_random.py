"""Sixteen phones as one Gymnasium environment, tapped at random (needs `wmr1 up`).

pip install ".[gym]"
python examples/gym_random.py [ADDRESS]
"""

import sys
import time

import gymnasium
import numpy as np

import wmkit.gym  # registers wmr1/Phone-v0
from wmkit.domain.actions import Tap
from wmkit.domain.screen import Point, Screen

PHONES, TURNS = 16, 10

address = sys.argv[1] if len(sys.argv) > 1 else "localhost:50051"
envs = gymnasium.make_vec(wmkit.gym.ENV_ID, num_envs=PHONES, worldmodel=address, size=(162, 360))
observation, info = envs.reset(seed=0)
print("goals:", *sorted(set(observation["goal"])), sep="\n  ")

rng = np.random.default_rng(0)
begin, changed = time.perf_counter(), 0
for _ in range(TURNS):
    # A tap on something that can be tapped, where there is any.
    actions = []
    for elements in info["elements"]:
        places = [e.center(Screen()) for e in elements if e.clickable] or [Point(0.5, 0.5)]
        actions.append(Tap(places[rng.integers(len(places))]))
    observation, reward, terminated, truncated, info = envs.step(actions)
    changed += int(np.sum(info["outcome"] == "changed"))
seconds = time.perf_counter() - begin
print(f"{PHONES * TURNS} steps with pictures in {seconds:.1f} s, {changed} changed the screen")
envs.close()
