#!/bin/bash
# Runs the tests and benchmarks of make bench-cuda on a machine with a GPU. It needs the files
# beside it, and no Go. Each step has a limit of time and a log in the directory $1 (logs), so
# that a run that is cut keeps what it has. After 8 minutes it starts no step.
#
#	bench.sh [logs] [steps]    steps are of: devices tests kernels fit torch compare
#	BKB_CUDA_REAL=0 BKB_CUDA_DRIVER=… bench.sh    rehearses with the stand-in and small sizes
cd "$(dirname "$0")" || exit 1
export BKB_CUDA_REAL=${BKB_CUDA_REAL:-1}
logs=${1:-logs}
steps=${2:-devices tests kernels fit torch compare}
mkdir -p "$logs"
began=$(date +%s)
# step NAME SECONDS COMMAND… runs a command unless it is not asked for.
step() {
	name=$1 limit=$2
	shift 2
	case " $steps " in *" ${name%%-*} "*) ;; *) return ;; esac
	at=$(($(date +%s) - began))
	[ $at -lt 480 ] || { failed=1 && echo "$name: left out after 8 minutes" && return; }
	echo "== $name, at $at s"
	timeout -k 5 "$limit" "$@" >"$logs/$name.log" 2>&1 || { echo "$name: exit status $?" && failed=1; }
	grep -vE '^ *(=== |--- PASS|goos|goarch|pkg)' "$logs/$name.log" | cut -c1-300
}
timeout 60 ./tuner devices -f json | grep -q '"cuda:0"' || { echo "bench-cuda: there is no CUDA device; see docs/gpu.md"; exit 1; }
step devices 60 ./tuner devices
for test in cuda kernel falkon sgdrf; do
	step tests-$test 120 ./$test.test -test.run 'Products|NotStored|TwoDevices|Factor|Device|TooLarge|RunsOut' -test.v
done
step kernels 150 ./cuda.test -test.run '^$' -test.bench Kernels -test.benchtime 3x
step fit-1 90 ./falkon.test -test.run '^$' -test.bench 'DeviceFit/n=4.*compare=false' -test.benchtime 2x
step fit-2 60 ./falkon.test -test.run '^$' -test.bench 'DeviceFit/n=10000000' -test.benchtime 1x
if python3 -c 'import torch' 2>/dev/null; then
	step torch 90 python3 bench.py
else
	echo "skipped: no PyTorch"
fi
step compare 150 ./falkon.test -test.run '^$' -test.bench 'DeviceFit/compare=true' -test.benchtime 1x
exit "${failed:-0}"
