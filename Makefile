# The short way to everything: this file only forwards to CMake and to tools/.
# SPDX-License-Identifier: MIT
PREFIX ?= /usr/local
SOURCES = find src include tests bench examples -name '*.[ch]' 2>/dev/null

.PHONY: all run test soak chaos bench check install format ports models clean help

all:
	@tools/deps build
	@cmake --preset release --log-level=WARNING >/dev/null
	@cmake --build --preset release

run: all
	@examples/watch

test:
	@tools/deps test
	@tools/test

# SECONDS or COUNT from the environment or the command line.
soak chaos:
	@tools/deps test
	@tools/$@ $(or $(SECONDS),600) $(COUNT)

bench: all
	@bench/peers/build
	@cmake --build --preset release --target weir-bench-locks
	@build/release/weir-bench $(if $(ONLY),--only $(ONLY)) --json build/bench.jsonl

check:
	@tools/deps check
	@tools/check

# DESTDIR reaches CMake through the environment.
install: export DESTDIR := $(DESTDIR)
install: all
	@cmake --install build/release --prefix $(PREFIX)
	@if [ -z "$$DESTDIR" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

format:
	@tools/deps check
	@$(SOURCES) | xargs -r clang-format -i

ports:
	@tools/deps test
	@tools/ports

models:
	@tools/deps test
	@tools/models

clean:
	@rm -rf build

help:
	@echo 'make             build the libraries, examples and benchmark (build/release)'
	@echo 'make run         watch weir map at work for twenty seconds'
	@echo 'make test        every suite, also under sanitizers, valgrind, qemu and spin'
	@echo 'make soak        random search with other seeds: SECONDS=600, or COUNT=rounds'
	@echo 'make chaos       kills and stops of real processes: SECONDS=600, or COUNT=rounds'
	@echo 'make bench       measure, next to the other systems that are installed (tools/deps bench gets them);'
	@echo '                 ONLY=name for one workload'
	@echo 'make check       format, static analysis, include arrows, headers, exports'
	@echo 'make install     PREFIX=$(PREFIX) DESTDIR='
	@echo 'make format      rewrite sources as .clang-format says'
	@echo 'make ports       smoke test on 64-bit ARM (qemu), on the portable switch, with clang, with musl; fuzzing with clang'
	@echo 'make models      check the models in tests/models with spin'
	@echo 'make clean       remove build/'
