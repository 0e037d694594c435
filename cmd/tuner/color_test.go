package main

import (
	"bytes"
	"io"
	"testing"
)

func TestUseColor(t *testing.T) {
	for _, c := range []struct {
		mode          string
		terminal      bool
		noColor, term string
		want          bool
	}{
		{"auto", true, "", "xterm", true},
		{"auto", false, "", "xterm", false},
		{"auto", true, "1", "xterm", false},
		{"auto", true, "", "dumb", false},
		{"always", false, "1", "dumb", true},
		{"never", true, "", "xterm", false},
	} {
		env := map[string]string{"NO_COLOR": c.noColor, "TERM": c.term}
		got, err := useColor(c.mode, c.terminal, func(name string) string { return env[name] })
		if err != nil || got != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	if _, err := useColor("maybe", true, func(string) string { return "" }); statusOf(err) != exitUsage {
		t.Errorf("maybe: %v", err)
	}
}

// Only the first line is bold, however the text is cut into writes.
func TestBoldLine(t *testing.T) {
	const text, want = "A  B\n1  2\n3  4\n", "\x1b[1mA  B\x1b[0m\n1  2\n3  4\n"
	for size := 1; size <= len(text); size++ {
		var b bytes.Buffer
		w := headed(&painter{&b, &b})
		for rest := text; rest != ""; {
			n, err := io.WriteString(w, rest[:min(size, len(rest))])
			if err != nil || n != min(size, len(rest)) {
				t.Fatal(n, err)
			}
			rest = rest[n:]
		}
		if b.String() != want {
			t.Errorf("in pieces of %d: %q", size, b.String())
		}
	}
}
