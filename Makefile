# SPDX-License-Identifier: Apache-2.0
# The words people type; meson does the work. build/ is the ordinary build, the others lie below it.
#
#   make            build build/vitrine
#   make run        install what is missing, build, show what the sandbox does
#   make test       install what is missing, build every variant, run every test
#   make help       all targets

PREFIX ?= /usr/local
DESTDIR ?=
MESON ?= meson

bindir = $(DESTDIR)$(PREFIX)/bin
libexecdir = $(DESTDIR)$(PREFIX)/libexec/vitrine
mandir = $(DESTDIR)$(PREFIX)/share/man/man1
sharedir = $(DESTDIR)$(PREFIX)/share
profile = $(DESTDIR)/etc/apparmor.d/vitrine

# Warnings are errors where the code is judged, not where somebody just wants to use it.
WERROR = $(if $(filter true,$(CI)),true,false)

# One line per variant: its folder, what it adds, and what of it is wanted (nothing said: all).
dir_build = build
opt_build = -Dservices=false $(shell tools/musl build/musl && echo --cross-file build/musl/cross.ini)
# What links libraries is built with the system's own libc and found beside the program it serves.
dir_services = build/services
# The other compiler, with everything that finds mistakes at run time; the fuzzers are built from the same objects. Not
# optimized: with sanitizers that takes four times as long to compile, and more than the tests gain.
dir_asan = build/asan
opt_asan = -Doptimization=0 -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
werror_asan = true
# Two hundred programs are linked: with the quickest linker that is here.
env_asan = CC=clang $(if $(shell command -v ld.lld),CC_LD=lld,$(if $(shell command -v ld.gold),CC_LD=gold))
# Built to be tested and thrown away: what compiles soonest. (At -O1 gcc takes what is cut on purpose for a mistake.)
dir_sabotage = build/sabotage
opt_sabotage = -Dsabotage=true -Doptimization=1 -Ddebug=false -Dc_args=-Wno-format-truncation
targets_sabotage = vitrine vitrine-broker vitrine-dir vitrine-files vitrine-gate vitrine-image vitrine-init vitrine-link vitrine-loop vitrine-otlp vitrine-seal vitrine-store vitrine-sudo vitrine-tools
VARIANTS = build services asan sabotage

all: build

help:
	@sed -n 's/^#   make/make/p' Makefile
	@echo 'make asan, sabotage   one variant of the build: clang with sanitizers and fuzzers; walls that can be switched off'
	@echo 'make test-contain   only the containment suite;  make test-hosts, test-arm64   in virtual machines;  make test-templates   real Debian trees;  make test-fresh   on a bare machine;  make test-agents   newest agents;  make test-compat   suites of other programs inside and outside;  make bench   measure;  make fuzz   FUZZ_SECONDS=60 each;  make soak   SOAK_SECONDS=3600'
	@echo 'make lint, format   check or fix the source;  make install PREFIX=/usr/local DESTDIR=;  make clean'

werror = $(or $(werror_$(1)),$(WERROR))

# $(call compile,VARIANT): set up once, then build. CI may find a folder that was set up without it.
define compile
	@command -v $(MESON) >/dev/null || { echo 'make: meson is missing; tools/deps installs it' >&2; exit 1; }
	@test -f $(dir_$(1))/build.ninja || echo 'building $(dir_$(1)): a minute or two the first time ...'
	@test -f $(dir_$(1))/build.ninja || \
		$(env_$(1)) $(MESON) setup $(dir_$(1)) -Dwerror=$(werror) $(opt_$(1)) >build/setup-$(1).log 2>&1 || \
		{ cat build/setup-$(1).log >&2; exit 1; }
	@test $(werror) = false || $(MESON) configure $(dir_$(1)) -Dwerror=true
	@ninja -C $(dir_$(1)) $(if $(VERBOSE),-v,--quiet) $(targets_$(1))
endef

# Programs that link libc alone are taken from build/, all others from build/services; the ends of the link from where
# they are small (tools/musl).
SMALL = vitrine-broker vitrine-dir vitrine-files vitrine-gate vitrine-loop vitrine-otlp vitrine-sudo vitrine-tools \
	$(if $(shell tools/musl build/musl && sed -n "s/^nghttp2 = '.*.'$$/x/p" build/musl/cross.ini),vitrine-init vitrine-link)

build: services
	$(call compile,build)
	@for name in vitrine-init vitrine-link; do test -e build/$$name || ln -sf services/$$name build/; done
services: | build-folder
	$(call compile,services)
	@for program in build/services/vitrine-*; do \
		name=$${program##*/}; \
		case " $(SMALL) " in *" $$name "*) test ! -L build/$$name || rm build/$$name; continue ;; esac; \
		test ! -f "$$program" || ln -sf "services/$$name" build/; \
	done
asan: | build-folder
	$(call compile,asan)
sabotage: | build-folder
	$(call compile,sabotage)
build-folder:
	@mkdir -p build

