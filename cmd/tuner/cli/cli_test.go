package cli

import (
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/tuner"
)

func TestEveryCodeHasOneStatus(t *testing.T) {
	for _, code := range []tuner.Code{
		tuner.OK, tuner.Invalid, tuner.NotFound, tuner.AlreadyExists, tuner.Finished, tuner.Paused, tuner.NoneLeft,
		tuner.TrialState, tuner.LeaseLost, tuner.AlreadyTold, tuner.Denied, tuner.Exhausted, tuner.Unavailable, tuner.Unknown,
		tuner.Cancelled, tuner.Deadline, tuner.Damaged, tuner.Unsupported, tuner.Internal,
	} {
		n := 0
		for _, e := range exits() {
			n += len(slices.DeleteFunc(slices.Clone(e.codes), func(c tuner.Code) bool { return c != code }))
		}
		if n != 1 {
			t.Errorf("code %q is in %d rows of the table", code, n)
		}
		if err := (&tuner.RemoteError{Code: code}); code != tuner.OK && StatusOf(err) == ExitOK {
			t.Errorf("code %q is a success", code)
		}
	}
	for i, e := range exits() {
		if i > 0 && e.status <= exits()[i-1].status {
			t.Errorf("status %d is not in order, or twice", e.status)
		}
	}
}

func TestCleanText(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                      "plain",
		"a\x1b[31mred":               "a[31mred",
		"line\nline\ttab\r":          "line line tab ",
		"\u202egnp.exe\u2066 \u0085": "gnp.exe ",
		"größe 5 µm":                 "größe 5 µm",
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := Short("0123456789", 5); got != "0123…" {
		t.Errorf("short: %q", got)
	}
	line, err := JsonLine(map[string]string{"x": "\u202e\u0085\x1b<&>"})
	if err != nil || string(line) != `{"x":"\u202e\u0085\u001b<&>"}` {
		t.Errorf("JSON: %s, %v", line, err)
	}
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{"": "''", "a b": "'a b'", "it's": `'it'\''s'`, "--lr=1e-05": "--lr=1e-05", "$x`y`": "'$x`y`'", "~": "'~'"} {
		if got := ShellQuote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestSimilar(t *testing.T) {
	names := []string{"digits", "letters", "a"}
	for in, want := range map[string]string{"digit": "digits", "dgiits": "digits", "leters": "letters", "words": "", "": "a", "xy": ""} {
		if got := Similar(in, names); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
