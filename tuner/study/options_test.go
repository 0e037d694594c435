package study

import "testing"

// TestTextOptions writes numbers and booleans as such, and all else as text.
func TestTextOptions(t *testing.T) {
	for _, c := range []struct {
		options       [][2]string
		object, twice string
	}{
		{nil, "{}", ""},
		{[][2]string{{"start", "12"}, {"cost", "told"}, {"full", "true"}, {"x", " 1e-3 "}}, `{"cost":"told","full":true,"start":12,"x":1e-3}`, ""},
		{[][2]string{{"a", "null"}, {"b", "[1]"}, {"c", "1e999"}, {"d", `"q"`}}, `{"a":"null","b":"[1]","c":"1e999","d":"\"q\""}`, ""},
		{[][2]string{{"a", "1"}, {"b", "1"}, {"a", "2"}}, "", "a"},
	} {
		if object, twice := TextOptions(c.options); object != c.object || twice != c.twice {
			t.Errorf("%v: %s, %q", c.options, object, twice)
		}
	}
}
