package dataset

import (
	"fmt"
	"strconv"
	"strings"
)

// FileError reports a file that cannot be read as a table.
type FileError struct {
	File   string
	Reason string
	Err    error // cause, if any
}

func (e *FileError) Error() string {
	s := "dataset: " + e.File + ": " + e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *FileError) Unwrap() error { return e.Err }

// UnknownColumnError reports a name of which there is no column.
type UnknownColumnError struct {
	What string   // what the name was given for, such as "target" or "drop"
	Name string   // the name
	Near []string // names that look like it, the nearest first
	Have []string // all names
}

func (e *UnknownColumnError) Error() string {
	s := fmt.Sprintf("dataset: %s %q is not a column", e.What, e.Name)
	if len(e.Near) > 0 {
		return s + "; did you mean " + quoted(e.Near, 3, " or ") + "?"
	}
	return s + "; the columns are " + quoted(e.Have, 8, ", ")
}

// ColumnsError reports data whose columns are not those that a model was fitted to.
type ColumnsError struct {
	Missing []string // columns of the model that the data lacks
	Extra   []string // columns of the data that the model does not know
	Reason  string   // anything else, such as a column of another kind
}

func (e *ColumnsError) Error() string {
	var parts []string
	if len(e.Missing) > 0 {
		parts = append(parts, "missing "+quoted(e.Missing, 8, ", "))
	}
	if len(e.Extra) > 0 {
		parts = append(parts, "not known to the model "+quoted(e.Extra, 8, ", ")+" (set IgnoreExtra to leave them out)")
	}
	if e.Reason != "" {
		parts = append(parts, e.Reason)
	}
	return "dataset: the columns are not those the model was fitted on: " + strings.Join(parts, "; ")
}

// quoted lists at most max names, quoted.
func quoted(names []string, max int, sep string) string {
	var parts []string
	for _, n := range names[:min(max, len(names))] {
		parts = append(parts, strconv.Quote(n))
	}
	s := strings.Join(parts, sep)
	if more := len(names) - max; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// excerpt quotes a value for an error message, shortened.
func excerpt(s []byte) string {
	if len(s) > 40 {
		return strconv.Quote(string(s[:40])) + "…"
	}
	return strconv.Quote(string(s))
}
