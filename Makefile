# Front of the build: `make run` does the main job on a real checkpoint, `make test` runs every test that needs no GPU.
# Both install what is missing (Debian packages, as root), build, and may be repeated.
BUILD ?= build/dev
JOBS ?= $(shell nproc)

.PHONY: build run test bench asan fuzz clean setup

setup:
	@scripts/setup.sh

build: setup
	@cmake --preset dev >/dev/null
	@cmake --build $(BUILD) --parallel $(JOBS) --target gearshift_command

run: build
	@scripts/main_job.sh $(BUILD)/gearshift

test: setup
	@cmake --preset dev >/dev/null
	@cmake --build $(BUILD) --parallel $(JOBS)
	@ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS) $(CTEST_ARGS)

bench: setup
	@cmake --preset bench >/dev/null
	@cmake --build build/bench --parallel $(JOBS)
	@for program in build/bench/bench/bench_*; do echo "== $$program"; $$program || exit 1; done

asan: setup
	@cmake --workflow --preset asan

clean:
	rm -rf build
