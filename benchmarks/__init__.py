"""``python -m benchmarks``: what an op costs the host, and how long the device takes beside PyTorch on the CPU."""
