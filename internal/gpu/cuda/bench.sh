#!/bin/sh
# Runs the tests and benchmarks of make bench-cuda on a machine with a GPU. It needs the
# files beside it, and no Go.
cd "$(dirname "$0")" || exit 1
export BKB_CUDA_REAL=1
./tuner devices
./tuner devices -f json | grep -q '"cuda:0"' || { echo "bench-cuda: there is no CUDA device; see docs/gpu.md"; exit 1; }
if command -v ptxas >/dev/null; then
	for ptx in *.ptx; do
		ptxas -v -arch="sm_$(./tuner devices -f jsonl | sed -n 's/.*"cuda:0".*"capability":"\([0-9]*\)\.\([0-9]*\)".*/\1\2/p')" "$ptx" -o /dev/null || failed=1
	done
else
	echo "skipped: no ptxas"
fi
for test in cuda kernel falkon; do
	echo "== tests of $test"
	./$test.test -test.run 'Products|NotStored|TwoDevices|Factor|Device' -test.v >$test.log 2>&1 || failed=1
	grep -vE '^ *(=== |--- PASS)' $test.log
done
echo "== benchmarks"
./cuda.test -test.run '^$' -test.bench . -test.benchtime 3x || failed=1
./falkon.test -test.run '^$' -test.bench Device -test.benchtime 1x || failed=1
if python3 -c 'import torch' 2>/dev/null; then
	python3 bench.py || failed=1
else
	echo "skipped: no PyTorch"
fi
exit "${failed:-0}"
