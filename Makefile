# Every target sets up what it needs; see scripts/setup.sh.
export PATH := $(HOME)/.cargo/bin:$(PATH)
# The folder of builds: CARGO_TARGET_DIR, cargo's configuration, or target.
TARGET = $(shell scripts/target_dir.sh)

.PHONY: build demo test lint unit privileged police-twin police-grid police-router determinism fuzz bench bench-gateway tables traces docs site install clean

build: ## the program, release/paceline in the folder that scripts/target_dir.sh prints
	@scripts/setup.sh build
	cargo build --release --locked

demo: ## ten stations, five schemes, simulated and with this host's TCP
	@scripts/setup.sh demo
	cargo build --release --locked
	scripts/demo.sh

test: ## everything that CI checks
	@scripts/setup.sh test
	$(MAKE) --no-print-directory lint unit determinism fuzz

lint: ## formatting, clippy, circles of files, prose, documents, and the Python scripts by ruff and mypy
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	scripts/check_circles.py
	scripts/check_prose.py
	scripts/check_documents.py
	scripts/lint_python.sh

unit: ## unit tests, scripts, swarms; privileged tests where root
	cargo test --locked --workspace --no-fail-fast

privileged: ## tests that need root, failing where they cannot run
	PACELINE_REQUIRE_PRIVILEGED=1 cargo test --locked -p paceline-cli --test emulate --test kernel_parity --test gateway --test police --test pace \
		--test scripts --test gateway_clients -- --nocapture

police-twin: ## ten million frames through the ACK policer's kernel program and through its twin; root
	PACELINE_REQUIRE_PRIVILEGED=1 PACELINE_POLICE_FRAMES=10000000 cargo test --locked --release -p paceline-live \
		--test police_twin -- --nocapture

police-grid: ## the safe ACK policer over 144 links: goodput, retransmissions, drops; an hour, idle, root
	cargo build --release --locked
	scripts/police/grid.py

police-router: ## ACK rate control before a router, as published, measured and simulated, 20 minutes, root
	cargo build --release --locked
	scripts/police/router.py

determinism: ## the same bytes from debug and release builds, one seed and many
	cargo build --locked
	cargo build --release --locked
	scripts/determinism.sh

fuzz: ## a short run of every fuzz target, the same each time; fuzz/run.sh TARGET SECONDS for a long one
	fuzz/run.sh wire 15 -seed=1
	fuzz/run.sh ack_filter 15 -seed=1
	fuzz/run.sh accelerator 15 -seed=1
	fuzz/run.sh tcp_segments 15 -seed=1
	fuzz/run.sh tcp_operations 15 -seed=1

bench: ## simulated seconds per CPU second, nanoseconds per packet
	@scripts/setup.sh build
	cargo bench --locked -p paceline-sim
	cargo bench --locked -p paceline-ran
	cargo run --release --locked -p paceline-pep --example accelerator_cost
	cargo run --release --locked -p paceline-pep --example accelerator_memory

bench-gateway: ## CPU per GB beside kernel, HAProxy and PEPsal, scale, 5G rates, gains; idle machine, root
	@scripts/setup.sh test
	cargo build --release --locked
	scripts/gateway/bench.py
	scripts/gateway/scale.py
	scripts/gateway/flows.py
	scripts/gateway/gains.py

tables: ## RFC 9438's tables by simulation, down to a loss in 10^8 segments; some minutes
	cargo run --locked --release -p paceline-tcp --example rfc9438 8

traces: ## accelerator beside CUBIC and BBR on generated traces, or a folder: TRACES=FOLDER
	cargo build --release --locked -p paceline-cli
	$(TARGET)/release/paceline trace survey $(TRACES)

.PHONY: short-transfers
short-transfers: ## when 2 MB arrive, direct and accelerated, at 1 Mb/s to 2 Gb/s and 20 to 80 ms
	@scripts/setup.sh build
	cargo build --release --locked
	scripts/short_transfers.py $(TARGET)/release/paceline

docs: ## docs/scenario.md and the JSON schema of scenarios, from the definitions in the code
	cargo build --locked -p paceline-cli
	$(TARGET)/debug/paceline check --reference > docs/scenario.md
	$(TARGET)/debug/paceline check --schema > docs/scenario.schema.json

site: ## the documentation as a site with search, target/site/index.html
	@scripts/setup.sh build
	@command -v mdbook >/dev/null || [ -x target/tools/bin/mdbook ] || cargo install --locked --root target/tools mdbook
	PATH="$(CURDIR)/target/tools/bin:$$PATH" mdbook build

install: ## the program to ~/.cargo/bin
	@scripts/setup.sh build
	cargo install --locked --path crates/cli

clean:
	cargo clean
	rm -rf demo-results fuzz/target
