"""Programs that show the device at work: python -m torch_webgpu.examples.<name>."""
