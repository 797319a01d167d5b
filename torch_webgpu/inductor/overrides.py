"""Inductor's ops as WGSL, by eager's formulas, so that compiled and eager results agree."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch._inductor.codegen.common import IndentedBuffer, OpOverrides
from torch._inductor.utils import get_bounds_index_expr, sympy_index_symbol
from torch._inductor.virtualized import V

from torch_webgpu.inductor import library
from torch_webgpu.inductor.printer import print_wide
from torch_webgpu.inductor.random import RANDOM
from torch_webgpu.inductor.types import COMPUTE, I32_HIGH, I32_LOW, PACKED, from_raw, to_raw, wgsl_type
from torch_webgpu.inductor.values import (
    SMALL_INTS,
    Value,
    apply,
    as_compute,
    cut,
    emit,
    ends_of,
    is_narrow,
    make_literal,
    promoted,
    range_of,
)


def _float_op(name: str) -> Callable[..., Value]:
    return lambda *values: apply(name, *values, dtype=torch.float32)


def _typed_op(name: str) -> Callable[..., Value]:
    return lambda *values: apply(name, *values)


# exp_below() of one element: what would be denormal is 0. Where nothing promises that the row's largest element is that
# of the same numbers, what would overflow is infinite.
EXP_BELOW = """fn exp_below_f32(x: f32) -> f32 {
  let bits = bitcast<u32>(fma(x, 1.44269504, 12582912.0));
  let k = f32(bitcast<i32>(bits - 0x4b400000u));
  let r = fma(k, -0.693147181, x);
  let z = r * r;
  let tail = fma(z, fma(r, 0.00829031, 0.04189794), fma(r, 0.16667636, 0.49999149));
  let p = fma(r, 0.99999971, 1.0) + z * tail;
  let y = p * bitcast<f32>((bits << 23u) + 0x3f800000u);
  return select(y, 0.0, x < -87.3);
}"""
EXP_LIKELY_BELOW = """fn exp_likely_below_f32(x: f32) -> f32 {
  return select(exp_below_f32(x), inf_f32(), x > 88.0);
}"""


# Without its types: there, ops take and give text.
_Overrides: Any = OpOverrides


class WebGPUOverrides(_Overrides):
    """Each op returns a Value, made by `emit`."""

    @staticmethod
    def constant(value: Any, dtype: torch.dtype) -> Any:
        return make_literal(value, dtype)

    @staticmethod
    def identity(x: Any) -> Any:
        return x

    @staticmethod
    def to_dtype(x: Any, dtype: torch.dtype, src_dtype: Any = None, use_compute_types: bool = True) -> Any:
        if not isinstance(x, Value):
            return make_literal(x, dtype)
        if dtype.is_floating_point:
            text = as_compute(x, "f32")
            if dtype in PACKED and not use_compute_types:
                return emit(cut(text, dtype), torch.float32)
            return x if x.dtype is torch.float32 else emit(text, torch.float32)
        if dtype is torch.int64 and is_narrow(x):
            return emit(as_compute(x, "i32"), dtype, "i32", x.bounds)
        text = as_compute(x, COMPUTE[dtype])
        if dtype in SMALL_INTS and x.dtype is not dtype and x.compute != "bool":
            text = cut(text, dtype)
        return emit(text, dtype)

    @staticmethod
    def to_dtype_bitcast(x: Any, dtype: torch.dtype, src_dtype: torch.dtype) -> Any:
        V.kernel.library.use("storage")
        if src_dtype.itemsize != dtype.itemsize:
            raise NotImplementedError(f"bitcast of {src_dtype} to {dtype}")
        return emit(from_raw(dtype, to_raw(src_dtype, as_compute(x, COMPUTE[src_dtype]))), dtype)

    @staticmethod
    def index_expr(expr: sympy.Expr, dtype: torch.dtype) -> Any:
        kernel = V.kernel
        index = kernel.prepare_indexing(expr)
        bounds = get_bounds_index_expr(expr)
        ends = ends_of(bounds)
        numbers = [abs(int(number)) for number in expr.atoms(sympy.Integer)]
        fits = max(numbers, default=0) <= I32_HIGH and (ends is None or (ends[0] >= I32_LOW and ends[1] <= I32_HIGH))
        if not fits:
            kernel.library.use_type("i64")
            wide = emit(print_wide(kernel.rename_indexing(index)), torch.int64)
            return WebGPUOverrides.to_dtype(wide, dtype)
        if isinstance(index, sympy.Integer):
            return make_literal(int(index), dtype)
        text = kernel.index_to_str(index)
        value = emit(f"i32({text})", torch.int64, "i32", bounds)
        return value if dtype is torch.int64 else WebGPUOverrides.to_dtype(value, dtype)

    @staticmethod
    def value_expr(expr: sympy.Expr, dtype: torch.dtype) -> Any:
        return WebGPUOverrides.index_expr(expr, dtype)

    @staticmethod
    def indirect_indexing(var: Any, size: Any, check: bool = True, wrap_neg: bool = True) -> sympy.Symbol:
        """Clamped, so that nothing outside of the tensor is read or written; eager raises on the way to the host."""
        kernel = V.kernel
        # A text of its own, even where the value is a literal: the symbol must be the name of a variable.
        text = as_compute(var, "i32")
        ends = range_of(var) if isinstance(var, Value) else None
        if check and not (ends and isinstance(size, sympy.Integer) and ends[0] >= 0 and ends[1] < size):
            last = kernel.index_to_str(kernel.prepare_indexing(sympy.sympify(size) - 1))
            text = f"clamp({text}, 0i, max({last}, 0i))"
        return sympy_index_symbol(str(emit(f"i32({text})", torch.int32)))

    @staticmethod
    def masked(mask: Any, body: Callable[[], Any], other: Any) -> Any:
        kernel = V.kernel
        scope = IndentedBuffer()
        with kernel.swap_buffers(scope), scope.indent(), kernel.inside_mask():
            result = body()
        if not isinstance(result, Value):
            result = make_literal(result, torch.float32 if isinstance(result, float) else torch.int64)
        compute = result.compute
        if compute == "i32" and result.dtype is torch.int64 and not is_narrow(other):
            compute = "i64"
        var = kernel.cse.newvar(dtype=result.dtype, shape=())
        var.compute = compute
        kernel.compute.writeline(f"var {var}: {wgsl_type(compute)} = {as_compute(other, compute)};")
        kernel.compute.writeline(f"if ({as_compute(mask, 'bool')}) {{")
        with kernel.compute.indent():
            kernel.compute.splice(scope)
            kernel.compute.writeline(f"{var} = {as_compute(result, compute)};")
        kernel.compute.writeline("}")
        return var

    @staticmethod
    def where(condition: Any, a: Any, b: Any) -> Any:
        dtype = promoted(a, b)
        compute = COMPUTE[dtype]
        if compute == "i64" and is_narrow(a) and is_narrow(b):
            compute = "i32"
        yes, no = as_compute(a, compute), as_compute(b, compute)
        return emit(f"select({no}, {yes}, {as_compute(condition, 'bool')})", dtype, compute)

    # Arithmetic that is more than one formula

    @staticmethod
    def int_truediv(a: Any, b: Any) -> Any:
        return apply("truediv", a, b, dtype=torch.float32)

    div_rn = truediv = int_truediv

    @staticmethod
    def reciprocal(x: Any) -> Any:
        return apply("reciprocal", x, dtype=torch.float32)

    @staticmethod
    def mod(a: Any, b: Any) -> Any:
        return apply("fmod", a, b)

    @staticmethod
    def square(x: Any) -> Any:
        return apply("mul", x, x)

    @staticmethod
    def mul_rn(a: Any, b: Any) -> Any:
        return apply("mul", a, b)

    @staticmethod
    def relu(x: Any) -> Any:
        return apply("maximum", make_literal(0, x.dtype), x)

    @staticmethod
    def frexp(x: Any) -> Any:
        return apply("mantissa", x, dtype=torch.float32), WebGPUOverrides.to_dtype(
            apply("exponent", x, dtype=torch.float32), torch.int32
        )

    @staticmethod
    def polygamma(n: Any, x: Any) -> Any:
        """Of a known order, as eager's: (-1)^(n + 1) n! zeta(n + 1, x)."""
        order = int(n.number)
        if order == 0:
            return apply("digamma", x, dtype=torch.float32)
        if order == 1:
            return apply("trigamma", x, dtype=torch.float32)
        zeta = apply("zeta", float(order + 1), x, dtype=torch.float32)
        return apply("mul", (-1.0) ** (order + 1) * math.factorial(order), zeta, dtype=torch.float32)

    @staticmethod
    def isnan(x: Any) -> Any:
        return apply("isnan", x)

    @staticmethod
    def logical_not(a: Any) -> Any:
        return emit(f"!{as_compute(a, 'bool')}", torch.bool)

    @staticmethod
    def logical_and(a: Any, b: Any) -> Any:
        return emit(f"{as_compute(a, 'bool')} && {as_compute(b, 'bool')}", torch.bool)

    @staticmethod
    def logical_or(a: Any, b: Any) -> Any:
        return emit(f"{as_compute(a, 'bool')} || {as_compute(b, 'bool')}", torch.bool)

    @staticmethod
    def logical_xor(a: Any, b: Any) -> Any:
        return emit(f"{as_compute(a, 'bool')} != {as_compute(b, 'bool')}", torch.bool)

    @staticmethod
    def _to_int(function: str, x: Any, dtype: torch.dtype) -> Any:
        return WebGPUOverrides.to_dtype(apply(function, x, dtype=torch.float32), dtype)

    @staticmethod
    def sub(a: Any, b: Any) -> Any:
        value = apply("sub", a, b)
        most_of = getattr(b, "most_of", None)
        if most_of is not None and value.compute == "f32":
            value.below_most = "known" if getattr(a, "name", "") == most_of.name else "likely"
        return value

    @staticmethod
    def exp(x: Any) -> Any:
        """Of a distance to a row's largest element, as softmax takes it: eager's shorter exponential."""
        known = getattr(x, "below_most", "")
        if not known:
            return apply("exp", x, dtype=torch.float32)
        function = "exp_below_f32" if known == "known" else "exp_likely_below_f32"
        V.kernel.library.define("exp_below_f32", EXP_BELOW)
        if known == "likely":
            V.kernel.library.define(function, EXP_LIKELY_BELOW)
        V.kernel.library.use_type("f32")
        return emit(f"{function}({as_compute(x, 'f32')})", torch.float32)

    # Random numbers: Philox, whose key is the seed and whose counter is the element's number

    @staticmethod
    def _random(function: str, seed: Any, offset: Any) -> str:
        kernel = V.kernel
        kernel.library.use_type("f32")
        kernel.library.use_type("i64")
        kernel.library.use("philox")
        for name in ("random_key", "random_words", function):
            kernel.library.define(name, RANDOM[name])
        return f"{function}({as_compute(seed, 'i64')}, bitcast<u32>({as_compute(offset, 'i32')})"

    @staticmethod
    def rand(seed: Any, offset: Any) -> Any:
        return emit(WebGPUOverrides._random("random_unit_of", seed, offset) + ")", torch.float32)

    @staticmethod
    def randn(seed: Any, offset: Any) -> Any:
        V.kernel.library.use("transcendental")
        return emit(WebGPUOverrides._random("random_normal_of", seed, offset) + ")", torch.float32)

    @staticmethod
    def randint64(seed: Any, offset: Any, low: Any, high: Any) -> Any:
        ends = f", {as_compute(low, 'i64')}, {as_compute(high, 'i64')})"
        return emit(WebGPUOverrides._random("random_int_of", seed, offset) + ends, torch.int64)

    @staticmethod
    def load_seed(name: str, offset: Any) -> Any:
        return V.kernel.load(name, sympy.Integer(offset))


