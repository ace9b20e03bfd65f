"""The program: its list of commands, and what every error becomes."""

from __future__ import annotations

import difflib
import os
import sys
import traceback
import warnings
from importlib import import_module
from typing import Any

import click

from .. import __version__
from ..errors import CalibrantError, CalibrationWarning, FileProblem, MissingExtra
from .hints import in_options

# Kept here, so that the list of commands costs no import; a test compares it with the commands themselves.
COMMANDS = {
    "demo": "Train a small classifier, compare maps on it, and write a report.",
    "methods": "List the maps and what each keeps and makes true.",
    "measure": "Tell how far the probabilities in FILE are from the frequencies.",
    "fit": "Fit a map on the scores and labels in FILE and save it.",
    "apply": "Correct the scores in FILE with a saved map.",
    "export": "Write a saved map for ONNX, torch, SQL, JSON or vLLM.",
    "compare": "Compare maps on FILE by cross-validation and choose one.",
    "report": "Write an HTML report on FILE: measurement, comparison, recommendation.",
    "watch": "Watch the probabilities in new files as labels arrive, and raise an alarm.",
    "simulate": "Judge an estimator of calibration error where the truth is known.",
    "inspect": "Tell what is in a saved map or a data file.",
}
EXIT_CODES = {
    0: "fine",
    1: "a gate failed (--fail-if)",
    2: "wrong usage",
    3: "invalid data",
    4: "trouble with a file",
    70: "our fault: please report it",
    130: "interrupted",
}


class Commands(click.Group):
    """A group that imports a command when it is called, and lists them without importing any."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the docs."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        return import_module(f".commands.{cmd_name}", __package__).command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the ones that were perhaps meant."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in COMMANDS:
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean {near[0]}?" if near else "one of " + ", ".join(COMMANDS)
            raise click.UsageError(f"no command {name!r}; hint: {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table above."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _completion(ctx: click.Context, _: click.Parameter, shell: str | None) -> None:
    if shell is None or ctx.resilient_parsing:
        return
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(program, {}, "calibrant", "_CALIBRANT_COMPLETE").source())
    ctx.exit()


_CODES = "\n\n\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {words}" for code, words in EXIT_CODES.items())


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='Shell completion: eval "$(calibrant --completion bash)".' + _CODES,
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.option(
    "--completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    is_eager=True,
    expose_value=False,
    callback=_completion,
    help="Print the completion script for a shell.",
)
def program() -> None:
    """Make a classifier's probabilities true: measure, correct and ship calibration.

    Data go to standard output, messages to standard error. Every command takes --json and --help.
    """


def main(arguments: list[str] | None = None) -> int:
    """Run the program and return its exit code; what is wrong is said in one line, with --debug in full."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug, quiet = "--debug" in arguments, bool({"--quiet", "-q"} & set(arguments))
    with warnings.catch_warnings():
        warnings.simplefilter("always", CalibrationWarning)
        warnings.showwarning = _silent if quiet else _show_warning
        try:
            return _run(arguments)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except Exception as error:
            if debug:
                traceback.print_exc()
            code, message = _explain(error)
            _say(f"error: {message}")
            return code
        except KeyboardInterrupt:
            _say("interrupted")
            return 130


def _run(arguments: list[str]) -> int:
    try:
        code = program.main(arguments, prog_name="calibrant", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort as error:
        raise KeyboardInterrupt from error
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return 2
    return code if isinstance(code, int) else 0


def _explain(error: Exception) -> tuple[int, str]:
    if isinstance(error, click.ClickException):
        path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "calibrant"
        code = 4 if isinstance(error, click.FileError) else 2
        missing = error.param if isinstance(error, click.MissingParameter) else None
        words = f" {missing.help}" if isinstance(missing, click.Option) else ""
        return code, f"{error.format_message()}{words} (see {path} --help)"
    if isinstance(error, CalibrantError):
        told = type(error)(error.what, seen=error.seen, allowed=error.allowed, hint=in_options(error.hint))
        return 4 if isinstance(error, (FileProblem, MissingExtra)) else 3, str(told)
    if isinstance(error, OSError):
        return 4, f"{error.filename or 'a file'}: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return 3, "the data need more memory than there is"
    words = f"{type(error).__name__}: {error}".splitlines()[0]
    return 70, f"{words}; hint: this is a fault in calibrant, --debug shows where; please report it"


def _say(text: str) -> None:
    from .output import say

    say(" ".join(text.split("\n")))


def _show_warning(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
    _say(f"warning: {in_options(str(message))}")


def _silent(*_: Any) -> None:
    pass
