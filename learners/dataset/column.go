package dataset

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/internal/nearest"
	"github.com/bkbtuner/bkb/learners/data"
)

// Column describes one column of a Table.
type Column struct {
	Name string    `json:"name"`
	Kind data.Kind `json:"kind"`
	// Levels are the texts of a categorical column by their first appearance. A cell is an
	// index into them.
	Levels []string `json:"levels,omitempty"`
	// Missing is the number of missing cells. FirstMissing is the row of the first, from 1 over
	// all files, and MissingLine its line.
	Missing      int `json:"missing,omitempty"`
	FirstMissing int `json:"first_missing,omitempty"`
	MissingLine  int `json:"missing_line,omitempty"`
	// Min and Max bound the numbers. Both are 0 if there are none.
	Min float64 `json:"min"`
	Max float64 `json:"max"`
	// Values is the number of different values, where 3 means 3 or more.
	Values int `json:"values"`
	// Whole says that all numbers are integers.
	Whole bool `json:"whole,omitempty"`
	// Dates is the order of the parts of dates in texts, such as "day/month/year", and why.
	Dates    string `json:"dates,omitempty"`
	DatesWhy string `json:"dates_why,omitempty"`
	// Label says that the format marks the column as a class label.
	Label bool `json:"label,omitempty"`
}

// Constant reports whether all cells are equal, except missing ones.
func (c *Column) Constant() bool { return c.Values <= 1 }

// place is the position of a cell, as a row from 1 over all files, and a line in its file.
type place struct{ row, line int }

// columnBuilder builds a column cell by cell.
type columnBuilder struct {
	name    string
	kind    data.Kind // "" if the cells decide between numbers and texts
	times   *times    // of a column of times in texts
	undated bool      // the first cells are neither all times nor all truth values
	model   bool      // kind is that of a model
	target  bool
	odd     bool               // labels that are no plain integers, or an integer written in two ways
	written map[float64]string // of labels
	dropped bool
	last    []byte   // text of a dropped column
	weights bool     // of rows
	keep    bool     // the cells as texts
	kept    []string // of the rows
	label   bool

	numbers, texts, missing              int
	firstNumber, firstText, firstMissing place
	text                                 string // the first one, for an error
	min, max, sum                        float64
	fraction                             bool
	values                               [3]float64 // the first different numbers
	different                            int
	codes                                map[string]int32
	levels                               []string
	overflow                             bool // more than MaxLevels
}

// detect decides by some cells whether the column has times or truth values. Dates whose
// order the cells leave open have the preferred one.
func (c *columnBuilder) detect(cells [][]byte, preferred dateOrder) {
	t, boolean := detectWords(cells, preferred)
	switch {
	case t != nil:
		c.kind, c.times = data.Time, t
	case boolean:
		c.kind = data.Boolean
	}
}

// describe finds times and truth values in the first cells of column c.
func (b *builder) describe(c int, texts [][]byte) {
	col := &b.cols[c]
	var cells [][]byte
	for _, s := range texts {
		if s = trim(s); !b.missing.has(s) {
			cells = append(cells, s)
		}
	}
	switch {
	case col.kind == data.Time && col.times == nil:
		if col.detect(cells, b.prefer); col.times == nil {
			col.kind, col.times = data.Time, &times{order: b.prefer, asked: true}
		}
	case col.kind == "" && len(cells) > 0:
		col.detect(cells, b.prefer)
		col.undated = col.kind == ""
	}
}

// addLabel notes how a number is written that may be the label of a class.
func (c *columnBuilder) addLabel(v float64, s []byte) {
	whole := bytes.TrimLeft(s, "+-")
	if c.odd = c.odd || len(whole) > 1 && whole[0] == '0' && whole[1] != '.' || math.Abs(v) >= 1<<53 && digits(whole); c.odd || len(c.written) > MaxClasses {
		return
	}
	if c.written == nil {
		c.written = map[float64]string{}
	}
	plain := strings.TrimPrefix(string(s), "+")
	if old, ok := c.written[v]; !ok {
		c.written[v] = plain
	} else {
		c.odd = old != plain
	}
}

func (c *columnBuilder) addNumber(v float64, row, line int) {
	if c.numbers == 0 {
		c.firstNumber, c.min, c.max = place{row, line}, v, v
	}
	c.numbers++
	c.sum += v
	c.min, c.max = min(c.min, v), max(c.max, v)
	c.fraction = c.fraction || v != math.Trunc(v)
	if c.different < len(c.values) && !slices.Contains(c.values[:c.different], v) {
		c.values[c.different] = v
		c.different++
	}
}

