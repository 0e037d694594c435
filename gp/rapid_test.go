package gp_test

import (
	"math/rand/v2"

	"pgregory.net/rapid"
)

// randOf returns a generator whose seed rapid chooses and prints.
func randOf(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
}
