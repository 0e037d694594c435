package torture

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/pgtest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/store/storetest"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// TestDatabaseTLS connects to a PostgreSQL that accepts encrypted connections only, with
// right and wrong certificates on both sides. The suite of stores passes over TLS.
func TestDatabaseTLS(t *testing.T) {
	server, err := pgtest.Start("fsync = off")
	if err != nil {
		pgtest.Skip(t, err)
	}
	t.Cleanup(server.Stop)
	ca, other := wiretest.NewAuthority(t), wiretest.NewAuthority(t)
	restart := func(cert wiretest.Pair) {
		t.Helper()
		server.Shutdown()
		if err := errors.Join(server.Secure(cert.CertFile, cert.KeyFile, ca.CAFile, "local all bkb trust",
			"hostssl all bkb 127.0.0.1/32 trust", "hostssl all worker 127.0.0.1/32 cert"), server.Run()); err != nil {
			t.Fatal(err)
		}
	}
	address := func(user, host string, parameters ...string) string {
		q := make(url.Values)
		for i := 0; i < len(parameters); i += 2 {
			q.Set(parameters[i], parameters[i+1])
		}
		return fmt.Sprintf("postgres://%s@%s:%d/postgres?%s", user, host, server.Port, q.Encode())
	}
	open := func(address string) (*postgres.Store, error) {
		return postgres.Open(t.Context(), address, postgres.Options{UnsafeNoSync: true})
	}
	passes := func(what, address string) {
		t.Helper()
		s, err := open(address)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		defer s.Close()
		if _, err := s.Lookup(t.Context(), "none"); !errors.As(err, new(*store.NotFoundError)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	fails := func(what, address string, reason error, text string) {
		t.Helper()
		s, err := open(address)
		if err == nil {
			_ = s.Close()
		}
		if !errors.Is(err, reason) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %v, want %v with %q", what, err, reason, text)
		}
	}
	trusting := func(ca *wiretest.Authority, more ...string) []string {
		return append([]string{"sslmode", "verify-full", "sslrootcert", ca.CAFile}, more...)
	}
	right := address("bkb", "localhost", trusting(ca)...)
	initialise := func(address, grant string) {
		t.Helper()
		if _, _, err := postgres.Init(t.Context(), address, postgres.InitOptions{Grant: grant}); err != nil {
			t.Fatal(err)
		}
	}

	restart(ca.Issue(t, "server", "localhost"))
	initialise(right, "")
	passes("the right certificate and name", right)
	passes("a certificate that is not checked", address("bkb", "127.0.0.1", "sslmode", "require"))
	passes("a certificate whose name is not checked", address("bkb", "127.0.0.1", "sslmode", "verify-ca", "sslrootcert", ca.CAFile))
	fails("another name", address("bkb", "127.0.0.1", trusting(ca)...), store.ErrUnavailable, "127.0.0.1")
	fails("another CA", address("bkb", "localhost", trusting(other)...), store.ErrUnavailable, "unknown authority")
	fails("no TLS", address("bkb", "localhost", "sslmode", "disable"), postgres.ErrDenied, "no encryption")

	if err := server.Exec("CREATE ROLE worker LOGIN"); err != nil {
		t.Fatal(err)
	}
	initialise(right, "worker")
	as := func(p wiretest.Pair) string {
		return address("worker", "localhost", trusting(ca, "sslcert", p.CertFile, "sslkey", p.KeyFile)...)
	}
	passes("the certificate of the role", as(ca.Issue(t, "worker")))
	fails("no client certificate", address("worker", "localhost", trusting(ca)...), postgres.ErrDenied, "certificate")
	fails("the certificate of another role", as(ca.Issue(t, "boss")), postgres.ErrDenied, "worker")
	// The database may close the connection before its reason arrives.
	fails("a client certificate of another CA", as(other.Issue(t, "worker")), store.ErrUnavailable, "localhost")

	now := time.Now()
	restart(ca.IssueFor(t, "old", now.Add(-2*time.Hour), now.Add(-time.Hour), "localhost"))
	fails("an expired certificate", right, store.ErrUnavailable, "expired")
	restart(ca.Issue(t, "renewed", "localhost"))
	t.Run("suite", func(t *testing.T) {
		pgtest.Long(t)
		stores := 0
		storetest.Run(t, func(t *testing.T) storetest.Harness {
			stores++
			own := right + fmt.Sprintf("&schema=s%d", stores)
			initialise(own, "")
			s, err := open(own)
			if err != nil {
				t.Fatal(err)
			}
			return storetest.Harness{Store: s}
		})
	})
}