// addText returns the code of s.
func (c *columnBuilder) addText(s []byte, row, line int) (float64, error) {
	if c.texts == 0 {
		c.firstText, c.text = place{row, line}, excerpt(s)
	}
	c.texts++
	if c.overflow {
		return 0, nil
	}
	code, ok := c.codes[string(s)]
	switch {
	case ok:
		return float64(code), nil
	case len(s) > MaxText:
		return 0, fmt.Errorf("a text of %d bytes, the limit is %d", len(s), MaxText)
	case !utf8.Valid(s):
		return 0, fmt.Errorf("%s is not UTF-8", excerpt(s))
	case len(c.levels) == MaxLevels:
		c.overflow, c.codes, c.levels = true, nil, nil
		return 0, nil
	case c.codes == nil:
		c.codes = map[string]int32{}
	}
	code, level := int32(len(c.levels)), string(s)
	c.codes[level] = code
	c.levels = append(c.levels, level)
	return float64(code), nil
}

// finish returns the column, or an error if it mixes numbers and texts.
func (c *columnBuilder) finish(b *builder) (Column, error) {
	col := Column{
		Name: c.name, Kind: data.Numeric, Missing: c.missing, Label: c.label,
		FirstMissing: c.firstMissing.row, MissingLine: c.firstMissing.line,
		Min: c.min, Max: c.max, Values: c.different, Whole: c.numbers > 0 && !c.fraction,
	}
	if c.kind.IsNumber() {
		col.Kind = c.kind
	}
	if c.times != nil {
		col.Dates, col.DatesWhy = c.times.order, c.times.why()
	}
	switch {
	case c.texts > 0 && c.kind != data.Categorical && c.decorated(b) != "":
		text := c.decorated(b)
		reason := b.unread(text)
		if text != c.levels[0] { // whose row is not known
			return col, &FileError{File: b.file, Reason: fmt.Sprintf("column %q: %s", c.name, reason)}
		}
		return col, c.fault(b, c.firstText, reason)
	case c.texts > 0 && c.numbers > 0:
		return col, c.mixed(b)
	case c.overflow:
		col.Kind, col.Values = data.Text, 3
	case c.texts > 0 || c.kind == data.Categorical:
		col.Kind, col.Levels, col.Values = data.Categorical, c.levels, min(3, len(c.levels))
	}
	return col, nil
}

// decoratedNumber is a number, perhaps with a decimal comma, separators of thousands, a minus of
// typesetters or behind it, or a sign of currency or per cent.
var decoratedNumber = func() *regexp.Regexp {
	const currency = `([$€£¥₹]|USD|EUR|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|Fr\.|kr\.?|zł)`
	return regexp.MustCompile(`^[-+(−]?` + currency + `?\s?[-+−]?(\d+[.,]\d+|\d{1,3}([.,' ’\x{a0}\x{202f}]\d{3})*([.,]\d+)?|\d+)[\s\x{a0}\x{202f}]?(%|‰|` + currency + `)?[)−-]?$`)
}()

// unread says why a decorated number is not read, and how to write it.
func (b *builder) unread(s string) string {
	what, mark := "sign", "point"
	if b.comma {
		mark = "comma"
	}
	advice := "write numbers with a decimal " + mark + ", nothing between thousands and no signs of currency or per cent"
	if strings.Contains(s, ",") {
		what = "comma"
	}
	if settable := b.open && commaNumber.MatchString(s); settable && commaThousands.MatchString(s) {
		return fmt.Sprintf("%q could be %s with a decimal comma or %s with one between thousands; set Decimal if commas are decimal, or write numbers without commas", s, strings.Replace(s, ",", ".", 1), strings.Replace(s, ",", "", 1))
	} else if settable {
		advice += ", set Decimal if commas are decimal"
	}
	if !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.Is(unicode.Sc, r) || strings.ContainsRune("%‰()", r)
	}) {
		advice += ", or name the column in Categorical"
	}
	return fmt.Sprintf("%q is no number for its %s; %s", s, what, advice)
}

// decorated returns the first decorated number if all texts are numbers, and some are decorated.
func (c *columnBuilder) decorated(b *builder) (first string) {
	for _, s := range c.levels {
		_, err := b.parse([]byte(s))
		switch {
		case err == nil:
		case !decoratedNumber.MatchString(s):
			return ""
		case first == "":
			first = s
		}
	}
	return first
}

