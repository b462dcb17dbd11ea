"""Create a state from a task, look at it, step it, save both screens (needs `wmr1 up`)."""

import sys

from wmkit.clients.sync import connect

with connect(worldmodel=sys.argv[1] if len(sys.argv) > 1 else "localhost:50051") as world:
    phone = world.create_state(world.tasks()[0].name, seed=7)
    print("goal:", phone.goal)
    for element in phone.elements:
        print(f"  {element.role:10} {element.text!r}")
    target = next(element for element in phone.elements if element.clickable)
    after = phone.tap(target)
    print(f"tap {target.text!r}: {after.outcome}, state {after.state.state_id[:12]}")
    phone.save("before.png")
    after.save("after.png")
