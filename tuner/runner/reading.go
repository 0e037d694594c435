package runner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/bkbtuner/bkb/tuner/runner/metric"
	"github.com/bkbtuner/bkb/tuner/study"
	"golang.org/x/text/unicode/norm"
)

// reading collects the values in the output of a command. It is safe for concurrent use.
type reading struct {
	wanted     []string // names of the objectives, then of the metrics with limits
	objectives int      // of them

	mu         sync.Mutex
	result     []study.Metric // of lines without a step
	lastStep   []study.Metric // of the last line with one
	seen       []string       // names of metrics, in order of appearance
	infeasible *string
	advice     string         // how to write the last line that names a wanted metric and was not read
	reports    []study.Report // not yet taken
	fresh      chan struct{}  // holds a token if there are reports
	object     []byte         // lines of a JSON object that has not ended
	indent     string         // of its first line
}

func newReading(objectives []study.Objective, limited ...string) *reading {
	r := &reading{objectives: len(objectives), fresh: make(chan struct{}, 1)}
	for _, o := range objectives {
		r.wanted = append(r.wanted, o.Name)
	}
	r.wanted = append(r.wanted, limited...)
	return r
}

// said is the content of one line of output.
type said struct {
	step       int64
	hasStep    bool
	metrics    []study.Metric
	infeasible *string
}

// line reads one line of output, and an object of several lines at its end.
func (r *reading) line(text string) {
	text = plain(text)
	r.one(text)
	if whole := r.collect(text); whole != "" {
		r.one(whole)
	}
}

// collect returns the JSON object that a line ends which has only its brace, as indented JSON has.
func (r *reading) collect(text string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	bare := strings.TrimLeftFunc(text, unicode.IsSpace)
	indent := text[:len(text)-len(bare)]
	switch {
	case bare == "{" && (r.object == nil || indent == r.indent):
		r.object, r.indent = []byte(bare), indent
	case r.object == nil:
	case len(r.object)+len(text) > maxLine:
		r.object = nil
	default:
		r.object = append(append(r.object, ' '), bare...)
		if bare == "}" && indent == r.indent {
			whole := string(r.object)
			r.object = nil
			return whole
		}
	}
	return ""
}

// one reads a line, or a whole object.
func (r *reading) one(text string) {
	s := r.parse(text)
	if s.infeasible != nil {
		r.mu.Lock()
		r.infeasible = s.infeasible
		r.mu.Unlock()
		return
	}
	for i := range s.metrics {
		s.metrics[i].Name = r.spelling(s.metrics[i].Name)
	}
	s.metrics = slices.DeleteFunc(s.metrics, func(m study.Metric) bool { return !r.tellable(m) })
	advice := r.advise(text, s.metrics)
	r.mu.Lock()
	defer r.mu.Unlock()
	if advice != "" {
		r.advice = advice
	}
	for _, m := range s.metrics {
		if len(r.seen) < study.MaxMetrics && !slices.Contains(r.seen, m.Name) {
			r.seen = append(r.seen, m.Name)
		}
	}
	switch {
	case !slices.ContainsFunc(s.metrics, func(m study.Metric) bool { return r.isObjective(m.Name) }):
		return
	case !s.hasStep:
		r.result = r.update(r.result, s.metrics)
		return
	}
	s.metrics = r.update(nil, s.metrics)
	r.lastStep = s.metrics
	finite := slices.DeleteFunc(means(s.metrics), func(v study.NamedValue) bool { return v.Value-v.Value != 0 && !r.isObjective(v.Name) })
	if len(r.reports) < study.MaxReports {
		r.reports = append(r.reports, study.Report{Step: s.step, Values: finite})
		select {
		case r.fresh <- struct{}{}:
		default:
		}
	}
}

func (r *reading) isObjective(name string) bool {
	return slices.Contains(r.wanted[:r.objectives], name)
}

// firstMissing returns the first name that no metric has, or "".
func firstMissing(metrics []study.Metric, names []string) string {
	for _, name := range names {
		if !slices.ContainsFunc(metrics, func(m study.Metric) bool { return m.Name == name }) {
			return name
		}
	}
	return ""
}

// spelling is the name of the objective or limited metric that looks the same but has other
// code points, such as é in two of them, else the name itself.
func (r *reading) spelling(name string) string {
	if slices.Contains(r.wanted, name) {
		return name
	}
	composed := norm.NFC.String(name)
	if i := slices.IndexFunc(r.wanted, func(w string) bool { return norm.NFC.String(w) == composed }); i >= 0 {
		return r.wanted[i]
	}
	return name
}

