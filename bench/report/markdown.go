package report

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the table as one of Markdown, its title above it. Columns
// without words are aligned right.
func (t *Table) WriteMarkdown(out io.Writer) error {
	var b strings.Builder
	if t.Title != "" {
		b.WriteString(t.Title + ".\n\n")
	}
	line := func(cell func(c int) string) {
		for c := range t.Columns {
			b.WriteString("| " + strings.ReplaceAll(cell(c), "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	line(func(c int) string { return t.Columns[c].heading() })
	line(func(c int) string {
		for _, row := range t.Rows {
			if _, word := row[c].(string); word {
				return "---"
			}
		}
		return "---:"
	})
	for _, row := range t.Rows {
		line(func(c int) string { return t.Columns[c].cell(row[c]) })
	}
	_, err := fmt.Fprint(out, b.String())
	return err
}
