"""torch_webgpu.tune: kernels are timed once, the fastest is remembered, and none whose results are wrong is taken."""

from __future__ import annotations

import functools
import itertools
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.device.process import output_of, run
from torch_webgpu import _C
from torch_webgpu.tune import measure
from torch_webgpu.tune.__main__ import contests, main
from torch_webgpu.tune.store import Choice, Store, folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    usual = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("MESA_SHADER_CACHE_DIR", str(usual))  # the driver's compiled kernels stay where they are
    return tmp_path


@pytest.fixture
def product() -> _C.Contest:
    return contests("matmul 64x64x64", torch.float32)[0]


PRODUCTS = """
    import torch
    from torch_webgpu import _C
    a = torch.arange(64.0 * 64).reshape(64, 64).remainder(7)
    expected = a @ a
    b = a.to("webgpu")
    for _ in range(8):
        product = b @ b
    _C.wait_for_tuning()
    for result in (product, b @ b):
        torch.testing.assert_close(result.cpu(), expected)
    from torch_webgpu.tune import measure
    print(measure.COUNTS["timed"])
"""


def test_a_second_process_times_nothing(cache: Path) -> None:
    first, second = (int(output_of(PRODUCTS, TORCH_WEBGPU_TUNE="now")[-1]) for _ in range(2))
    assert first >= 2
    assert second == 0
    (file,) = cache.rglob("*.json")
    found = json.loads(file.read_text())
    assert found["tried"] is None
    assert all(choice["times_ms"] for choice in found["choices"].values())


def test_lazy_leaves_small_work_alone(cache: Path) -> None:
    assert output_of(PRODUCTS, TORCH_WEBGPU_TUNE="lazy")[-1] == "0"
    assert not list(cache.rglob("*.json"))


@pytest.mark.parametrize("mode", ("off", ""))
def test_off_is_the_default_of_software_and_does_nothing(cache: Path, mode: str) -> None:
    assert output_of(PRODUCTS, TORCH_WEBGPU_TUNE=mode)[-1] == "0"
    assert not (cache / "torch_webgpu").exists()


def test_a_mode_that_there_is_not() -> None:
    done = run("import torch; torch.ones(1, device='webgpu')", TORCH_WEBGPU_TUNE="never")
    assert done.returncode == 0
    assert "TORCH_WEBGPU_TUNE may be off, lazy or now, not 'never'" in done.stderr


# A remembered choice is taken, unless the mode is off: the kernel's text tells.
KERNEL = "import torch; a = torch.ones(64, 64, device='webgpu'); print((a @ a).sum().item())"


def _texts(tmp_path: Path, mode: str) -> str:
    dump = tmp_path / f"texts-{mode}"
    assert output_of(KERNEL, TORCH_WEBGPU_TUNE=mode, TORCH_WEBGPU_DUMP=str(dump)) == [str(64.0**3)]
    return dump.read_text()


def test_a_remembered_choice_is_taken(tmp_path: Path, product: _C.Contest) -> None:
    first, *_, last = product.kernels
    assert first.name != last.name
    usual = _texts(tmp_path, "off")
    Store().add(product.key, Choice(product.text, last.number, {last.name: 1.0}))
    assert _texts(tmp_path / "", "lazy") != usual
    assert _texts(tmp_path, "off").count(usual) >= 1


BROKEN = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "another form": lambda text: "[1, 2]",
    "a choice that is none": lambda text: text.replace('"number": ', '"number": "x", "was": '),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_file_is_ignored(product: _C.Contest, how: str) -> None:
    store = Store()
    measure.hold(product, store)
    assert Store().choices == store.choices
    store.path.write_text(BROKEN[how](store.path.read_text()))
    with pytest.warns(UserWarning, match="is broken and is ignored"):
        broken = Store()
    assert broken.choices == {}
    measure.hold(product, broken)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Store().choices.keys() == {product.key}


def test_a_file_that_cannot_be_written(cache: Path, product: _C.Contest) -> None:
    (cache / "torch_webgpu").write_text("in the way of the folder")
    with pytest.warns(UserWarning, match="cannot be"):
        assert measure.hold(product, Store())


EACH = """
    import os, torch
    from pathlib import Path
    from torch_webgpu.tune.__main__ import contests
    contest = contests("{launch}", torch.float32)[0]
    tensors = contest.scratch()
    torch.webgpu.synchronize()
    for kernel in contest.kernels:
        os.environ["TORCH_WEBGPU_DUMP"] = dump = "{folder}/" + kernel.name
        contest.{how}(kernel.number, tensors)
        torch.webgpu.synchronize()
        print(len(contest.kernels))
"""


@pytest.mark.parametrize("how", ("run", "prepare"))
@pytest.mark.parametrize("launch", ("matmul 64x64x64", "norm 40x256"))
def test_each_kernel_is_another_one(tmp_path: Path, launch: str, how: str) -> None:
    """Its text is printed when it is run, or prepared. The table's choice was printed before."""
    count = int(output_of(EACH.format(launch=launch, how=how, folder=tmp_path))[-1])
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    assert count >= 2
    assert len({path.read_text() for path in files}) == len(files) == count - 1


