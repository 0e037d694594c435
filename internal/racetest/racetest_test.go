package racetest

import (
	"fmt"
	"testing"
)

// skipping is a test that would be skipped.
type skipping struct {
	testing.TB
	text string
}

func (s *skipping) Skip(args ...any) { s.text = fmt.Sprint(args...) }

func TestAlone(t *testing.T) {
	asked := &skipping{TB: t}
	if Alone(asked); testing.Short() != (asked.text != "") {
		t.Errorf("with -short %v a test is left out because %q", testing.Short(), asked.text)
	}
}
