package main

import (
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner/engine"
)

// How long an ask waits for a suggestion reaches the file's service, from every command
// that asks.
func TestProposeTimeout(t *testing.T) {
	for line, want := range map[string]time.Duration{
		"ask s":                       engine.DefaultProposeTimeout,
		"ask s --propose-timeout 7s":  7 * time.Second,
		"run s --propose-timeout 1m":  time.Minute,
		"auto --propose-timeout 90s":  90 * time.Second,
		"serve --propose-timeout 10s": 10 * time.Second,
	} {
		g := &cli.Globals{}
		cmd, rest, err := newRoot(g).Find(strings.Fields(line))
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil {
			err = g.CheckPropose(cmd, "")
		}
		if err != nil || g.Service().ProposeTimeout != want {
			t.Errorf("%s: %v, %v; want %v", line, g.Service().ProposeTimeout, err, want)
		}
		if err := g.CheckPropose(cmd, "unix:socket"); (err != nil) != strings.Contains(line, "--") {
			t.Errorf("%s, on a server: %v", line, err)
		}
	}
}

func TestGuardNegatives(t *testing.T) {
	for line, want := range map[string]string{
		"tell s 3 -0.5":                  "tell s 3 =-0.5",
		"tell s 3 -.5":                   "tell s 3 =-.5",
		"tell s 3 -inf":                  "tell s 3 =-inf",
		"tell s 3 --message -5 -1":       "tell s 3 --message -5 =-1",
		"tell s 3 --message=x -1":        "tell s 3 --message=x =-1",
		"tell s 3 -q -1":                 "tell s 3 -q =-1",
		"tell s 3 --db -1 -1":            "tell s 3 --db -1 =-1",
		"tell s 3 -- -1":                 "tell s 3 -- -1",
		"--db x tell s 3 -1":             "--db x tell s 3 =-1",
		"run s -- tell -1":               "run s -- tell -1",
		"report s 3 --step 1 loss=-1 -v": "report s 3 --step 1 loss=-1 -v",
	} {
		got := strings.Join(guardNegatives(newRoot(&cli.Globals{}), strings.Fields(line)), " ")
		if got != want {
			t.Errorf("%s became %s, want %s", line, got, want)
		}
	}
}
