"""Every tolerance of the tests, in one place, with its reason."""

#: Rewards and probabilities against 50-digit arithmetic, absolute.
REWARD = 1e-13

#: Identities that hold up to rounding: martingales, recursions, symmetry.
ROUNDING = 1e-12

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
