"""Packages that choose a device themselves choose webgpu, and those that take one by an argument take it.

Each docstring is the last column of the table that `make ecosystem` prints. The packages are in
requirements-ecosystem.txt; a test whose package is absent is skipped.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

os.environ.setdefault("HF_HUB_OFFLINE", "1")

pytestmark = pytest.mark.filterwarnings("ignore")


def package(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed: make ecosystem")


def skip_without_autocast() -> None:
    x = torch.ones(2, 2, device="webgpu")
    try:
        with torch.autocast("webgpu", dtype=torch.bfloat16):
            assert (x @ x).dtype == torch.bfloat16
    except NotImplementedError:
        pytest.skip("the package chose the device, but this build of the device has no autocast")


def batches() -> DataLoader[Any]:
    return DataLoader(TensorDataset(torch.arange(16.0).view(4, 4)), batch_size=2)


# safetensors


def test_safetensors_load_file(tmp_path: Path) -> None:
    """load_file(path, device="webgpu"); adapter: read on the CPU, then moved"""
    package("safetensors")
    from safetensors.torch import load_file, load_model, save_file, save_model

    tensors = {
        "a": torch.arange(6.0, device="webgpu").view(2, 3),
        "b": torch.ones(2, dtype=torch.bfloat16, device="webgpu"),
    }
    save_file(tensors, tmp_path / "a.safetensors")
    for device in ("webgpu", "webgpu:0", torch.device("webgpu")):
        loaded = load_file(tmp_path / "a.safetensors", device=device)
        assert {str(value.device) for value in loaded.values()} == {"webgpu:0"}
        assert all(torch.equal(loaded[name].cpu(), value.cpu()) for name, value in tensors.items())
    assert load_file(tmp_path / "a.safetensors")["a"].device.type == "cpu"
    model = nn.Linear(3, 2).to("webgpu")
    save_model(model, str(tmp_path / "model.safetensors"))
    again = nn.Linear(3, 2).to("webgpu")
    load_model(again, tmp_path / "model.safetensors", device="webgpu")
    assert torch.equal(again.weight.cpu(), model.weight.cpu())


def test_safetensors_safe_open(tmp_path: Path) -> None:
    """safe_open(path, "pt", device="webgpu"), whole tensors and slices"""
    package("safetensors")
    from safetensors import safe_open
    from safetensors.torch import save_file

    save_file({"a": torch.arange(6.0).view(2, 3)}, tmp_path / "a.safetensors", metadata={"by": "test"})
    with safe_open(tmp_path / "a.safetensors", "pt", device="webgpu") as file:
        assert list(file.keys()) == ["a"]
        assert file.metadata()["by"] == "test"
        assert file.get_tensor("a").device.type == "webgpu"
        part = file.get_slice("a")
        assert part.get_shape() == [2, 3]
        assert part[:, 1:].device.type == "webgpu"
        assert part[:, 1:].tolist() == [[1.0, 2.0], [4.0, 5.0]]


# accelerate


@pytest.fixture
def _fresh_accelerate() -> Any:
    package("accelerate")
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(True)
    yield
    AcceleratorState._reset_state(True)


@pytest.mark.usefixtures("_fresh_accelerate")
@pytest.mark.parametrize("precision", ["no", "bf16", "fp16"])
def test_accelerate(precision: str) -> None:
    """Accelerator().device; adapter: the default device, and the devices of mixed precision"""
    from accelerate import Accelerator

    accelerator = Accelerator(mixed_precision=precision)
    assert accelerator.device.type == "webgpu"
    assert accelerator.native_amp == (precision != "no")
    if precision == "fp16":
        assert accelerator.scaler.is_enabled()
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=1e-3), batches())
    before = model.weight.detach().cpu()
    if precision != "no":
        skip_without_autocast()
    for _ in range(4):  # a scaler skips steps until its scale is small enough
        for (batch,) in loader:
            assert batch.device.type == "webgpu"
            loss = model(batch).float().square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    assert not torch.equal(model.weight.detach().cpu(), before)


@pytest.mark.usefixtures("_fresh_accelerate")
def test_accelerate_on_the_cpu() -> None:
    """Accelerator(cpu=True) stays on the CPU"""
    from accelerate import Accelerator

    assert Accelerator(cpu=True).device.type == "cpu"


# transformers


def gpt2() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 32, "n_positions": 16}
    return GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).eval()


def bert(dropout: float = 0.0) -> Any:
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    sizes = {
        "vocab_size": 8,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    return BertForSequenceClassification(BertConfig(**sizes, **rates))


def test_transformers_device_map(tmp_path: Path) -> None:
    """from_pretrained(..., device_map="webgpu"), generate()"""
    package("transformers"), package("accelerate")
    from transformers import AutoModelForCausalLM

    model = gpt2()
    model.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path, device_map="webgpu")
    assert {str(value.device) for value in loaded.parameters()} == {"webgpu:0"}
    tokens = torch.tensor([[1, 2, 3]])
    expected = model.generate(tokens, max_new_tokens=4, do_sample=False)
    assert loaded.generate(tokens.to("webgpu"), max_new_tokens=4, do_sample=False).tolist() == expected.tolist()


def test_transformers_pipeline() -> None:
    """pipeline(..., device="webgpu")"""
    package("transformers"), package("tokenizers")
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, pipeline

    words = Tokenizer(models.WordLevel({"[UNK]": 0, "[PAD]": 1, "good": 2, "bad": 3}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")
    scores = []
    for device in ("webgpu", "cpu"):
        run = pipeline("text-classification", model=bert().eval(), tokenizer=tokenizer, device=device)
        assert run.model.device.type == device
        scores.append(run("good bad")[0]["score"])
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)


class Rows(Dataset[Any]):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"input_ids": torch.tensor([index, 1, 2]), "labels": torch.tensor(index % 2)}


@pytest.mark.usefixtures("_fresh_accelerate")
def test_transformers_trainer_saves_and_resumes(tmp_path: Path) -> None:
    """Trainer(...), resume_from_checkpoint; adapter: TrainingArguments.device, the state of random numbers"""
    package("transformers")
    from transformers import Trainer, TrainingArguments

    quiet = {"report_to": [], "disable_tqdm": True, "logging_steps": 100}
    steps = {"max_steps": 4, "save_steps": 2, "per_device_train_batch_size": 2, "learning_rate": 1e-2}
    arguments = TrainingArguments(str(tmp_path), **steps, **quiet)
    assert arguments.device.type == "webgpu"
    first, second = (Trainer(model=bert(dropout=0.1), args=arguments, train_dataset=Rows()) for _ in range(2))
    assert first.train().global_step == 4
    assert second.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2")).global_step == 4
    start = dict(bert().named_parameters())
    assert any(
        not torch.equal(value.detach().cpu(), start[name].detach()) for name, value in first.model.named_parameters()
    )
    for one, other in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert one.device.type == "webgpu"
        torch.testing.assert_close(other.detach().cpu(), one.detach().cpu(), rtol=1e-5, atol=1e-6)


# lightning

QUIET = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)


def lightning_module(name: str) -> Any:
    lightning = package(name)

    class Model(lightning.LightningModule):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)
            self.seen: list[str] = []

        def training_step(self, batch: Any, index: int) -> Tensor:
            self.seen.append(batch[0].device.type)
            return self.layer(batch[0]).float().square().mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    return lightning, Model()


@pytest.mark.parametrize("accelerator", ["webgpu", "auto", "gpu", "cpu"])
@pytest.mark.parametrize("name", ["lightning", "pytorch_lightning"])
def test_lightning_trainer(name: str, accelerator: str, tmp_path: Path) -> None:
    """Trainer(accelerator="webgpu", "auto" or "gpu"); adapter: a registered accelerator"""
    lightning, model = lightning_module(name)
    trainer = lightning.Trainer(accelerator=accelerator, max_epochs=1, default_root_dir=tmp_path, **QUIET)
    trainer.fit(model, batches())
    assert model.seen == ["cpu" if accelerator == "cpu" else "webgpu"] * 2


@pytest.mark.parametrize("precision", ["bf16-mixed", "16-mixed"])
def test_lightning_mixed_precision(precision: str) -> None:
    """Trainer(precision="16-mixed"); adapter: autocast and scaler of the device"""
    lightning, model = lightning_module("lightning")
    trainer = lightning.Trainer(accelerator="webgpu", precision=precision, max_epochs=1, **QUIET)
    assert trainer.precision_plugin.device == "webgpu"
    skip_without_autocast()
    trainer.fit(model, batches())
    assert model.seen == ["webgpu"] * 2


def test_lightning_fabric() -> None:
    """Fabric(accelerator="auto"); adapter: a registered accelerator"""
    fabric = package("lightning.fabric").Fabric(accelerator="auto")
    assert fabric.device.type == "webgpu"
    model = nn.Linear(4, 2)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=1e-3))
    for (batch,) in fabric.setup_dataloaders(batches()):
        fabric.backward(model(batch).square().mean())
        optimizer.step()
    assert model.weight.device.type == "webgpu"


def test_lightning_has_one_device() -> None:
    """devices=2 raises: a process has one device"""
    lightning = package("lightning")
    with pytest.raises(ValueError, match="one webgpu device"):
        lightning.Trainer(accelerator="webgpu", devices=2, logger=False)


# torchmetrics


def test_torchmetrics() -> None:
    """Accuracy(...).to("webgpu"): no adapter"""
    torchmetrics = package("torchmetrics")
    guesses, labels = torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 1, 2])
    for make in (torchmetrics.Accuracy, torchmetrics.F1Score, torchmetrics.ConfusionMatrix):
        results = []
        for device in ("webgpu", "cpu"):
            metric = make(task="multiclass", num_classes=3).to(device)
            metric.update(guesses.to(device), labels.to(device))
            results.append(metric.compute())
        assert results[0].device.type == "webgpu"
        torch.testing.assert_close(results[0].cpu(), results[1])
    mean = torchmetrics.MeanMetric().to("webgpu")
    mean.update(torch.tensor([1.0, 3.0], device="webgpu"))
    assert mean.compute().item() == 2


def test_adapters_cost_nothing_without_their_packages() -> None:
    """No package is imported, nor an adapter, before its package is; torch.amp comes with torch itself"""
    from tests.device.process import output_of

    script = """
    import torch, sys
    adapters = [name for name in sys.modules if name.startswith("torch_webgpu.integrations.")]
    print(*(name for name in adapters if not name.endswith(".torch_grad_scaler")))
    """
    with warnings.catch_warnings():
        assert output_of(script) == [""]
