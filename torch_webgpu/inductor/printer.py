"""SymPy expressions of indices as WGSL. Indices are i32; sizes and ranges are never negative."""

from __future__ import annotations

import functools
from typing import Any

import sympy
from torch.utils._sympy.printers import ExprPrinter

from torch_webgpu.inductor.types import literal


class IndexPrinter(ExprPrinter):
    """Divisions of what cannot be negative are unsigned: those by a constant are a product and a shift for drivers."""

    def _divide(self, a: sympy.Expr, b: sympy.Expr, sign: str) -> str:
        left, right = self.doprint(a), self.doprint(b)
        if a.is_nonnegative and (b.is_positive or b.is_nonnegative):
            divisor = f"{int(b)}u" if isinstance(b, sympy.Integer) else f"u32({right})"
            return f"i32(u32({left}) {sign} {divisor})"
        function = "div_floor_i32" if sign == "/" else "remainder_i32"
        return f"{function}({left}, {right})"

    def _print_Integer(self, e: sympy.Expr) -> str:
        return literal(int(e), "i32").rstrip("i") if -(2**31) < int(e) < 2**31 else literal(int(e), "i32")

    def _print_FloorDiv(self, e: sympy.Expr) -> str:
        return self._divide(e.args[0], e.args[1], "/")

    def _print_CleanDiv(self, e: sympy.Expr) -> str:
        return self._divide(e.args[0], e.args[1], "/")

    def _print_ModularIndexing(self, e: sympy.Expr) -> str:
        x, divisor, modulus = e.args
        if divisor == 1:
            return self._divide(x, modulus, "%")
        quotient = self._divide(x, divisor, "/")
        right = f"{int(modulus)}u" if isinstance(modulus, sympy.Integer) else f"u32({self.doprint(modulus)})"
        if x.is_nonnegative:
            return f"i32(u32({quotient}) % {right})"
        return f"remainder_i32({quotient}, {self.doprint(modulus)})"

    def _print_Mod(self, e: sympy.Expr) -> str:
        return self._divide(e.args[0], e.args[1], "%")

    def _print_PythonMod(self, e: sympy.Expr) -> str:
        return self._print_Mod(e)

    def _fold(self, e: sympy.Expr, function: str) -> str:
        return functools.reduce(lambda a, b: f"{function}({a}, {b})", map(self.doprint, e.args))

    def _print_Min(self, e: sympy.Expr) -> str:
        return self._fold(e, "min")

    def _print_Max(self, e: sympy.Expr) -> str:
        return self._fold(e, "max")

    def _print_Abs(self, e: sympy.Expr) -> str:
        return f"abs({self.doprint(e.args[0])})"

    def _print_And(self, e: sympy.Expr) -> str:
        return "(" + " && ".join(f"({self.doprint(a)})" for a in e.args) + ")"

    def _print_Or(self, e: sympy.Expr) -> str:
        return "(" + " || ".join(f"({self.doprint(a)})" for a in e.args) + ")"

    def _print_Not(self, e: sympy.Expr) -> str:
        return f"!({self.doprint(e.args[0])})"

    def _print_Equality(self, e: sympy.Expr) -> str:
        return f"({self.doprint(e.lhs)} == {self.doprint(e.rhs)})"

    def _print_Unequality(self, e: sympy.Expr) -> str:
        return f"({self.doprint(e.lhs)} != {self.doprint(e.rhs)})"

    def _print_Where(self, e: sympy.Expr) -> str:
        condition, yes, no = map(self.doprint, e.args)
        return f"select({no}, {yes}, {condition})"

    def _print_IntTrueDiv(self, e: sympy.Expr) -> str:
        a, b = map(self.doprint, e.args)
        return f"(f32({a}) / f32({b}))"

    def _print_FloatTrueDiv(self, e: sympy.Expr) -> str:
        a, b = map(self.doprint, e.args)
        return f"({a} / {b})"

    def _print_ToFloat(self, e: sympy.Expr) -> str:
        return f"f32({self.doprint(e.args[0])})"

    def _print_Float(self, e: sympy.Expr) -> str:
        return literal(float(e), "f32")

    def _print_TruncToInt(self, e: sympy.Expr) -> str:
        return f"i32(trunc({self.doprint(e.args[0])}))"

    def _print_FloorToInt(self, e: sympy.Expr) -> str:
        return f"i32(floor({self.doprint(e.args[0])}))"

    _print_floor = _print_FloorToInt

    def _print_CeilToInt(self, e: sympy.Expr) -> str:
        return f"i32(ceil({self.doprint(e.args[0])}))"

    _print_ceiling = _print_CeilToInt

    def _print_RoundToInt(self, e: sympy.Expr) -> str:
        return f"i32(round({self.doprint(e.args[0])}))"

    def _print_Identity(self, e: sympy.Expr) -> str:
        return f"({self.doprint(e.args[0])})"

    def _print_PowByNatural(self, e: sympy.Expr) -> str:
        base, exponent = e.args
        assert exponent.is_Integer and exponent > 0, e
        return "(" + " * ".join([f"({self.doprint(base)})"] * int(exponent)) + ")"

    def _print_Pow(self, e: sympy.Expr) -> str:
        return self._print_PowByNatural(e)


class WidePrinter:
    """The same as int64, for values of indices that do not fit 32 bits: arange(9) * 2**40."""

    def doprint(self, e: Any) -> str:
        if isinstance(e, sympy.Integer):
            return literal(int(e), "i64")
        if isinstance(e, sympy.Symbol):
            return f"i64_from_i32({e})"
        for kind, function in ((sympy.Add, "add_i64"), (sympy.Mul, "mul_i64")):
            if isinstance(e, kind):
                first, *others = map(self.doprint, e.args)
                for other in others:
                    first = f"{function}({first}, {other})"
                return first
        if type(e).__name__ in ("FloorDiv", "CleanDiv"):
            return f"div_floor_i64({self.doprint(e.args[0])}, {self.doprint(e.args[1])})"
        if type(e).__name__ == "ModularIndexing":
            x, divisor, modulus = map(self.doprint, e.args)
            return f"remainder_i64(div_floor_i64({x}, {divisor}), {modulus})"
        return f"i64_from_i32({print_index(e)})"


print_index = IndexPrinter().doprint
print_wide = WidePrinter().doprint
