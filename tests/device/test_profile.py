"""Profiling: torch.webgpu.profile, and torch.profiler with the device's activity."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, record_function

from tests.device.process import RUNTIMES, output_of
from tests.support import on_device


@pytest.fixture
def work() -> Any:
    x = torch.rand(512, 512, device="webgpu")
    y = (x @ x).relu().sum()
    y.item()

    def run() -> torch.Tensor:
        return (x @ x).relu().sum()

    return run


def test_rows_by_kernel(work: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with on_device(waits=1) as results, torch.webgpu.profile() as p:  # for the timestamps
        results += [work(), work()]
    rows = {row.op: row for row in p.kernels}
    assert {"aten::mm", "aten::relu"} <= set(rows)
    assert all(row.calls % 2 == 0 and row.total_us > 0 and row.host_us > 0 for row in rows.values())
    assert sum(row.share for row in rows.values()) == pytest.approx(1)
    assert rows["aten::mm"].mean_us == rows["aten::mm"].total_us / rows["aten::mm"].calls
    assert p.kernels[0].op == "aten::mm"
    table = capsys.readouterr().out
    assert table == p.table() + "\n"
    assert table.startswith("kernel") and " mm " in table and "GB/s" in table
    assert f"{len(p.dispatches)} dispatches" in table
    assert len(p.dispatches) == sum(row.calls for row in p.kernels)


def test_device_times_agree_with_events(work: Any) -> None:
    begin, end = (torch.Event(device="webgpu", enable_timing=True) for _ in range(2))
    torch.webgpu.synchronize()
    with torch.webgpu.profile(show=False) as p:
        begin.record()
        for _ in range(5):
            work()
        end.record()
    assert p.has_device_times
    inside = sum(one.device_us or 0 for one in p.dispatches) / 1000
    assert 0 < inside <= begin.elapsed_time(end) * 1.02 + 0.1


def test_without_dispatches_and_after_an_error() -> None:
    with torch.webgpu.profile(show=False) as p:
        pass
    assert p.kernels == [] and "0 dispatches" in p.table()
    with pytest.raises(ZeroDivisionError), torch.webgpu.profile() as p:
        torch.zeros(4, device="webgpu")
        _ = 1 // 0
    assert len(p.dispatches) == 1
    second = torch.webgpu.profile()
    with torch.webgpu.profile(show=False), pytest.raises(RuntimeError, match="running already"):
        second.__enter__()
    with torch.webgpu.profile(show=False) as p:
        torch.zeros(4, device="webgpu")
    assert len(p.dispatches) == 1


def test_an_error_of_the_work_leaves_the_times() -> None:
    x, index = torch.rand(8, 4, device="webgpu"), torch.tensor([99]).to("webgpu")
    with pytest.raises(IndexError, match="index 99 is out of bounds"), torch.webgpu.profile() as p:
        x[index]
    assert len(p.kernels) == 1 and "index" in p.kernels[0].kernel
    assert all(one.device_us is not None for one in p.dispatches)
    torch.webgpu.synchronize()


def test_bytes_and_rates_of_ones_own_kernels() -> None:
    lib = torch.webgpu.compile_shader("""
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(64) fn halve(@builtin(global_invocation_id) id: vec3u) { x[id.x] *= 0.5; }
    """)
    x = torch.ones(4096, device="webgpu")
    with torch.webgpu.profile(show=False) as p:
        lib.halve(x)
        lib.halve(x)
    (row,) = p.kernels
    assert (row.kernel, row.op, row.calls, row.bytes) == ("halve", "", 2, 2 * 4 * 4096)
    assert row.gb_per_s == pytest.approx(row.bytes / row.total_us / 1000)
    assert p.dispatches[0].grid == (64, 1, 1)


def test_bytes_and_rates_of_ops() -> None:
    x, row = torch.ones(512, 256, device="webgpu"), torch.ones(256, device="webgpu")
    index = torch.arange(0, 512, 2, device="webgpu")
    size = 4 * 512 * 256
    expected = {
        "aten::add.Tensor": 2 * size + 4 * 256,  # the row is read once
        "": 2 * size,  # the copy, which has no name of its own
        "aten::mm": 3 * 4 * 256 * 256,
        "aten::_softmax": 2 * size,
        "aten::native_layer_norm": 2 * size + 2 * 4 * 512,
        "aten::cat": 4 * size,
        "aten::index_select": size + 8 * 256,
        "aten::sum.dim_IntList": size + 4 * 512,
    }
    with torch.webgpu.profile(show=False) as p:
        x + row
        x.t().contiguous()
        x[:256] @ x[:256]
        x.softmax(1)
        torch.nn.functional.layer_norm(x, (256,))
        torch.cat((x, x))
        x.index_select(0, index)
        x.sum(1)
    found = {row.op: row for row in p.kernels}
    assert {op: row.bytes for op, row in found.items()} == expected
    assert all(row.gb_per_s == pytest.approx(expected[op] / row.total_us / 1000) for op, row in found.items())


def test_without_timestamps_there_are_the_hosts_times(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Running:
        has_device_times = False
        rows = [("add(f32)", "aten::add.Tensor", (1, 1, 1), 96, 7, 1000, 2500, 0, -1)] * 2

        def start(self) -> None: ...
        def stop(self) -> None: ...

    monkeypatch.setattr("torch_webgpu.profile._C.Profile", Running)
    with torch.webgpu.profile() as p:
        pass
    (row,) = p.kernels
    assert (row.calls, row.total_us, row.bytes, row.gb_per_s) == (2, 5.0, 192, None)
    assert all(one.device_us is None and one.device_begin_us is None for one in p.dispatches)
    said = capsys.readouterr().out
    assert "host us" in said and "the adapter has no timestamps" in said


def test_chrome_trace(work: Any, tmp_path: Path) -> None:
    with torch.webgpu.profile(show=False) as p:
        work()
        torch.webgpu.synchronize()
        work()
    p.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    host, device = ([event for event in spans if event["pid"] == pid] for pid in (0, 1))
    assert len(host) == len(device) == len(p.dispatches)
    assert {event["name"] for event in device} == {row.kernel for row in p.kernels}
    for on_host, there in zip(host, device, strict=True):
        assert there["ts"] >= on_host["ts"]
    for event, after in itertools.pairwise(device):
        assert after["ts"] >= event["ts"] + event["dur"] - 0.01
    assert {event["ph"] for event in events} == {"M", "X", "s", "f"}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_on_each_runtime(runtime: str) -> None:
    script = """
        import torch
        x = torch.rand(300, 300, device="webgpu")
        with torch.webgpu.profile(show=False) as p:
            for _ in range(400):
                x = x + 1
            y = x @ x
        rows = {row.op: row for row in p.kernels}
        print(p.has_device_times, rows["aten::add.Tensor"].calls, rows["aten::mm"].calls)
        print(all(one.device_us is not None and one.device_us >= 0 for one in p.dispatches))
        print(rows["aten::mm"].total_us > rows["aten::add.Tensor"].mean_us)
    """
    assert output_of(script, TORCH_WEBGPU_RUNTIME=runtime) == ["True 400 1", "True", "True"]


def test_torch_profiler_has_device_times(work: Any, tmp_path: Path) -> None:
    assert ProfilerActivity.PrivateUse1 in torch.profiler.supported_activities()
    activities = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    with torch.profiler.profile(activities=activities, profile_memory=True) as p:
        with record_function("twice"):
            work()
            work()
        torch.webgpu.synchronize()
    averages = {event.key: event for event in p.key_averages()}
    mm, relu = averages["aten::mm"], averages["aten::relu"]
    assert mm.count == relu.count == 2
    assert mm.device_time_total > 0 and relu.device_time_total > 0
    assert averages["aten::matmul"].device_time_total == mm.device_time_total
    assert averages["aten::matmul"].self_device_time_total == 0
    total = sum(averages[name].self_device_time_total for name in ("aten::mm", "aten::relu", "aten::sum"))
    assert averages["twice"].device_time_total == pytest.approx(total, rel=1e-3)
    kernels = [event for event in p.events() if event.device_type == torch.autograd.DeviceType.PrivateUse1]
    assert sum(event.time_range.elapsed_us() for event in kernels) >= total * 0.999
    assert mm.device_memory_usage >= 2 * 4 * 512 * 512
    assert "twice" in p.key_averages().table(sort_by="device_time_total")
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len([event for event in events if event.get("cat") == "kernel"]) == len(kernels)


def test_torch_profiler_with_gradients() -> None:
    model = torch.nn.Linear(256, 256).to("webgpu")
    x = torch.rand(256, 256, device="webgpu")
    model(x).sum().backward()
    with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as p:
        model(x).sum().backward()
    averages = {event.key: event for event in p.key_averages()}
    assert averages["autograd::engine::evaluate_function: AddmmBackward0"].device_time_total > 0


def test_torch_profiler_of_the_cpu_alone_leaves_the_stream_as_it_is(work: Any) -> None:
    with torch.profiler.profile(activities=[ProfilerActivity.CPU]), torch.webgpu.profile(show=False) as p:
        work()
    assert len(p.dispatches) > 0
