.PHONY: help test race lint generate fuzz bench bench-products bench-falkon bench-compare

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

test: ## the everyday tests (under 4 minutes on 2 cores)
	go test ./...

race: ## the everyday tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race -short ./...

lint: ## gofumpt, go.mod, vet, staticcheck
	@unformatted=$$(go tool gofumpt -l .); test -z "$$unformatted" || { echo "go tool gofumpt -w needed:" $$unformatted; exit 1; }
	go mod tidy -diff
	go vet ./...
	go tool staticcheck ./...

generate: ## make generated code anew
	go generate ./...

PKG ?= ./...
FUZZTIME ?= 30s
# The go command sometimes ends a clean run with "context deadline exceeded"; what
# counts is whether an input failed.
fuzz: ## run every fuzz target of PKG for FUZZTIME (30s)
	@for pkg in $$(go list $(PKG)); do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    out=$$(go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg 2>&1) || \
	      { echo "$$out" | tail -n 40; ! echo "$$out" | grep -qE 'Failing input|panic:|build failed|setup failed' || exit 1; }; \
	    echo "$$pkg $$target: $$(echo "$$out" | grep -E '^fuzz: elapsed' | tail -n 1)"; \
	  done; \
	done

bench: ## run every benchmark once, with its ratios
	go test -run '^$$' -bench . -benchtime 1x ./...

# Python's side goes into a folder of its own, outside the project. The CPU build of
# PyTorch is tried first, as PyPI's brings the CUDA libraries along.
PEERS ?= $(HOME)/.cache/bkb-peers/venv
$(PEERS)/ready:
	python3 -m venv $(PEERS)
	-$(PEERS)/bin/pip install -q numpy scipy scikit-learn
	-$(PEERS)/bin/pip install -q --no-cache-dir --retries 0 torch --index-url https://download.pytorch.org/whl/cpu || $(PEERS)/bin/pip install -q --no-cache-dir torch
	touch $@

bench-products: $(PEERS)/ready ## compare products and algebra with NumPy, scikit-learn, PyTorch, gonum (10 minutes)
	go run ./internal/bench/products -python $(PEERS)/bin/python

bench-falkon: $(PEERS)/ready ## compare FALKON on a million rows with PyTorch (10 minutes or more)
	go run ./internal/bench/products -python $(PEERS)/bin/python falkon

REF ?= HEAD
bench-compare: ## compare the benchmarks of PKG with those at REF (HEAD), 6 runs each
	@old=$$(mktemp -d) && trap 'git worktree remove --force '$$old EXIT && git worktree add -q $$old $(REF) && \
	(cd $$old && go test -run '^$$' -bench . -count 6 $(PKG) >bench.txt) && \
	go test -run '^$$' -bench . -count 6 $(PKG) >$$old/new.txt && go tool benchstat $$old/bench.txt $$old/new.txt
