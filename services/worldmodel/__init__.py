"""The world-model service: (state, action) -> next state, over gRPC.

States are immutable values named by their content, transitions are pure and cached.
Nothing here trains, plays episodes or draws pixels: pictures come from the renderer.
"""
