"""The ``nextlabel`` command: its subcommands, and how errors become exit codes."""

from __future__ import annotations

import gc
import os
import sys
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from nextlabel.cli.moved import new_name
from nextlabel.cli.output import interrupts
from nextlabel.errors import InputError, NextlabelError
from nextlabel.version import __version__
from nextlabel.wording import has_password, without_passwords

EXIT_CODES = {
    0: "done",
    1: "the computation failed, through no fault of the input",
    2: "the input is not allowed; one line on stderr says what was given, what is allowed and what to do",
    130: "interrupted; nothing is left half-written",
}
#: Commands, each a function of the module of its name; and groups of commands, with their modules.
COMMANDS = (
    "bound", "exact", "index", "simulate", "plan", "backtest", "prior", "rates", "workers", "audit", "guarantee",
    "reproduce", "serve", "annotate", "mlflow", "demo", "warm",
)  # fmt: skip
GROUPS = {"token": "token", "campaign": "campaign", "label-studio": "label_studio", "platform": "platforms"}
INTERRUPTED = "interrupted, nothing was written."
#: So many new objects before the garbage collector looks again: while modules are loaded, nothing is garbage, and
#: Python's 700 make loading a fifth slower.
YOUNG_OBJECTS = 50_000

app = typer.Typer(name="nextlabel", add_completion=False, pretty_exceptions_enable=False)
for _name in COMMANDS:
    app.command()(getattr(import_module(f"nextlabel.cli.{_name}"), _name))
for _name, _module in GROUPS.items():
    app.add_typer(import_module(f"nextlabel.cli.{_module}").app, name=_name)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Which task should the next worker label?"""
    if version:
        typer.echo(f"nextlabel {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line and exit with one of EXIT_CODES.

    An interrupted command ends at once: threads of compiled code that are still at work would abort the interpreter
    while it takes itself apart ('terminate called without an active exception').
    """
    gc.set_threshold(YOUNG_OBJECTS)
    code = run(sys.argv[1:])
    if code == 130:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


@cache
def _commands() -> Any:
    return typer.main.get_command(app)


def run(arguments: list[str]) -> int:
    """Run one command; return its exit code."""
    with interrupts() as pressed:
        try:
            for argument in filter(has_password, arguments):  # others can read it in the list of processes
                raise InputError(
                    f"{without_passwords(argument)} has a password, which others can read in the list of processes.",
                    "Put the address into NEXTLABEL_DB, or the password into ~/.pgpass.",
                )
            if (moved := new_name(arguments)) is not None:
                return _complain(moved, 2)
            code = _commands()(arguments, prog_name="nextlabel", standalone_mode=False, obj=arguments)
            sys.stdout.flush()
            return _complain(INTERRUPTED, 130) if code == 130 else int(code or 0)
        except InputError as error:
            return _complain(str(error), 2)
        except NextlabelError as error:
            return _complain(str(error), 1)
        except typer.TyperException as error:
            return _complain(_usage_sentence(error, arguments), error.exit_code)
        except MemoryError:
            return _complain("the problem does not fit in this machine's memory. Give a smaller one.", 1)
        except (KeyboardInterrupt, typer.Abort):
            return _complain(INTERRUPTED, 130)
        except BrokenPipeError:
            # The reader went away (`| head`): no complaint, and nothing left for the interpreter to flush.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except Exception:
            if not pressed:
                raise
            return _complain(INTERRUPTED, 130)


def _usage_sentence(error: typer.TyperException, arguments: list[str]) -> str:
    """What is wrong with the command line, and whose help to read: that of the subcommand as far as there is one."""
    path, command = ["nextlabel"], _commands()
    for argument in arguments:
        inner = getattr(command, "commands", {}).get(argument)
        if inner is None:
            break
        path.append(argument)
        command = inner
    message = error.format_message().replace("Value error, ", "").strip().rstrip(".")
    end = "" if message.endswith("?") else "."
    return f"{message[:1].lower()}{message[1:]}{end} Try '{' '.join(path)} --help'."


def _complain(message: str, code: int) -> int:
    sys.stderr.write(f"error: {without_passwords(' '.join(message.split()))}\n")
    return code
