//go:build planted

package postgres

import (
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/planted"
)

// TestPlanted shows that chaos finds the bugs of this package.
func TestPlanted(t *testing.T) {
	for _, bug := range []planted.Bug{planted.PgLostIsRefused, planted.PgNoCompare} {
		t.Run(string(bug), func(t *testing.T) {
			planted.Set(bug)
			defer planted.Set("")
			if v := chaos(t, 3*time.Second); v.refusedButThere == 0 {
				t.Errorf("nothing was noticed: %+v", v)
			}
		})
	}
}
