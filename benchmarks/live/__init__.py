"""Live campaigns under load: ``python -m benchmarks.live`` prints the table; tests use the same crowd."""
