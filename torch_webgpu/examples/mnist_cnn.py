"""Trains a small CNN on the 60,000 MNIST digits on device "webgpu", and loads its weights on the CPU."""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from torch_webgpu.examples.mnist import read_digits


def cnn() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def pixels(images: Tensor, device: str) -> Tensor:
    """Bytes travel to the device, and become numbers there."""
    return images.to(device).unsqueeze(1).float() / 255


def train(model: nn.Module, images: Tensor, labels: Tensor, batch: int, device: str) -> Iterator[Tensor]:
    """One epoch in an order that the seed decides; gives each step's loss, still on the device."""
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.AdamW(model.parameters())
    chunks = order.split(batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=len(chunks))
    model.train()
    for index in chunks:
        loss = nn.functional.cross_entropy(model(pixels(images[index], device)), labels[index].long().to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        yield loss.detach()


@torch.inference_mode()
def classify(model: nn.Module, images: Tensor, device: str, batch: int = 1000) -> Tensor:
    model.eval()
    return torch.cat([model(pixels(chunk, device)).argmax(1).cpu() for chunk in images.split(batch)])


def draw(losses: list[float], images: Tensor, predictions: Tensor, labels: Tensor, file: Path) -> None:
    """The loss of each step, and digits: the first ones right, the first ones wrong."""
    import matplotlib

    matplotlib.use("Agg")  # no display is needed
    from matplotlib import pyplot

    right = predictions == labels
    shown = [*right.nonzero().flatten()[:6].tolist(), *(~right).nonzero().flatten()[:6].tolist()]
    figure = pyplot.figure(figsize=(10, 6), layout="constrained")
    grid = figure.add_gridspec(3, 6)
    curve = figure.add_subplot(grid[0, :])
    curve.plot(losses, linewidth=0.8)
    curve.set(xlabel="step", ylabel="loss", yscale="log", title="training on webgpu")
    for place, index in enumerate(shown):
        axes = figure.add_subplot(grid[1 + place // 6, place % 6])
        axes.imshow(images[index].numpy(), cmap="gray_r")
        axes.set_title(f"says {predictions[index]}, is {labels[index]}", color="green" if right[index] else "red")
        axes.axis("off")
    figure.savefig(file)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="webgpu", choices=["webgpu", "cpu"])
    parser.add_argument("--data", type=Path, default=Path("data/mnist"), help="the folder of the IDX files")
    parser.add_argument(
        "--out", type=Path, default=Path("build/demo"), help="the folder for the weights and the picture"
    )
    parser.add_argument("--batch", type=int, default=120)
    parser.add_argument("--images", type=int, default=60_000, help="how many of the training images to use")
    options = parser.parse_args()
    try:
        images, labels = (part[: options.images] for part in read_digits(options.data, "train"))
        test_images, test_labels = read_digits(options.data, "t10k")
    except (OSError, ValueError) as error:
        sys.exit(f"mnist_cnn: no usable digits ({error}); `make setup` fetches them, --data names another folder")
    try:
        torch.empty(1, device=options.device)
    except RuntimeError as error:
        sys.exit(f"mnist_cnn: cannot use device {options.device}: {str(error).strip()}")
    from tqdm import tqdm  # type: ignore[import-untyped]

    torch.manual_seed(0)
    model = cnn().to(options.device)
    if options.device == "webgpu":
        print(f"training on {torch.get_device_module('webgpu').get_device_name()}")
    losses: list[Tensor] = []
    start = time.perf_counter()
    with tqdm(total=len(images), unit=" images", unit_scale=True, smoothing=0.1) as bar:
        for loss in train(model, images, labels, options.batch, options.device):
            losses.append(loss)
            if len(losses) % 20 == 0:  # reading a number waits for the device
                bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
            bar.update(min(options.batch, len(images) - bar.n))
    curve = torch.stack(losses).cpu()
    seconds = time.perf_counter() - start
    print(
        f"{len(images):,} images in {seconds:.1f} s: {len(images) / seconds:,.0f} images/s, last loss {curve[-1]:.3f}"
    )

    predictions = classify(model, test_images, options.device)
    accuracy = (predictions == test_labels).double().mean().item()
    options.out.mkdir(parents=True, exist_ok=True)
    weights = options.out / "mnist_cnn.pt"
    torch.save(model.state_dict(), weights)
    on_cpu = cnn()
    on_cpu.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    again = classify(on_cpu, test_images, "cpu")
    cpu_accuracy = (again == test_labels).double().mean().item()
    print(f"test accuracy on {options.device}: {accuracy:.2%}; the saved weights on the CPU: {cpu_accuracy:.2%}")
    print(f"the same answer for {int((again == predictions).sum()):,} of {len(again):,} digits")
    if options.device == "webgpu":
        print(f"operations that ran on the CPU: {sum(torch.get_device_module('webgpu').cpu_fallbacks().values())}")
    picture = options.out / "mnist_cnn.png"
    draw(curve.tolist(), test_images, predictions, test_labels, picture)
    print(f"weights in {weights}, loss and digits in {picture}")


if __name__ == "__main__":
    main()
