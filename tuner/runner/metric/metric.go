package metric

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/tuner/study"
)

// Parse reads assignments that people and programs write, in order of first mention. A name mentioned again adds
// replicates. A word without "=", or with nothing before it, is the value of the metric
// called bare. If bare is empty, such words are refused.
func Parse(words []string, bare string) ([]study.Metric, error) {
	var metrics []study.Metric
	for _, word := range words {
		name, text, found := strings.Cut(word, "=")
		if !found {
			name, text = "", word
		}
		if name == "" {
			name = bare
		}
		if name == "" {
			return nil, fmt.Errorf("%q: which objective is it of? Write NAME=%s", word, text)
		}
		if meant, replicates := OneNumber(text); meant != nil {
			return nil, fmt.Errorf("%s: %s could be a decimal comma or separators of thousands; write %s, or for replicates %s=%s", name, text, strings.Join(meant, " or "), name, replicates)
		}
		m, err := Read(name, text)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(metrics, func(m study.Metric) bool { return m.Name == name })
		switch {
		case i < 0:
			metrics = append(metrics, m)
		case m.HasStdErr || metrics[i].HasStdErr:
			return nil, fmt.Errorf("%s: a standard error goes with exactly one value; tell replicates alone, or their mean with its standard error", name)
		default:
			metrics[i].Values = append(metrics[i].Values, m.Values...)
		}
	}
	return metrics, nil
}

// What is one number with a comma elsewhere.
var (
	decimalComma   = regexp.MustCompile(`^[-+]?\d+,\d+([eE][-+]?\d+)?$`)
	commaThousands = regexp.MustCompile(`^[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?([eE][-+]?\d+)?$`)
	pointThousands = regexp.MustCompile(`^[-+]?[1-9]\d{0,2}(\.\d{3})+,\d+([eE][-+]?\d+)?$`)
)

// OneNumber tells whether a text is rather one number, with a decimal comma or separators of
// thousands, than replicates. It returns the numbers that may be meant, and how to write the
// replicates.
func OneNumber(text string) (meant []string, replicates string) {
	if decimalComma.MatchString(text) {
		meant = append(meant, strings.Replace(text, ",", ".", 1))
	}
	if commaThousands.MatchString(text) {
		meant = append(meant, strings.ReplaceAll(text, ",", ""))
	}
	if pointThousands.MatchString(text) {
		return []string{strings.Replace(strings.ReplaceAll(text, ".", ""), ",", ".", 1)}, strings.Replace(text, ",", "0,", 1)
	}
	return meant, strings.Replace(text, ",", ".0,", 1)
}

// Read reads what [Format] has written.
func Read(name, text string) (study.Metric, error) {
	m := study.Metric{Name: name}
	text = strings.Replace(text, "+-", "±", 1)
	if value, stderr, ok := strings.Cut(text, "±"); ok {
		s, err := ParseNumber(stderr)
		if err != nil {
			return m, fmt.Errorf("%s: standard error: %w", name, err)
		}
		m.StdErr, m.HasStdErr, text = s, true, value
	}
	for item := range strings.SplitSeq(text, ",") {
		x, err := ParseNumber(item)
		if err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
		m.Values = append(m.Values, x)
	}
	if m.HasStdErr && len(m.Values) != 1 {
		return m, fmt.Errorf("%s: a standard error goes with exactly one value; tell replicates alone, or their mean with its standard error", name)
	}
	return m, nil
}

// Format writes the text after the = sign.
func Format(m study.Metric) string {
	words := make([]string, len(m.Values))
	for i, x := range m.Values {
		words[i] = FormatNumber(x)
	}
	s := strings.Join(words, ",")
	if m.HasStdErr {
		s += "±" + FormatNumber(m.StdErr)
	}
	return s
}
