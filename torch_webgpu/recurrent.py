"""Whole layers for `nn.LSTM`, `nn.GRU` and `nn.RNN`.

PyTorch multiplies the inputs of all steps at once for tensors of the CPU alone, inside of ops that have no kernels of
their own to register: on other devices a step is three launches. The modules call these ops through `torch._VF`; here
they get one that takes tensors of this device to `_C.recurrent`, where a step is two launches, and all else to PyTorch.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torch_webgpu import _C

_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def _suits(name: str, x: Any, states: Sequence[Any], params: Sequence[Any], per_layer: int, options: Any) -> bool:
    """Whether these are tensors of the device, of shapes that fit together. PyTorch says what is wrong with others."""
    layers, dropout, bidirectional = options
    tensors = (x, *states, *params)
    if not all(type(tensor) in _PLAIN and tensor.device.type == "webgpu" for tensor in tensors):
        return False
    if x.dtype not in _FLOATS or any(tensor.dtype != x.dtype for tensor in tensors):
        return False
    if torch.is_autocast_enabled("webgpu") or torch.autograd.forward_ad._current_level >= 0:
        return False
    if torch._C._functorch.peek_interpreter_stack() is not None or torch.compiler.is_compiling():
        return False
    directions = 2 if bidirectional else 1
    if x.dim() != 3 or x.numel() == 0 or len(params) != per_layer * layers * directions or not 0 <= dropout <= 1:
        return False
    units = states[0].shape[-1]
    return _shapes_fit(x, states, params, per_layer, (layers, directions, units, _GATES[name] * units))


def _shapes_fit(
    x: torch.Tensor,
    states: Sequence[torch.Tensor],
    params: Sequence[torch.Tensor],
    per_layer: int,
    sizes: tuple[int, int, int, int],
) -> bool:
    layers, directions, units, gates = sizes
    if any(state.dim() != 3 or state.shape != states[0].shape for state in states):
        return False
    if states[0].shape[0] != layers * directions:
        return False
    width = x.shape[2]
    for index in range(layers * directions):
        if index == directions:
            width = directions * units
        expected = [(gates, width), (gates, units), (gates,), (gates,)][:per_layer]
        if [tuple(param.shape) for param in params[index * per_layer : (index + 1) * per_layer]] != expected:
            return False
    return True


def _whole_layers(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    kind = list(_GATES).index(name)

    def call(*args: Any) -> Any:
        # Nine arguments are those of padded sequences; packed ones have the sizes of their batches in the second place.
        if len(args) == 9 and isinstance(args[2], (list, tuple)) and isinstance(args[3], bool):
            x, states, params, has_biases, layers, dropout, train, bidirectional, batch_first = args
            if name != "lstm":
                states = (states,)
            batch = x.shape[0 if batch_first else 1] if x.dim() == 3 else -1
            options = (layers, dropout, bidirectional)
            fits = len(states) == (2 if name == "lstm" else 1) and all(state.shape[1:2] == (batch,) for state in states)
            if fits and _suits(name, x, states, params, 4 if has_biases else 2, options):
                found = _C.recurrent(
                    kind,
                    x,
                    list(states),
                    list(params),
                    has_biases,
                    layers,
                    dropout if train else 0.0,
                    bidirectional,
                    batch_first,
                )
                return tuple(found)
        return original(*args)

    return call


class _Functions(types.ModuleType):
    """`torch._VF` with other functions for whole layers; a module, as torch.jit.script looks names up in modules."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch._VF, name)


def _name_for_scripts(call: Callable[..., Any], op: str) -> None:
    """A script calls the op itself. PyTorch makes the table of such names when it is first asked for one."""
    builtins = torch.jit._builtins
    if builtins._builtin_table is None:
        builtins._builtin_ops.append((call, op))
    else:
        builtins._register_builtin(call, op)


def install() -> None:
    functions: Any = _Functions("torch._VF")
    module: Any = sys.modules["torch.nn.modules.rnn"]
    for name in _GATES:
        call = _whole_layers(name, getattr(torch._VF, name))
        setattr(functions, name, call)
        _name_for_scripts(call, f"aten::{name}")
    module._VF = functions
    module._rnn_impls = {"RNN_TANH": functions.rnn_tanh, "RNN_RELU": functions.rnn_relu}