// tellable tells whether a study accepts a metric.
func (r *reading) tellable(m study.Metric) bool {
	if m.Name == "" || len(m.Name) > study.MaxNameBytes || message(m.Name) != m.Name || strings.ContainsAny(m.Name, "\n\t") || len(m.Values) > study.MaxReplicates {
		return false
	}
	return slices.Contains(r.wanted, m.Name) || !slices.ContainsFunc(m.Values, func(x float64) bool { return x-x != 0 })
}

// update replaces metrics by those of the same name. Wanted ones are never cut off.
func (r *reading) update(have, set []study.Metric) []study.Metric {
	for _, m := range set {
		if i := slices.IndexFunc(have, func(h study.Metric) bool { return h.Name == m.Name }); i >= 0 {
			have[i] = m
		} else {
			have = append(have, m)
		}
	}
	if len(have) > study.MaxMetrics {
		other := func(m study.Metric) int { return -min(slices.Index(r.wanted, m.Name), 0) }
		slices.SortStableFunc(have, func(a, b study.Metric) int { return cmp.Compare(other(a), other(b)) })
		have = have[:study.MaxMetrics]
	}
	return have
}

func means(metrics []study.Metric) []study.NamedValue {
	out := make([]study.NamedValue, len(metrics))
	for i, m := range metrics {
		out[i] = study.NamedValue{Name: m.Name, Value: m.Mean()}
	}
	return out
}

// take returns up to n reports that arrived since the last call.
func (r *reading) take(n int) []study.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, len(r.reports))
	out := r.reports[:n:n]
	r.reports = r.reports[n:]
	return out
}

// outcome returns the metrics that count. Those of lines without a step replace those of
// the last line with one. missing names an objective without a value.
func (r *reading) outcome() (metrics []study.Metric, infeasible *string, missing string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	metrics = r.update(slices.Clone(r.lastStep), r.result)
	return metrics, r.infeasible, firstMissing(metrics, r.wanted[:r.objectives])
}

// heard returns the names of up to 8 metrics that the command reported, as text, and how to
// write the last line that names a wanted metric and was not read, or "".
func (r *reading) heard() (names, advice string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	names = strings.Join(r.seen[:min(len(r.seen), 8)], ", ")
	if len(r.seen) > 8 {
		names += ", …"
	}
	return names, r.advice
}

// maxMeant is the most bytes of a line in which a value is looked for.
const maxMeant = 200

// advise says how to write a line that names a wanted metric and was not read. It is empty if
// no number follows a name. had are the metrics that were read.
func (r *reading) advise(text string, had []study.Metric) string {
	if text = strings.TrimSpace(text); len(text) > maxMeant {
		return ""
	}
	for _, name := range r.wanted {
		if firstMissing(had, []string{name}) == "" {
			continue
		}
		for rest := text; ; {
			before, after, ok := strings.Cut(rest, name)
			if !ok {
				break
			}
			if !inName.MatchString(before) {
				if m := valueAfter.FindStringSubmatchIndex(after); m != nil {
					return rewrite(name, before, after, m)
				}
				if m := noValue.FindStringSubmatch(after); m != nil {
					return fmt.Sprintf("%s is %s, so print a number, or %s if there is none", name, m[1], assignment(name, "nan"))
				}
			}
			rest = after
		}
	}
	return ""
}

var (
	// valueAfter is what follows a name: signs that people put there, perhaps the name of a
	// type such as tensor, and a number.
	valueAfter = regexp.MustCompile(`^(["']?\s*[:=]?\s*["']?)([A-Za-z][\w.]*\()?([-+]?(?:(?:\d+(?:[.,]\d+)?|\.\d+)(?:[eE][-+]?\d+)?|(?i:nan|inf)\b))`)
	// numeral is all that may belong to a number, and spaced is one of spaces between thousands.
	numeral = regexp.MustCompile(`^[-+]?\d[\d.,]*\d([eE][-+]?\d+)?`)
	spaced  = regexp.MustCompile(`(?:^|[=:\s"'])[-+]?[1-9]\d{0,2}([\s\pZ]\d{3})+(?:[.,]\d+)?[,;"'}\])]*(?:[\s\pZ]|$)`)
	// unitBehind is a unit of its own behind a number. A min before a number is a minimum.
	unitBehind = regexp.MustCompile(`^(?:\s*(?:±|\+/?-)\s*[-+\d.eE]+)?\s+(?:(%|percent|ms|s|h)[.,;]*(?:\s|$)|(min)[.,;]*(?:\s+[^-+.\d\s]|\s*$))`)
	// noValue is what Python and JSON write for no value.
	noValue = regexp.MustCompile(`^["']?\s*[:=]\s*["']?(None|null)\b`)
	// inName matches what comes before the end of a longer name.
	inName = regexp.MustCompile(`[\pL\pN_./-]$`)
)

