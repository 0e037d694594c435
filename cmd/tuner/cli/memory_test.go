package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMachineMemory reads how much memory there is from files as Linux has them.
func TestMachineMemory(t *testing.T) {
	const meminfo = "MemTotal:       16384000 kB\nMemFree:          100000 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"none":        {nil, 0},
		"machine":     {map[string]string{"proc/meminfo": meminfo}, 16384000 << 10},
		"no limit":    {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, 16384000 << 10},
		"container":   {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 1 << 30},
		"parent":      {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "536870912\n", "sys/fs/cgroup/a/b/memory.max": "1073741824\n"}, 1 << 29},
		"version 1":   {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n"}, 1 << 30},
		"1, no limit": {map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 16384000 << 10},
		"nonsense":    {map[string]string{"proc/meminfo": "MemTotal: much kB\n", "proc/self/cgroup": "0::relative\n"}, 0},
	} {
		root := t.TempDir()
		for path, text := range c.files {
			if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := MachineMemory(root); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}
