"""Options that several commands share."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import click

from .output import say

PROFILES = ("default", "risk", "forecast", "multilabel")  # of measuring


class Run(NamedTuple):
    """How a command runs, by the options that all have."""

    as_json: bool
    seed: int
    quiet: bool


def common(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json, --seed, --threads, --quiet and --debug; the command receives a `Run`."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
    @click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all randomness.")
    @click.option("--threads", type=click.IntRange(min=1), help="Threads to use; the results are the same.")
    @click.option("-q", "--quiet", is_flag=True, help="No messages on standard error but errors.")
    @click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
    @functools.wraps(function)
    def wrapped(*, as_json: bool, seed: int, quiet: bool, threads: int | None, **keywords: Any) -> Any:
        if threads is not None:
            _limit_threads(threads)
        return function(run=Run(as_json, seed, quiet), **keywords)

    return wrapped


def _limit_threads(threads: int) -> None:
    from threadpoolctl import threadpool_limits

    from ..threads import set_threads

    set_threads(threads)
    threadpool_limits(threads)


def choice(name: str, values: Sequence[str], default: str, words: str) -> Callable[[Any], Any]:
    """Return an option that takes one of these values."""
    return click.option(name, type=click.Choice(values), default=default, show_default=True, help=words)


def output_option(words: str, **how: Any) -> Callable[[Any], Any]:
    """Return --output, refused before the work begins where it cannot be written."""
    return click.option("-o", "--output", callback=writable, metavar="PATH", help=words, **how)


_DATA_OPTIONS = [
    click.option("--kind", type=click.Choice(["logits", "probs"]), help="What the scores are, if no name says it."),
    click.option("--scores", metavar="NAME", help="Key of the scores; in tables a prefix, a pattern or a list a,b,c."),
    click.option("--labels", metavar="NAME", help="Key or column of the labels; for .npy another file."),
    click.option("--embeddings", metavar="NAME", help="Key of the embeddings."),
    click.option("--weights", metavar="NAME", help="Key or column of the weights of the rows."),
    click.option("--groups", metavar="NAME", help="Key or column of the groups of the rows."),
    click.option("--clusters", metavar="NAME", help="Key or column of what rows have in common: a patient, a prompt."),
    click.option("--part", metavar="NAME", help="Use this part of a split, or this set, alone."),
    click.option("--event", metavar="LABEL", help="The label whose probability a single column of scores holds."),
    click.option("--percent", is_flag=True, help="Probabilities are written as percentages."),
    click.option("--allow-torch", is_flag=True, help="Read .pt files, with torch's weights-only loader."),
]


def data_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what is what in a data file; the command receives them as ``names``."""

    keys = ("kind", "scores", "labels", "embeddings", "weights", "groups", "clusters", "part")
    keys += ("event", "percent", "allow_torch")

    @functools.wraps(function)
    def wrapped(**keywords: Any) -> Any:
        return function(names={key: keywords.pop(key) for key in keys}, **keywords)

    made: Any = wrapped
    for option in reversed(_DATA_OPTIONS):
        made = option(made)
    return made


def whole_numbers(ctx: click.Context, parameter: click.Parameter, text: str | None) -> list[int]:
    """Parse a list such as ``100,1000``."""
    try:
        found = [int(part) for part in (text or "").split(",") if part.strip()]
    except ValueError:
        found = [0]
    if any(value < 1 for value in found):
        raise click.BadParameter(f"{text!r} is not a list of positive whole numbers such as 100,1000")
    return found


def words(ctx: click.Context, parameter: click.Parameter, text: str | None) -> list[str]:
    """Parse a list of names such as ``gain,ece_kde``."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def scan_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of data files, and --memory: the command receives ``memory``, and reads larger ones in batches.

    The names that `calibrant.scan` has for columns are welcome too: --label, --weight, --group.
    """
    made: Any = click.option(
        "--memory",
        metavar="SIZE",
        help="Memory to take beyond the interpreter, such as 500MB: patterns of files, directories and whatever would "
        "take more are read in batches, several times. By default a quarter of what is free.",
    )(data_options(function))
    for option in made.__click_params__:
        if option.name in ("labels", "weights", "groups"):
            option.opts.append(f"--{option.name[:-1]}")
    return made


