// Package metric reads and writes measured numbers on command lines, in CSV cells, and in
// the output of training scripts.
//
// A number is plain decimal, or one of the words nan, inf, +inf, -inf (in any case, also
// infinity). Hexadecimal, underscores and numbers beyond float64 are refused, because
// they are mostly mistakes.
//
//	NAME=V          one value
//	NAME=V,V,…      replicates
//	NAME=V±S        a value with its standard error; also V+-S
package metric

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/tuner/study"
)

// ParseNumber reads a number.
func ParseNumber(text string) (float64, error) {
	switch strings.ToLower(text) {
	case "nan":
		return math.NaN(), nil
	case "inf", "+inf", "infinity", "+infinity":
		return math.Inf(1), nil
	case "-inf", "-infinity":
		return math.Inf(-1), nil
	}
	if text == "" || strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, fmt.Errorf("%.40q is not a number; write plain decimal such as 0.25 or 1e-3, or nan, inf, -inf", text)
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case math.IsInf(x, 0):
		return 0, fmt.Errorf("%.40q is too large for a float64; write inf if that is what is meant", text)
	case err != nil:
		return 0, fmt.Errorf("%.40q is not a number; write plain decimal such as 0.25 or 1e-3, or nan, inf, -inf", text)
	}
	return x, nil
}

// FormatNumber writes a number so that ParseNumber reads it back bit for bit (any NaN as NaN).
func FormatNumber(x float64) string {
	switch {
	case math.IsNaN(x):
		return "nan"
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// QuoteWords turns the words NaN, Infinity and -Infinity, which Python writes
// into JSON, into strings. Before a colon they stay, because Python reads no such keys.
func QuoteWords(text []byte) []byte {
	var out []byte
	inString := false
	for i := 0; i < len(text); i++ {
		b := text[i]
		switch {
		case inString && b == '\\' && i+1 < len(text):
			out = append(out, b)
			i++
			b = text[i]
		case b == '"':
			inString = !inString
		case !inString:
			if word := wordAt(text[i:]); word != "" {
				out = append(out, '"')
				out = append(out, word...)
				b = '"'
				i += len(word) - 1
			}
		}
		out = append(out, b)
	}
	return out
}

func wordAt(text []byte) string {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		rest, ok := bytes.CutPrefix(text, []byte(word))
		if ok && !bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":")) {
			return word
		}
	}
	return ""
}

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
