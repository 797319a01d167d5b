"""Trains the demo's weights once, on the CPU: python -m torch_webgpu.examples.train_mnist [folder of the IDX files]."""

import sys
from pathlib import Path

import torch
from rich.progress import track
from torch import Tensor, nn

from torch_webgpu.examples.mnist import WEIGHTS, mlp, read_digits

EPOCHS = 30
BATCH = 256


def shifted(images: Tensor) -> Tensor:
    """Each batch moved by up to two pixels, so that the network does not learn positions by heart."""
    dx, dy = torch.randint(-2, 3, (2,)).tolist()
    return images.roll((dy, dx), (1, 2))


def main() -> None:
    torch.manual_seed(0)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "data/mnist")
    images, labels = read_digits(folder, "train")
    images, labels = images.float() / 255, labels.long()
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    steps = EPOCHS * -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    loss_of = nn.CrossEntropyLoss(label_smoothing=0.05)
    for _ in track(range(EPOCHS), "training"):
        for index in torch.randperm(len(images)).split(BATCH):
            loss = loss_of(model(shifted(images[index])), labels[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()

    # Half precision is enough for the answers and halves the file.
    weights = {name: value.half() for name, value in model.state_dict().items()}
    torch.save(weights, WEIGHTS)
    model.load_state_dict(weights)
    images, labels = read_digits(folder, "t10k")
    with torch.inference_mode():
        accuracy = (model(images.float() / 255).argmax(1) == labels).double().mean().item()
    print(f"{accuracy:.2%} of the test digits; weights in {WEIGHTS}")


if __name__ == "__main__":
    main()
