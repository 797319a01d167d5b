"""Adapters for modules that decide by themselves which devices there are, or that compute in float64, which here is
the CPU's work; each runs when its module is imported."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

# The module that is imported, and the module here whose adapt() takes it.
ADAPTERS = {
    "accelerate.accelerator": "accelerate",
    "accelerate.state": "accelerate",
    "accelerate.utils.modeling": "accelerate",
    "lightning.fabric.connector": "lightning",
    "lightning.pytorch.trainer.connectors.accelerator_connector": "lightning",
    "lightning_fabric.connector": "lightning",
    "pytorch_lightning.trainer.connectors.accelerator_connector": "lightning",
    "safetensors": "safetensors",
    "sentence_transformers.util.environment": "sentence_transformers",
    "transformers.pipelines.base": "transformers_pipeline",
    "transformers.trainer": "transformers",
    "transformers.training_args": "transformers",
    "torch.distributed.fsdp._fully_shard._fsdp_init": "torch_fsdp",
    "torch.amp.grad_scaler": "torch_grad_scaler",
    "torch.nn.attention.flex_attention": "torch_flex_attention",
}


def _adapt(module: ModuleType) -> None:
    adapter = importlib.import_module(f"torch_webgpu.integrations.{ADAPTERS[module.__name__]}")
    adapter.adapt(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Lets Python find the module as ever, and follows its execution by the adapter's."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in ADAPTERS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        loader = spec.loader
        execute = loader.exec_module

        def execute_and_adapt(module: ModuleType) -> None:
            execute(module)
            _adapt(module)

        # On the loader itself, whose other methods (the source, resources) stay those of its class.
        loader.exec_module = execute_and_adapt  # type: ignore[method-assign]
        return spec


def install() -> None:
    sys.meta_path.insert(0, _Finder())
    for name in ADAPTERS:
        if name in sys.modules:
            _adapt(sys.modules[name])
