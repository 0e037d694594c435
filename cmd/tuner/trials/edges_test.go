package trials

import (
	"testing"
)

func TestSuccessor(t *testing.T) {
	for name, want := range map[string]string{"a": "a-2", "a-2": "a-3", "a-9": "a-10", "falkon-2024": "falkon-2024-2", "a-b": "a-b-2", "a-1": "a-1-2", "-7": "-7-2"} {
		if got := Successor(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
