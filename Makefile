# Every target sets up what it needs; what is already done is skipped.
PYTHON := .venv/bin/python
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: help setup build demo test ecosystem sanitize lint bench peers gpu-judge op-table wheel clean
.DEFAULT_GOAL := help

help:  ## this list
	@sed -n -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' Makefile | expand -t 14

setup:  ## the virtual environment, a Vulkan driver, the WebGPU runtimes, MNIST and the build
	@tools/setup

build:  ## only compile
	@tools/setup build

demo: setup  ## train a CNN on MNIST on device "webgpu", and draw what it learned
	@$(PYTHON) -m torch_webgpu.examples.mnist_cnn $(ARGS)

test:  ## every test, C++ and Python (ARGS= goes to pytest)
	@tools/setup tests
	@$(PYTHON) -m pytest $(ARGS)

ecosystem: setup  ## what works with transformers, accelerate, lightning, ...: installs them, prints a table
	@$(PYTHON) -m pip install -qq --no-deps -r requirements-ecosystem.txt
	@! $(PYTHON) -m pip check | grep -v -e 'timm.* requires torchvision' -e 'No broken'
	@$(PYTHON) -m pytest -n 0 tests/ecosystem $(ARGS)

sanitize: setup  ## the C++ tests with ASan and UBSan, then with TSan (ARGS=thread for one of them)
	@tools/setup tests
	@tools/sanitize $(ARGS)

lint:  ## clang-format, clang-tidy on changed files (or FILES=), ruff, mypy
	@tools/setup tests
	@tools/lint $(FILES)

op-table: setup  ## docs/ops.md, from what the device does with each op and dtype
	@$(PYTHON) -m tools.op_table $(ARGS)

bench: setup  ## the benchmark table
	@$(PYTHON) -m benchmarks $(ARGS)

peers: setup  ## the same work beside ONNX Runtime WebGPU and tinygrad: a table, a chart and JSON in benchmarks/results
	@[ -x .venv-peers/bin/python ] || python3 -m venv .venv-peers
	@.venv-peers/bin/python -m pip install -qq --disable-pip-version-check --no-deps -r requirements-peers.txt
	@.venv-peers/bin/python -m pip check
	@$(PYTHON) -m benchmarks.peers $(ARGS)

gpu-judge:  ## what the compiler of AMD GPUs makes of the kernels (ARGS= names workloads); needs no GPU
	@tools/setup tests
	@$(PYTHON) -m tools.gpu_judge $(ARGS)

wheel: setup  ## a wheel in dist/, tried in a fresh environment
	@rm -rf dist
	@TORCH_DEVICE_BACKEND_AUTOLOAD=0 $(PYTHON) -m pip wheel -qq --no-build-isolation --no-deps -w dist .
	@tools/check_wheel dist/*.whl

clean:  ## remove what was built (the virtual environment and downloads stay)
	@rm -rf build dist torch_webgpu/_C*.so
