package server

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner/memlimit"
)

// leastMemory is the least that --max-memory can be. A server needs 30 MB without studies.
const leastMemory = 64 << 20

// limitMemory holds the process to the flag --max-memory: 0 stands for $GOMEMLIMIT, else
// for three quarters of what the machine or the container has.
func limitMemory(flag int64) (*memlimit.Limit, error) {
	switch {
	case flag < 0:
		return nil, nil
	case flag > 0 && flag < leastMemory:
		return nil, cli.Usagef("--max-memory %d: must be at least %d bytes (64 MiB)", flag, leastMemory)
	case flag == 0:
		if flag = debug.SetMemoryLimit(-1); flag == math.MaxInt64 {
			flag = machineMemory("/") / 4 * 3
		}
	}
	m := memlimit.New(flag)
	if m != nil {
		debug.SetMemoryLimit(flag)
	}
	return m, nil
}

// machineMemory returns the bytes of memory of the machine, or of the container if that
// has less. It is 0 if Linux does not say so in /proc and /sys below root.
func machineMemory(root string) int64 {
	least := int64(0)
	consider := func(bytes int64, err error) {
		if err == nil && bytes > 0 && (least == 0 || bytes < least) {
			least = bytes
		}
	}
	for line := range strings.Lines(fileText(root, "proc/meminfo")) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			consider(kb*1024, err)
		}
	}
	// Version 2 of cgroups has one line "0::PATH", and a limit at each level of the path.
	// Version 1 has a line for each controller.
	consider(strconv.ParseInt(fileText(root, "sys/fs/cgroup/memory/memory.limit_in_bytes"), 10, 64))
	for line := range strings.Lines(fileText(root, "proc/self/cgroup")) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		for ok {
			consider(strconv.ParseInt(fileText(root, filepath.Join("sys/fs/cgroup", path, "memory.max")), 10, 64))
			if path == "/" || path == "." {
				break
			}
			path = filepath.Dir(path)
		}
	}
	return least
}

// fileText returns what a short file says, empty if it cannot be read.
func fileText(root, path string) string {
	b, _ := os.ReadFile(filepath.Join(root, path))
	return strings.TrimSpace(string(b))
}
