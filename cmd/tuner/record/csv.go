package record

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/tuner/runner/metric"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// The columns of a CSV file. Parameters, objectives and standard errors of objectives
// have columns of their own, whose names have these prefixes. Other metrics, attributes
// and reports are JSON in a cell.
const (
	prefixConfig = "config."
	prefixValue  = "value."
	prefixStdErr = "stderr."
)

// columnFeasible is there if the study has constraints on outcomes.
const columnFeasible = "feasible"

// CSVHeader returns the columns for a study.
func CSVHeader(spec study.Spec) []string {
	h := []string{"trial", "state", "reason", "message"}
	for _, p := range spec.Space.Parameters() {
		h = append(h, prefixConfig+p.Name)
	}
	for _, o := range spec.Objectives {
		h = append(h, prefixValue+o.Name, prefixStdErr+o.Name)
	}
	h = append(h, "metrics", "cost", "attributes", "reports", "origin", "phase", "worker", "epoch", "created", "started", "ended")
	if NewJudge(spec).Constraints() != "" {
		h = append(h, columnFeasible)
	}
	return h
}

// CSVRow writes a trial into the columns of CSVHeader.
func (r Trial) CSVRow(header []string) ([]string, error) {
	fields, err := r.fields()
	if err != nil {
		return nil, err
	}
	row := make([]string, len(header))
	for i, column := range header {
		if name, ok := strings.CutPrefix(column, prefixConfig); ok {
			if v, ok := r.Config.Get(name); ok && v.Kind() == space.KindString {
				row[i] = quoteText(v.String())
			} else if ok {
				row[i] = v.String()
			}
		} else if name, ok := strings.CutPrefix(column, prefixValue); ok {
			row[i] = r.value(name)
		} else if name, ok := strings.CutPrefix(column, prefixStdErr); ok {
			if s, ok := r.StdErr[name]; ok {
				row[i] = metric.FormatNumber(float64(s))
			}
		} else if column == "metrics" {
			row[i], err = r.otherMetrics(header)
		} else if row[i] = string(fields[column]); strings.HasPrefix(row[i], `"`) {
			err = json.Unmarshal(fields[column], &row[i])
			row[i] = quoteText(row[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return row, nil
}

// fields returns the fields of the trial in JSON. Numbers of 0 are there too.
func (r Trial) fields() (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{"epoch": json.RawMessage("0"), "cost": json.RawMessage("0")}
	text, err := jsonText(r)
	if err != nil {
		return nil, err
	}
	return fields, json.Unmarshal([]byte(text), &fields)
}

func (r Trial) value(name string) string {
	words := make([]string, len(r.Values[name]))
	for i, x := range r.Values[name] {
		words[i] = metric.FormatNumber(x)
	}
	text := strings.Join(words, ",")
	if meant, replicates := metric.OneNumber(text); meant != nil {
		return replicates
	}
	return text
}

type csvMetric struct {
	Values Numbers `json:"values"`
	StdErr *Number `json:"stderr,omitempty"`
}

func (r Trial) otherMetrics(header []string) (string, error) {
	others := make(map[string]csvMetric)
	for name, values := range r.Values {
		if slices.Contains(header, prefixValue+name) {
			continue
		}
		m := csvMetric{Values: values}
		if s, ok := r.StdErr[name]; ok {
			m.StdErr = &s
		}
		others[name] = m
	}
	return jsonCell(others, len(others))
}

func jsonCell(v any, n int) (string, error) {
	if n == 0 {
		return "", nil
	}
	return jsonText(v)
}

// jsonText writes a value as JSON, without the escapes meant for HTML.
func jsonText(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSpace(b.String()), err
}

// special are the first characters that make a spreadsheet take text for a
// formula, and the quote that keeps it from it.
const special = "=+-@\t\r'"

// quoteText makes text safe in a spreadsheet, and the empty text different from none.
func quoteText(s string) string {
	if s == "" || strings.ContainsRune(special, rune(s[0])) {
		return "'" + s
	}
	return s
}

func unquoteText(s string) string {
	if rest, ok := strings.CutPrefix(s, "'"); ok && (rest == "" || strings.ContainsRune(special, rune(rest[0]))) {
		return rest
	}
	return s
}

// readCSV yields the trials of a CSV file. One without a state and a value has no outcome.
func readCSV(data []byte, yield func(line int, r Trial, err error) bool) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !bytes.Contains(data, []byte("\n")) {
		data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n")) // the line ends of old programs
	}
	in := csvReader(data, delimiter(data))
	in.ReuseRecord = true
	first, err := in.Read()
	if errors.Is(err, io.EOF) {
		return
	}
	header := columns(first)
	if err == nil {
		err = checkHeader(header)
	}
	if err != nil {
		yield(1, Trial{}, err)
		return
	}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		var r Trial
		line := 0
		if wrong := (*csv.ParseError)(nil); errors.As(err, &wrong) {
			line, err = wrong.Line, wrong.Err
		}
		if err == nil {
			line, _ = in.FieldPos(0)
			err = checkCommas(header, row)
		}
		if err == nil {
			r, err = fromRow(header, row)
		}
		if !yield(line, r, err) || err != nil {
			return
		}
	}
}

// checkCommas refuses values such as 0,5 and 1,234.5. They are rather numbers than replicates.
func checkCommas(header, row []string) error {
	for i, cell := range row {
		if !strings.HasPrefix(header[i], prefixValue) {
			continue
		}
		if meant, replicates := metric.OneNumber(strings.TrimSpace(cell)); meant != nil {
			return fmt.Errorf("column %s: %s could be a decimal comma or separators of thousands; write %s, or for replicates %s", header[i], cell, strings.Join(meant, " or "), replicates)
		}
	}
	return nil
}

// delimiters are those of CSV files, the usual one first.
const delimiters = ",;\t|"

// delimiter is the one of a file, with which the first line has the most known columns.
func delimiter(data []byte) rune {
	best, most := ',', 0
	for _, d := range delimiters {
		first, _ := csvReader(data, d).Read()
		n := 0
		for _, column := range columns(first) {
			if isColumn(column) {
				n++
			}
		}
		if n > most {
			best, most = d, n
		}
	}
	return best
}

func csvReader(data []byte, delimiter rune) *csv.Reader {
	in := csv.NewReader(bytes.NewReader(data))
	in.Comma, in.TrimLeadingSpace = delimiter, delimiter != '\t'
	return in
}

// columns are the names in a header, without the spaces around them.
func columns(header []string) []string {
	out := make([]string, len(header))
	for i, column := range header {
		out[i] = strings.TrimSpace(column)
	}
	return out
}

// knownColumns are those without a prefix.
func knownColumns() []string {
	return append(CSVHeader(study.Spec{Space: &space.Space{}}), columnFeasible)
}

func isColumn(column string) bool {
	prefixed := slices.ContainsFunc([]string{prefixConfig, prefixValue, prefixStdErr}, func(p string) bool { return strings.HasPrefix(column, p) })
	return prefixed || slices.Contains(knownColumns(), column)
}

func checkHeader(header []string) error {
	seen := make(map[string]bool)
	for _, column := range header {
		if seen[column] {
			return fmt.Errorf("there are two columns %q", column)
		}
		seen[column] = true
		if !isColumn(column) {
			return fmt.Errorf("there is no column %.40q; there are config.NAME, value.NAME, stderr.NAME and %s", column, strings.Join(knownColumns(), ", "))
		}
		if len(header) == 1 && strings.Contains(column, prefixValue) && !strings.HasPrefix(column, prefixValue) {
			return fmt.Errorf("the first line %.80q has none of the delimiters comma, semicolon, tab and |; separate the columns by one of them", column)
		}
	}
	return nil
}

// missing are words of other programs for values that a trial lacks.
var missing = []string{"na", "n/a", "<na>", "none", "null"}

func fromRow(header, row []string) (r Trial, err error) {
	var entries []space.Assignment
	r.Values, r.StdErr = make(map[string]Numbers), make(map[string]Number)
	for i, cell := range row {
		column := header[i]
		if cell == "" {
			continue
		}
		if name, ok := strings.CutPrefix(column, prefixConfig); ok {
			entries = append(entries, space.Assignment{Name: name, Value: space.String(unquoteText(cell))})
			continue
		}
		if strings.TrimSpace(cell) == "" || strings.Contains(column, ".") && slices.Contains(missing, strings.ToLower(strings.TrimSpace(cell))) {
			continue
		}
		if err = r.set(column, cell); err != nil {
			return r, fmt.Errorf("column %s: %w", column, err)
		}
	}
	r.Config = space.NewConfig(entries...)
	r.imply()
	return r, nil
}

// set reads one cell that is not of the configuration.
func (r *Trial) set(column, cell string) error {
	if name, ok := strings.CutPrefix(column, prefixValue); ok {
		m, err := metric.Read(name, strings.TrimSpace(cell))
		if err != nil {
			return err
		}
		r.Values[name] = m.Values
		if m.HasStdErr {
			r.StdErr[name] = Number(m.StdErr)
		}
		return nil
	}
	if name, ok := strings.CutPrefix(column, prefixStdErr); ok {
		x, err := metric.ParseNumber(strings.TrimSpace(cell))
		r.StdErr[name] = Number(x)
		return err
	}
	if column == "metrics" {
		var others map[string]csvMetric
		if err := strict([]byte(cell), &others); err != nil {
			return err
		}
		for name, m := range others {
			if r.Values[name] = m.Values; m.StdErr != nil {
				r.StdErr[name] = *m.StdErr
			}
		}
		return nil
	}
	to, taken := map[string]any{
		"state": &r.State, "reason": &r.Reason, "message": &r.Message, "cost": &r.Cost, "attributes": &r.Attributes, "reports": &r.Reports,
	}[column]
	switch to := to.(type) {
	case *string:
		*to = unquoteText(cell)
	case *Number:
		return to.UnmarshalJSON([]byte(cell))
	default:
		if taken {
			return strict([]byte(cell), to)
		}
	}
	return nil // the others say how the trial was run, which is not taken over
}

// strict decodes JSON without unknown fields or anything behind it.
func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind the JSON value")
	}
	return nil
}