// rewrite says what is wrong with a value and how to write it. at has the places of the
// groups of valueAfter behind the name.
func rewrite(name, before, after string, at []int) string {
	line, value, behind := before+name+after, after[at[6]:at[7]], after[at[7]:]
	said, right := name+after[:at[7]], assignment(name, value)
	word := behind
	if i := strings.IndexFunc(behind, unicode.IsSpace); i >= 0 {
		word = behind[:i]
	}
	if i := strings.IndexAny(behind, " \t,;"); i >= 0 {
		behind = behind[:i]
	}
	unit := strings.TrimRight(behind, `"'})]`)
	if m := unitBehind.FindStringSubmatch(after[at[7]:]); m != nil {
		said, unit = said+" ", m[1]+m[2]
	}
	before = before[strings.LastIndexAny(before, " \t")+1:]
	closing := "" // the quote behind a quoted number
	if prefix := after[:at[6]]; prefix != "" && strings.ContainsAny(prefix[len(prefix)-1:], `"'`) && strings.HasPrefix(behind, prefix[len(prefix)-1:]) {
		closing = behind[:1]
	}
	one := numeral.FindString(after[at[6]:])
	meant, replicates := metric.OneNumber(one)
	if place := spaced.FindStringIndex(" " + after[at[6]:]); place != nil && place[0] == 0 {
		return fmt.Sprintf("%q could be a number with spaces, so write all digits without, or text between two numbers", name+after[:at[6]]+strings.TrimSpace(after[at[6]:at[6]+place[1]-1]))
	}
	switch {
	case meant != nil && (one != value || len(meant) > 1):
		for i := range meant {
			meant[i] = assignment(name, meant[i])
		}
		if !isName(name) {
			replicates = "[" + replicates + "]"
		}
		return fmt.Sprintf("%q could be one number or replicates, so write %s, or for replicates %s", name+after[:at[6]]+one, strings.Join(meant, " or "), assignment(name, replicates))
	case at[4] >= 0:
		return fmt.Sprintf("%q is not a number, so print the number itself, in Python with float(…), as in %s", said+behind, right)
	case unit != "":
		if strings.ContainsAny(unit, "0123456789") { // it is unclear what the number is
			right = assignment(name, "NUMBER")
		}
		return fmt.Sprintf("%q has %q behind the number, so print the number alone, as in %s", said+unit, unit, right)
	case strings.Contains(value, ","):
		return fmt.Sprintf("%q looks like a decimal comma, so write %s", said, assignment(name, strings.Replace(value, ",", ".", 1)))
	case strings.HasPrefix(line, "[") && json.Valid([]byte(line)):
		return fmt.Sprintf("%s is a list, so print the object in it alone, or write %s", line, right)
	case strings.HasPrefix(line, "{") && strings.HasSuffix(line, "}") && strings.HasSuffix(before, "'"):
		return fmt.Sprintf("%s is no JSON, so print it with json.dumps, or write %s", line, right)
	case strings.ContainsAny(said, `"'`): // part of JSON, or a quoted number
		if i := len(before) - 1; i >= 0 && strings.HasPrefix(after, before[i:]) {
			said = before[i:] + said
		}
		return fmt.Sprintf("write %s as %s, or print an object of JSON on one line", said+closing, right)
	case said != right:
		return fmt.Sprintf("write %q as %s", said, right)
	case before+behind != "":
		return fmt.Sprintf("%q has %q around it, so print %s as a word of its own", before+said+behind, before+behind, right)
	}
	if _, err := metric.ParseNumber(value); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%q goes on behind the number, so print %s as a word of its own, with a space behind it", said+word, right)
}

