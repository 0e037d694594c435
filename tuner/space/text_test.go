package space_test

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/tuner/space"
	"go.yaml.in/yaml/v3"
)

// TestHostile checks that YAML and XML, which have rules of their own, keep every text without
// hostile characters.
func TestHostile(t *testing.T) {
	var chunk []rune
	check := func() {
		text := string(chunk)
		chunk = chunk[:0]
		b, err := yaml.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var again string
		if err := yaml.Unmarshal(b, &again); err != nil || again != text {
			t.Errorf("YAML loses a text from %U on: %v", []rune(text)[0], err)
		}
		var x bytes.Buffer
		if err := xml.EscapeText(&x, []byte(text)); err != nil {
			t.Fatal(err)
		}
		var element struct {
			Text string `xml:",chardata"`
		}
		if err := xml.Unmarshal([]byte("<a>"+x.String()+"</a>"), &element); err != nil || element.Text != text {
			t.Errorf("XML loses a text from %U on: %v", []rune(text)[0], err)
		}
	}
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) && !space.Hostile(r) {
			chunk = append(chunk, r)
		}
		if len(chunk) == 1<<12 {
			check()
		}
	}
	check()
	for _, r := range "\x00\a\x1b\x7f\u0085\u061c\u200e\u202e\u2069\u2028\ufffe\uffff\ufdd0\U0010ffff" {
		if !space.Hostile(r) {
			t.Errorf("%U is accepted", r)
		}
		if _, _, err := space.Parse([]byte(`{"parameters": {"x": {"type": "categorical", "values": ["a", "b` + escape(r) + `"]}}}`)); err == nil {
			t.Errorf("a category with %U is accepted", r)
		}
	}
	for _, r := range "aß漢👍\u200d\ufffd" {
		if space.Hostile(r) {
			t.Errorf("%U is refused", r)
		}
	}
}

// escape writes r as JSON does.
func escape(r rune) string {
	const hex = "0123456789abcdef"
	out := ""
	for _, unit := range utf16.Encode([]rune{r}) {
		out += `\u` + string([]byte{hex[unit>>12], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15]})
	}
	return out
}

func TestShareText(t *testing.T) {
	for constraint, want := range map[string]string{"x + y >= 0.001": "nearly all", "x + y <= 1": "about 5", "x + y <= 1e-9": "less than"} {
		s, _, err := space.Parse([]byte(`{"parameters": {"x": {"type": "float", "low": 0, "high": 1}, "y": {"type": "float", "low": 0, "high": 1}}, "constraints": ["` + constraint + `"]}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.ShareText(); !strings.HasPrefix(got, want) {
			t.Errorf("%s keeps %s, want %s", constraint, got, want)
		}
	}
}

func TestMiddle(t *testing.T) {
	if got := space.Middle("0123456789", 5); got != "01…89" || space.Middle("0123", 5) != "0123" {
		t.Errorf("middle: %q", got)
	}
}
