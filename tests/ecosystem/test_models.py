"""Models of other packages, small and random: placed by the package, and with the CPU's results."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.ecosystem.test_packages import bert, gpt2, package
from tests.support import on_device

os.environ.setdefault("HF_HUB_OFFLINE", "1")

pytestmark = pytest.mark.filterwarnings("ignore")

TOKENS = torch.tensor([[1, 2, 3, 4, 5]])


def tokenizer() -> Any:
    package("tokenizers")
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"[UNK]": 0, "[PAD]": 1, "good": 2, "bad": 3}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    inputs = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", model_input_names=inputs
    )


# Big models


def test_accelerate_max_memory() -> None:
    """get_max_memory(): the device is number 0; adapter"""
    package("accelerate")
    from accelerate.utils import get_max_memory

    found = get_max_memory()
    assert next(iter(found)) == 0
    assert found[0] > 0
    assert get_max_memory({0: "1GB", "cpu": "2GB"}) == {0: 10**9, "cpu": 2 * 10**9}


def test_accelerate_big_models(tmp_path: Path) -> None:
    """load_checkpoint_and_dispatch(), dispatch_model() over device and CPU, cpu_offload(); adapter: get_max_memory"""
    package("accelerate"), package("transformers")
    from accelerate import cpu_offload, dispatch_model, init_empty_weights, load_checkpoint_and_dispatch
    from transformers import AutoConfig, AutoModelForCausalLM

    model = gpt2()
    expected = model(TOKENS).logits
    model.save_pretrained(tmp_path)
    with init_empty_weights():
        empty = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(tmp_path))
    empty.tie_weights()
    loaded = load_checkpoint_and_dispatch(empty, str(tmp_path / "model.safetensors"), device_map="auto").eval()
    assert {value.device.type for value in loaded.parameters()} == {"webgpu"}
    parts = {"transformer.wte": 0, "transformer.wpe": 0, "transformer.drop": 0, "transformer.h.0": "cpu"}
    split = dispatch_model(gpt2(), {**parts, "transformer.ln_f": 0, "lm_head": 0})
    assert split.transformer.wpe.weight.device.type == "webgpu"
    offloaded = cpu_offload(gpt2(), execution_device=torch.device("webgpu"))
    for placed, tokens in ((loaded, TOKENS.to("webgpu")), (split, TOKENS), (offloaded, TOKENS)):
        torch.testing.assert_close(placed(tokens).logits.cpu(), expected, rtol=1e-4, atol=1e-5)


def test_transformers_device_map_auto(tmp_path: Path) -> None:
    """from_pretrained(..., device_map="auto"); adapter: accelerate's get_max_memory"""
    package("transformers"), package("accelerate")
    from transformers import AutoModelForCausalLM, pipeline

    gpt2().save_pretrained(tmp_path / "gpt2")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "gpt2", device_map="auto")
    assert {str(value.device) for value in loaded.parameters()} == {"webgpu:0"}
    assert loaded.generate(TOKENS.to(loaded.device), max_new_tokens=2, do_sample=False).device.type == "webgpu"
    bert().save_pretrained(tmp_path / "bert")
    tokenizer().save_pretrained(tmp_path / "bert")
    run = pipeline("text-classification", model=str(tmp_path / "bert"), device_map="auto")
    assert run.device == run.model.device == torch.device("webgpu", 0)
    assert run("good")[0]["score"] > 0


@pytest.mark.parametrize("device", [None, 0, -1, "cpu"])
def test_transformers_pipeline_default(device: Any) -> None:
    """pipeline() without a device and with device=0; adapter: the ordinal's device"""
    package("transformers")
    from transformers import pipeline

    run = pipeline("text-classification", model=bert().eval(), tokenizer=tokenizer(), device=device)
    assert run.device.type == run.model.device.type == ("cpu" if device in (-1, "cpu") else "webgpu")
    assert run("good bad")[0]["score"] > 0


# Experts


