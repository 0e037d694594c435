package space

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/internal/nearest"
)

// Error is one fault of a space or of a configuration. It names the place, the value, the
// broken rule and the remedy. Functions that find several faults return them joined, and
// [Faults] separates them.
type Error struct {
	Line      int    // line of the file, from 1, or 0 if not read from a file
	Parameter string // name of the parameter, empty for faults of the whole
	Field     string // field of the parameter, as written, empty for its value in a configuration
	Value     string // offending value as shown to people, empty if it is missing
	Rule      string // the rule
	Remedy    string // the remedy, may be empty
}

// Error formats e as `line 3: parameter "lr": low = 0: rule; remedy`.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Parameter != "" {
		b.WriteString("parameter " + quote(e.Parameter))
		if e.Field != "" {
			b.WriteString(": ")
		}
	}
	b.WriteString(e.Field)
	if e.Value != "" {
		if e.Parameter != "" || e.Field != "" {
			b.WriteString(" = ")
		}
		b.WriteString(e.Value)
	}
	if b.Len() > 0 && !strings.HasSuffix(b.String(), ": ") {
		b.WriteString(": ")
	}
	b.WriteString(e.Rule)
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// Faults returns the faults in err, in order, or nil if there are none.
func Faults(err error) []*Error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		var all []*Error
		for _, e := range joined.Unwrap() {
			all = append(all, Faults(e)...)
		}
		return all
	}
	var one *Error
	if errors.As(err, &one) {
		return []*Error{one}
	}
	return nil
}

// faults collects errors, up to maxFaults of them.
type faults struct {
	list []error
	more int
}

func (f *faults) add(e *Error) {
	if len(f.list) < maxFaults {
		f.list = append(f.list, e)
	} else {
		f.more++
	}
}

// full reports whether another fault would only be counted.
func (f *faults) full() bool { return len(f.list) >= maxFaults }

func (f *faults) any() bool { return len(f.list) > 0 }

func (f *faults) err() error {
	if f.more > 0 {
		return errors.Join(append(f.list[:len(f.list):len(f.list)],
			&Error{Rule: fmt.Sprintf("and %d more faults", f.more)})...)
	}
	return errors.Join(f.list...)
}

// quote quotes s for a message, shortened and without characters that could disturb a terminal.
func quote(s string) string {
	if len(s) <= maxShownBytes {
		return strconv.Quote(s)
	}
	cut := maxShownBytes
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}

// show formats v for a message. Strings are quoted, and numbers look as people type them.
func show(v Value) string {
	switch v.kind {
	case KindString:
		return quote(v.text)
	case KindFloat:
		return strings.Replace(strings.Replace(v.String(), "e-0", "e-", 1), "e+0", "e+", 1)
	default:
		return v.String()
	}
}

func showFloat(x float64) string { return show(Float(x)) }

// showValues formats a list for a message, shortened.
func showValues(vs []Value) string {
	const most = 8
	var b strings.Builder
	for i, v := range vs {
		if i == most {
			fmt.Fprintf(&b, ", … (%d in all)", len(vs))
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(show(v))
	}
	return b.String()
}

// similar returns the candidate that s is most likely a misspelling of, or "".
func similar(s string, candidates []string) string {
	for _, c := range candidates {
		if strings.EqualFold(c, s) {
			return c
		}
	}
	if len(s) > MaxNameBytes {
		return ""
	}
	return nearest.Name(s, candidates, min(3, len(s)/2+1))
}