deps-build:
	@tools/deps --build
deps-test:
	@tools/deps --test

run: deps-build
	@$(MAKE) --no-print-directory build
	@build/vitrine demo

test: deps-test
	@tests/run $(ARGS)

test-contain: build
	@python3 tests/contain/run.py --vitrine build/vitrine $(ARGS)

# Virtual machines with other systems in them; minutes under emulation. ARGS='--suite bookworm' for an older one.
test-hosts: build
	@tests/hosts/run.py $(ARGS)
# Debian trees by the real mmdebstrap, from the host's mirror: minutes, and a network.
test-templates: build
	@VITRINE=build/vitrine tests/templates.py $(ARGS)
# A bare Debian, the two commands of the README, and what they leave behind: an hour, and a network. ARGS=--slice: some of it.
test-fresh:
	@tests/fresh.py $(ARGS)
# Cross-built for arm64 and run by an emulated machine.
test-arm64:
	@tests/hosts/small.py

# Every coding agent in every mode against the mock services, with the versions that are named and with the newest ones of the npm
# registry (tests/agents_table.py): half an hour, gigabytes, and a network. ARGS='qwen pi': some; ARGS=--again: what did not pass.
test-agents: build
	@tests/agents.py $(ARGS)

# Test suites of Debian's sources (git, libuv, CPython, Go) inside and outside, compared test by test: an hour, two gigabytes, and a
# network. ARGS='--quick git': a part of one; ARGS=--list: the differences that are meant.
test-compat: build
	@tests/compat.py $(ARGS)

bench: build
	@python3 tests/bench/bench.py --vitrine build/vitrine $(ARGS)

fuzz: asan
	@tests/run --seconds $(or $(FUZZ_SECONDS),60) --bash-runs 100000 fuzz bash

# Random acts of several clients and killed processes, for SOAK_SECONDS (an hour), then kill -9 at every single step and
# power cuts at random moments.
soak: build
	@VITRINE=build/vitrine python3 tests/cli/crowd.py --soak $(or $(SOAK_SECONDS),3600)
	@VITRINE=build/vitrine VITRINE_KILL_STRIDE=1 python3 tests/cli/killed.py
	@VITRINE=build/vitrine VITRINE_KILL_STRIDE=1 python3 tests/cli/image.py
	@VITRINE=build/vitrine VITRINE_KILL_STRIDE=1 python3 tests/cli/undo.py
	@VITRINE=build/vitrine VITRINE_KILL_STRIDE=1 python3 tests/cli/review.py
	@VITRINE=build/vitrine VITRINE_SEQUENCES=250 python3 tests/cli/review_random.py
	@VITRINE=build/vitrine VITRINE_CUTS=1900 python3 tests/cli/power_cut.py
	@VITRINE=build/vitrine VITRINE_FAIL_POINTS=1000 python3 tests/cli/failing.py
	@TREE_FILES=1 TREE_SEQUENCES=1 build/src/tree/tree_test

SOURCES = $(shell find src tests -name '*.[ch]' 2>/dev/null)
SCRIPTS = tools/deps .ci/run install.sh

# Documents that are made from tables of the source.
docs: asan
	@VITRINE_UPDATE=1 VITRINE_DOCS=docs build/asan/src/event/manual_test

format:
	@clang-format -i $(SOURCES)

lint:
	@tests/run lint

# The man pages and completions are printed by the program itself, from the tables it parses with.
install: build
	install -d $(bindir) $(libexecdir) $(mandir) $(sharedir)/bash-completion/completions \
		$(sharedir)/zsh/site-functions $(sharedir)/fish/vendor_completions.d $(sharedir)/vitrine/agents
	install -m 644 agents/*.json $(sharedir)/vitrine/agents/
	install -m 755 build/vitrine $(bindir)/vitrine
	for program in build/vitrine-*; do \
		test ! -f "$$program" || install -m 755 "$$program" $(libexecdir)/ || exit 1; \
	done
	build/vitrine help --man >$(mandir)/vitrine.1
	for verb in $$(build/vitrine help --list); do \
		build/vitrine help --man $$verb >$(mandir)/vitrine-$$verb.1 || exit 1; \
	done
	build/vitrine completion bash >$(sharedir)/bash-completion/completions/vitrine
	build/vitrine completion zsh >$(sharedir)/zsh/site-functions/_vitrine
	build/vitrine completion fish >$(sharedir)/fish/vendor_completions.d/vitrine.fish
	if [ -d $(DESTDIR)/etc/apparmor.d ]; then \
		sed 's|^@{VITRINE} = .*|@{VITRINE} = $(PREFIX)/bin/vitrine|' data/apparmor/vitrine >$(profile); \
	fi

clean:
	rm -rf build

.PHONY: all soak help test-agents test-compat test-hosts test-templates test-fresh test-arm64 $(VARIANTS) build-folder deps-build deps-test run test test-contain bench fuzz docs format lint install clean
