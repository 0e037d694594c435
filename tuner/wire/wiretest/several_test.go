package wiretest_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// mortal passes connections on to a server until it dies, with all that is on its way.
type mortal struct {
	*cuttable
	once sync.Once
}

// newMortal listens for the server at an address.
func newMortal(t *testing.T, server string) *mortal {
	t.Helper()
	m := &mortal{cuttable: &cuttable{Listener: listen(t)}}
	t.Cleanup(m.die)
	go func() {
		for {
			in, err := m.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				in.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				go func() {
					_, _ = io.Copy(way[1], way[0])
					in.Close()
					out.Close()
				}()
			}
		}
	}()
	return m
}

func (m *mortal) die() {
	m.once.Do(func() {
		m.Close()
		m.cut()
	})
}

// TestSeveralAddresses has workers at the first of two servers, which dies amid their calls.
// Each call has one effect, as the count of the trials says. The certificate of each server
// has its own name only.
func TestSeveralAddresses(t *testing.T) {
	authority := wiretest.NewAuthority(t)
	for name, list := range map[string]string{"list": "localhost:FIRST, 127.0.0.1:SECOND", "gone": "127.0.0.1:1,no-such-host.invalid:1,localhost:FIRST,127.0.0.1:SECOND"} {
		t.Run(name, func(t *testing.T) {
			svc := wiretest.New(t)
			var servers [2]*mortal
			address := list
			for i, host := range []string{"localhost", "127.0.0.1"} {
				pair, l := authority.Issue(t, name+host, host), listen(t)
				serve(t, svc, server.Options{CertFile: pair.CertFile, KeyFile: pair.KeyFile, Limits: free}, l)
				servers[i] = newMortal(t, l.Addr().String())
				_, port, _ := net.SplitHostPort(servers[i].Addr().String())
				address = strings.Replace(address, []string{"FIRST", "SECOND"}[i], port, 1)
			}
			c := dial(t, address, client.Options{CAFile: authority.CAFile, RetryFor: 5 * time.Minute})
			if _, err := c.CreateStudy(t.Context(), "s", study.Create{Spec: spec(t)}); err != nil {
				t.Fatal(err)
			}
			const workers, rounds = 4, 60
			var all sync.WaitGroup
			for w := range workers {
				all.Go(func() {
					for i := range rounds {
						asked, err := c.Ask(t.Context(), "s", study.Ask{Worker: fmt.Sprint(w), New: true})
						if err != nil {
							t.Error(err)
							return
						}
						trial := asked.Trials[0]
						if _, err := c.Tell(t.Context(), "s", study.Tell{Trial: trial.Number, Epoch: trial.Epoch, Outcome: completed(float64(i))}); err != nil {
							t.Error(err)
							return
						}
						if w == 0 && i == rounds/2 {
							servers[0].die()
						}
					}
				})
			}
			all.Wait()
			trials, _, err := c.Trials(t.Context(), "s", tuner.Filter{})
			if err != nil || len(trials) != workers*rounds {
				t.Fatalf("%d trials, %v, want %d", len(trials), err, workers*rounds)
			}
			for _, trial := range trials {
				if trial.State != study.Completed {
					t.Errorf("trial %d is %v", trial.Number, trial.State)
				}
			}
			servers[1].die()
			c = dial(t, address, client.Options{CAFile: authority.CAFile, RetryFor: -1})
			if _, err := c.Study(t.Context(), "s"); tuner.CodeOf(err) != tuner.Unavailable || !strings.Contains(err.Error(), "cannot reach "+address) {
				t.Errorf("with both gone: %v", err)
			}
		})
	}
}
