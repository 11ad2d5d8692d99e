# The only build file. Out of tree (O=build), quiet unless V=1.
# Users own CC CFLAGS CPPFLAGS LDFLAGS LDLIBS; ours are AGENT_*.

VERSION := 0.1.0
O       ?= build
CC      ?= cc
CFLAGS  ?= -O2 -g
PREFIX  ?= /usr/local
prefix  ?= $(PREFIX)
exec_prefix ?= $(prefix)
bindir  ?= $(exec_prefix)/bin
libdir  ?= $(exec_prefix)/lib
includedir ?= $(prefix)/include
datadir ?= $(prefix)/share
mandir  ?= $(datadir)/man
docdir  ?= $(datadir)/doc/agent
zshdir  ?= $(datadir)/zsh/site-functions
INSTALL ?= install
INSTALL_PROGRAM ?= $(INSTALL)
INSTALL_DATA ?= $(INSTALL) -m 644
PKG_CONFIG ?= pkg-config
# What runs a program of another processor: qemu-aarch64-static, say.
EMULATOR ?=
WERROR  ?=
SAN     ?=
COV     ?=

ifeq ($(origin CC),default)
CC := cc
endif

comma := ,
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-4s %s\n' $(1) $(2))

warnings := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
    -Wmissing-prototypes -Wformat=2 -Wswitch-enum -Wvla -Wundef \
    -Wcast-align -Wwrite-strings -Wimplicit-fallthrough \
    $(if $(WERROR),-Werror)
harden := -fstack-protector-strong \
    $(if $(SAN),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
AGENT_CPPFLAGS := -D_GNU_SOURCE -DAGENT_VERSION='"$(VERSION)"' -Isrc -Iinclude
# No name of the build folder in what is built: two builds give the same bytes.
AGENT_CFLAGS := -std=gnu11 '-ffile-prefix-map=$(CURDIR)=.' -fPIC \
    -fvisibility=hidden -ffunction-sections \
    -fdata-sections -MMD -MP $(warnings) $(harden) \
    $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer \
    -fno-sanitize-recover=all) $(if $(COV),--coverage -DAGENT_COVERAGE)
AGENT_LDFLAGS := -Wl,-z,relro,-z,now -Wl,--gc-sections \
    $(if $(SAN),-fsanitize=$(SAN)) $(if $(COV),--coverage)
# What was really linked: scripts/sbom.
map = -Wl,-Map=$@.map
# 80 KB of agent that nobody reads at run time; who links libddp may.
unwind = $(if $(filter src/ddp/%,$<),,-fno-asynchronous-unwind-tables)
compile = $(CC) $(AGENT_CPPFLAGS) $(CPPFLAGS) $(AGENT_CFLAGS) $(unwind) $(CFLAGS)

# Evaluated when a recipe runs: `make deps` may have just installed them.
static_libs = -larchive -lzstd -llzma \
    $(shell $(PKG_CONFIG) --libs libuv-static jansson zlib libcrypto)
shared_libs = $(shell $(PKG_CONFIG) --libs libuv jansson zlib libcrypto) \
    -larchive -lpthread -ldl
# Of what the tools need, jansson is in few images: it goes in.
jansson_static = -Wl,-Bstatic $(shell $(PKG_CONFIG) --libs jansson) \
    -Wl,-Bdynamic
fetch_libs = $(jansson_static) $(shell $(PKG_CONFIG) --libs libcurl libcrypto)

agent_main := src/agent/main.c
agent_only := src/dataset/archive_static.c src/base/clone_static.c \
    src/base/digest_cpu.c
