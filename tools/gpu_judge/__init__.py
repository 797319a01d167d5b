"""Judges kernels without a GPU: the compiler of AMD's GPUs says what it makes of them.

Mesa's driver for AMD GPUs (RADV) compiles for a chip that need not be there. `python -m tools.gpu_judge` runs workloads
on Dawn's Null adapter, which computes nothing, with the kernels that a GPU gets, compiles their texts through Dawn and
RADV, and prints registers, waves, the hot loop's instructions, and by a simple model the share of the card's limit.
Counts are facts; times come from the model and compare kernels, they do not replace a GPU.
"""
