"""The errors of nextlabel, one root, each with a hint.

::

    NextlabelError
    ├── InputError            something the user gave is not allowed (exit code 2, HTTP 422)
    │   ├── ProblemError      a rate, prior, budget, threshold ... outside its range
    │   ├── FileFormatError   a file that cannot be read as what it should be
    │   ├── TooLargeError     a problem whose exact solution does not fit
    │   ├── ConflictError     a campaign is not in the state for it, or it was said otherwise before (HTTP 409)
    │   └── NotFoundError     no such campaign, task or lease (HTTP 404)
    └── SolverError           a computation that did not end as it should (a bug or a broken machine)

Every message says what was given and what is allowed; ``hint`` says what to do.
"""


class NextlabelError(Exception):
    """Root of all errors raised on purpose by nextlabel."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class InputError(NextlabelError):
    """The input is not allowed; nothing was computed or written."""


class ProblemError(InputError):
    """A labelling problem with an impossible number in it."""


class FileFormatError(InputError):
    """A file that is missing, unreadable or not in the expected form."""


class TooLargeError(InputError):
    """An exact computation that would need too many states."""

    def __init__(self, message: str, hint: str = "", states: int = 0) -> None:
        super().__init__(message, hint)
        self.states = states


class ConflictError(InputError):
    """What is asked for contradicts what a campaign has recorded; nothing was changed."""


class NotFoundError(InputError):
    """There is no such campaign, task or lease."""


class SolverError(NextlabelError):
    """A computation failed for a reason that is not the user's."""
