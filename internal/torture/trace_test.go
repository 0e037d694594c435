//go:build linux

package torture

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// tracing returns the command that records the system calls that change files. They are
// in the order of the kernel, with all written data.
func tracing(t testing.TB, out string) []string {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		lacking(t, "there is no strace to record writes with")
	}
	if text, err := exec.Command(strace, "-f", "--seccomp-bpf", "-qq", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		lacking(t, "tracing is not permitted here: %s", text)
	}
	return []string{
		strace, "-f", "--seccomp-bpf", "-qq", "-ttt", "-y", "-X", "raw", "-xx", "-s", "67108864", "-o", out, "-e", "signal=none",
		"-e", "trace=pwrite64,fdatasync,fsync,ftruncate,openat,renameat,renameat2,linkat,unlinkat",
	}
}

// operation is a system call that changed a file or made a change durable.
type operation struct {
	at     int64 // begin in nanoseconds of the wall clock, rounded down to microseconds
	kind   string
	path   string // path of the descriptor when the call began
	to     string // of a rename
	offset int64  // of a write, or the size of a truncation
	data   []byte
	parts  []*operation // remaining parts of a torn write, instead of data
	line   int          // of the trace
	done   int          // line of the trace with its end, or 0
}

// readTrace reads the output of strace. Calls that failed or have no recorded end have
// 0 in done.
func readTrace(path string) ([]*operation, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewReaderSize(f, 1<<20)
	var ops []*operation
	unfinished := make(map[string]*operation) // by thread
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		if err != nil {
			return ops, nil // the last line may be cut off
		}
		thread, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimLeft(rest, " ")
		stamp, text, ok := strings.Cut(rest, " ")
		if !ok || strings.HasPrefix(text, "+++") || strings.HasPrefix(text, "---") {
			continue
		}
		if strings.HasPrefix(text, "<... ") {
			if op := unfinished[thread]; op != nil && !failed(text) {
				op.done = n
			}
			delete(unfinished, thread)
			continue
		}
		op, err := parseCall(stamp, text)
		if err != nil {
			return nil, fmt.Errorf("line %d of %s: %w", n, path, err)
		}
		if op == nil {
			continue
		}
		op.line = n
		switch {
		case strings.HasSuffix(text, "<unfinished ...>"):
			unfinished[thread] = op
		case failed(text):
			continue
		default:
			op.done = n
		}
		ops = append(ops, op)
	}
}

func failed(text string) bool { return strings.Contains(text[max(0, len(text)-80):], " = -1 ") }

// parseCall parses one call. It returns nil for a call that changes nothing.
func parseCall(stamp, text string) (*operation, error) {
	seconds, micros, _ := strings.Cut(stamp, ".")
	s, err1 := strconv.ParseInt(seconds, 10, 64)
	us, err2 := strconv.ParseInt(micros, 10, 64)
	if err1 != nil || err2 != nil {
		return nil, fmt.Errorf("no time in %.60q", stamp)
	}
	name, args, ok := strings.Cut(text, "(")
	if !ok {
		return nil, fmt.Errorf("no call in %.60q", text)
	}
	op := &operation{at: (s*1_000_000 + us) * 1000, kind: name}
	switch name {
	case "pwrite64":
		op.path = descriptor(args)
		_, rest, _ := strings.Cut(args, ", \"")
		hex, rest, ok := strings.Cut(rest, "\"")
		if !ok {
			return nil, fmt.Errorf("no data in a write")
		}
		if op.data, ok = unhex(hex); !ok || strings.HasPrefix(rest, "...") {
			return nil, fmt.Errorf("a write was not recorded whole")
		}
		fields := strings.Split(strings.TrimPrefix(rest, ", "), ", ")
		if len(fields) < 2 {
			return nil, fmt.Errorf("no offset in %.60q", rest)
		}
		size, err := strconv.ParseInt(fields[0], 0, 64)
		if err != nil || int(size) != len(op.data) {
			return nil, fmt.Errorf("%d bytes of %s were recorded", len(op.data), fields[0])
		}
		op.offset, err = number(fields[1])
		return op, err
	case "ftruncate":
		op.path = descriptor(args)
		_, rest, _ := strings.Cut(args, ", ")
		var err error
		op.offset, err = number(rest)
		return op, err
	case "fdatasync", "fsync":
		op.path = descriptor(args)
		return op, nil
	case "openat":
		paths := quoted(args)
		_, flags, _ := strings.Cut(args, "\", ")
		mode, err := number(flags)
		if err != nil || len(paths) != 1 || mode&0o100 == 0 || mode&0o200 == 0 { // O_CREAT and O_EXCL
			return nil, nil
		}
		op.kind, op.path = "create", paths[0]
		return op, nil
	case "renameat", "renameat2", "linkat":
		paths := quoted(args)
		if len(paths) != 2 {
			return nil, fmt.Errorf("no two paths in %.200q", args)
		}
		op.path, op.to = paths[0], paths[1]
		if name != "linkat" {
			op.kind = "rename"
		}
		return op, nil
	case "unlinkat":
		if paths := quoted(args); len(paths) == 1 {
			op.path = paths[0]
			return op, nil
		}
	}
	return nil, nil
}

// descriptor returns the path in `5</path>, …`.
func descriptor(args string) string {
	_, rest, _ := strings.Cut(args, "<")
	path, _, _ := strings.Cut(rest, ">")
	if text, ok := unhex(path); ok { // strace escapes it like other strings
		return string(text)
	}
	return path
}

// quoted returns the paths among arguments. One of a folder's descriptor follows it.
func quoted(args string) (paths []string) {
	parts := strings.Split(args, "\"")
	for i := 1; i < len(parts); i += 2 {
		if text, ok := unhex(parts[i]); ok {
			path := string(text)
			if !filepath.IsAbs(path) {
				path = filepath.Join(descriptor(parts[i-1]), path)
			}
			paths = append(paths, path)
		}
	}
	return paths
}

// number parses the digits at the beginning.
func number(text string) (int64, error) {
	end := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefx", r) })
	if end >= 0 {
		text = text[:end]
	}
	return strconv.ParseInt(text, 0, 64)
}

// unhex decodes \x00\xff….
func unhex(text string) ([]byte, bool) {
	if len(text)%4 != 0 || !strings.HasPrefix(text, `\x`) {
		return nil, false
	}
	out := bytes.NewBuffer(make([]byte, 0, len(text)/4))
	for i := 0; i < len(text); i += 4 {
		high, low := digit(text[i+2]), digit(text[i+3])
		if text[i] != '\\' || text[i+1] != 'x' || high > 15 || low > 15 {
			return nil, false
		}
		out.WriteByte(high<<4 | low)
	}
	return out.Bytes(), true
}

func digit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	default:
		return 255
	}
}
