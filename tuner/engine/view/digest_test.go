package view

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestRecent compares the count by minutes with one by hand, with a clock that also goes
// back.
func TestRecent(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 1))
	now := time.Unix(1_800_000_000, 0)
	var r recent
	var all []int64
	newest := int64(0)
	for i := range 5000 {
		now = now.Add(time.Duration(rng.IntN(200)-20) * time.Second)
		if i%1000 == 999 {
			now = now.Add(3 * time.Hour)
		}
		newest = max(newest, now.Unix()/60)
		if newest-now.Unix()/60 < 60 { // an outcome from before the newest hour is not counted
			r.add(now)
			all = append(all, now.Unix()/60)
		}
		want, last := 0, now.Unix()/60
		for _, m := range all {
			if m <= last && m > last-60 && m > newest-60 {
				want++
			}
		}
		if got := r.lastHour(now); got != want {
			t.Fatalf("seed %d, step %d: %d in the last hour, want %d", seed, i, got, want)
		}
	}
}