// assignment is a line that reports a value. Names that are no word need JSON.
func assignment(name, value string) string {
	if !isName(name) {
		key, _ := json.Marshal(name)
		return fmt.Sprintf("{%s: %s}", key, value)
	}
	return name + "=" + value
}

// colours matches the sequences by which programs colour their output.
var colours = regexp.MustCompile(`\x1b\[[0-9;:?]*[ -/]*[@-~]`)

// plain is a line without colours.
func plain(text string) string {
	if !strings.Contains(text, "\x1b") {
		return text
	}
	return colours.ReplaceAllString(text, "")
}

// plusMinus is what stands between a value and its standard error.
var plusMinus = regexp.MustCompile(`([\d.])\s*(?:±|\+/?-)\s*([\d.])`)

// The words of a line that are no metrics.
const (
	wordStep       = "step"
	wordInfeasible = "infeasible"
)

// parse reads words name=value, or a JSON object.
func (r *reading) parse(text string) said {
	text = strings.TrimSpace(text)
	if reason, ok := strings.CutPrefix(text, wordInfeasible+"="); ok {
		return said{infeasible: &reason}
	}
	if strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") {
		return parseObject([]byte(text))
	}
	var s said
	words := strings.Fields(plusMinus.ReplaceAllString(text, "$1±$2"))
	for i, word := range words {
		name, value, ok := strings.Cut(strings.TrimRight(word, ",;"), "=")
		if !ok || !isName(name) && !r.isObjective(name) {
			continue
		}
		if name == wordStep {
			s.step, s.hasStep = stepOf(value)
			continue
		}
		if i+1 < len(words) && spaced.MatchString(word+" "+words[i+1]) {
			continue
		}
		if strings.HasSuffix(word, value) && slices.Contains(r.wanted, r.spelling(name)) && unitBehind.MatchString(" "+strings.Join(words[i+1:min(i+3, len(words))], " ")) {
			continue
		}
		if m, err := metric.Parse([]string{name + "=" + value}, ""); err == nil {
			s.metrics = append(s.metrics, m...)
		}
	}
	return s
}

// stepOf reads a whole number of at least 0, also with a point as in 3.0.
func stepOf(text string) (int64, bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	step, err := strconv.ParseInt(whole, 10, 64)
	return step, err == nil && step >= 0 && strings.Trim(fraction, "0") == ""
}

// isName tells whether a word before = is a name. Objectives need not be such words.
func isName(s string) bool {
	for i, r := range s {
		if !unicode.IsLetter(r) && r != '_' && (i == 0 || !unicode.IsNumber(r) && !unicode.IsMark(r) && !strings.ContainsRune("./-@:#%", r)) {
			return false
		}
	}
	return s != ""
}

// parseObject reads a JSON object of numbers and lists of numbers. Other fields are left out.
func parseObject(text []byte) said {
	var s said
	var fields map[string]json.RawMessage
	if json.Unmarshal(metric.QuoteWords(text), &fields) != nil {
		return s
	}
	for name, raw := range fields {
		var reason string
		switch {
		case name == wordInfeasible:
			if json.Unmarshal(raw, &reason) == nil {
				s.infeasible = &reason
			}
		case name == wordStep:
			s.step, s.hasStep = stepOf(string(raw))
		default:
			if values, ok := numbers(raw); ok {
				s.metrics = append(s.metrics, study.Metric{Name: name, Values: values})
			}
		}
	}
	slices.SortFunc(s.metrics, func(a, b study.Metric) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func numbers(raw json.RawMessage) ([]float64, bool) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		items = []json.RawMessage{raw}
	}
	var out []float64
	for _, item := range items {
		x, err := metric.ParseNumber(string(bytes.Trim(item, `"`)))
		if err != nil {
			return nil, false
		}
		out = append(out, x)
	}
	return out, len(out) > 0
}

// maxLine is the most bytes that are read of a line of output. The rest is only logged.
const maxLine = 64 << 10

// lines is a writer that calls f with each line, cut to maxLine bytes.
type lines struct {
	f    func(string)
	part []byte
}

func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, ok := bytes.Cut(p, []byte{'\n'})
		if room := maxLine - len(l.part); room > 0 {
			l.part = append(l.part, line[:min(room, len(line))]...)
		}
		if !ok {
			return n, nil
		}
		l.flush()
		p = rest
	}
}

// flush ends the line begun.
func (l *lines) flush() {
	if len(l.part) > 0 {
		l.f(string(l.part))
	}
	l.part = l.part[:0]
}