agent_src  := $(filter-out $(agent_main) $(agent_only), \
    $(wildcard src/base/*.c src/agent/*.c src/dataset/*.c \
    src/rendezvous/*.c src/supervise/*.c src/preflight/*.c src/tool/*.c))
ddp_src    := $(wildcard src/ddp/*.c)
probe_obj  := $(patsubst %.c,$(O)/obj/%.o,$(wildcard src/probe/*.c) \
    src/base/std_fds.c src/base/stops.c src/base/text.c)
fetch_main := src/fetch/main.c
fetch_src  := $(filter-out $(fetch_main),$(wildcard src/fetch/*.c))
fetch_obj  := $(fetch_src:%.c=$(O)/obj/%.o)
reduce_main := src/allreduce/main.c
reduce_src := $(filter-out $(reduce_main),$(wildcard src/allreduce/*.c))
reduce_obj := $(reduce_src:%.c=$(O)/obj/%.o)
agent_obj  := $(agent_src:%.c=$(O)/obj/%.o)
ddp_obj    := $(ddp_src:%.c=$(O)/obj/%.o)
unit_bin   := $(patsubst tests/unit/%.c,$(O)/tests/%, \
    $(wildcard tests/unit/test_*.c))
fuzz_bin   := $(patsubst tests/fuzz/%.c,$(O)/tests/%, \
    $(wildcard tests/fuzz/fuzz_*.c))
sim_obj    := $(patsubst %.c,$(O)/obj/%.o,$(wildcard tests/sim/*.c))
tool_bin   := $(patsubst tests/lib/%.c,$(O)/tests/%,$(wildcard tests/lib/*.c))

# A sanitizer build has no static program: its purpose is units and simulation.
programs := $(if $(SAN),,$(O)/agent) $(O)/agent-fetch $(O)/agent-probe \
    $(O)/agent-allreduce
libraries := $(if $(ddp_src),$(O)/libddp.a $(O)/libddp.so $(O)/ddp.pc)
examples := $(if $(wildcard examples/c/digits.c),$(O)/examples/digits \
    $(O)/examples/digits_cuda)

# NOTICE, licences and SPDX document of this build.
notices := $(if $(SAN),,$(O)/doc/agent.spdx.json)
all: $(programs) $(libraries) $(examples) docs-built $(notices)
.PHONY: all

# Written anew where it would say something else: what depends on it is then
# built anew, with another compiler, other flags or another prefix.
define settle
@mkdir -p $(@D)
@printf '%s\n' '$(subst ','\'',$(1))' | cmp -s - $@ || \
    printf '%s\n' '$(subst ','\'',$(1))' >$@
endef
$(O)/flags: FORCE
	$(call settle,$(CC) $(AGENT_CPPFLAGS) $(CPPFLAGS) \
	    $(filter-out $(warnings),$(AGENT_CFLAGS)) $(CFLAGS) \
	    $(AGENT_LDFLAGS) $(map) $(LDFLAGS) $(LDLIBS))
$(O)/places: FORCE
	$(call settle,$(prefix) $(libdir) $(includedir) $(VERSION))
FORCE:
.PHONY: FORCE

$(O)/obj/%.o: %.c $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(compile) -c -o $@ $<

$(O)/libagent.a: $(agent_obj)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# 70 KB less. Not for what is dynamic: there it asks for glibc 2.36.
relative := -Wl,-z,pack-relative-relocs
late := -Wl,--wrap=OPENSSL_cpuid_setup # src/base/digest_cpu.c
# What a start uses lies together: 30 page faults less, 90 us. `make order=`
# for a linker that cannot.
order := -Wl,-T,src/agent/start.ld,-T,src/dataset/late.ld
$(O)/agent: $(agent_main:%.c=$(O)/obj/%.o) $(agent_only:%.c=$(O)/obj/%.o) \
    $(O)/libagent.a src/agent/start.ld src/dataset/late.ld
	$(call say,LD,$@)
	$(Q)$(CC) -static-pie $(AGENT_LDFLAGS) $(relative) $(late) $(order) \
	    $(map) $(CFLAGS) \
	    $(LDFLAGS) -o $@ $(filter-out %.ld,$^) $(static_libs) $(LDLIBS) \
	    >$@.ldlog 2>&1 || \
	    { cat $@.ldlog >&2; exit 1; }

# Dynamic, as it opens what it asks; but it needs no library of its own.
$(O)/agent-probe: $(probe_obj)
	$(call say,LD,$@)
	$(Q)$(CC) -pie $(AGENT_LDFLAGS) $(map) $(CFLAGS) $(LDFLAGS) -o $@ $^ \
	    $(jansson_static) -ldl $(LDLIBS)

# A program of its own: dynamic, with libcurl, for where images are built.
$(O)/libfetch.a: $(fetch_obj)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(O)/agent-fetch: $(fetch_main:%.c=$(O)/obj/%.o) $(O)/libfetch.a $(O)/libagent.a
	$(call say,LD,$@)
	$(Q)$(CC) -pie $(AGENT_LDFLAGS) $(map) $(CFLAGS) $(LDFLAGS) -o $@ $^ \
	    $(fetch_libs) $(LDLIBS)

# Dynamic, with libddp inside: one file to copy.
$(O)/liballreduce.a: $(reduce_obj)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
reduce_link = $(CC) -pie $(AGENT_LDFLAGS) $(map) $(CFLAGS) $(LDFLAGS) -o $@ $^ \
    -lpthread -lm $(LDLIBS)
$(O)/agent-allreduce: $(reduce_main:%.c=$(O)/obj/%.o) $(O)/liballreduce.a \
    $(O)/libddp.a $(O)/libagent.a
	$(call say,LD,$@)
	$(Q)$(reduce_link)

# libddp: only ddp_* leaves it.
$(O)/libddp.a: $(ddp_obj)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(O)/libddp.so.1: $(ddp_obj) src/ddp/libddp.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,libddp.so.1 $(AGENT_LDFLAGS) $(map) $(CFLAGS) \
	    -Wl,--version-script,src/ddp/libddp.map $(LDFLAGS) -o $@ \
	    $(ddp_obj) -lpthread -ldl -lm $(LDLIBS)
$(O)/libddp.so: $(O)/libddp.so.1
	$(Q)ln -sf libddp.so.1 $@
$(O)/ddp.pc: src/ddp/ddp.pc.in $(O)/places
	@mkdir -p $(@D)
	$(Q)sed -e 's|@prefix@|$(prefix)|' -e 's|@libdir@|$(libdir)|' \
	    -e 's|@includedir@|$(includedir)|' -e 's|@version@|$(VERSION)|' \
	    $< >$@

# The example sees what an installed libddp gives: ddp.h and the library.
digits_obj := $(patsubst %.c,$(O)/obj/%.o,$(wildcard examples/c/digits*.c))
$(O)/examples/digits: $(digits_obj) $(O)/libddp.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(AGENT_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread -lm \
	    $(LDLIBS)

# The same on GPUs, and without any CUDA to build.
cuda_obj := $(patsubst %.c,$(O)/obj/%.o,$(wildcard examples/cuda/*.c))
$(cuda_obj): AGENT_CPPFLAGS += -Iexamples/c
$(O)/examples/digits_cuda: $(cuda_obj) $(filter-out %/digits.o,$(digits_obj)) \
    $(O)/libddp.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(AGENT_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread -lm \
	    -ldl $(LDLIBS)

# Tests: each test_<module>.c is a cmocka program that prints TAP.
$(O)/tests/%: tests/unit/%.c $(O)/liballreduce.a $(O)/libfetch.a \
    $(O)/libagent.a $(O)/libddp.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(compile) -MT $@ -Itests $(AGENT_LDFLAGS) $(LDFLAGS) $(wraps) \
	    -o $@ $< $(O)/liballreduce.a $(O)/libddp.a $(O)/libfetch.a \
	    $(O)/libagent.a $(shared_libs) -lcmocka -lm
# Its calls fail or kill when they are told to: tests/unit/fault_wrap.h.
$(O)/tests/test_stage_torture: wraps := $(addprefix -Wl$(comma)--wrap=,open \
    openat read pread write close fsync syncfs mkdirat unlinkat renameat \
    renameat2 symlinkat linkat fstat fstatat syscall fstatfs \
    nanosleep)
# Ranks on hosts that the test makes up: tests/unit/ddp_pods.h.
$(addprefix $(O)/tests/test_ddp_,inject random reducer): \
    wraps := -Wl,--wrap=ddp_shm_host
$(O)/tests/test_ddp_rails: \
    wraps := $(addprefix -Wl$(comma)--wrap=,ddp_shm_host ddp_shm_create \
    ddp_shm_processors)
# Any file system is one that hosts share.
$(O)/tests/test_lease: wraps := $(addprefix -Wl$(comma)--wrap=,fstatfs flock \
    mkdirat open openat renameat renameat2 statx)
$(O)/tests/test_fetch_part: wraps := -Wl,--wrap=syncfs
# Each fuzz_<name>.c of tests/fuzz is run here over its corpus; by libFuzzer
# with `make fuzz-<name>`.
$(O)/tests/fuzz_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(O)/libagent.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(compile) -MF $@.d -MT $@ -Itests \
	    -DFUZZ_CORPUS='"tests/fuzz/corpus/$*"' $(AGENT_LDFLAGS) $(LDFLAGS) \
	    -o $@ $(filter %.c,$^) $(O)/libagent.a $(shared_libs)
$(O)/libfuzzer_%: tests/fuzz/fuzz_%.c $(O)/libagent.a
	$(call say,LD,$@)
	$(Q)$(compile) -MF $@.d -MT $@ -Itests -fsanitize=fuzzer \
	    $(AGENT_LDFLAGS) $(LDFLAGS) -o $@ $< $(O)/libagent.a $(shared_libs)
fuzz-%: tests/fuzz/fuzz_%.c
	$(Q)$(MAKE) --no-print-directory O=$(O)/fuzz CC='$(FUZZ_CC)' \
	    SAN=address,undefined,fuzzer-no-link CFLAGS='-O1 -g' \
	    $(O)/fuzz/libfuzzer_$*
	@mkdir -p $(O)/fuzz/corpus_$*
	$(O)/fuzz/libfuzzer_$* -max_total_time=$(FUZZ_SECONDS) \
	    -malloc_limit_mb=$(FUZZ_MALLOC) \
	    -artifact_prefix=$(O)/fuzz/$*- $(O)/fuzz/corpus_$* \
	    tests/fuzz/corpus/$*
FUZZ_CC      ?= clang
FUZZ_SECONDS ?= 60
# A zip may ask its LZMA reader for a window of 4 GiB, which is never touched.
FUZZ_MALLOC  ?= 5000
$(O)/tests/%: tests/lib/%.c
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(compile) $(LDFLAGS) -o $@ $< -lpthread
# agent-allreduce whose all_reduce is wrong where it is told to be.
$(O)/tests/wrong_allreduce: tests/lib/wrong_allreduce.c \
    $(reduce_main:%.c=$(O)/obj/%.o) $(O)/liballreduce.a $(O)/libddp.a \
    $(O)/libagent.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(reduce_link) $(AGENT_CPPFLAGS) -Wl,--wrap=ddp_all_reduce
# A rank of tests/system/ddp.sh: of the library, as users link it.
$(O)/tests/ddp_%: tests/lib/ddp_%.c $(O)/libddp.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(compile) $(LDFLAGS) -o $@ $< $(O)/libddp.a -lpthread
$(O)/sim: $(sim_obj) $(O)/libagent.a
	$(call say,LD,$@)
	$(Q)$(CC) $(AGENT_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ \
	    $(shared_libs)

# The manual page and completions are readings of the options table.
docs := $(if $(SAN),,$(O)/man/agent.1 $(O)/man/agent-fetch.1 \
    $(O)/man/agent-allreduce.1 $(O)/completions/agent.bash \
    $(O)/completions/_agent)
docs-built: $(docs)
$(O)/doc/agent.spdx.json: $(programs) $(O)/libddp.so.1 scripts/sbom NOTICE
	$(Q)scripts/sbom $(VERSION) $(@D) NOTICE $(filter $(O)/%,$^)
$(O)/man/%.1: $(O)/%
	@mkdir -p $(@D)
	$(Q)$(EMULATOR) $(abspath $<) --help=man >$@.tmp && mv $@.tmp $@
$(O)/completions/agent.bash: $(O)/agent
	@mkdir -p $(@D)
	$(Q)$(EMULATOR) $(abspath $(O)/agent) --help=bash >$@.tmp && mv $@.tmp $@
$(O)/completions/_agent: $(O)/agent
	@mkdir -p $(@D)
	$(Q)$(EMULATOR) $(abspath $(O)/agent) --help=zsh >$@.tmp && mv $@.tmp $@
.PHONY: docs-built

# --- tests ---------------------------------------------------------------
# `make check` does its own set-up: it installs what is missing, builds, and
# runs everything but what needs PyTorch (`make check-torch`).
check: deps
	$(Q)$(MAKE) --no-print-directory check-built
# Built side by side, run one after the other; a failure does not hide others.
check-built: all unit-programs $(tool_bin)
	$(Q)rm -rf $(O)/results
	$(Q)TEST_KEEP_GOING=1 $(MAKE) -j1 --no-print-directory check-units \
	    check-sim check-system check-tree
	$(Q)tests/run --summary $(O)/results
unit-programs: $(unit_bin) $(fuzz_bin) $(O)/sim
check-units: $(unit_bin) $(fuzz_bin)
	$(Q)tests/run -o $(O)/results units $(unit_bin) $(fuzz_bin)
check-ddp: $(filter $(O)/tests/test_ddp_%,$(unit_bin))
	$(Q)tests/run -o $(O)/results ddp $^
check-sim: $(O)/sim
	$(Q)tests/run -o $(O)/results sim "$(O)/sim --seeds $(SEEDS)"
check-system: all $(tool_bin)
	$(Q)O=$(abspath $(O)) tests/run -o $(O)/results system \
	    $(sort $(wildcard tests/system/*.sh))
check-tree: all
	$(Q)O=$(abspath $(O)) CC='$(CC)' tests/run -o $(O)/results tree \
	    scripts/check-layers scripts/check-style scripts/check-docs
# Real containers: as root, with podman. Not part of `make check`; CI has the
# quick part, which is skipped, and says so, where there can be no podman.
check-smoke:
	$(Q)scripts/deps smoke || echo 'podman could not be installed'
	$(Q)$(MAKE) --no-print-directory all $(O)/tests/foreign
	$(Q)O=$(abspath $(O)) tests/run -o $(O)/results smoke \
	    tests/containers/smoke.sh
	$(Q)tests/run --summary $(O)/results smoke
check-containers:
	$(Q)scripts/deps containers
	$(Q)$(MAKE) --no-print-directory all $(O)/tests/foreign
	$(Q)O=$(abspath $(O)) TEST_LIMIT=1200 tests/run -o $(O)/results \
	    containers tests/containers/*.sh
	$(Q)tests/run --summary $(O)/results containers
# Guests of qemu, with Debian's kernel (70 MB, once): soft RDMA; control groups.
check-rdma:
	$(Q)scripts/deps rdma
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tests/lib/guest_kernel $(O)/guest
	$(Q)O=$(abspath $(O)) TEST_LIMIT=300 tests/run -o $(O)/results rdma \
	    tests/rdma/rdma.sh
	$(Q)tests/run --summary $(O)/results rdma
check-cgroup:
	$(Q)scripts/deps guest
	$(Q)$(MAKE) --no-print-directory all $(O)/tests/foreign
	$(Q)tests/lib/guest_kernel $(O)/guest
	$(Q)O=$(abspath $(O)) tests/run -o $(O)/results cgroup \
	    tests/cgroup/cgroup.sh
	$(Q)tests/run --summary $(O)/results cgroup
# Cross-built and run by qemu-user in a root of its own: as root.
check-arm64:
	$(Q)scripts/deps arm64
	$(Q)O=$(abspath $(O)) TEST_LIMIT=3000 tests/run -o $(O)/results arm64 \
	    scripts/check-arm64
	$(Q)tests/run --summary $(O)/results arm64
check-torch: deps
	$(Q)$(MAKE) --no-print-directory all
	$(Q)O=$(abspath $(O)) TEST_LIMIT=1500 tests/run -o $(O)/results torch \
	    scripts/check-torch \
	    "$(O)/torch-venv/bin/python tests/torch/side_by_side.py"
	$(Q)tests/run --summary $(O)/results torch
# The real NCCL of pip's wheel, beside what libddp declares; 300 MB, once.
check-nccl: all $(O)/tests/ddp_device $(O)/tests/ddp_nccl_open
	$(Q)[ -d $(O)/nccl/nvidia ] || python3 -m pip install -q --no-deps \
	    --target $(O)/nccl nvidia-nccl-cu13
	$(Q)O=$(abspath $(O)) tests/run -o $(O)/results nccl \
	    tests/system/ddp_nccl.sh
# Speed: says what it measures, and fails where a limit is missed.
$(O)/bench_barrier: bench/bench_barrier.c bench/barrier_client.c \
    bench/barrier_client.h $(O)/libagent.a
	$(call say,LD,$@)
	$(Q)$(compile) -MF $@.d $(AGENT_LDFLAGS) $(LDFLAGS) -o $@ \
	    $(filter %.c,$^) \
	    $(O)/libagent.a $(shared_libs)
# Each bench/run_<name>.py measures agent beside its peers in one run, prints
# a table, appends to build/bench.jsonl and fails where a limit is missed.
bench_tool := $(patsubst bench/%.c,$(O)/bench/%,bench/spawn.c bench/loop.c \
    bench/stamp.c)
$(bench_tool): $(O)/bench/%: bench/%.c
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(compile) -MF $@.d -static $(LDFLAGS) -o $@ $<
$(O)/bench/bench_device: bench/bench_device.c bench/bench_overlap.c \
    bench/bench_power.c bench/bench_device.h $(O)/libddp.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(compile) -MF $@.d $(LDFLAGS) -o $@ $(filter %.c,$^) \
	    $(O)/libddp.a -lpthread
# On a machine with GPUs and PyTorch: bench/gpu.sh.
$(O)/bench/nccl_hangs.so: bench/nccl_hangs.c
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(compile) -MF $@.d -fPIC -fvisibility=default -shared \
	    $(LDFLAGS) -o $@ $< -ldl
bench-gpu: all $(O)/bench/bench_device $(O)/tests/ddp_device \
    $(O)/bench/nccl_hangs.so
	bench/gpu.sh
bench-built: $(O)/agent $(bench_tool)
bench: deps
	$(Q)$(MAKE) --no-print-directory bench-built
	$(Q)O=$(abspath $(O)) bench/run $(ONLY)
bench-deps:
	$(Q)bench/deps
bench-barrier: deps
	$(Q)$(MAKE) --no-print-directory $(O)/agent $(O)/bench_barrier
	$(O)/bench_barrier $(O)/agent
	@if [ -x $(O)/torch-venv/bin/python ]; then \
	    $(O)/torch-venv/bin/python bench/barrier_tcpstore.py \
	    $(O)/bench_barrier $(O)/agent; \
	else echo 'no TCPStore beside it: make check-torch gets PyTorch'; fi
# Needs a tmpfs with 9 GiB free.
bench-dataset: deps
	$(Q)$(MAKE) --no-print-directory $(O)/agent
	bench/dataset.py $(O)/agent
$(O)/logs_io: bench/logs_io.c
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(compile) -MF $@.d $(LDFLAGS) -o $@ $<
bench-logs: deps
	$(Q)$(MAKE) --no-print-directory $(O)/agent $(O)/logs_io
	python3 bench/logs.py $(O)/agent $(O)/logs_io $(O)/torch-venv/bin/torchrun
# Each rank's bytes are compared with what it wrote.
soak-logs: deps
	$(Q)$(MAKE) --no-print-directory $(O)/agent $(O)/logs_io
	$(Q)n=$$(numfmt --from=iec $(SIZE)); \
	$(O)/agent -q --nproc 4 -- $(O)/logs_io soak $$((n / 4)) | \
	    $(O)/logs_io check 4 $$((n / 4))
SIZE ?= 100G
# libddp beside gloo (PyTorch of check-torch) and Open MPI, where they are.
$(O)/bench_ddp: bench/bench_ddp.c $(O)/libddp.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(compile) -MF $@.d $(LDFLAGS) -o $@ $< $(O)/libddp.a -lpthread
$(O)/bench_mpi: bench/bench_mpi.c
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)OMPI_CC='$(CC)' mpicc -O2 -o $@ $<
bench-ddp: deps
	$(Q)$(MAKE) --no-print-directory $(O)/bench_ddp \
	    $(if $(shell command -v mpicc),$(O)/bench_mpi)
	$(Q)O=$(abspath $(O)) bench/ddp $(BENCH_FLAGS)
BENCH_FLAGS ?= --strict
# The source archive; and the proof that it is whole and that another folder
# gives the same bytes.
dist_name := agent-$(VERSION)
dist:
	$(Q)scripts/dist $(dist_name) $(O)/$(dist_name).tar.gz
distcheck: deps
	$(Q)$(MAKE) --no-print-directory all dist
	$(Q)O=$(abspath $(O)) CC='$(CC)' tests/run -o $(O)/results dist \
	    "scripts/distcheck $(dist_name) $(abspath $(O)/$(dist_name).tar.gz)"
	$(Q)tests/run --summary $(O)/results dist
# Packages of Debian: agent, agent-tools, libddp1, libddp-dev. Needs root once,
# for what builds packages; not part of `make deps`.
deb-deps:
	$(Q)scripts/deps deb
deb: deb-deps
	$(Q)scripts/deb $(VERSION) $(O)/deb
check-deb: deb
	$(Q)O=$(abspath $(O)) tests/run -o $(O)/results deb \
	    $(wildcard tests/packages/*.sh)
	$(Q)tests/run --summary $(O)/results deb
demo: deps
	$(Q)$(MAKE) --no-print-directory all
	$(Q)O=$(abspath $(O)) scripts/demo
soak: $(O)/sim
	$(O)/sim --seeds $(SEEDS)
SEEDS ?= 20000
# Each planted bug must be found by the simulation.
check-mutants: deps
	$(Q)O=$(abspath $(O)) CC='$(CC)' tests/run -o $(O)/results mutants \
	    scripts/check-mutants
	$(Q)tests/run --summary $(O)/results mutants
build-sim: $(O)/sim
# Several hosts: network namespaces on one bridge; root.
check-net: deps
	$(Q)$(MAKE) --no-print-directory all
	$(Q)O=$(abspath $(O)) tests/run -o $(O)/results net \
	    $(sort $(wildcard tests/net/*.sh))
	$(Q)tests/run --summary $(O)/results net
deps:
	$(Q)scripts/deps
ci:
	$(Q)bash .ci/run
.PHONY: check check-built unit-programs check-units check-ddp check-sim check-system \
    check-tree check-torch check-nccl check-rdma check-cgroup check-containers check-smoke \
    check-arm64 check-mutants check-net \
    build-sim bench bench-built bench-deps bench-barrier bench-dataset bench-ddp \
    bench-gpu bench-logs soak-logs \
    demo soak deps ci dist distcheck deb-deps deb check-deb

# --- install -------------------------------------------------------------
dest = $(DESTDIR)$(1)
notice_files := NOTICE licenses agent.spdx.json
install: all
	$(Q)$(INSTALL) -d $(call dest,$(bindir)) $(call dest,$(libdir)/pkgconfig) \
	    $(call dest,$(includedir)) $(call dest,$(mandir)/man1) \
	    $(call dest,$(mandir)/man3) \
	    $(call dest,$(datadir)/bash-completion/completions) \
	    $(call dest,$(zshdir)) $(call dest,$(docdir))
	$(Q)$(INSTALL_PROGRAM) $(O)/agent $(call dest,$(bindir)/agent)
	$(Q)$(INSTALL_PROGRAM) $(O)/agent-probe $(call dest,$(bindir)/agent-probe)
	$(Q)$(INSTALL_PROGRAM) $(O)/agent-fetch $(call dest,$(bindir)/agent-fetch)
	$(Q)$(INSTALL_PROGRAM) $(O)/agent-allreduce \
	    $(call dest,$(bindir)/agent-allreduce)
	$(Q)$(INSTALL_DATA) $(O)/man/agent-fetch.1 \
	    $(call dest,$(mandir)/man1/agent-fetch.1)
	$(Q)$(INSTALL_DATA) $(O)/man/agent-allreduce.1 \
	    $(call dest,$(mandir)/man1/agent-allreduce.1)
	$(Q)$(INSTALL_DATA) include/ddp.h $(call dest,$(includedir)/ddp.h)
	$(Q)$(INSTALL_DATA) $(O)/libddp.a $(call dest,$(libdir)/libddp.a)
	$(Q)$(INSTALL_PROGRAM) $(O)/libddp.so.1 $(call dest,$(libdir)/libddp.so.1)
	$(Q)ln -sf libddp.so.1 $(call dest,$(libdir)/libddp.so)
	$(Q)$(INSTALL_DATA) $(O)/ddp.pc $(call dest,$(libdir)/pkgconfig/ddp.pc)
	$(Q)$(INSTALL_DATA) $(O)/man/agent.1 $(call dest,$(mandir)/man1/agent.1)
	$(Q)$(INSTALL_DATA) man/ddp.3 $(call dest,$(mandir)/man3/ddp.3)
	$(Q)$(INSTALL_DATA) man/agent-probe.1 \
	    $(call dest,$(mandir)/man1/agent-probe.1)
	$(Q)$(INSTALL_DATA) $(O)/completions/agent.bash \
	    $(call dest,$(datadir)/bash-completion/completions/agent)
	$(Q)$(INSTALL_DATA) $(O)/completions/_agent \
	    $(call dest,$(zshdir)/_agent)
	$(Q)$(INSTALL_DATA) $(notice_files:%=$(O)/doc/%) $(call dest,$(docdir))
install-strip:
	$(Q)$(MAKE) --no-print-directory install INSTALL_PROGRAM='$(INSTALL) -s'
uninstall:
	rm -f $(call dest,$(bindir)/agent) $(call dest,$(bindir)/agent-fetch) \
	    $(call dest,$(bindir)/agent-probe) \
	    $(call dest,$(bindir)/agent-allreduce) \
	    $(call dest,$(mandir)/man1/agent-fetch.1) \
	    $(call dest,$(mandir)/man1/agent-probe.1) \
	    $(call dest,$(mandir)/man1/agent-allreduce.1) \
	    $(call dest,$(includedir)/ddp.h) \
	    $(call dest,$(libdir)/libddp.a) $(call dest,$(libdir)/libddp.so.1) \
	    $(call dest,$(libdir)/libddp.so) \
	    $(call dest,$(libdir)/pkgconfig/ddp.pc) \
	    $(call dest,$(mandir)/man1/agent.1) \
	    $(call dest,$(mandir)/man3/ddp.3) \
	    $(call dest,$(datadir)/bash-completion/completions/agent) \
	    $(call dest,$(zshdir)/_agent) \
	    $(notice_files:%=$(call dest,$(docdir))/%)
clean:
	rm -rf $(O)
distclean: clean
.PHONY: install install-strip uninstall clean distclean

-include $(bench_tool:=.d) $(agent_obj:.o=.d) $(agent_main:%.c=$(O)/obj/%.d) \
    $(agent_only:%.c=$(O)/obj/%.d) $(probe_obj:.o=.d) \
    $(fetch_obj:.o=.d) $(fetch_main:%.c=$(O)/obj/%.d) \
    $(reduce_obj:.o=.d) $(reduce_main:%.c=$(O)/obj/%.d) \
    $(ddp_obj:.o=.d) $(sim_obj:.o=.d) $(digits_obj:.o=.d) $(cuda_obj:.o=.d) $(unit_bin:=.d) \
    $(fuzz_bin:=.d)
