package bolt

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// holder returns the process that holds the lock on a file, and its name. It is 0 if
// the kernel does not say, for instance across containers.
func holder(info fs.FileInfo) (pid int, name string) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, ""
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0, ""
	}
	defer func() { _ = locks.Close() }()
	dev := uint64(stat.Dev)
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(dev), unix.Minor(dev), stat.Ino)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		// A line reads `1: FLOCK ADVISORY WRITE 1234 fd:00:5678 0 EOF`. Waiting
		// processes have "->" in second place.
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] != "FLOCK" || fields[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil && pid > 0 {
			comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			return pid, strings.TrimSpace(string(comm))
		}
	}
	return 0, ""
}
