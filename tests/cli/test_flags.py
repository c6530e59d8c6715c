"""One meaning for one flag: names, help texts, renamed and idle flags, over all commands."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import typer
from docs.cli_reference import commands

from nextlabel.cli import moved
from nextlabel.cli.app import app, run

COMMANDS = dict(commands(typer.main.get_command(app), "nextlabel"))
SMALL = ["--tasks", "3", "--budget", "4"]
#: Flags of one meaning whose help text says more in some command: a default, or what the flag goes with.
SAID_DIFFERENTLY = {
    "--answers", "--arrival-rate", "--at-most-wrong", "--audits", "--budget", "--label-cost", "--labels-per-task",
    "--accuracy", "--answer", "--expert-cost", "--features", "--loss", "--method", "--range", "--record", "--reward",
    "--of", "--scale",
    "--most-labels", "--out", "--policy", "--prior", "--replications", "--save", "--score-column", "--seed",
    "--strength", "--sure", "--tasks", "--threshold", "--gold", "--turn-away", "--model", "--url", "--token",
    "--owner", "--top",
}  # fmt: skip


def options() -> dict[str, list[tuple[str, Any]]]:
    found = defaultdict(list)
    for path, command in COMMANDS.items():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                found[parameter.opts[0]].append((path, parameter))
    return found


def text(parameter: Any) -> str:
    return str(parameter.help.partition("Default: ")[0]).strip()


def test_a_name_has_one_metavar() -> None:
    for name, uses in options().items():
        if name in (
            "--features",
            "--answer",
            "--scale",
            "--loss",
            "--reward",
        ):  # a campaign's are made from its settings
            continue
        assert len({parameter.metavar for _, parameter in uses}) == 1, (name, [path for path, _ in uses])


def test_a_name_has_one_help_text() -> None:
    different = {name for name, uses in options().items() if len({text(parameter) for _, parameter in uses}) > 1}
    assert different == SAID_DIFFERENTLY


def test_jobs_and_seed_have_one_default() -> None:
    for name, default in (("--jobs", 2), ("--seed", 0)):
        uses = [parameter.default for path, parameter in options()[name] if path != "nextlabel guarantee"]
        assert set(uses) == {default}, "a guarantee draws by fresh entropy"


def test_every_command_that_answers_has_json() -> None:
    assert [path for path, command in COMMANDS.items() if not any(p.name == "as_json" for p in command.params)] == [
        "nextlabel serve", "nextlabel label-studio connect",
    ]  # fmt: skip


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    return str(err)


@pytest.mark.parametrize("old", moved.COMMANDS)
def test_whoever_types_an_old_command_is_told_the_new_one(old: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(old.split(), capsys)
    assert said == f"error: 'nextlabel {old}' has another name now: nextlabel {moved.COMMANDS[old]}.\n"
    new = moved.COMMANDS[old].replace(",", " ").replace(";", " ").split()
    assert any(path.startswith(f"nextlabel {' '.join(new[:many])}") for path in COMMANDS for many in (1, 2))
    assert f"nextlabel {old}" not in COMMANDS


def test_whoever_types_an_old_flag_is_told_the_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(["backtest", "labels.csv", "--in-flight=3"], capsys)
    assert said == "error: --in-flight of 'nextlabel backtest' is --rho now.\n"


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (["bound", "--tusks", "3"], "nextlabel bound"),
        (["bound", "--tasks"], "nextlabel bound"),
        (["bound", "extra"], "nextlabel bound"),
        (["bounds"], "nextlabel"),
        (["campaign", "pauze"], "nextlabel campaign"),
        (["campaign", "change"], "nextlabel campaign change"),
        (["reproduce", "fig9"], "nextlabel reproduce"),
    ],
)
def test_the_hint_names_the_help_of_the_subcommand(
    words: list[str], path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(words, capsys).endswith(f" Try '{path} --help'.\n")


@pytest.mark.parametrize(
    ("words", "needs"),
    [
        (["bound", *SMALL, "--charge", "all"], "--charge all only has an effect with a horizon"),
        (["exact", *SMALL, "--ties", "first"], "--ties only has an effect with --policy"),
        (["index", *SMALL, "--time-left", "3"], "--time-left 3 has no meaning without a horizon"),
        (["simulate", *SMALL, "--scheduler", "tcp://x:1"], "--scheduler only has an effect with --engine dask"),
        (["simulate", *SMALL, "--engine", "dask", "--jobs", "2"], "--jobs only has an effect with --engine local"),
        (["plan", "--tasks", "3", "--method", "ml"], "--method only has an effect with --pilot"),
        (["plan", "--tasks", "3", "--positive", "yes"], "--positive only has an effect with --pilot"),
        (["plan", "--tasks", "3", "--value", "2"], "--value only has an effect with --label-cost"),
        (["backtest", "x.csv", "--prior", "1,1", "--method", "ml"], "--method only has an effect with a learnt prior"),
        (["prior", "x.csv", "--method", "ml", "--components", "2"], "--components only has an effect with --method"),
        (["reproduce", "fig1", "--data", "x"], "--data only has an effect with fig2, guarantee, features"),
        (["reproduce", "fig1", "--tasks", "3"], "--tasks only has an effect with delay, auto or all"),
        (["campaign", "create", "--budget", "3", "--task-column", "x"], "--task-column only has an effect with a file"),
        (["campaign", "export", "x", "--json", "--format", "csv"], "--format only has an effect with --save"),
    ],
)
def test_a_flag_without_effect_is_refused(
    words: list[str], needs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert needs in refusal(words, capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_no_command_refuses_a_problem_flag_that_is_in_its_help(tmp_path: Path) -> None:
    """Each flag once, with what it goes with: every command that shows it takes it."""
    items = tmp_path / "items.csv"
    items.write_text("probability\n0.7\n0.4\n", encoding="utf-8")
    values = {
        "--prior": "2,1", "--threshold": "0.6", "--accuracy": "0.8", "--reward": "accuracy", "--label-cost": "0.01",
        "--arrival-rate": "0.5", "--completion-rate": "2", "--horizon": "30", "--utility": "1,-1;0,1",
    }  # fmt: skip
    sets = [[name, value] for name, value in values.items()]
    sets += [["--accuracy", "0.8", "--truth", "0.4"], ["--utility", "1,0;0,1", "--abstain", "0.3"]]
    sets += [
        ["--value", "2", "--label-cost", "0.01"],
        ["--arrival-rate", "0:2,5:1", "--arrival-period", "9", "--horizon", "9"],
    ]
    for command in ("bound", "exact", "index", "simulate", "plan"):
        few = ["--replications", "2"] if command in ("simulate", "plan") else []
        for more in sets:
            assert run([command, "--tasks", "2", "--budget", "3", *more, *few, "--json"]) == 0, (command, more)
        scores = ["--scores", str(items), "--score-column", "probability", "--strength", "4", "--budget", "3"]
        assert run([command, *scores, *few, "--json"]) == 0, command
