.PHONY: help test race lint generate fuzz bench

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

test: ## the everyday tests (under 4 minutes on 2 cores)
	go test ./...

race: ## the everyday tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race -short ./...

lint: ## gofmt, vet, staticcheck
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt -w needed:" $$unformatted; exit 1; }
	go vet ./...
	go tool staticcheck ./...

generate: ## make generated code anew
	go generate ./...

FUZZTIME ?= 30s
fuzz: ## run every fuzz target for FUZZTIME (30s)
	@for pkg in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; \
	done

bench: ## run every benchmark once, with its ratios
	go test -run '^$$' -bench . -benchtime 1x ./...
