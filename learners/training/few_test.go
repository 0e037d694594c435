package training_test

import (
	"testing"

	"github.com/bkbtuner/bkb/learners/training"
)

func TestFew(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	if got, want := training.Few(names), "a, b, c, d, e, f, g, h and 2 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := training.Few(names[:8]), "a, b, c, d, e, f, g, h"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
