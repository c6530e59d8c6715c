"""The ``nextlabel`` command: its subcommands, and how errors become exit codes."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from nextlabel.cli.annotate import annotate
from nextlabel.cli.audit import audit
from nextlabel.cli.backtest import backtest
from nextlabel.cli.bound import bound
from nextlabel.cli.campaign import app as campaign
from nextlabel.cli.demo import demo
from nextlabel.cli.exact import exact
from nextlabel.cli.guarantee import guarantee
from nextlabel.cli.index import index
from nextlabel.cli.label_studio import app as label_studio
from nextlabel.cli.mlflow import mlflow
from nextlabel.cli.moved import new_name
from nextlabel.cli.output import interrupts
from nextlabel.cli.plan import plan
from nextlabel.cli.platforms import app as platform
from nextlabel.cli.prior import prior
from nextlabel.cli.rates import rates
from nextlabel.cli.reproduce import reproduce
from nextlabel.cli.serve import serve
from nextlabel.cli.simulate import simulate
from nextlabel.cli.token import app as token
from nextlabel.cli.warm import warm
from nextlabel.cli.workers import workers
from nextlabel.errors import InputError, NextlabelError
from nextlabel.prose import has_password, without_passwords
from nextlabel.version import __version__

EXIT_CODES = {
    0: "done",
    1: "the computation failed, through no fault of the input",
    2: "the input is not allowed; one line on stderr says what was given, what is allowed and what to do",
    130: "interrupted; nothing is left half-written",
}

app = typer.Typer(name="nextlabel", add_completion=False, pretty_exceptions_enable=False)
for _command in (
    bound,
    exact,
    index,
    simulate,
    plan,
    backtest,
    prior,
    rates,
    workers,
    audit,
    guarantee,
    reproduce,
    serve,
    annotate,
    mlflow,
    demo,
    warm,
):
    app.command()(_command)
app.add_typer(token, name="token")
app.add_typer(campaign, name="campaign")
app.add_typer(label_studio, name="label-studio")
app.add_typer(platform, name="platform")


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
    """Run the command line and exit with one of EXIT_CODES.

    An interrupted command ends at once: threads of compiled code that are still at work would abort the interpreter
    while it takes itself apart ('terminate called without an active exception').
    """
    code = run(sys.argv[1:])
    if code == 130:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command; return its exit code."""
    with interrupts() as pressed:
        try:
            return _run(arguments)
        except Exception:
            if not pressed:
                raise
            return _interrupted()


def _run(arguments: list[str]) -> int:
    try:
        _refuse_passwords(arguments)
        if (moved := new_name(arguments)) is not None:
            return _complain(moved, 2)
        code = app(arguments, prog_name="nextlabel", standalone_mode=False, obj=arguments)
        sys.stdout.flush()
    except InputError as error:
        return _complain(str(error), 2)
    except NextlabelError as error:
        return _complain(str(error), 1)
    except typer.TyperException as error:
        return _complain(_usage_sentence(error, arguments), error.exit_code)
    except MemoryError:
        return _complain("the problem does not fit in this machine's memory. Give a smaller one.", 1)
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:
        # The reader went away (`| head`): no complaint, and nothing left for the interpreter to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return _interrupted() if code == 130 else int(code or 0)


def _interrupted() -> int:
    return _complain("interrupted, nothing was written.", 130)


def _refuse_passwords(arguments: list[str]) -> None:
    """Refuse a password on the command line: every user of the machine can read it in the list of processes."""
    for argument in arguments:
        if has_password(argument):
            raise InputError(
                f"{without_passwords(argument)} has a password, which others can read in the list of processes.",
                "Put the address into NEXTLABEL_DB, or the password into ~/.pgpass.",
            )


def _usage_sentence(error: typer.TyperException, arguments: list[str]) -> str:
    """What is wrong with the command line, and whose help to read."""
    path = _command_path(arguments)
    message = error.format_message().replace("Value error, ", "").strip().rstrip(".")
    end = "" if message.endswith("?") else "."
    return f"{message[:1].lower()}{message[1:]}{end} Try '{path} --help'."


def _command_path(arguments: list[str]) -> str:
    """The subcommand that the arguments name, as far as there is one."""
    path, command = ["nextlabel"], typer.main.get_command(app)
    for argument in arguments:
        inner = getattr(command, "commands", {}).get(argument)
        if inner is None:
            break
        path.append(argument)
        command = inner
    return " ".join(path)


def _complain(message: str, code: int) -> int:
    sys.stderr.write(f"error: {without_passwords(' '.join(message.split()))}\n")
    return code
