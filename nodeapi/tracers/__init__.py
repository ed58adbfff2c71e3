"""What is watched while blocks run: call frames, pre-state, steps."""