_COMPARE_OPTIONS = [
    click.option("--methods", default="default", show_default=True, help="default, fast, all, or names with commas."),
    click.option("--cv", type=click.IntRange(min=2), help="Folds; 5 where there is no test part."),
    click.option("--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="Deals of the folds."),
    click.option("--test", metavar="FILE", help="Judge on the rows of this file."),
    click.option("--test-labels", metavar="FILE", help="The labels of --test, where it is an .npy file."),
    choice("--metric", ["nll", "brier"], "nll", "What decides."),
    click.option("--also", callback=words, metavar="NAME,NAME", help="Show too: gain, ece_kde, another error."),
    click.option("--preserve-accuracy", is_flag=True, help="Choose only among maps that keep every predicted label."),
    click.option("--sizes", callback=whole_numbers, metavar="N,N", help="Rows to fit on, for a learning curve."),
]


def compare_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a comparison."""
    for option in reversed(_COMPARE_OPTIONS):
        function = option(function)
    return function


def writable(ctx: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """Refuse an output that cannot be written, before the work begins."""
    if path is not None and path != "-":
        from ..files.atomic import check_target

        check_target(path)
    return path


def read_data(path: str, names: dict[str, Any], fitted: Any = None, **how: Any) -> Any:
    """Read a data file with the names the user gave; ``how`` is other parameters of `calibrant.files.read`.

    Where nothing in the file says what its classes are, or which of two labels is the event, a fitted map does.
    """
    from ..files import read

    if fitted is not None:
        how["known"] = () if fitted.traits.needs == "embeddings" else tuple(fitted.classes_.tolist())
        how["whose"] = "the map"
    data = read(path, **names, **how)
    if fitted is not None:
        from .measuring import with_classes_of

        data = with_classes_of(fitted, data)
    if data.event is not None and not data.is_named and str(data.classes[0]).lower() not in _NOT:
        said = f"the event is taken to be the label {data.event!r}, and not {str(data.classes[0])!r}"
        say(f"{said}; --event names the other", quiet=click.get_current_context().params.get("quiet", False))
    return data


_NOT = ("no", "n", "not", "none", "false", "f", "negative", "neg", "-1")  # labels that say which of two is the event


def load_map(path: str | None) -> Any:
    """Load a saved map, where one was named; without one, nothing that is slow to import is needed."""
    if path is None:
        return None
    from ..loading import load

    return load(path)


_SAY_NOTHING = ("as_json", "quiet", "threads")  # options that change no figure


def command_line() -> str:
    """Return the command that is running, with every option that was given, as it can be typed again."""
    ctx = click.get_current_context()
    arguments, options = [], []
    for parameter in ctx.command.params:
        name = str(parameter.name)
        if isinstance(parameter, click.Argument):
            arguments += [] if ctx.params[name] is None else [str(ctx.params[name])]
        elif name == "seed" or (name in ctx.params and name not in _SAY_NOTHING and was_given(ctx, name)):
            options += _words(max(parameter.opts, key=len), ctx.params[name])
    return shlex.join([*ctx.command_path.split(), *arguments, *options])


def was_given(ctx: click.Context, name: str) -> bool:
    """Tell whether an option was given, rather than left at its default."""
    source = ctx.get_parameter_source(name)
    return source in (click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT)


def _words(option: str, value: Any) -> list[str]:
    if value is True:
        return [option]
    if isinstance(value, tuple):  # an option that may be repeated
        return [word for one in value for word in (option, str(one))]
    return [option, ",".join(map(str, value)) if isinstance(value, list) else str(value)]


def method_names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a map."""
    from ..registry import names

    return [name for name in names() if name.startswith(incomplete)]


def parse_parameters(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Return ``--set key=value`` pairs as a dict; a value is a number, true, false, none or text."""
    words = {"true": True, "false": False, "none": None}
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint="--set")
        found[key] = words[text.lower()] if text.lower() in words else _number(text)
    return found


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
