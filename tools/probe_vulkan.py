"""Prints a usable Vulkan adapter and its driver, or says in one line why there is none and fails."""

import re
import sys

import wgpu


def main() -> int:
    found = []
    for adapter in wgpu.gpu.enumerate_adapters_sync():
        info = adapter.info
        if info["backend_type"] != "Vulkan":
            continue
        name = f"{info['device']}, {info['description']}"
        mesa = re.search(r"Mesa (\d+)", info["description"])
        # Dawn refuses older software drivers; hardware drivers are fine at any version.
        if info["adapter_type"] != "CPU" or mesa is None or int(mesa[1]) >= 25:
            print(name)
            return 0
        found.append(name)
    print(f"no usable Vulkan adapter, found {'; '.join(found) or 'none'}: Mesa 25 or newer brings one")
    return 1


if __name__ == "__main__":
    sys.exit(main())
