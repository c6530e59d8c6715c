"""Which tests the processor could turn: those marked ``numerical``, which ``make test-elsewhere`` runs again."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent
#: Tests whose verdict could hang on last bits, which processors round differently: ``make test-elsewhere`` runs them
#: again. They compare digits, follow choices between values that are nearly equal, hold a bound against the truth to
#: rounding, or end a search where two values meet. What is left out compares means of simulations, with margins of
#: their statistical error, or looks at words and files.
NUMERICAL = (
    "model/test_lattices.py",
    "model/test_priors.py",
    "crowd/test_fit.py",
    "solve/crowd/test_posterior.py",
    "crowd/test_stream.py",
    "kernels",
    "model/test_priors_from_labels.py",
    "policies",
    "model/test_rates.py",
    "model/test_units.py",
    "simulation/test_crowd_optimum.py",
    "simulation/test_crowd_replay.py",
    "simulation/test_ranked_tasks.py",
    "simulation/test_replay.py",
    "solve",
)
#: Of these, where BLAS is reached: learning priors, bounds over classes of tasks, joint optima, the policy ``crowd``.
WITH_BLAS = (
    "crowd/test_fit.py",
    "model/test_priors_from_labels.py",
    "policies/crowd",
    "simulation/test_crowd_optimum.py",
    "simulation/test_crowd_replay.py",
    "simulation/test_replay.py",
    "solve/crowd",
    "solve/test_bound.py",
    "solve/test_curve.py",
    "solve/test_exact.py",
    "solve/test_general.py",
    "solve/test_last_bits.py",
)
assert all((HERE / name).exists() for name in NUMERICAL + WITH_BLAS), "a place of numerical tests has another name"
