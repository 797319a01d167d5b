"""One class per program: it makes chains of an operation, runs them, and waits until the result is there."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.work import HEADS, Work

Run = Callable[[], Any]


class Ours:
    """Eager operations, as a user of PyTorch writes them."""

    def __init__(self) -> None:
        import torch

        self.torch, self.functional = torch, torch.nn.functional
        torch.webgpu.set_fallback_mode("error")

    def describe(self) -> str:
        properties = self.torch.webgpu.get_device_properties()
        return f"{properties.name}, {properties.driver}, through {properties.runtime}"

    def chain(self, work: Work, x: np.ndarray, weights: list[np.ndarray], length: int) -> Run:
        moved, *there = (self.torch.from_numpy(array).to("webgpu") for array in (x, *weights))
        step = getattr(self, work.kind)

        def run() -> Any:
            result = moved
            with self.torch.no_grad():
                for _ in range(length):
                    result = step(result, *there)
            self.torch.webgpu.synchronize()
            return result

        return run

    def array(self, result: Any) -> np.ndarray:
        found: np.ndarray = result.cpu().numpy()
        return found

    def add(self, x: Any, y: Any) -> Any:
        return x + y

    def gelu(self, x: Any) -> Any:
        return self.functional.gelu(x)

    def softmax(self, x: Any) -> Any:
        return x.softmax(-1)

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.functional.layer_norm(x, weight.shape, weight, bias)

    def minus_mean(self, x: Any) -> Any:
        return x - x.mean(0)

    def matmul(self, x: Any, weight: Any) -> Any:
        return x @ weight

    def mlp(self, x: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        return self.torch.addmm(d, self.functional.gelu(self.torch.addmm(b, x, a)), c)

    def conv(self, x: Any, weight: Any) -> Any:
        return self.functional.conv2d(x, weight, padding=1)

    def attention(self, x: Any) -> Any:
        heads = x.view(*x.shape[:2], HEADS, -1).transpose(1, 2)
        mixed = self.functional.scaled_dot_product_attention(heads, heads, heads)
        return mixed.transpose(1, 2).reshape(x.shape)


class OnnxRuntime:
    """A model of `length` nodes. Its execution provider has no tensors on the device that Python could hold."""

    def __init__(self) -> None:
        import onnx
        import onnxruntime

        self.onnx, self.runtime = onnx, onnxruntime

    def describe(self) -> str:
        return f"onnxruntime-webgpu {self.runtime.__version__}"

    def chain(self, work: Work, x: np.ndarray, weights: list[np.ndarray], length: int) -> Run:
        helper, numpy_helper, kinds = self.onnx.helper, self.onnx.numpy_helper, self.onnx.TensorProto
        names = [f"w{i}" for i in range(len(weights))]
        held = [numpy_helper.from_array(array, name) for array, name in zip(weights, names, strict=True)]
        if work.kind == "minus_mean":
            held.append(numpy_helper.from_array(np.array([0], np.int64), "axes"))
        nodes = []
        for i in range(length):
            nodes += self.nodes(work.kind, f"x{i}", names, f"x{i + 1}")
        ends = [helper.make_tensor_value_info(name, kinds.FLOAT, x.shape) for name in ("x0", f"x{length}")]
        graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], held)
        versions = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=9)
        options = self.runtime.SessionOptions()
        options.log_severity_level = 3
        # Without an adapter, or for a node that the provider lacks, it would quietly compute on the CPU.
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        session = self.runtime.InferenceSession(
            model.SerializeToString(), options, providers=["WebGpuExecutionProvider"]
        )
        if session.get_providers()[0] != "WebGpuExecutionProvider":
            raise RuntimeError(f"ONNX Runtime chose {session.get_providers()}")
        feed = {"x0": x}
        return lambda: session.run(None, feed)[0]

    def nodes(self, kind: str, x: str, weights: list[str], y: str) -> list[Any]:
        make = self.onnx.helper.make_node
        microsoft = {"domain": "com.microsoft"}
        if kind == "add":
            return [make("Add", [x, *weights], [y])]
        if kind == "gelu":
            return [make("Gelu", [x], [y], **microsoft)]
        if kind == "softmax":
            return [make("Softmax", [x], [y], axis=-1)]
        if kind == "layer_norm":
            return [make("LayerNormalization", [x, *weights], [y], axis=-1)]
        if kind == "minus_mean":
            return [
                make("ReduceMean", [x, "axes"], [f"{x}_mean"], keepdims=1),
                make("Sub", [x, f"{x}_mean"], [y]),
            ]
        if kind == "matmul":
            return [make("MatMul", [x, *weights], [y])]
        if kind == "mlp":
            a, b, c, d = weights
            return [
                make("Gemm", [x, a, b], [f"{x}_up"]),
                make("Gelu", [f"{x}_up"], [f"{x}_gelu"], **microsoft),
                make("Gemm", [f"{x}_gelu", c, d], [y]),
            ]
        if kind == "conv":
            return [make("Conv", [x, *weights], [y], pads=[1, 1, 1, 1], kernel_shape=[3, 3])]
        return [make("MultiHeadAttention", [x, x, x], [y], num_heads=HEADS, **microsoft)]

    def array(self, result: Any) -> np.ndarray:
        found: np.ndarray = result
        return found


class Tinygrad:
    """A chain of realized tensors under TinyJit, which replays it without its compiler."""

    def __init__(self) -> None:
        import pydawn

        folder = Path(pydawn.__file__).parent / "lib"
        ending = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
        libraries = [file for file in folder.glob(f"*{ending}") if platform.machine().lower() in file.name]
        os.environ.setdefault("WEBGPU_PATH", str(next(iter(libraries), "")))
        import tinygrad

        self.tinygrad, self.device = tinygrad, tinygrad.Device["WEBGPU"]

    def describe(self) -> str:
        from importlib.metadata import version

        return f"tinygrad {version('tinygrad')}, Dawn of dawn-python {version('dawn-python')}"

    def chain(self, work: Work, x: np.ndarray, weights: list[np.ndarray], length: int) -> Run:
        moved, *there = (self.tinygrad.Tensor(array, device="WEBGPU").realize() for array in (x, *weights))
        step = getattr(self, work.kind)

        def steps(x: Any) -> Any:
            for _ in range(length):
                x = step(x, *there).realize()
            return x

        replayed = self.tinygrad.TinyJit(steps)

        def run() -> Any:
            result = replayed(moved)
            self.device.synchronize()
            return result

        return run

    def array(self, result: Any) -> np.ndarray:
        found: np.ndarray = result.numpy()
        return found

    def add(self, x: Any, y: Any) -> Any:
        return x + y

    def gelu(self, x: Any) -> Any:
        return 0.5 * x * (1 + (x * 0.5**0.5).erf())

    def softmax(self, x: Any) -> Any:
        return x.softmax(-1)

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        return x.layernorm() * weight + bias

    def minus_mean(self, x: Any) -> Any:
        return x - x.mean(0)

    def matmul(self, x: Any, weight: Any) -> Any:
        return x @ weight

    def mlp(self, x: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        return self.gelu(x @ a + b) @ c + d

    def conv(self, x: Any, weight: Any) -> Any:
        return x.conv2d(weight, padding=1)

    def attention(self, x: Any) -> Any:
        heads = x.reshape(*x.shape[:2], HEADS, -1).transpose(1, 2)
        return heads.scaled_dot_product_attention(heads, heads).transpose(1, 2).reshape(x.shape)


PROGRAMS: dict[str, Callable[[], Any]] = {"torch_webgpu": Ours, "onnxruntime": OnnxRuntime, "tinygrad": Tinygrad}


def main() -> None:
    """Answers questions, a line of JSON each, until its input ends."""
    import json
    import time

    # What a library prints must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from benchmarks.peers.work import WORK

    program = PROGRAMS[sys.argv[1]]()
    chains: dict[int, Run] = {}

    def prepare(name: str, lengths: list[int]) -> dict[str, Any]:
        work = next(work for work in WORK if work.name == name)
        x, weights = work.arrays()
        start = time.perf_counter()
        first = program.chain(work, x, weights, 1)
        first()
        first_ms = (time.perf_counter() - start) * 1e3
        chains.clear()
        for length in lengths:
            chains[length] = program.chain(work, x, weights, length)
            for _ in range(3):  # a TinyJit records in its second call
                chains[length]()
        return {"first_ms": first_ms}

    def seconds(length: int, calls: int) -> dict[str, Any]:
        start = time.perf_counter()
        for _ in range(calls):
            chains[length]()
        return {"seconds": (time.perf_counter() - start) / calls}

    def save(length: int, file: str) -> dict[str, Any]:
        np.save(file, program.array(chains[length]()))
        return {}

    questions: dict[str, Callable[..., dict[str, Any]]] = {
        "prepare": prepare,
        "seconds": seconds,
        "save": save,
        "describe": lambda: {"text": program.describe()},
    }
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = questions[question.pop("do")](**question)
        except Exception as error:
            said = [line for line in str(error).splitlines() if line.strip()]
            answer = {"error": f"{type(error).__name__}: {said[0] if said else ''}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
