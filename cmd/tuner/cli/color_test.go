package cli

import (
	"bytes"
	"io"
	"regexp"
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
		if got := useColor(c.mode, c.terminal, func(name string) string { return env[name] }); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// The header is bold and states have colours. Without colours the table is the same
// without escape sequences.
func TestTableColors(t *testing.T) {
	write := func(out io.Writer) {
		w := NewTable(out, "STUDY", "STATE", "N")
		w.Colors = map[int]func(string) string{1: StateColor}
		w.Row("a", "failed(crash)", "1")
		w.Row("bc", "queued", "2")
		w.Row("d", "completed !", "3")
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
	}
	var painted, text bytes.Buffer
	write(&stream{Writer: &painted, colors: true})
	write(&text)
	const want = "\x1b[1mSTUDY\x1b[0m  \x1b[1mSTATE\x1b[0m          \x1b[1mN\x1b[0m\n" +
		"a      \x1b[31mfailed(crash)\x1b[0m  1\n" +
		"bc     queued         2\n" +
		"d      \x1b[32mcompleted !\x1b[0m    3\n"
	if painted.String() != want {
		t.Errorf("got %q\nwant %q", painted.String(), want)
	}
	if got := regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(want, ""); got != text.String() {
		t.Errorf("without colours: %q\nwant %q", text.String(), got)
	}
}
