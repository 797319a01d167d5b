"""The functions that a kernel calls: eager's formulas and files, specialised by type and gathered in order."""

from __future__ import annotations

import functools

from torch_webgpu import _C

# Inductor's names of the rows of eager's tables.
# fmt: off
_BY_NAME = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_not", "ceil", "cos", "cosh",
    "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "hypot", "log", "log10", "log1p", "log2", "maximum",
    "minimum", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "signbit", "sin", "sinh", "sqrt", "tan",
    "tanh", "trunc",
)
# fmt: on
# fmt: off
_BY_OVERLOAD = (
    "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "copysign", "eq",
    "fmod", "ge", "gt", "le", "lt", "ne", "remainder",
)
# fmt: on
_EAGER = {
    **{name: name for name in _BY_NAME},
    **{name: f"{name}_Tensor" for name in _BY_OVERLOAD},
    "floordiv": "div_floor_stub",
    "truediv": "div_Tensor",
}

# Functions that eager's tables name in rows of more than one op's scalars, or outside of the tables.
_OWN: dict[str, tuple[str, str]] = {
    "add": ("add(a, b)", ""),
    "sub": ("sub(a, b)", ""),
    "mul": ("mul(a, b)", ""),
    "pow": ("pow(a, b)", "transcendental"),
    "truncdiv": ("div_trunc(a, b)", ""),
    "fma": ("mul_add(a, b, c)", ""),
    "isnan": ("is_nan(a)", ""),
    "isinf": ("is_posinf(a) || is_neginf(a)", ""),
    "nextafter": ("nextafter_f32(a, b, 1u)", "transcendental"),
    "ldexp": ("ldexp_by(a, b)", "transcendental"),
    "mantissa": ("mantissa(a)", "transcendental"),
    "exponent": ("exponent(a)", "transcendental"),
    "erfcx": ("special_erfcx(a)", "normal"),
    "ndtri": ("special_ndtri(a)", "normal"),
    "log_ndtr": ("special_log_ndtr(a)", "normal"),
    "ndtr": ("0.5 * erfc(-a * 0.70710678)", "transcendental"),
    "lgamma": ("special_lgamma(a)", "gamma"),
    "digamma": ("special_digamma(a)", "gamma"),
    "trigamma": ("special_trigamma(a)", "gamma"),
    "zeta": ("special_zeta(a, b)", "gamma"),
    "igamma": ("special_igamma(a, b)", "gamma"),
    "igammac": ("special_igammac(a, b)", "gamma"),
    "bessel_j0": ("bessel_j0(a)", "bessel"),
    "bessel_j1": ("bessel_j1(a)", "bessel"),
    "bessel_y0": ("bessel_y0(a)", "bessel"),
    "bessel_y1": ("bessel_y1(a)", "bessel"),
    "spherical_bessel_j0": ("spherical_bessel_j0(a)", "bessel"),
    "i0": ("special_i0(a)", "bessel_modified"),
    "i0e": ("special_i0e(a)", "bessel_modified"),
    "i1": ("special_i1(a)", "bessel_modified"),
    "i1e": ("special_i1e(a)", "bessel_modified"),
    "modified_bessel_i0": ("special_i0(a)", "bessel_modified"),
    "modified_bessel_i1": ("special_i1(a)", "bessel_modified"),
    "modified_bessel_k0": ("bessel_k0(a)", "bessel_modified"),
    "modified_bessel_k1": ("bessel_k1(a)", "bessel_modified"),
    "scaled_modified_bessel_k0": ("scaled_bessel_k0(a)", "bessel_modified"),
    "scaled_modified_bessel_k1": ("scaled_bessel_k1(a)", "bessel_modified"),
    "airy_ai": ("airy_ai(a)", "bessel_modified"),
    "chebyshev_polynomial_t": ("chebyshev_t(a, b)", "polynomials"),
    "chebyshev_polynomial_u": ("chebyshev_u(a, b, 8)", "polynomials"),
    "chebyshev_polynomial_v": ("chebyshev_v(a, b, 8)", "polynomials"),
    "chebyshev_polynomial_w": ("chebyshev_w(a, b, 8)", "polynomials"),
    "shifted_chebyshev_polynomial_t": ("chebyshev_t(a + a - 1.0, b)", "polynomials"),
    "shifted_chebyshev_polynomial_u": ("chebyshev_u(a + a - 1.0, b, 6)", "polynomials"),
    "shifted_chebyshev_polynomial_v": ("chebyshev_v(a + a - 1.0, b, 6)", "polynomials"),
    "shifted_chebyshev_polynomial_w": ("chebyshev_w(a + a - 1.0, b, 6)", "polynomials"),
    "hermite_polynomial_h": ("hermite_h(a, b)", "polynomials"),
    "hermite_polynomial_he": ("hermite_he(a, b)", "polynomials"),
    "laguerre_polynomial_l": ("laguerre_l(a, b)", "polynomials"),
    "legendre_polynomial_p": ("legendre_p(a, b)", "polynomials"),
}

# f32 arithmetic reads better, and compiles faster, as what it is.
INFIX = {("add", "f32"): "+", ("sub", "f32"): "-", ("mul", "f32"): "*", ("truediv", "f32"): "/",
         ("add", "i32"): "+", ("sub", "i32"): "-", ("mul", "i32"): "*"}  # fmt: skip

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
RETURN_BOOL = frozenset((*COMPARISONS, "isnan", "isinf", "signbit"))


@functools.cache
def formula(name: str) -> tuple[str, str] | None:
    """The formula of an op of Inductor, and the file of its functions; None for one that eager does not have."""
    if name in _OWN:
        return _OWN[name]
    row = _C.formulas().get(_EAGER.get(name, ""))
    return None if row is None else (str(row["formula"]), str(row["library"] or ""))


def known_ops() -> list[str]:
    return [*_EAGER, *_OWN]


class Library:
    """What one kernel's text is made of beside its own body."""

    def __init__(self) -> None:
        self._files: dict[str, None] = {}
        self._functions: dict[str, str] = {}

    def use(self, file: str) -> None:
        if file in self._files:
            return
        self._files[file] = None
        for needed in _C.wgsl_needs(file):
            self.use(needed)

    def use_type(self, compute: str) -> None:
        for file in ("storage", "convert", compute):
            self.use(file)

    def define(self, name: str, text: str) -> None:
        self._functions.setdefault(name, text)

    def call(self, name: str, compute: str, arguments: list[str]) -> str:
        """An expression that applies an op to values of a compute type."""
        self.use_type(compute)
        if (name, compute) in INFIX:
            return f"({arguments[0]} {INFIX[name, compute]} {arguments[1]})"
        found = formula(name)
        assert found is not None, name
        text, library = found
        if compute == "f32" and library:
            self.use(library)
        if compute != "f32":
            library = ""
        function = f"op_{name}_{compute}"
        value = "vec2<u32>" if compute == "i64" else compute
        result = "bool" if name in RETURN_BOOL else value
        parameters = ", ".join(f"{letter}: {value}" for letter, _ in zip("abc", arguments, strict=False))
        specialised = _C.specialise(text, compute, library)
        if "inf_f32" in specialised or "nan_f32" in specialised:
            self.use_type("f32")
        self.define(function, f"fn {function}({parameters}) -> {result} {{ return {specialised}; }}")
        return f"{function}({', '.join(arguments)})"

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(self._files)

    def text(self) -> str:
        """The functions of this kernel alone; its files are added when it is compiled."""
        return "\n".join(self._functions.values())