func (c *columnBuilder) mixed(b *builder) error {
	at, value, what := c.firstText, c.text, "is not a number"
	counts := fmt.Sprintf("the column has %s and %s", count(c.numbers, "number"), count(c.texts, "text"))
	advice := textRemedy
	if c.numbers < c.texts {
		at, value, what = c.firstNumber, strconv.Quote(formatNumber(c.values[0])), "is a number among texts"
		advice = "name the column in Categorical"
	}
	if at.row == b.rows && b.rows > 1 {
		advice += ", or remove the row if it sums up the others"
	}
	return c.fault(b, at, fmt.Sprintf("%s %s: %s; %s", value, what, counts, advice))
}

// totalWord is what people call a row that sums up the others.
var totalWord = regexp.MustCompile(`(?i)^((grand|general)\s|sub-?)?(totals?|totale|sums?|summe|gesamt(summe)?|insgesamt|somme|suma|razem|итого)(\s(général|general|gesamt))?\s?:?$`)

// checkTotal refuses a last row that a text calls a total and that has a sum of the rows above.
func (b *builder) checkTotal() error {
	var named *columnBuilder
	text, sums := "", false
	for c := range b.cols {
		col, cell := &b.cols[c], string(b.cols[c].last)
		if !col.dropped && !col.weights {
			switch v := b.row[b.slot[c]]; {
			case math.IsNaN(v) || col.overflow:
			case col.texts == 0:
				sums = sums || v != 0 && math.Abs(col.sum-2*v) <= 1e-3*math.Abs(v)
			default:
				cell = col.levels[int(v)]
			}
		}
		if totalWord.MatchString(cell) {
			named, text = col, cell
		}
	}
	if named == nil || !sums || b.rows < 2 {
		return nil
	}
	return named.fault(b, place{b.rows, b.line}, fmt.Sprintf("the row %q sums up the others; remove it", text))
}

// fault is the error of a cell of one of the files.
func (c *columnBuilder) fault(b *builder, at place, reason string) error {
	file, row := b.parts.at(at.row)
	if len(b.parts) == 1 {
		file = b.file // which may be that of the targets
	}
	return &data.CellError{File: file, Row: row, Line: at.line, Column: c.name, Reason: reason}
}

// count returns "1 row", "2 rows".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// checkNames returns usable names, or an error for names that are repeated, too long or
// unreadable. Empty names become "column k".
func checkNames(names []string) ([]string, error) {
	out := make([]string, len(names))
	seen := make(map[string]int, len(names))
	for i, n := range names {
		n = strings.TrimSpace(n)
		n = cmp.Or(n, positional(i))
		if len(n) > MaxName {
			return nil, fmt.Errorf("the name of column %d has %d bytes, the limit is %d", i+1, len(n), MaxName)
		}
		if !utf8.ValidString(n) {
			return nil, fmt.Errorf("the name %q of column %d is not UTF-8", n, i+1)
		}
		if strings.ContainsFunc(n, hidden) {
			return nil, fmt.Errorf("the name %q of column %d has characters that cannot be shown", n, i+1)
		}
		if first, twice := seen[n]; twice {
			return nil, fmt.Errorf("columns %d and %d are both called %q", first+1, i+1, n)
		}
		seen[n] = i
		out[i] = n
	}
	return out, nil
}

// hidden reports control and bidirectional formatting characters.
func hidden(r rune) bool { return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) }

// positional is the name of column i, from 0, in a file without names.
func positional(i int) string { return "column " + strconv.Itoa(i+1) }

// near returns the names most like name, the nearest first. At most a third of name may
// be edited, and case does not count.
func near(name string, names []string) []string {
	want, limit := strings.ToLower(name), max(1, len(name)/3)+1
	if len(want) > MaxName {
		return nil
	}
	var out []string
	for d := range limit {
		for _, n := range names {
			if len(n) <= MaxName && nearest.Distance(want, strings.ToLower(n), limit) == d {
				out = append(out, n)
			}
		}
	}
	return out
}

// find returns the index of the column with this name or position.
func find(what, name string, names []string) (int, error) {
	if i := slices.Index(names, name); i >= 0 {
		return i, nil
	}
	k, err := strconv.Atoi(name)
	if k < 0 {
		k += len(names) + 1
	}
	if err == nil && k >= 1 && k <= len(names) {
		return k - 1, nil
	}
	return 0, &UnknownColumnError{What: what, Name: name, Near: near(name, names), Have: names}
}

// formatNumber returns the shortest text that reads back as v.
func formatNumber(v float64) string { return strconv.FormatFloat(v+0, 'g', -1, 64) }
