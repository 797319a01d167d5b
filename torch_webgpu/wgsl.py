"""What a WGSL text declares: its buffers, uniforms, types and compute entry points, and which entry point uses which.

Not a compiler: whatever is wrong with a text is left for the driver to say.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_COMMENT_EDGE = re.compile(r"//|/\*|\*/")
_TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|->|\S")
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[iu]?")
_LINE_END = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")
_OPEN, _CLOSE = "([{", ")]}"


def without_comments(text: str) -> str:
    """The same text with blanks instead of comments, so that every place stays what it was."""
    parts, start, depth = [], 0, 0
    position = 0
    while edge := _COMMENT_EDGE.search(text, position):
        position = edge.end()
        if edge[0] == "//" and depth == 0:
            end = _LINE_END.search(text, position)
            position = end.start() if end else len(text)
            parts += [text[start : edge.start()], " " * (position - edge.start())]
            start = position
        elif edge[0] == "/*":
            if depth == 0:
                parts.append(text[start : edge.start()])
                start = edge.start()
            depth += 1
        elif edge[0] == "*/" and depth > 0:
            depth -= 1
            if depth == 0:
                parts.append(re.sub(r"[^\n\r\v\f\x85\u2028\u2029]", " ", text[start:position]))
                start = position
        elif edge[0] == "//":  # in a block comment, where a */ may follow its second stroke
            position = edge.start() + 1
    return "".join(parts) + (text[start:] if depth == 0 else "")


# Types, as far as they lie in buffers


@dataclass(frozen=True)
class Scalar:
    name: str
    size: int
    align: int


@dataclass(frozen=True)
class Array:
    """Vectors, matrices and arrays: so many of `element`, each `stride` bytes behind the one before."""

    name: str
    element: Type
    count: int | None  # None: as many as the buffer holds
    stride: int
    size: int  # of a runtime-sized array: of one element
    align: int


@dataclass(frozen=True)
class Struct:
    name: str
    members: tuple[tuple[str, Type, int], ...]  # name, type, offset
    size: int
    align: int


Type = Scalar | Array | Struct

_SCALARS = {name: Scalar(name, 4, 4) for name in ("f32", "i32", "u32")} | {"f16": Scalar("f16", 2, 2)}
_SUFFIXES = {"f": "f32", "i": "i32", "u": "u32", "h": "f16"}


def _round_up(value: int, multiple: int) -> int:
    return (value + multiple - 1) // multiple * multiple


def _vector(element: Type, count: int) -> Array:
    align = element.size * (2 if count == 2 else 4)
    return Array(f"vec{count}<{element.name}>", element, count, element.size, element.size * count, align)


def _matrix(element: Type, columns: int, rows: int) -> Array:
    column = _vector(element, rows)
    size = column.align * columns
    return Array(f"mat{columns}x{rows}<{element.name}>", column, columns, column.align, size, column.align)


# Declarations


@dataclass(frozen=True)
class Token:
    text: str
    begin: int
    end: int


Attributes = dict[str, list[Token]]  # by name; what stands between the parentheses


@dataclass(frozen=True)
class Resource:
    """A variable with @group and @binding."""

    name: str
    space: str  # "storage", "uniform", or empty for textures and samplers
    writes: bool
    type: Type | None  # None where it could not be told
    attributes: Attributes


@dataclass
class Function:
    name: str
    attributes: Attributes
    names: set[str] = field(default_factory=set)  # of the module's scope that its body uses

    @property
    def is_entry_point(self) -> bool:
        return "compute" in self.attributes


@dataclass
class Module:
    resources: list[Resource] = field(default_factory=list)  # in the order of the text
    functions: dict[str, Function] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)

    def used_by(self, entry_point: str) -> list[Resource]:
        seen: set[str] = set()
        pending = [entry_point]
        while pending:
            name = pending.pop()
            if name not in seen:
                seen.add(name)
                pending += self.functions[name].names if name in self.functions else ()
        return [resource for resource in self.resources if resource.name in seen]

    def integer(self, tokens: list[Token]) -> int | None:
        """The value of a literal or of a named constant; other expressions are not computed."""
        if len(tokens) != 1:
            return None
        if literal := _INTEGER.fullmatch(tokens[0].text):
            return int(literal[1], 0) if literal[1][:2] in ("0x", "0X") else int(literal[1])
        return self.constants.get(tokens[0].text)


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = [Token(match[0], *match.span()) for match in _TOKEN.finditer(without_comments(text))]
        self.at = 0
        self.module = Module()
        self.pending: dict[str, tuple[str, list[Token]]] = {}  # types may be used before they are declared

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead].text if self.at + ahead < len(self.tokens) else ""

    def take(self) -> Token:
        if self.at >= len(self.tokens):
            raise EOFError
        self.at += 1
        return self.tokens[self.at - 1]

    def until(self, *stops: str) -> list[Token]:
        """The tokens up to one of `stops` outside all brackets, which is left to be taken."""
        begin, depth = self.at, 0
        while depth > 0 or self.peek() not in stops:
            text = self.take().text
            depth += (text in _OPEN) - (text in _CLOSE)
        return self.tokens[begin : self.at]

    def bracket(self) -> list[Token]:
        """What stands between the bracket here and the one that closes it."""
        opening = self.take().text
        tokens = self.until(_CLOSE[_OPEN.index(opening)])
        self.take()
        return tokens

    def attributes(self) -> Attributes:
        found: Attributes = {}
        while self.peek() == "@":
            self.take()
            name = self.take().text
            found[name] = self.bracket() if self.peek() == "(" else []
        return found

    def parse(self) -> Module:
        variables: list[tuple[str, list[str], list[Token], Attributes]] = []
        bodies: list[tuple[Function, list[Token], list[Token]]] = []
        try:
            while self.at < len(self.tokens):
                attributes = self.attributes()
                keyword = self.take().text
                if keyword == "var":
                    template = []
                    if self.peek() == "<":
                        self.take()
                        template = [token.text for token in self.until(">")]
                        self.take()
                    name = self.take().text
                    kind = []
                    if self.peek() == ":":
                        self.take()
                        kind = self.until(";", "=")
                    variables.append((name, template, kind, attributes))
                    self.until(";")
                elif keyword == "struct":
                    name = self.take().text
                    self.pending[name] = ("struct", self.bracket())
                elif keyword == "alias":
                    name = self.take().text
                    self.take()
                    self.pending[name] = ("alias", self.until(";"))
                elif keyword == "const":
                    name = self.take().text
                    self.until("=")
                    self.take()
                    value = self.module.integer(self.until(";"))
                    if value is not None:
                        self.module.constants[name] = value
                elif keyword == "fn":
                    function = Function(self.take().text, attributes)
                    parameters = self.bracket()
                    self.until("{")
                    bodies.append((function, parameters, self.bracket()))
                    self.module.functions[function.name] = function
                elif keyword != ";":
                    self.until(";")
        except EOFError:  # the driver says what is missing
            pass
        for name in self.pending:
            self.named_type(name)
        for name, template, kind, attributes in variables:
            if "group" in attributes or "binding" in attributes:
                space = template[0] if template else ""
                found, _ = self.type(kind, 0)
                self.module.resources.append(Resource(name, space, "read_write" in template, found, attributes))
        for function, parameters, body in bodies:
            function.names = set(_names_of_module(parameters, body))
        return self.module

    def named_type(self, name: str, outer: tuple[str, ...] = ()) -> Type | None:
        if name in self.module.types or name not in self.pending or name in outer:
            return self.module.types.get(name)
        kind, tokens = self.pending[name]
        found = self.type(tokens, 0, (*outer, name))[0] if kind == "alias" else self.struct(name, tokens, outer)
        if found:
            self.module.types[name] = found
        return found

    def struct(self, name: str, tokens: list[Token], outer: tuple[str, ...]) -> Type | None:
        inner = _Parser("")
        inner.tokens = [*tokens, Token(",", 0, 0)]
        members: list[tuple[str, Type, int]] = []
        end = align = 0
        while inner.at < len(inner.tokens):
            attributes = inner.attributes()
            member = inner.take().text
            if member == ",":
                continue
            inner.take()
            found, inner.at = self.type(inner.tokens, inner.at, (*outer, name))
            if not found:
                return None
            size = self.module.integer(attributes.get("size", [])) or found.size
            own_align = self.module.integer(attributes.get("align", [])) or found.align
            offset = _round_up(end, own_align)
            members.append((member, found, offset))
            end, align = offset + size, max(align, own_align)
        return Struct(name, tuple(members), _round_up(end, align), align) if members else None

    def type(self, tokens: list[Token], at: int, outer: tuple[str, ...] = ()) -> tuple[Type | None, int]:
        """The type that begins at tokens[at], and the place behind it."""
        if at >= len(tokens):
            return None, at
        name = tokens[at].text
        arguments: list[list[Token]] = []
        at += 1
        if at < len(tokens) and tokens[at].text == "<":
            depth, begin = 0, at + 1
            while at < len(tokens):
                text = tokens[at].text
                depth += (text in ("<", "(")) - (text in (">", ")"))
                if (text == "," and depth == 1) or depth == 0:
                    if tokens[begin:at]:
                        arguments.append(tokens[begin:at])
                    begin = at + 1
                at += 1
                if depth == 0:
                    break
        if name in _SCALARS:
            return _SCALARS[name], at
        if name == "atomic" and arguments:
            return self.type(arguments[0], 0, outer)[0], at
        if shape := re.fullmatch(r"(vec|mat)([234])(?:x([234]))?([fiuh]?)", name):
            element = _SCALARS[_SUFFIXES[shape[4]]] if shape[4] else None
            if arguments:
                element_type = self.type(arguments[0], 0, outer)[0]
                element = element_type if isinstance(element_type, Scalar) else None
            if element is None:
                return None, at
            if shape[1] == "vec":
                return _vector(element, int(shape[2])), at
            return _matrix(element, int(shape[2]), int(shape[3] or 0)), at
        if name == "array" and arguments:
            of = self.type(arguments[0], 0, outer)[0]
            if of is None:
                return None, at
            count = self.module.integer(arguments[1]) if len(arguments) > 1 else None
            if count is None and len(arguments) > 1:
                return None, at
            stride = _round_up(of.size, of.align)
            label = f"array<{of.name}{'' if count is None else f', {count}'}>"
            return Array(label, of, count, stride, stride * (count or 1), of.align), at
        return self.named_type(name, outer), at


def _names_of_module(parameters: list[Token], body: list[Token]) -> Iterator[str]:
    """The names in a function's body that its own parameters and variables do not hide."""
    scopes = [_parameter_names(parameters)]
    loops: list[int] = []  # scopes of `for` that end with the body they are waiting for
    declared: str | None = None  # visible from the end of its declaration on
    depth = 0  # of parentheses
    previous = ""
    at = 0
    while at < len(body):
        text = body[at].text
        if text == "(":
            depth += 1
            if previous == "for":
                scopes.append(set())
                loops.append(len(scopes))
        elif text == ")":
            depth -= 1
        elif text == "{":
            scopes.append(set())
        elif text == "}":
            scopes.pop()
            if loops and loops[-1] == len(scopes):
                loops.pop()
                scopes.pop()
        elif text == ";":
            if declared:
                scopes[-1].add(declared)
            declared = None
        elif text in ("let", "const", "var"):
            at += 1
            if at < len(body) and body[at].text == "<":  # the address space
                while at < len(body) and body[at].text != ">":
                    at += 1
                at += 1
            declared = body[at].text if at < len(body) else None
        elif previous == "@":
            if text == "diagnostic":
                while at < len(body) and body[at].text != ")":
                    at += 1
        elif previous != "." and not any(text in scope for scope in scopes):
            yield text
        previous = text
        at += 1


def _parameter_names(tokens: list[Token]) -> set[str]:
    return {token.text for token, after in itertools.pairwise(tokens) if after.text == ":"}


def parse(text: str) -> Module:
    return _Parser(text).parse()
