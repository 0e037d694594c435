package bo

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/bkbtuner/bkb/bench/report"
)

// Page returns a report as a page of Markdown, with the last [Comparison.Latency]
// that was written to the folder of the runs, if there is one.
func (c *Comparison) Page(r *report.Result) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Benchmarks\n\n`go -C bench run . bo --page` writes this page. `bench/bo/doc.go` explains the figures.\nThe runs are from this machine, %s.\n", Machine())
	for _, note := range r.Notes {
		b.WriteString("\n" + note + "\n")
	}
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "\n## %s\n\n", heading(t.Name))
		if len(t.Rows) == 0 {
			fmt.Fprintf(&b, "%s: none.\n", t.Title)
			continue
		}
		if err := t.WriteMarkdown(&b); err != nil {
			return nil, err
		}
	}
	latency, err := os.ReadFile(c.latencyFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	b.Write(latency)
	return b.Bytes(), nil
}

// heading returns a title for a table's name.
func heading(name string) string {
	text := strings.ReplaceAll(name, "-", " ")
	return strings.ToUpper(text[:1]) + text[1:]
}

func (c *Comparison) latencyFile() string { return filepath.Join(c.Out, "latency.md") }

// keepLatency writes a result of Latency for later pages.
func (c *Comparison) keepLatency(r *report.Result) error {
	var b bytes.Buffer
	b.WriteString("\n## Latency\n\n")
	for _, t := range r.Tables {
		if err := t.WriteMarkdown(&b); err != nil {
			return err
		}
	}
	for _, note := range r.Notes {
		b.WriteString("\n" + note + "\n")
	}
	fmt.Fprintf(&b, "\nMeasured with version %s on %s.\n", Version(), Machine())
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	return os.WriteFile(c.latencyFile(), b.Bytes(), 0o644)
}

// Machine describes this machine.
func Machine() string {
	cpu := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d processors, %s, %s", cpu, runtime.NumCPU(), runtime.GOOS, runtime.Version())
}
