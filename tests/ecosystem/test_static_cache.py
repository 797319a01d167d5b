"""transformers: generation with a cache of fixed length, one compiled graph for all steps."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

os.environ.setdefault("HF_HUB_OFFLINE", "1")

pytestmark = pytest.mark.filterwarnings("ignore")

LENGTH, NEW = 8, 12


def models() -> dict[str, Any]:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: make ecosystem")
    llama = transformers.LlamaConfig(
        vocab_size=97, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=None,
    )  # fmt: skip
    gpt2 = transformers.GPT2Config(
        vocab_size=97, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=None, pad_token_id=0
    )
    return {"Llama": (transformers.LlamaForCausalLM, llama), "GPT-2": (transformers.GPT2LMHeadModel, gpt2)}


@pytest.mark.parametrize("name", ["Llama", "GPT-2"])
def test_static_cache(name: str) -> None:
    """generate(cache_implementation="static") with a compiled model: tokens of the CPU, one graph for all steps"""
    make, config = models()[name]
    torch.manual_seed(0)
    model = make(config).eval()
    tokens = torch.randint(3, 97, (2, LENGTH))
    given = {"max_new_tokens": NEW, "do_sample": False, "attention_mask": torch.ones_like(tokens)}
    with torch.no_grad():
        expected = model.generate(tokens, **given)
        moved = copy.deepcopy(model).to("webgpu")
        given["attention_mask"] = given["attention_mask"].to("webgpu")
        on_device = tokens.to("webgpu")
        eager = moved.generate(on_device, cache_implementation="static", disable_compile=True, **given)
        torch._dynamo.reset()
        before = counters["stats"]["unique_graphs"]
        moved.forward = torch.compile(moved.forward, backend="webgpu", fullgraph=True)
        for _ in range(2):
            actual = moved.generate(on_device, cache_implementation="static", disable_compile=True, **given)
            assert torch.equal(actual.cpu(), expected)
    assert torch.equal(eager.cpu(), expected)
    assert counters["stats"]["unique_graphs"] - before <= 2, "one for the prompt, one for all steps"


@pytest.mark.parametrize("name", ["Llama", "GPT-2"])
def test_static_cache_steps(name: str) -> None:
    """A decoding loop over one StaticCache: one graph, in which the place of the token is a tensor"""
    make, config = models()[name]
    from transformers import StaticCache

    torch.manual_seed(0)
    model = make(config).eval()
    tokens = torch.randint(3, 97, (1, NEW))
    with torch.no_grad():
        expected = model(tokens).logits
        model.to("webgpu")
        cache = StaticCache(config=config, max_cache_len=32)
        torch._dynamo.reset()
        before = counters["stats"]["unique_graphs"]
        step = torch.compile(model.forward, backend="webgpu", fullgraph=True)
        found = []
        for i in range(NEW):
            place = torch.tensor([[i]], device="webgpu")
            ids = tokens[:, i : i + 1].to("webgpu")
            found.append(step(ids, past_key_values=cache, position_ids=place, use_cache=True).logits)
    torch.testing.assert_close(torch.cat(found, 1).cpu(), expected, rtol=1e-3, atol=1e-4)
    assert counters["stats"]["unique_graphs"] - before <= 2
