"""Takes episode jobs from the queue, plays them in the world model and stores trajectories."""
