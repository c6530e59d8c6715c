"""Every tolerance of the tests, in one place, with its reason."""

#: Rewards and probabilities against 50-digit arithmetic, absolute.
REWARD = 1e-13

#: Identities that hold up to rounding: martingales, recursions, symmetry.
ROUNDING = 1e-12

#: What moving an input by one unit in the last place may move a value that is not searched for.
LAST_BITS = 1e-12

#: The promised error of cutting off arrivals left once values have settled.
TRUNCATION = 1e-10

#: Exact optima against reference values and slow oracles.
EXACT = 1e-9

#: Indices against closed forms and slow oracles: the promise of the table.
INDEX = 1e-7

#: Scalar bounds against closed forms.
BOUND = 1e-6

#: Reference values that are printed with few digits.
PRINTED = 1e-4

#: Single-task values by the fourth-order sweep (256 graded steps) against an ODE solver.
HORIZON = 1e-8

#: What the ODE solver itself may be off by (DOP853, relative tolerance 1e-11).
ODE = 1e-9

#: Indices with a finite horizon, on top of the table's own estimate.
INDEX_FINITE = 1e-6

#: Central differences with a step of 1e-5 in the price, away from kinks.
DIFFERENCE = 1e-6

#: Per-arrival bounds against the optimum of the linear program, relative: the search stops there.
PER_ARRIVAL = 1e-4

#: Linear programs by HiGHS, relative.
LP = 1e-7
