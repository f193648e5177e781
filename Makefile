# Every target sets up what it needs; see scripts/setup.sh.
export PATH := $(CURDIR)/target/python/bin:$(HOME)/.cargo/bin:$(PATH)
# The folder of builds: CARGO_TARGET_DIR, cargo's configuration, or target.
TARGET = $(shell scripts/package/target_dir.sh)

.PHONY: build demo test quick lint unit wheel wheel-test python bench-python privileged police-equivalence police-cost police-grid police-router determinism digests fuzz bench bench-gateway tables traces docs book site web web-test bench-web install help clean

build: ## the program, release/paceline in the folder that scripts/package/target_dir.sh prints
	@scripts/setup.sh build
	cargo build --release --locked

demo: ## ten stations, five schemes, simulated and with this host's TCP
	@scripts/setup.sh demo
	cargo build --release --locked
	scripts/draw/demo.sh

# The parts of `make test`, in an order in which each finds what it needs built.
PARTS = lint unit determinism python book

test: ## everything that CI checks
	@scripts/setup.sh test
	@MAKE="$(MAKE)" scripts/check/parts.sh $(PARTS)

quick: ## format, clippy and unit tests of the crates that differ from the last commit
	@scripts/check/quick.sh

lint: ## formatting, clippy, licences, prose, documents, and the Python scripts by ruff and mypy
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null
	scripts/check/wasm.sh
	scripts/check/licences.sh
	scripts/check_prose.py
	scripts/check_documents.py
	scripts/check/lint_python.sh

unit: ## unit tests, scripts, swarms; privileged tests where root
	scripts/unit.sh

wheel: ## the Python package, target/wheels/paceline-*.whl
	@scripts/setup.sh wheel
	python/wheel.sh

python: ## the Python package's tests and the examples of its documentation, with the build of `make unit`
	cargo test --locked --workspace --no-run
	scripts/check/test_python.sh

wheel-test: ## the same tests with the installed wheel
	$(MAKE) --no-print-directory wheel
	@scripts/setup.sh test
	cargo build --release --locked
	PACELINE_WHEEL=yes scripts/check/test_python.sh

.PHONY: notebooks
notebooks: ## the outputs that stand in docs/notebooks, with the build of `make unit`
	cargo test --locked --workspace --no-run
	scripts/check/test_python.sh --notebooks

bench-python: ## the Python package: import, CPU beside the command line, a million rows in pandas, cores
	cargo build --release --locked
	$(MAKE) --no-print-directory wheel
	@scripts/setup.sh test
	target/python/bin/python -m pip install --quiet --force-reinstall --no-deps target/wheels/paceline-*.whl
	target/python/bin/python scripts/measure/python_bench.py $(TARGET)/release/paceline

privileged: ## tests that need root, failing where they cannot run
	PACELINE_REQUIRE_PRIVILEGED=1 scripts/unit.sh -p paceline-cli --test main

police-equivalence: ## ten million frames through the ACK policer's kernel program and its Rust form; root
	PACELINE_REQUIRE_PRIVILEGED=1 PACELINE_POLICE_FRAMES=10000000 cargo test --locked --release -p paceline-police \
		--test main equivalence -- --nocapture

police-cost: ## ns of the ACK policer's kernel programs for a packet, at 1 to 100,000 connections; idle, root
	cargo run --release --locked -p paceline-police --example police_cost

police-grid: ## the safe ACK policer over 144 links: goodput, retransmissions, drops; an hour, idle, root
	cargo build --release --locked
	scripts/measure/police/grid.py

police-router: ## ACK rate control before a router, as published, measured, to police-router/; 10 minutes, idle, root
	cargo build --release --locked
	$(TARGET)/release/paceline reproduce router --measure only --out police-router
	$(TARGET)/release/paceline report police-router

determinism: ## the same bytes as the optimised program's, one run at a time and several, with the build of `make unit`
	cargo test --locked --workspace --no-run
	scripts/determinism.sh $(TARGET)/debug/paceline

digests: ## scripts/digests.txt, after a change that is meant to change figures
	cargo build --release --locked
	scripts/digest.sh $(TARGET)/release/paceline > scripts/digests.txt

FUZZ_SECONDS ?= 60
fuzz: ## every fuzz target with the instrumented build; fuzz/run.sh TARGET SECONDS for one
	for target in wire ack_filter accelerator tcp_segments tcp_operations tunnel capture; do \
		fuzz/run.sh $$target $(FUZZ_SECONDS) || exit 1; \
	done

bench: ## simulated seconds per CPU second, nanoseconds per packet
	@scripts/setup.sh build
	cargo bench --locked -p paceline-sim
	cargo bench --locked -p paceline-ran
	cargo run --release --locked -p paceline-pep --example accelerator_cost
	cargo run --release --locked -p paceline-pep --example accelerator_memory

.PHONY: bench-build
bench-build: ## seconds and CPU time of the builds, and what the quicker one costs in speed; idle, 15 minutes
	@scripts/setup.sh build
	scripts/measure/build_cost.py

bench-gateway: ## CPU per GB beside kernel, HAProxy and PEPsal, scale, 5G rates, gains; idle machine, root
	@scripts/setup.sh test
	cargo build --release --locked
	scripts/gateway/bench.py
	scripts/gateway/scale.py
	scripts/gateway/flows.py
	scripts/gateway/gains.py
	scripts/gateway/observer.py

