"""Changes to Python: on the syntax tree, so that a changed module compiles with its line numbers."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from .change import Change

Edit = tuple[str, Callable[[], Any]]  # its kind, and what makes it in place

_BINARY: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
}
_COMPARED: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
# Words for the reader, and what only a type checker reads.
_SKIPPED = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert)


def python_changes(path: str, source: str) -> list[Change]:
    """Return every change of a module."""
    found: list[Change] = []
    twins: Counter[tuple[str, str, str]] = Counter()
    tree = ast.parse(source)
    for number, (statement, node, index) in enumerate(_places(tree)):
        kind, _ = list(_edits(node))[index]
        before = _line_of(statement)
        after = _line_of(_changed(statement, node, index))
        texts = (kind, before, after)
        found.append(Change(path, node.lineno, kind, before, after, number, twins[texts]))
        twins[texts] += 1
    return found


def changed_code(source: str, number: int, filename: str) -> Any:
    """Return the module's code with one of its changes."""
    tree = ast.parse(source)
    for place, (_, node, index) in enumerate(_places(tree)):
        if place == number:
            list(_edits(node))[index][1]()
            return compile(ast.fix_missing_locations(tree), filename, "exec", dont_inherit=True)
    raise IndexError(number)


def _changed(statement: Any, node: Any, index: int) -> Any:
    """Return a copy of the statement with the change."""
    at = [id(n) for n in ast.walk(statement)].index(id(node))
    twin = copy.deepcopy(statement)
    list(_edits(list(ast.walk(twin))[at]))[index][1]()
    return twin


def _line_of(statement: Any) -> str:
    """Return the first line of a statement without its block."""
    return " ".join(ast.unparse(statement).splitlines()[0 : 1 if hasattr(statement, "body") else None])[:300]


def _places(tree: ast.Module) -> Iterator[tuple[Any, Any, int]]:
    """Yield statement, node and number of the edit for every change of a tree, in the order of the source."""
    for statement in _statements(tree):
        for node in _expressions(statement):
            for index in range(sum(1 for _ in _edits(node))):
                yield statement, node, index


def _statements(tree: Any) -> Iterator[Any]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, _SKIPPED) or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            continue
        if isinstance(child, ast.stmt) and not _only_words(child):
            yield child
        if not isinstance(child, ast.expr):
            yield from _statements(child)


def _only_words(statement: Any) -> bool:
    """Whether a statement is a docstring or a list of names."""
    words = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    names = isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]).startswith("__")
    return words or names


def _expressions(statement: Any) -> Iterator[Any]:
    """Yield the nodes of a statement's own expressions: not its block, its annotations and its decorators."""
    for name, value in ast.iter_fields(statement):
        if name in (
            "body",
            "orelse",
            "finalbody",
            "handlers",
            "annotation",
            "returns",
            "decorator_list",
            "cases",
            "bases",
        ):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child)


def _walk(node: Any) -> Iterator[Any]:
    if isinstance(node, _SKIPPED) or (isinstance(node, ast.keyword) and node.arg in ("hint", "stacklevel")):
        return
    if isinstance(node, ast.expr):
        yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child)


def _edits(node: Any) -> Iterator[Edit]:
    """Yield the changes of one node."""
    if isinstance(node, ast.BinOp):
        yield from _arithmetic(node)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        yield "comparison", lambda: node.ops.__setitem__(0, _COMPARED[type(node.ops[0])]())
    elif isinstance(node, ast.BoolOp):
        yield "logic", lambda: setattr(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        kind = "sign" if isinstance(node.op, ast.USub) else "logic"
        yield kind, lambda: setattr(node, "op", ast.UAdd()) if kind == "sign" else _become_truth(node)
    elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        yield "constant", lambda: setattr(node, "value", _other(node.value))
    elif isinstance(node, ast.Slice):
        yield from _ends(node)
    elif isinstance(node, ast.Call):
        yield from _calls(node)


def _become_truth(node: Any) -> None:
    node.operand = ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])
    node.op = ast.Not()
    node.operand = ast.UnaryOp(ast.Not(), node.operand)


def _arithmetic(node: Any) -> Iterator[Edit]:
    kind = type(node.op)
    text = isinstance(node.left, (ast.JoinedStr, ast.Constant)) and isinstance(getattr(node.left, "value", ""), str)
    if kind not in _BINARY or text:
        return
    yield "operator", lambda: setattr(node, "op", _BINARY[kind]())
    weighs = kind is ast.Mult and _is_weight(node.right)
    name = "ignored weights" if weighs else "dropped term" if kind in (ast.Add, ast.Sub) else "dropped factor"
    neutral = 0 if kind in (ast.Add, ast.Sub) else 1
    yield name, lambda: setattr(node, "right", ast.Constant(neutral))


def _is_weight(node: Any) -> bool:
    words = ast.unparse(node)
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and (
        "weight" in words or words in ("w", "w[:, None]")
    )


def _ends(node: Any) -> Iterator[Edit]:
    for name in ("lower", "upper"):
        end = getattr(node, name)
        if end is not None and not isinstance(end, ast.Constant):
            yield (
                "off by one",
                lambda name=name, end=end: setattr(node, name, ast.BinOp(end, ast.Add(), ast.Constant(1))),
            )


def _calls(node: Any) -> Iterator[Edit]:
    called = ast.unparse(node.func)
    if called == "range":
        last = len(node.args) - 1 if len(node.args) < 3 else 1
        end = node.args[last]
        yield "off by one", lambda: node.args.__setitem__(last, ast.BinOp(end, ast.Sub(), ast.Constant(1)))
    swapped = {"min": "max", "max": "min", "np.minimum": "np.maximum", "np.maximum": "np.minimum"}.get(called)
    if swapped is not None and len(node.args) > 1:
        yield "comparison", lambda: setattr(node, "func", ast.parse(swapped, mode="eval").body)
    for keyword in node.keywords:
        if keyword.arg in ("weights", "sample_weight", "weight") and not isinstance(keyword.value, ast.Constant):
            yield "ignored weights", lambda keyword=keyword: setattr(keyword, "value", ast.Constant(None))


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1 if abs(value) <= 16 else value * 2  # one more of many would change nothing to be seen
    return value * 1.5 if value else 1.0
