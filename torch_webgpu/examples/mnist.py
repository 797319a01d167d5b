"""Classifies the 10,000 MNIST test digits on device "webgpu" and shows the CPU's result beside it."""

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

import torch
from rich.columns import Columns
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from torch import Tensor, nn

WEIGHTS = Path(__file__).with_name("mnist_mlp.pt")


class Run(NamedTuple):
    predictions: Tensor
    seconds: float


def mlp() -> nn.Sequential:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )


def read_idx(path: Path) -> Tensor:
    """An IDX file of bytes: two zeros, the type (8: uint8), the rank, big-endian sizes, the data."""
    raw = bytearray(path.read_bytes())
    if len(raw) < 4 or raw[:3] != b"\0\0\x08":
        raise ValueError(f"{path} is not an IDX file of bytes")
    header = 4 + 4 * raw[3]
    sizes = [int.from_bytes(raw[i : i + 4], "big") for i in range(4, header, 4)]
    data = torch.frombuffer(raw, dtype=torch.uint8, offset=header)
    if data.numel() != torch.Size(sizes).numel():
        raise ValueError(f"{path} is cut short")
    return data.view(sizes)


def read_digits(folder: Path, part: str) -> tuple[Tensor, Tensor]:
    """Images (uint8) and labels of "train" or "t10k"."""
    return read_idx(folder / f"{part}-images-idx3-ubyte"), read_idx(folder / f"{part}-labels-idx1-ubyte")


@torch.inference_mode()
def classify(images: Tensor, device: str, batch: int, progress: Progress) -> Run:
    bar = progress.add_task(device, total=len(images))
    model = mlp()
    model.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    model.to(device).eval()
    start = time.perf_counter()
    predictions = []
    for chunk in images.split(batch):
        logits = model(chunk.to(device).float() / 255)
        predictions.append(logits.argmax(dim=1).cpu())
        progress.advance(bar, len(chunk))
    return Run(torch.cat(predictions), time.perf_counter() - start)


def draw(image: Tensor, prediction: int, label: int) -> Text:
    """The 20x20 centre of a digit, two pixels per character."""
    ink = (image[4:24, 4:24] > 96).tolist()
    blocks = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}
    lines = ["".join(blocks[pair] for pair in zip(ink[y], ink[y + 1], strict=True)) for y in range(0, 20, 2)]
    right = prediction == label
    caption = f"says {prediction}, is {label} {'✓' if right else '✗'}".center(20)
    return Text("\n".join(lines)).append(f"\n{caption}\n", style="green" if right else "bold red")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="webgpu", choices=["webgpu", "cpu"])
    parser.add_argument("--data", type=Path, default=Path("data/mnist"), help="the folder of the IDX files")
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--digits", type=int, default=6, help="how many digits to draw")
    options = parser.parse_args()
    if options.batch < 1:
        parser.error("--batch must be at least 1")

    try:
        images, labels = read_digits(options.data, "t10k")
    except (OSError, ValueError) as error:
        sys.exit(f"mnist: no usable digits ({error}); `make setup` fetches them, --data names another folder")

    try:
        torch.empty(1, device=options.device)
    except RuntimeError as error:
        sys.exit(f"mnist: cannot use device {options.device}: {str(error).strip()}")

    console = Console(highlight=False)
    columns = (TextColumn("{task.description:>8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        devices = dict.fromkeys([options.device, "cpu"])
        runs = {device: classify(images, device, options.batch, progress) for device in devices}

    predictions = runs[options.device].predictions
    wrong = (predictions != labels).nonzero().flatten().tolist()
    shown = [*range(max(0, options.digits - 2)), *wrong[:2]][: max(0, options.digits)]
    console.print(Columns([draw(images[i], int(predictions[i]), int(labels[i])) for i in shown], padding=(0, 2)))

    table = Table("device", "adapter", "accuracy", "time", "digits/s", "CPU fallbacks")
    for device, run in runs.items():
        adapter, fallbacks = "", ""
        if device != "cpu":
            module = torch.get_device_module(device)
            adapter = module.get_device_name()
            fallbacks = str(sum(module.cpu_fallbacks().values()))
        accuracy = (run.predictions == labels).double().mean().item()
        rate = f"{len(labels) / run.seconds:,.0f}"
        table.add_row(device, adapter, f"{accuracy:.2%}", f"{run.seconds:.2f} s", rate, fallbacks)
    console.print(table)
    if len(runs) > 1:
        same = int((predictions == runs["cpu"].predictions).sum())
        console.print(f"{options.device} and cpu agree on {same:,} of {len(labels):,} digits")


if __name__ == "__main__":
    main()
