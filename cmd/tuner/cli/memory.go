package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// MachineMemory returns the bytes of memory of the machine, or of the container if that
// has less. It is 0 if Linux does not say so in /proc and /sys below root.
func MachineMemory(root string) int64 {
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
	consider(addressSpace(root), nil)
	return least
}

// addressSpace returns the limit of ulimit -v in bytes, or 0.
func addressSpace(root string) int64 {
	for line := range strings.Lines(fileText(root, "proc/self/limits")) {
		if rest, ok := strings.CutPrefix(line, "Max address space"); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				n, _ := strconv.ParseInt(fields[0], 10, 64) // or "unlimited"
				return n
			}
		}
	}
	return 0
}

// TableMemory returns the bytes of memory that a table of data may take, or 0 if that is not known.
// It needs as much again while it grows. Of an address space much is gone in advance.
func TableMemory() int64 {
	most := MachineMemory("/") / 2
	if limit := addressSpace("/"); limit > 0 {
		fields := strings.Fields(fileText("/", "proc/self/statm"))
		if len(fields) > 0 {
			pages, _ := strconv.ParseInt(fields[0], 10, 64)
			limit -= pages * int64(os.Getpagesize())
		}
		most = min(most, max(limit/4, 1<<20))
	}
	return most
}

// fileText returns what a short file says, empty if it cannot be read.
func fileText(root, path string) string {
	b, _ := os.ReadFile(filepath.Join(root, path))
	return strings.TrimSpace(string(b))
}
