"""What the compiler of AMD GPUs makes of the kernels that a GPU gets by default, by tools/gpu_judge."""

from functools import cache

import pytest

from tools.gpu_judge.__main__ import verdicts
from tools.gpu_judge.assembly import loops_of, wave_of
from tools.gpu_judge.capture import missing
from tools.gpu_judge.model import CARDS, Compiled, Launch, Verdict, Work, ideal_us, judge
from tools.gpu_judge.workloads import TABLE

CHIP = "NAVI31"
pytestmark = pytest.mark.xdist_group("gpu_judge")  # one process compiles them all
needs_compiler = pytest.mark.skipif(missing() is not None, reason=f"cannot judge: {missing()}")


@cache
def judged() -> dict[str, list[Verdict]]:
    return verdicts(list(TABLE), CHIP)


@needs_compiler
@pytest.mark.parametrize("name", TABLE)
def test_no_spills(name: str) -> None:
    for verdict in judged()[name]:
        assert verdict.spills == 0, verdict.launch.label


@needs_compiler
@pytest.mark.parametrize("name", [name for name in TABLE if name.startswith(("matmul", "linear"))])
def test_products_load_quads_and_share_them(name: str) -> None:
    odd, half = "1023" in name, name.endswith("f16")
    for verdict in judged()[name]:
        assert verdict.hot.uncached == 0, verdict.launch.label
        assert verdict.statistics["VGPRs"] <= (192 if "thin 16" in verdict.launch.label else 128), verdict.launch.label
        assert max(verdict.hot.loads) == (4 if odd else 8 if half and "join" not in verdict.launch.label else 16)
        if "slices" in verdict.launch.label:
            assert verdict.waves >= 8
            assert verdict.lds_per_fma <= 0.15


@needs_compiler
@pytest.mark.parametrize("name", [name for name in TABLE if name.startswith("convolution")])
def test_convolutions_are_products(name: str) -> None:
    """Of tiles, beside which there is at most a kernel that packs the weight or adds parts."""
    found = judged()[name]
    tiles = [verdict for verdict in found if "slices" in verdict.launch.label]
    assert len(tiles) == 1, [verdict.launch.label for verdict in found]
    assert all(verdict.us <= 3 for verdict in found if verdict is not tiles[0])
    assert tiles[0].hot.uncached == 0
    assert tiles[0].statistics["VGPRs"] <= 128
    assert tiles[0].statistics["LDS size"] <= 16384
    assert tiles[0].waves >= 8
    assert tiles[0].lds_per_fma <= 0.15


@needs_compiler
@pytest.mark.parametrize("name", ("3x3", "3x3_128", "3x3_strided", "3x3_last", "3x3_f16", "3x3_last_f16"))
def test_gradients_take_about_as_long_as_the_forward(name: str) -> None:
    base, _, rest = name.partition("_")
    forward = sum(verdict.us for verdict in judged()[f"convolution_{name}"])
    for what in ("input", "weight"):
        for gradient in (f"convolution_{name}_{what}", f"convolution_{base}_{what}_{rest}"):
            if gradient in TABLE:
                assert sum(verdict.us for verdict in judged()[gradient]) <= 1.5 * forward, gradient


@needs_compiler
@pytest.mark.parametrize("name", [name for name in TABLE if name.startswith("attention")])
def test_attention_shares_what_it_loads(name: str) -> None:
    for verdict in judged()[name]:
        label = verdict.launch.label
        assert verdict.hot.uncached == 0, label
        assert verdict.statistics["LDS size"] <= 16384, label
        if "staged" in label:
            assert verdict.statistics["VGPRs"] <= 252, label
            assert verdict.waves >= 5, label
            assert verdict.lds_per_fma <= 0.1, label
        else:
            assert verdict.statistics["VGPRs"] <= 128, label
    launches = [verdict.launch.label.partition("(")[0] for verdict in judged()[name]]
    if "backward" in name:
        assert launches == ["attention_backward_query", "attention_backward_key"]
    elif "decode" in name:
        assert launches == ["attention_forward", "attention_combine"]
        loads = judged()[name][0].hot.loads
        assert sum(width * count for width, count in loads.items()) == 2 * 8 * 16  # of a lane, all under way at once
    else:
        assert launches[0] == "attention_forward"


@needs_compiler
@pytest.mark.parametrize(
    "name", [name for name in TABLE if name.startswith(("sort", "topk", "layer_norm", "rms_norm"))]
)
def test_registers_of_rows(name: str) -> None:
    """Workgroup memory lets a unit hold no more waves of `sort_move` than its registers do."""
    for verdict in judged()[name]:
        label = verdict.launch.label
        assert verdict.statistics["VGPRs"] <= (192 if "sort_move" in label else 128), label
        assert verdict.waves >= 16, label


@needs_compiler
@pytest.mark.parametrize("name", [name for name, workload in TABLE.items() if workload.share])
def test_share_of_the_limit(name: str) -> None:
    """All launches of a workload together, against what the card needs at least."""
    found = judged()[name]
    assert all(v.exact for v in found), [v.launch.label for v in found if not v.exact]
    share = ideal_us(TABLE[name].whole, CARDS[CHIP]) / sum(v.us for v in found)
    assert share >= TABLE[name].share, [(v.launch.label, v.us, v.ideal_us, v.limit) for v in found]


TEXT = """
disasm:
BB0:
\ts_mov_b32 s0, 0                 ; 00000000
BB1:
\ts_cmpk_ge_u32 s0, 0x40
\ts_cbranch_scc1 BB4
BB2:
\tbuffer_load_b128 v[4:7], v1, s[4:7], 0 offen glc
\ts_waitcnt vmcnt(0)
\tds_store_b128 v2, v[4:7] offset:64
\tv_dual_fmac_f32 v8, v4, v5 :: v_dual_fmac_f32 v9, v6, v7
\tv_fmac_f32_e32 v10, v4, v5
\ts_add_u32 s0, s0, 4
\ts_branch BB1
BB4:
\tbuffer_store_b32 v8, v3, s[8:11], 0 offen
\ts_endpgm
"""


def test_loops_are_read() -> None:
    kernel, loop = loops_of(TEXT)
    assert (kernel.trips, loop.trips) == (1, 16)
    assert loop.counts.fma == 3
    assert loop.counts.loads == {16: 1}
    assert loop.counts.uncached == 1
    assert loop.counts.lds_bytes == 16
    assert loop.counts.alone >= 500  # the load is waited for at once
    assert kernel.counts.store_bytes == 4
    assert kernel.counts.fma == 0
    assert wave_of(TEXT) == 64


def test_the_model_names_the_limit() -> None:
    launch = Launch("x", "", (9600, 1, 1), 64)
    statistics = {"VGPRs": 8, "Subgroups per SIMD": 16, "LDS size": 0}
    statistics |= {"Spilled SGPRs": 0, "Spilled VGPRs": 0, "Scratch size": 4}
    verdict = judge(launch, Compiled(TEXT, statistics), Work(fma=9600 * 64 * 16 * 3), CARDS[CHIP])
    assert verdict.limit == "L2"  # 16 bytes that bypass the cache for three multiply-adds
    assert verdict.exact
    assert verdict.spills == 4
    assert verdict.waves == 32
    assert 0 < verdict.share < 0.1
    assert judge(launch, Compiled(TEXT, statistics), Work(bytes=1e9), CARDS[CHIP]).limit == "memory"
