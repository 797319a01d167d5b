// Precompiled: nearly every file of families/, ops/ and device/ includes these headers.
#pragma once
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>
