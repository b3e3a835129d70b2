"""The changes of mutants: one function per kind of node of solc's syntax tree."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Node = dict[str, Any]

RELATIONS = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
}
ARITHMETIC = {"+": ("-",), "-": ("+",), "*": ("+",), "/": ("*",), "%": ("*",)}
LOGIC = {"&&": ("||",), "||": ("&&",)}
STEPS = {"++": "--", "--": "++"}
NAMES = {"min": "max", "max": "min"}


@dataclass(frozen=True)
class Change:
    """Bytes `start` to `end` of a file become `text`."""

    operator: str
    start: int
    end: int
    text: str


def changes_of(node: Node, parents: tuple[Node, ...], content: bytes) -> Iterator[Change]:
    """Yield the changes that begin at this node; `parents` ends with the nearest one."""
    make = CHANGES.get(node["nodeType"])
    if make is not None:
        yield from make(node, parents, content)


def _span(node: Node) -> tuple[int, int]:
    start, length, _ = map(int, node["src"].split(":"))
    return start, start + length


def _text(node: Node, content: bytes) -> str:
    start, end = _span(node)
    return content[start:end].decode()


def _replaced(operator: str, node: Node, text: str) -> Change:
    return Change(operator, *_span(node), text)


def _statement_removed(operator: str, node: Node, content: bytes) -> Change:
    """Replace the statement by an empty block, as after an `if` without braces."""
    start, end = _span(node)
    return Change(operator, start, content.index(b";", end) + 1, "{}")


def _binary_operation(node: Node, _: tuple[Node, ...], content: bytes) -> Iterator[Change]:
    left, right = node["leftExpression"], node["rightExpression"]
    sign = node["operator"]
    position = content.index(sign.encode(), _span(left)[1], _span(right)[0])
    for operator, signs in (("relation", RELATIONS), ("arithmetic", ARITHMETIC), ("logic", LOGIC)):
        for other in signs.get(sign, ()):
            yield Change(operator, position, position + len(sign), other)
    if sign in LOGIC:
        yield _replaced("condition dropped", node, _text(left, content))
        yield _replaced("condition dropped", node, _text(right, content))


def _condition(node: Node, _: tuple[Node, ...], __: bytes) -> Iterator[Change]:
    for text in ("true", "false"):
        yield _replaced("condition", node["condition"], text)


def _loop(node: Node, _: tuple[Node, ...], __: bytes) -> Iterator[Change]:
    yield _replaced("condition", node["condition"], "false")


def _unary_operation(node: Node, _: tuple[Node, ...], content: bytes) -> Iterator[Change]:
    sign = node["operator"]
    inner = _text(node["subExpression"], content)
    if sign == "!":
        yield _replaced("negation", node, inner)
    if sign in STEPS:
        other = STEPS[sign]
        yield _replaced("step", node, other + inner if node["prefix"] else inner + other)


def _expression_statement(
    node: Node, parents: tuple[Node, ...], content: bytes
) -> Iterator[Change]:
    parent = parents[-1]
    if parent["nodeType"] == "ForStatement" and parent["loopExpression"] is node:
        return
    operator = {"Assignment": "assignment removed", "FunctionCall": "call removed"}.get(
        node["expression"]["nodeType"], "statement removed"
    )
    yield _statement_removed(operator, node, content)


def _emit(node: Node, _: tuple[Node, ...], content: bytes) -> Iterator[Change]:
    yield _statement_removed("event removed", node, content)


def _revert(node: Node, parents: tuple[Node, ...], content: bytes) -> Iterator[Change]:
    """Skip a revert below an `if`: it would only repeat a condition of `false`."""
    if not any(parent["nodeType"] == "IfStatement" for parent in parents):
        yield _statement_removed("refusal removed", node, content)


def _modifier(node: Node, _: tuple[Node, ...], __: bytes) -> Iterator[Change]:
    if node["kind"] == "modifierInvocation":
        yield _replaced("modifier removed", node, "")


def _literal(node: Node, _: tuple[Node, ...], content: bytes) -> Iterator[Change]:
    text = _text(node, content)
    if node["kind"] == "bool":
        yield _replaced("constant", node, "false" if text == "true" else "true")
    elif node["kind"] == "string":
        yield _replaced("constant", node, '""')
    elif re.fullmatch(r"0x[0-9a-fA-F]+", text):
        digits = len(text) - 2
        yield _replaced("constant", node, f"0x{int(text, 16) + 1:0{digits}x}")
    elif re.fullmatch(r"\d+", text):
        for number in (int(text) - 1, int(text) + 1):
            if number >= 0:
                yield _replaced("constant", node, str(number))


def _return(node: Node, _: tuple[Node, ...], content: bytes) -> Iterator[Change]:
    value = node.get("expression")
    if value is None or value["nodeType"] == "Literal":
        return
    kind, text = value["typeDescriptions"]["typeString"], _text(value, content)
    yield _statement_removed("return removed", node, content)
    if kind == "bool":
        yield _replaced("returned value", value, f"!({text})")
    elif re.fullmatch(r"uint\d+", kind):
        yield _replaced("returned value", value, f"({text}) + 1")


def _function_call(node: Node, _: tuple[Node, ...], content: bytes) -> Iterator[Change]:
    """Two neighbouring arguments of one type change places."""
    if node["kind"] == "typeConversion":
        return
    arguments = node["arguments"]
    for one, other in pairwise(arguments):
        first, second = _text(one, content), _text(other, content)
        kinds = {argument["typeDescriptions"]["typeString"] for argument in (one, other)}
        if len(kinds) == 1 and first != second:
            between = content[_span(one)[1] : _span(other)[0]].decode()
            start, end = _span(one)[0], _span(other)[1]
            yield Change("arguments swapped", start, end, second + between + first)


def _member_access(node: Node, _: tuple[Node, ...], content: bytes) -> Iterator[Change]:
    owner = _text(node["expression"], content)
    if owner == "msg" and node["memberName"] == "sender":
        yield _replaced("sender", node, "tx.origin")
    if owner == "Math" and node["memberName"] in NAMES:
        yield _replaced("function", node, f"Math.{NAMES[node['memberName']]}")


def _continue(node: Node, _: tuple[Node, ...], __: bytes) -> Iterator[Change]:
    yield _replaced("loop", node, "break")


CHANGES: dict[str, Callable[[Node, tuple[Node, ...], bytes], Iterator[Change]]] = {
    "BinaryOperation": _binary_operation,
    "Conditional": _condition,
    "Continue": _continue,
    "EmitStatement": _emit,
    "ExpressionStatement": _expression_statement,
    "ForStatement": _loop,
    "FunctionCall": _function_call,
    "IfStatement": _condition,
    "Literal": _literal,
    "MemberAccess": _member_access,
    "ModifierInvocation": _modifier,
    "Return": _return,
    "RevertStatement": _revert,
    "UnaryOperation": _unary_operation,
}
