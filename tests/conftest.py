"""Hypothesis profiles: `ci` is the default and repeats itself; HYPOTHESIS_PROFILE=thorough looks further."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline: the first call of a kernel compiles it.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("dev", deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