@pytest.mark.parametrize("name", ["Mixtral", "Qwen3Moe"])
def test_experts(name: str) -> None:
    """Mixtral, Qwen3-MoE: forward, backward and generate(); no adapter"""
    transformers = package("transformers")
    sizes = {
        "vocab_size": 32,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "num_experts_per_tok": 2,
        "max_position_embeddings": 32,
    }
    own = {"num_local_experts": 4}
    if name == "Qwen3Moe":
        own = {"num_experts": 4, "moe_intermediate_size": 16, "head_dim": 8}
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**sizes, **own)
    here = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    expected = here(TOKENS, labels=TOKENS)
    expected.loss.backward()
    gradients = {key: value.grad.clone() for key, value in here.named_parameters() if value.grad is not None}
    here.zero_grad()
    there, tokens = here.to("webgpu"), TOKENS.to("webgpu")
    with on_device(waits=None):
        actual = there(tokens, labels=tokens)
        actual.loss.backward()
    torch.testing.assert_close(actual.logits.cpu(), expected.logits, rtol=1e-4, atol=1e-4)
    assert {key for key, value in there.named_parameters() if value.grad is not None} == set(gradients)
    for key, value in there.named_parameters():
        torch.testing.assert_close(value.grad.cpu(), gradients[key], rtol=1e-3, atol=1e-4, msg=key)
    assert there.generate(tokens, max_new_tokens=2, do_sample=False).shape == (1, 7)


# Sentences and images


def test_sentence_transformers(tmp_path: Path) -> None:
    """SentenceTransformer() without a device, encode(); adapter: the default device"""
    package("sentence_transformers")
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertModel

    torch.manual_seed(0)
    BertModel(bert().config).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    results = []
    for device in (None, "cpu"):
        words = models.Transformer(str(tmp_path))
        model = SentenceTransformer(modules=[words, models.Pooling(16)], device=device)
        assert model.device.type == (device or "webgpu")
        results.append(torch.as_tensor(model.encode(["good bad", "bad"])))
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-5)


def noise_to_image(place: Any) -> Tensor:
    from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel

    torch.manual_seed(0)
    unet = UNet2DModel(
        sample_size=8,
        layers_per_block=1,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    pipeline = DDPMPipeline(unet, DDPMScheduler(num_train_timesteps=10))
    pipeline.set_progress_bar_config(disable=True)
    place(pipeline)
    images = pipeline(num_inference_steps=2, generator=torch.Generator().manual_seed(0), output_type="np").images
    return torch.as_tensor(images)


def test_diffusers() -> None:
    """DDPMPipeline.to("webgpu") and enable_model_cpu_offload(): no adapter"""
    package("diffusers"), package("accelerate")
    expected = noise_to_image(lambda pipeline: pipeline.to("cpu"))
    for place in (lambda pipeline: pipeline.to("webgpu"), lambda pipeline: pipeline.enable_model_cpu_offload()):
        torch.testing.assert_close(noise_to_image(place), expected, rtol=1e-3, atol=1e-3)


class _StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """A torchvision without anything in it: timm imports it for transforms of images, which its models do not use."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] != "torchvision":
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        module = ModuleType(spec.name)
        module.__version__ = "0.0"  # type: ignore[attr-defined]
        module.__getattr__ = lambda name: _missing(name)  # type: ignore[method-assign, assignment]
        return module

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Nothing(type):
    def __getattr__(cls, name: str) -> str:
        return name


def _missing(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Nothing(name, (), {})


@pytest.fixture
def _without_torchvision() -> Iterator[None]:
    finder = _StandIn()
    sys.meta_path.insert(0, finder)
    yield
    sys.meta_path.remove(finder)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("torchvision", "timm")]:
        del sys.modules[name]


@pytest.mark.usefixtures("_without_torchvision")
@pytest.mark.parametrize("name", ["resnet10t", "vit_tiny_patch16_224", "convnext_atto"])
def test_timm(name: str) -> None:
    """create_model(...).to("webgpu"), with a stand-in for torchvision, which has no build for this torch: no adapter"""
    timm = package("timm")
    options = {"img_size": 32, "depth": 2} if name.startswith("vit") else {}
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=3, **options).eval()
    images = torch.rand(1, 3, 32, 32)
    expected = model(images)
    with on_device(waits=None):
        actual = model.to("webgpu")(images.to("webgpu"))
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-3, atol=1e-4)