soak: ## a day of connections through the gateway in a quarter of an hour, its memory over time; root
	@scripts/setup.sh test
	cargo build --release --locked
	scripts/gateway/soak.py

.PHONY: soak

tables: ## RFC 9438's tables by simulation, down to a loss in 10^8 segments; some minutes
	cargo run --locked --release -p paceline-tcp --example rfc9438 8

traces: ## accelerator beside CUBIC and BBR on generated traces, or a folder: TRACES=FOLDER
	cargo build --release --locked -p paceline-cli
	$(TARGET)/release/paceline trace survey $(TRACES)

.PHONY: rate-grid
rate-grid: ## the rate control beside CUBIC and BBR on 170 links, a minute; GRID="--quick shared" for fewer, --traces FOLDER for more
	@scripts/setup.sh build
	cargo run --release --locked -p paceline-cli --example rate_grid -- $(GRID)

.PHONY: rate-figure
rate-figure: ## docs/rate-control.svg, the rate control's quantities around steps of the capacity
	@scripts/setup.sh build
	cargo run --release --locked -p paceline-cli --example rate_figure

docs: ## docs/scenario.md, the JSON schema of scenarios, and the tables of figures and tests in the documents
	cargo build --locked -p paceline-cli
	$(TARGET)/debug/paceline check --reference > docs/scenario.md
	$(TARGET)/debug/paceline check --schema > docs/scenario.schema.json
	scripts/draw/draw_tables.py

book: ## the documentation as a site with search, target/site/index.html, and its links
	@command -v mdbook >/dev/null || scripts/setup.sh book
	mdbook build
	scripts/check/site_links.py

site: ## the book, with the simulator as the page try/
	@scripts/setup.sh build
	$(MAKE) --no-print-directory book
	web/build.sh
	rm -rf target/site/try && cp -R target/web target/site/try

web: ## the simulator in the browser, target/web, for any server of static files
	@scripts/setup.sh web
	web/build.sh

web-test: web ## the bytes of every built-in scenario beside the program's, and the page in Chromium
	cargo build --release --locked
	node web/test/same_bytes.mjs $(TARGET)/release/paceline
	node web/test/tours.mjs
	python3 web/test/page.py $(TARGET)/release/paceline

bench-web: web ## CPU time of WebAssembly beside the program's, in pairs; size and first picture
	cargo build --release --locked
	python3 web/test/speed.py $(TARGET)/release/paceline

# The architecture of a package: amd64 or arm64.
ARCH ?= $(shell dpkg --print-architecture)

.PHONY: release release-test deb tarball packages-test tarball-test upgrade-test arm64-test kernels-test container-test reproducible sbom
release: ## all that is handed out, to dist/: wheel, package, archive, container, site, SBOM, checksums; 20 minutes
	@scripts/setup.sh release
	scripts/package/release.sh $(ARCH)

release-test: ## the files of dist/ and their checksums, and the wheel in a fresh virtual environment; seconds
	scripts/package/test/release.py dist

deb: ## a Debian package, target/package/paceline_VERSION_ARCH.deb; ARCH=arm64 for the other architecture
	scripts/package/deb.sh $(ARCH)

tarball: ## an archive of the program without shared libraries, target/package/paceline-VERSION-linux-ARCH.tar.gz
	scripts/package/tarball.sh $(ARCH)

packages-test: ## installs the package in a fresh Debian 12 and 13, uses, upgrades and purges it; root, 10 minutes
	scripts/package/deb.sh $(ARCH)
	scripts/package/test/packages.sh

tarball-test: ## installs the archive by docs/install.md in a fresh Debian 12, uses and removes it; root, minutes
	scripts/package/tarball.sh $(ARCH)
	scripts/package/test/archive.sh

upgrade-test: ## boots a Debian 13 with systemd, upgrades the package under load there, and purges it; root, minutes
	scripts/package/deb.sh $(ARCH)
	scripts/package/test/upgrade.sh

arm64-test: ## runs the program of arm64 in an emulator and compares its results with this machine's; minutes
	scripts/package/build.sh $(shell dpkg --print-architecture)
	scripts/package/build.sh arm64
	scripts/package/test/arm64.sh

kernels-test: ## boots the kernels of Debian 12 and 13 and compares doctor's verdicts with docs/install.md; root
	scripts/package/build.sh amd64
	scripts/package/test/kernels.sh

container-test: ## builds packaging/Containerfile with buildah and runs doctor in the image; root
	scripts/package/deb.sh $(ARCH)
	scripts/package/test/container.sh

reproducible: ## builds all of `make release` in two folders and compares the bytes; 40 minutes
	scripts/package/reproducible.sh $(ARCH)

sbom: ## all crates of the program with versions and licences, target/package/sbom.cdx.json (CycloneDX)
	@mkdir -p target/package
	scripts/package/sbom.py target/package/sbom.cdx.json

install: ## the program to ~/.cargo/bin
	@scripts/setup.sh build
	cargo install --locked --path crates/cli

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 18

clean:
	cargo clean
	rm -rf demo-results fuzz/target
