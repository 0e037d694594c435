package data

import (
	"fmt"
	"strings"
)

// CellError reports one cell that cannot be used, or one row if Column is empty. Row
// counts data rows from 1, without the header. Line is the line of the file, or 0 where
// the file has no lines or the line is not known any more.
type CellError struct {
	File   string
	Row    int
	Line   int
	Column string
	Reason string
}

func (e *CellError) Error() string {
	var b strings.Builder
	b.WriteString("dataset: ")
	if e.File != "" {
		b.WriteString(e.File + ": ")
	}
	fmt.Fprintf(&b, "row %d", e.Row)
	if e.Line > 0 {
		fmt.Fprintf(&b, " (line %d)", e.Line)
	}
	if e.Column != "" {
		fmt.Fprintf(&b, ", column %q", e.Column)
	}
	return b.String() + ": " + e.Reason
}
