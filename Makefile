# Front of the build: `make run` does the main job on a real checkpoint, `make test` runs every test that needs no GPU.
# Both install what is missing (Debian packages, as root), build, and may be repeated.
BUILD ?= build/dev
JOBS ?= $(shell nproc)
# CUDA code: where this machine has an NVIDIA device, or on request (make CUDA=ON build).
CUDA ?= $(if $(wildcard /dev/nvidiactl),AUTO,OFF)

.PHONY: build run test bench asan cuda bundle fuzz clean setup

setup:
	@scripts/setup.sh

build: setup
	@cmake --preset dev -DGEARSHIFT_CUDA=$(CUDA) >/dev/null
	@cmake --build $(BUILD) --parallel $(JOBS) --target gearshift_command

run: build
	@scripts/main_job.sh $(BUILD)/gearshift

test: setup
	@scripts/setup_python.sh build/venv
	@cmake --preset dev -DGEARSHIFT_CUDA=$(CUDA) >/dev/null
	@cmake --build $(BUILD) --parallel $(JOBS)
	@ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS) $(CTEST_ARGS)

bench: setup
	@cmake --preset bench >/dev/null
	@cmake --build build/bench --parallel $(JOBS) --target bench_peers
	@build/bench/bench/bench_peers $(BENCH_ARGS)

asan: setup
	@cmake --workflow --preset asan

# All CUDA code for the default architectures, the GPU tests and benchmarks; needs nvcc, no GPU.
cuda: setup
	@cmake --preset cuda >/dev/null
	@cmake --build build/cuda --parallel $(JOBS)

# A folder that proves and times the CUDA kernels on another x86-64 Linux machine: build/bundle/gpu-check.
bundle: setup
	@cmake --preset bundle >/dev/null
	@cmake --build build/bundle-objects --parallel $(JOBS) --target gearshift_command test_cuda bench_cuda_kernels bench_cuda_experts gearshift_c gearshift_launch
	@rm -rf build/bundle && mkdir -p build/bundle
	@cp build/bundle-objects/gearshift build/bundle-objects/tests/cuda/test_cuda build/bundle-objects/bench/bench_cuda_kernels build/bundle-objects/bench/bench_cuda_experts build/bundle-objects/libgearshift.so build/bundle-objects/gearshift_launch build/bundle/
	@cp scripts/gpu_check.sh build/bundle/gpu-check
	@strip build/bundle/gearshift build/bundle/test_cuda build/bundle/bench_cuda_kernels build/bundle/bench_cuda_experts build/bundle/libgearshift.so build/bundle/gearshift_launch
	@du -sh build/bundle

clean:
	rm -rf build
