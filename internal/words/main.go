// Words measures the prose of the project: documents, help texts, Go comments and
// commit subjects. It prints a table and fails where a path exceeds its bound in
// bounds.txt.
//
//	go run ./internal/words -since COMMIT
//
// It counts sentences with a semicolon or colon and sentences with the odd words of
// CONTRIBUTING.md. Code, tables, headings and indented blocks do not count.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// maxSubject is the most characters of a commit subject.
const maxSubject = 72

//go:embed bounds.txt
var boundsFile string

func main() {
	root := flag.String("root", ".", "the directory of the project")
	since := flag.String("since", "", "count the commit subjects after this commit")
	flag.Parse()
	if err := run(context.Background(), *root, *since, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, since string, out io.Writer) error {
	bounds, err := parseBounds(boundsFile)
	if err != nil {
		return err
	}
	counts, err := measure(os.DirFS(root))
	if err != nil {
		return err
	}
	failed := print(out, counts, bounds)
	if since != "" {
		subjects, err := subjectsSince(ctx, root, since)
		if err != nil {
			return err
		}
		failed = append(failed, judgeSubjects(out, subjects)...)
	}
	return errors.Join(failed...)
}

// bound is the most that a path may have, in percent of its sentences.
type bound struct{ marks, odd float64 }

// parseBounds reads lines "PATH MARKS ODD".
func parseBounds(text string) (map[string]bound, error) {
	bounds := map[string]bound{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 3 {
			return nil, fmt.Errorf("bounds.txt: %q: must be PATH MARKS ODD", strings.TrimSpace(line))
		}
		marks, err := strconv.ParseFloat(fields[1], 64)
		odd, err2 := strconv.ParseFloat(fields[2], 64)
		if err := errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("bounds.txt: %s: %w", fields[0], err)
		}
		bounds[fields[0]] = bound{marks, odd}
	}
	return bounds, nil
}

// find returns the bound of a path, or of its nearest parent.
func find(bounds map[string]bound, path string) (bound, bool) {
	for {
		if b, ok := bounds[path]; ok {
			return b, true
		}
		i := strings.LastIndex(path, "/")
		if i < 0 {
			return bound{}, false
		}
		path = path[:i]
	}
}

// print writes a table of the counts and returns an error for each bound that is
// exceeded.
func print(out io.Writer, counts map[string]count, bounds map[string]bound) []error {
	var paths []string
	for path := range counts {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "sentences\twords each\twith ; or :\tbound\todd words\tbound\t  path")
	var total count
	var failed []error
	for _, path := range paths {
		c := counts[path]
		total.add(c)
		marks, odd := "-", "-"
		if b, ok := find(bounds, path); ok {
			marks, odd = percent(b.marks), percent(b.odd)
			if c.share(c.marks) > b.marks {
				failed = append(failed, fmt.Errorf("%s: %s of the sentences have ; or :, and %s may", path, percent(c.share(c.marks)), marks))
			}
			if c.share(c.odd) > b.odd {
				failed = append(failed, fmt.Errorf("%s: %s of the sentences have odd words, and %s may: %s", path, percent(c.share(c.odd)), odd, c.example))
			}
		}
		row(table, c, marks, odd, path)
	}
	row(table, total, "-", "-", "all")
	table.Flush()
	return failed
}

func row(out io.Writer, c count, marks, odd, path string) {
	fmt.Fprintf(out, "%d\t%.1f\t%s\t%s\t%s\t%s\t  %s\n", c.sentences, float64(c.words)/float64(max(c.sentences, 1)), percent(c.share(c.marks)), marks, percent(c.share(c.odd)), odd, path)
}

func percent(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) + "%" }

// subjectsSince returns the subjects of the commits after a commit.
func subjectsSince(ctx context.Context, root, since string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", "log", "--format=%s", since+"..")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git log %s..: %w", since, err)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }), nil
}

func judgeSubjects(out io.Writer, subjects []string) []error {
	var failed []error
	for _, s := range subjects {
		if n := utf8.RuneCountInString(s); n > maxSubject {
			failed = append(failed, fmt.Errorf("a commit subject has %d characters, and %d may be: %s", n, maxSubject, s))
		}
	}
	fmt.Fprintf(out, "%d of %d commit subjects have more than %d characters\n", len(failed), len(subjects), maxSubject)
	return failed
}
