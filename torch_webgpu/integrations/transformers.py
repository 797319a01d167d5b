"""The Trainer: models go to the device that Accelerate moves batches to, checkpoints hold its random numbers' state."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from torch_webgpu import device


def _adapt_arguments(module: ModuleType) -> None:
    cached: Any = vars(module.TrainingArguments)["_setup_devices"]
    original = cached.func if hasattr(cached, "func") else cached.fget

    def setup_devices(self: Any) -> torch.device:
        found = original(self)
        if found.type != "cpu" or self.use_cpu or not device.is_available():
            return found
        return torch.device("webgpu", 0)

    replaced = type(cached)(setup_devices)
    if hasattr(replaced, "__set_name__"):
        replaced.__set_name__(module.TrainingArguments, "_setup_devices")
    module.TrainingArguments._setup_devices = replaced


def _adapt_trainer(module: ModuleType) -> None:
    trainer = module.Trainer
    save, load = trainer._save_rng_state, trainer._load_rng_state

    def file_of(self: Any, folder: Any) -> Path:
        return Path(folder) / f"rng_state_webgpu_{self.args.process_index}.pth"

    def save_rng_state(self: Any, output_dir: Any) -> None:
        save(self, output_dir)
        if self.args.device.type == "webgpu":
            torch.save(device.get_rng_state(), file_of(self, output_dir))

    def load_rng_state(self: Any, checkpoint: Any) -> None:
        load(self, checkpoint)
        if checkpoint is not None and file_of(self, checkpoint).is_file():
            device.set_rng_state(torch.load(file_of(self, checkpoint), weights_only=True))

    trainer._save_rng_state = save_rng_state
    trainer._load_rng_state = load_rng_state


def adapt(module: ModuleType) -> None:
    if module.__name__ == "transformers.trainer":
        _adapt_trainer(module)
    else:
        _adapt_arguments(module)
