"""The simulator: policies side by side on the same randomness, on a model or on recorded labels."""
