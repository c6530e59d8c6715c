"""How long the promised computations take, each beside the least it could take: ``python -m benchmarks``."""
