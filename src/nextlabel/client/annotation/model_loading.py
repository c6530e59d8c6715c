"""``module:function`` becomes the user's function or learner; whatever is wrong with it is said in one sentence."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Final

from nextlabel.errors import InputError

_EXAMPLE: Final = "Give e.g. --model my_model:label for the function label in my_model.py in this folder."
#: Of a foreign error's text, so much is shown.
SHOWN: Final = 200


def load_model(given: str) -> Any:
    """The object that ``module:name`` names; a class is called without arguments to make one.

    The current folder is searched first, so that a file beside the data needs no installation.
    """
    module_name, _, name = given.partition(":")
    if not module_name or not name.isidentifier():
        raise InputError(f"--model {given[:SHOWN]!r} is not of the form module:function.", _EXAMPLE)
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise InputError(
                f"module {module_name!r} needs {error.name!r}, which is not installed.", "Install it."
            ) from error
        raise InputError(f"there is no module {module_name[:SHOWN]!r}.", _EXAMPLE) from error
    except Exception as error:
        raise InputError(f"module {module_name!r} cannot be imported: {said(error)}.", "Mend it first.") from error
    if not hasattr(module, name):
        raise InputError(f"module {module_name!r} has no {name!r}.", "Give the name of a function or object in it.")
    found = getattr(module, name)
    if isinstance(found, type):
        try:
            found = found()
        except Exception as error:
            raise InputError(
                f"{given!r} cannot be made without arguments: {said(error)}.", "Give a function or an instance."
            ) from error
    if not (callable(found) or is_learner(found)):
        raise InputError(
            f"{given!r} is neither a function nor an object with fit and predict_proba.",
            "See docs/annotate.md for both.",
        )
    return found


def is_learner(model: Any) -> bool:
    """Whether a model learns from labels: it has ``fit``, and ``predict_proba`` or ``predict``, as in scikit-learn."""
    return hasattr(model, "fit") and (hasattr(model, "predict_proba") or hasattr(model, "predict"))


def default_name(given: str) -> str:
    """The name under which a model labels if none is given: its module's."""
    return given.partition(":")[0].rpartition(".")[2]


def said(error: BaseException) -> str:
    """A foreign error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:SHOWN].rstrip(".") if text else type(error).__name__
