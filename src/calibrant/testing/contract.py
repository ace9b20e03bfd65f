"""Run the checks: by name, one at a time, or all with a list of what failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ..calibrator import Calibrator
from ..errors import InvalidInput
from . import answers, embeddings, fits, inputs, merging, parameters, refusals

Check = Callable[[Calibrator], None]


class ContractBroken(AssertionError):
    """One or more checks failed; ``failures`` has the name of each with what it raised."""

    def __init__(self, name: str, failures: dict[str, Exception]) -> None:
        self.failures = failures
        lines = [f"{check}: {type(error).__name__}: {error}" for check, error in failures.items()]
        super().__init__(f"{name} breaks the contract in {len(failures)} check(s)\n  " + "\n  ".join(lines))


def calibrator_checks(calibrator: Calibrator) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the name of each check that applies to the map by its traits, and the check itself to call.

    Parameters
    ----------
    calibrator : Calibrator
        An instance with the parameters to test; it is cloned, never fitted.
    """
    if not isinstance(calibrator, Calibrator):
        raise InvalidInput("calibrator must be an instance of Calibrator", seen=repr(calibrator))
    rooms: list[tuple[Check, ...]] = [parameters.CHECKS]
    if calibrator.traits.needs == "scores":
        rooms += [answers.CHECKS, fits.CHECKS, merging.CHECKS, inputs.CHECKS, refusals.CHECKS]
    else:
        rooms += [embeddings.CHECKS]
    for room in rooms:
        for check in room:
            yield check.__name__, partial(check, calibrator)


def check_calibrator(calibrator: Calibrator) -> list[str]:
    """Check that a map keeps the contract; the names of the checks it passed are returned.

    Parameters
    ----------
    calibrator : Calibrator
        An instance with the parameters to test; it is cloned, never fitted.

    Raises
    ------
    ContractBroken
        An `AssertionError` that lists every check that failed.

    Examples
    --------
    >>> from calibrant import TemperatureScaling
    >>> "keeps_what_it_promises" in check_calibrator(TemperatureScaling())
    True
    """
    passed: list[str] = []
    failures: dict[str, Exception] = {}
    for name, check in calibrator_checks(calibrator):
        try:
            check()
            passed.append(name)
        except Exception as error:  # whatever a map under test raises is a finding
            failures[name] = error
    if failures:
        raise ContractBroken(type(calibrator).__name__, failures)
    return passed
