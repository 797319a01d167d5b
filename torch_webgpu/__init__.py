"""A WebGPU device for PyTorch: ``device="webgpu"`` on any GPU, and on a software adapter where there is none."""

import importlib.util
from pathlib import Path
from typing import Any


def _autoload() -> None:
    """Entry point of the group ``torch.backends``: importing torch imports this package, and that is enough.

    Defined before torch is imported: when this package comes first, torch calls it while the module is half loaded.
    """


import torch  # noqa: E402

from torch_webgpu import _C  # noqa: E402

__version__ = "0.1.0"


def _library_paths() -> tuple[list[str], list[str]]:
    """Where Dawn and wgpu-native may be; nothing is opened."""
    dawn = sorted(str(path) for path in (Path(__file__).parent / "lib").glob("libwebgpu_dawn.*"))
    spec = importlib.util.find_spec("wgpu")
    folders = [Path(place) / "resources" for place in (spec.submodule_search_locations or [])] if spec else []
    wgpu = sorted(str(path) for folder in folders for path in folder.glob("*wgpu_native-release.*"))
    return dawn, wgpu


def _register() -> None:
    """Makes ``webgpu`` a device of this process; opens no GPU library."""
    if hasattr(torch, "webgpu"):
        return
    from torch_webgpu import (
        coexistence,
        device,
        gradients,
        inductor,
        integrations,
        interchange,
        printing,
        recurrent,
        typed,
    )

    _C.set_library_paths(*_library_paths())
    _C.on_open(_opened)
    torch.utils.rename_privateuse1_backend("webgpu")
    torch._register_device_module("webgpu", device)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    printing.install()
    inductor.install()
    coexistence.install()
    interchange.install()
    recurrent.install()
    gradients.install()
    typed.install()
    integrations.install()
    if torch.distributed.is_available():
        torch.distributed.Backend.register_backend("webgpu", _process_group, extended_api=True, devices=["webgpu"])


def _opened() -> None:
    """Imported when the device is opened."""
    from torch_webgpu import tune

    tune.opened()


def _process_group(*options: Any) -> Any:
    """Imported when the first group is made."""
    from torch_webgpu import distributed

    return distributed.create(*options)


_register()
