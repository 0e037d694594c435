package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Freeze stops all processes of the server, as a machine that hangs does, until thaw lets
// them go on.
func (s *Server) Freeze() (thaw func(), err error) {
	state, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(state), "\n")
	main, err := strconv.Atoi(first)
	if err != nil {
		return nil, err
	}
	_ = syscall.Kill(main, syscall.SIGSTOP) // it starts no more
	all := []int{main}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(text), ") ") // state, parent …
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(rest) > 2 && strings.HasPrefix(rest[2:], fmt.Sprint(main, " ")) {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			all = append(all, pid)
		}
	}
	return func() {
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}, nil
}
