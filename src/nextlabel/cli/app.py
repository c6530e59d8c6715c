"""The ``nextlabel`` command: its verbs, and what an error looks like from outside.

========== ====================================================
exit code  meaning
========== ====================================================
0          done
1          the computation failed, through no fault of the input
2          the input is not allowed: one line on stderr
130        interrupted
========== ====================================================
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from nextlabel.cli.backtest import backtest
from nextlabel.cli.bound import bound
from nextlabel.cli.campaign import app as campaign
from nextlabel.cli.demo import demo
from nextlabel.cli.exact import exact
from nextlabel.cli.index import index
from nextlabel.cli.plan import plan
from nextlabel.cli.prior import prior
from nextlabel.cli.rates import rates
from nextlabel.cli.reproduce import reproduce
from nextlabel.cli.serve import serve, token
from nextlabel.cli.simulate import simulate
from nextlabel.errors import InputError, NextlabelError
from nextlabel.version import __version__

app = typer.Typer(name="nextlabel", add_completion=False, pretty_exceptions_enable=False)
for _verb in (bound, exact, index, simulate, plan, backtest, prior, rates, reproduce, serve, token, demo):
    app.command()(_verb)
app.add_typer(campaign, name="campaign")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"nextlabel {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Which task should the next worker label?"""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line and exit with the code of the table above."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command; return its exit code."""
    try:
        code = app(arguments, prog_name="nextlabel", standalone_mode=False, obj=arguments)
        sys.stdout.flush()
    except InputError as error:
        return _complain(str(error), 2)
    except NextlabelError as error:
        return _complain(str(error), 1)
    except typer.TyperException as error:
        return _complain(_usage_sentence(error.format_message()), error.exit_code)
    except MemoryError:
        return _complain("the problem does not fit in this machine's memory. Give a smaller one.", 1)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:
        # The reader went away (`| head`): no complaint, and nothing left for the interpreter to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if code == 130:
        return _complain("interrupted, nothing was written.", 130)
    return int(code or 0)


def _usage_sentence(message: str) -> str:
    message = message.replace("Value error, ", "").strip().rstrip(".")
    return f"{message[:1].lower()}{message[1:]}. Try 'nextlabel --help'."


def _complain(message: str, code: int) -> int:
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    return code