# Ops that compute in their operands' type; all others give float32.
# fmt: off
_TYPED = (
    "abs", "add", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "ceil", "copysign", "eq", "floor", "floordiv", "fma", "fmod", "ge", "gt", "isinf", "le", "lt",
    "maximum", "minimum", "mul", "ne", "neg", "pow", "remainder", "round", "sign", "signbit", "sub", "trunc",
    "truncdiv",
)
# fmt: on
_BY_ANOTHER_NAME = {
    "and_": "bitwise_and",
    "or_": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
    "gammainc": "igamma",
    "gammaincc": "igammac",
}


def _install() -> None:
    for name in library.known_ops():
        if name in _TYPED and name not in WebGPUOverrides.__dict__:
            setattr(WebGPUOverrides, name, staticmethod(_typed_op(name)))
        elif name not in WebGPUOverrides.__dict__ and name not in ("mantissa", "exponent"):
            setattr(WebGPUOverrides, name, staticmethod(_float_op(name)))
    for name, same in _BY_ANOTHER_NAME.items():
        setattr(WebGPUOverrides, name, WebGPUOverrides.__dict__[same])
    for name in ("trunc", "ceil", "floor", "round"):
        setattr(WebGPUOverrides, f"{name}_to_int", staticmethod(functools.partial(WebGPUOverrides._to_int, name)))


_install()
