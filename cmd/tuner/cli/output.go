package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// JsonLine writes a value as JSON on one line. Characters that can forge output on a
// terminal are escaped.
func JsonLine(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		if hostile(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes(), nil
}

// WriteJSON writes a value as JSON and a line end.
func WriteJSON(out io.Writer, v any) error {
	line, err := JsonLine(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", line)
	return err
}

// WriteYAML writes the JSON of a value as YAML, one field on a line.
func WriteYAML(out io.Writer, v any) error {
	line, err := JsonLine(v)
	if err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(line, &node); err != nil {
		return err
	}
	block(&node)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&node); err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	_, err = out.Write(b.Bytes())
	return err
}

// block removes the style of JSON from a YAML tree, except from lists of scalars.
func block(n *yaml.Node) {
	small := n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return c.Kind != yaml.ScalarNode })
	if !small {
		n.Style = 0
	}
	for _, c := range n.Content {
		if c.Kind == yaml.ScalarNode && strings.ContainsFunc(c.Value, hostile) {
			continue // stays quoted
		}
		block(c)
	}
}

// Sink writes records one by one.
type Sink interface {
	Put(v any) error
	End() error
}

// ListSink writes JSON (a list), JSON lines or YAML.
type ListSink struct {
	Out    io.Writer
	Format string
	n      int
}

func (s *ListSink) Put(v any) error {
	s.n++
	switch s.Format {
	case "yaml":
		return WriteYAML(s.Out, []any{v})
	case "jsonl":
		return WriteJSON(s.Out, v)
	}
	line, err := JsonLine(v)
	if err != nil {
		return err
	}
	before := ",\n "
	if s.n == 1 {
		before = "["
	}
	_, err = fmt.Fprintf(s.Out, "%s%s", before, line)
	return err
}

func (s *ListSink) End() error {
	text := ""
	switch {
	case s.Format == "json" && s.n == 0, s.Format == "yaml" && s.n == 0:
		text = "[]\n"
	case s.Format == "json":
		text = "]\n"
	}
	_, err := io.WriteString(s.Out, text)
	return err
}

// paged yields what next returns page by page, so that no more than a page is in memory. An
// error is yielded last.
func paged[T any](next func() (page []T, more bool, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for more := true; more; {
			var page []T
			var err error
			page, more, err = next()
			for _, v := range page {
				if !yield(v, nil) {
					return
				}
			}
			if err != nil {
				yield(*new(T), err)
				return
			}
		}
	}
}

// AllTrials yields the trials that match, once.
func AllTrials(ctx context.Context, svc tuner.Service, name string, f tuner.Filter) iter.Seq2[study.Trial, error] {
	left, limited := f.Limit, f.Limit > 0
	return paged(func() ([]study.Trial, bool, error) {
		f.Limit = min(left, tuner.MaxPage)
		trials, more, err := svc.Trials(ctx, name, f)
		if n := len(trials); n > 0 {
			f.First = trials[n-1].Number + 1
		}
		left = max(left-len(trials), 0)
		return trials, more && (left > 0 || !limited), err
	})
}

// AllReports returns the reports of a trial, read page by page.
func AllReports(ctx context.Context, svc tuner.Service, name string, trial int) (all []study.Report, err error) {
	for more := true; more; {
		var page []study.Report
		page, more, err = svc.Reports(ctx, name, trial, len(all), 0)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		more = more && len(page) > 0
	}
	return all, nil
}

// AllStudies yields the studies, once.
func AllStudies(ctx context.Context, svc tuner.Service) iter.Seq2[tuner.Study, error] {
	after := ""
	return paged(func() ([]tuner.Study, bool, error) {
		studies, more, err := svc.Studies(ctx, after, 0)
		if n := len(studies); n > 0 {
			after = studies[n-1].Name
		}
		return studies, more, err
	})
}

// WriteList writes records as JSON or YAML, or as the rows of a table.
func WriteList[T any](out io.Writer, form string, list []T, t *Table, row func(T) []string) error {
	if form == "table" {
		for _, v := range list {
			t.Row(row(v)...)
		}
		return t.End()
	}
	s := &ListSink{Out: out, Format: form}
	for _, v := range list {
		if err := s.Put(v); err != nil {
			return err
		}
	}
	return s.End()
}

// OutliveReaders lets this process continue when the reader of its stdout or stderr is gone, whose
// pipe would end it, and when the reader of a stderr that is no terminal does not read. Other
// programs that it starts are not affected.
func OutliveReaders(cmd *cobra.Command) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if w := cmd.ErrOrStderr(); TerminalOf(w) == nil {
		p := &patient{w: w, free: make(chan struct{}, 1)}
		p.free <- struct{}{}
		cmd.SetErr(p)
	}
}

// patience is how long a write waits for a reader.
const patience = time.Second

// patient passes lines on. It drops those that come while one waits for its reader for longer
// than patience.
type patient struct {
	w    io.Writer
	free chan struct{} // has an element while no line is being written

	mu   sync.Mutex
	lost int
}

func (p *patient) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.free:
	default:
		p.lost++
		return len(line), nil
	}
	text := bytes.Clone(line)
	if p.lost > 0 {
		text = fmt.Appendf(nil, "%d lines were lost here, because the reader of this log did not read\n%s", p.lost, line)
		p.lost = 0
	}
	written := make(chan error, 1)
	go func() {
		_, err := p.w.Write(text)
		p.free <- struct{}{}
		written <- err
	}()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case err := <-written:
		return len(line), err
	case <-limit.C:
		return len(line), nil
	}
}