def test_wrong_results_are_never_tried_again(product: _C.Contest, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = next(kernel for kernel in product.kernels if kernel.number != product.reference)
    right = measure._results

    def results(contest: _C.Contest, number: int, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        found = right(contest, number, tensors)
        if number == wrong.number:
            found[0][3, 5] += 1
        return found

    monkeypatch.setattr(measure, "_results", results)
    choice = measure.hold(product, Store())
    assert choice is not None
    assert wrong.name not in choice.times_ms
    assert "differ" in Store().failed[f"matmul: {wrong.name}"]
    monkeypatch.setattr(measure, "_results", right)
    again = measure.hold(product, Store())
    assert again is not None
    assert wrong.name not in again.times_ms


def test_what_a_kernel_does_not_write_is_wrong(product: _C.Contest) -> None:
    tensors = product.scratch()
    results = measure._results(product, product.reference, tensors)
    assert measure._are_same(results, [result.clone() for result in results])
    results[0][0, 0] = torch.nan
    assert not measure._are_same(results, measure._results(product, product.reference, tensors))


LOSES_THE_DEVICE = """
    import torch
    from torch_webgpu import _C
    from torch_webgpu.tune import measure
    from torch_webgpu.tune.__main__ import contests
    from torch_webgpu.tune.store import Store

    def lose(*_):
        _C.lose_device() if {lost} else __import__("os")._exit(9)
        torch.ones(1, device="webgpu")

    product = contests("matmul 64x64x64", torch.float32)[0]
    store = Store()
    with store.lock():
        measure.fastest_ms = lose
        measure.hold(product, store)
"""


@pytest.mark.parametrize("lost", (True, False), ids=("the device", "the process"))
def test_what_loses_is_never_tried_again(product: _C.Contest, lost: bool) -> None:
    done = run(LOSES_THE_DEVICE.format(lost=lost))
    assert done.returncode != 9 or not lost
    assert set(Store().failed) >= {f"matmul: {product.kernels[0].name}"}


def test_one_process_tunes_at_a_time() -> None:
    store = Store()
    with store.lock() as is_mine:
        assert is_mine
        done = run("import sys; from torch_webgpu.tune.__main__ import main; sys.exit(main(['norm', '64x64']))")
    assert done.returncode == 1
    assert "another process tunes" in done.stderr


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    arguments = ["matmul", "64x32x64", "norm", "32x128", "--dtype", "float16"]
    assert main([*arguments, "--report", str(report)]) == 0
    shown = capsys.readouterr().out
    assert "matmul Half[64, 64]" in shown
    assert "norm Half[32, 128]" in shown
    found = json.loads(report.read_text())
    assert found["identity"]["name"] == torch.webgpu.get_device_name()
    timed = measure.COUNTS["timed"]
    assert main(arguments) == 0
    assert "(known)" in capsys.readouterr().out
    assert measure.COUNTS["timed"] == timed
    assert main(["--clear"]) == 0
    assert not list(folder().glob("*.json"))


@pytest.mark.parametrize("dtype", (torch.float32, torch.float16))
def test_every_kernel_of_rows_is_right(dtype: torch.dtype) -> None:
    """All that a contest offers gives the reference's results, forward and backward."""
    offered = 0
    for family, sizes in itertools.product(("norm", "softmax"), ("5x64", "40x256", "9x1000", "3x2048")):
        for contest in contests(f"{family} {sizes}", dtype):
            tensors = contest.scratch()
            expected = measure._results(contest, contest.reference, tensors)
            for kernel in contest.kernels:
                assert measure._are_same(measure._results(contest, kernel.number, tensors), expected), kernel.name
                offered += 1
    assert offered >= 48


def test_deterministic_algorithms_keep_their_kernels(cache: Path) -> None:
    script = PRODUCTS.replace("import torch\n", "import torch; torch.use_deterministic_algorithms(True)\n", 1)
    assert output_of(script, TORCH_WEBGPU_TUNE="now")[-1] == "0"


SIZES = [f"matmul {n}x{n}x{n}" for n in (64, 128, 256, 512, 1024)] + ["norm 512x768", "norm 4096x768", "norm 8192x64"]


def _all() -> Iterator[_C.Contest]:
    for launch in SIZES:
        yield from contests(launch, torch.float32)


def _search(contest: _C.Contest) -> dict[int, float]:
    """Each kernel's time, by twenty times as many timings as hold() makes, in turns."""
    tensors = contest.scratch()
    best = dict.fromkeys((kernel.number for kernel in contest.kernels), float("inf"))
    for _ in range(20):
        for number in best:
            best[number] = min(best[number], measure.fastest_ms(functools.partial(contest.run, number, tensors)))
    return best


@pytest.mark.skipif("TORCH_WEBGPU_EXHAUSTIVE" not in os.environ, reason="takes minutes, and a machine of its own")
def test_the_winner_is_within_five_percent_of_the_best() -> None:
    slower = {}
    for contest in _all():
        choice = measure.hold(contest, Store())
        assert choice is not None
        best = _search(contest)
        ratio = best[choice.number] / min(best.values())
        times = {kernel.name: round(best[kernel.number], 4) for kernel in contest.kernels}
        print(f"{contest.text}: {ratio:.3f} {times}", flush=True)
        if ratio > 1.05:
            slower[contest.text] = ratio
    assert not slower
