package wiretest_test

import (
	"testing"

	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// BenchmarkCalls measures the cost of the wire. It times calls over loopback, with client
// and server on the same processors, and a service in memory. It runs one caller and
// sixteen on one connection, without TLS, and with TLS and a token.
func BenchmarkCalls(b *testing.B) {
	authority := wiretest.NewAuthority(b)
	pair := authority.Issue(b, "server", "127.0.0.1")
	for _, secure := range []bool{false, true} {
		name, so, co := "clear", server.Options{Limits: free}, client.Options{Plaintext: true}
		if secure {
			path, token := tokenFile(b, server.Scope{Role: server.RoleAdmin})
			name, so.TokenFile, so.CertFile, so.KeyFile = "TLS and token", path, pair.CertFile, pair.KeyFile
			co = client.Options{CAFile: authority.CAFile, Token: token}
		}
		b.Run(name, func(b *testing.B) {
			l := listen(b)
			serve(b, wiretest.New(b), so, l)
			c := dial(b, l.Addr().String(), co)
			if _, err := c.CreateStudy(b.Context(), "s", study.Create{Spec: spec(b)}); err != nil {
				b.Fatal(err)
			}
			if _, err := c.Ask(b.Context(), "s", study.Ask{}); err != nil {
				b.Fatal(err)
			}
			beat := func(b *testing.B) {
				if _, err := c.Trial(b.Context(), "s", 0); err != nil {
					b.Error(err)
				}
			}
			b.Run("one", func(b *testing.B) {
				for b.Loop() {
					beat(b)
				}
			})
			b.Run("sixteen", func(b *testing.B) {
				b.SetParallelism(8)
				b.RunParallel(func(p *testing.PB) {
					for p.Next() {
						beat(b)
					}
				})
			})
		})
	}
}
