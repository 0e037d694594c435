package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// TestPace checks, by a clock of its own, how fast one connection gets answers that the rate of
// no token counts. Another connection and answered calls do not wait, and a connection
// that was quiet may send a burst again.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := paced(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == servicePath+"Refused" {
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}))
		send := func(c *pace, path string, n int) time.Duration {
			begun := time.Now()
			for range n {
				r := httptest.NewRequestWithContext(context.WithValue(t.Context(), paceKey{}, c), http.MethodPost, path, nil)
				handler.ServeHTTP(httptest.NewRecorder(), r)
			}
			return time.Since(begun)
		}
		for _, path := range []string{servicePath + "Refused", "/readyz", "/nothing"} {
			c := new(pace)
			for _, step := range []struct {
				path  string
				n     int
				quiet time.Duration // before
				want  time.Duration
			}{
				{path, paceBurst, 0, 0},
				{servicePath + "Answered", 1000, 0, 0},
				{path, 30, 0, 30 * paceEvery},
				{path, paceBurst + 1, time.Hour, paceEvery},
			} {
				time.Sleep(step.quiet)
				if took := send(c, step.path, step.n); took != step.want {
					t.Errorf("%d of %s took %s, want %s", step.n, step.path, took, step.want)
				}
			}
			if took := send(new(pace), path, paceBurst); took != 0 {
				t.Errorf("another connection waited %s", took)
			}
		}
	})
}
