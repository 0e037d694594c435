package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// trusting returns the credentials of a caller that trusts a CA.
func trusting(t testing.TB, a *wiretest.Authority, change func(*tls.Config)) grpc.DialOption {
	t.Helper()
	pem, err := os.ReadFile(a.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(pem)
	if change != nil {
		change(config)
	}
	return grpc.WithTransportCredentials(credentials.NewTLS(config))
}

func bearing(t testing.TB, p wiretest.Pair) func(*tls.Config) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(p.CertFile, p.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	// The caller presents this certificate even if the server asks for another.
	return func(c *tls.Config) {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
}

// get returns the server's answer to a read of a study.
func get(ctx context.Context, conn *grpc.ClientConn) codes.Code {
	_, err := pb.NewTunerClient(conn).GetStudy(ctx, &pb.GetStudyRequest{Name: "studies/mine"})
	return status.Code(err)
}

// TestTLS tests valid and invalid certificates of the server.
func TestTLS(t *testing.T) {
	ours, others := wiretest.NewAuthority(t), wiretest.NewAuthority(t)
	hour := time.Hour
	for name, c := range map[string]struct {
		pair  wiretest.Pair
		trust grpc.DialOption
		want  codes.Code
	}{
		"good":            {ours.Issue(t, "good", "127.0.0.1"), trusting(t, ours, nil), codes.OK},
		"wrong CA":        {ours.Issue(t, "good", "127.0.0.1"), trusting(t, others, nil), codes.Unavailable},
		"system roots":    {ours.Issue(t, "good", "127.0.0.1"), grpc.WithTransportCredentials(credentials.NewTLS(nil)), codes.Unavailable},
		"wrong SAN":       {ours.Issue(t, "san", "example.org"), trusting(t, ours, nil), codes.Unavailable},
		"no SAN":          {ours.Issue(t, "nosan"), trusting(t, ours, nil), codes.Unavailable},
		"expired":         {ours.IssueFor(t, "expired", time.Now().Add(-2*hour), time.Now().Add(-hour), "127.0.0.1"), trusting(t, ours, nil), codes.Unavailable},
		"not yet valid":   {ours.IssueFor(t, "early", time.Now().Add(hour), time.Now().Add(2*hour), "127.0.0.1"), trusting(t, ours, nil), codes.Unavailable},
		"TLS 1.2":         {ours.Issue(t, "good", "127.0.0.1"), trusting(t, ours, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), codes.Unavailable},
		"TLS 1.1":         {ours.Issue(t, "good", "127.0.0.1"), trusting(t, ours, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }), codes.Unavailable},
		"plaintext to it": {ours.Issue(t, "good", "127.0.0.1"), grpc.WithTransportCredentials(insecure.NewCredentials()), codes.Unavailable},
	} {
		r := start(t, withStudies(t), server.Options{CertFile: c.pair.CertFile, KeyFile: c.pair.KeyFile})
		if got := get(t.Context(), r.connect(t, c.trust)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		r.stop()
	}
	r := start(t, withStudies(t), server.Options{})
	if got := get(t.Context(), r.connect(t, trusting(t, ours, nil))); got != codes.Unavailable {
		t.Errorf("TLS to plaintext: %s", got)
	}
	good := ours.Issue(t, "good", "127.0.0.1")
	r = start(t, withStudies(t), server.Options{CertFile: good.CertFile, KeyFile: good.KeyFile, AllowTLS12: true})
	if got := get(t.Context(), r.connect(t, trusting(t, ours, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }))); got != codes.OK {
		t.Errorf("TLS 1.2 where it is allowed: %s", got)
	}
}

// TestClientCertificates tests valid and invalid client certificates.
func TestClientCertificates(t *testing.T) {
	ours, others := wiretest.NewAuthority(t), wiretest.NewAuthority(t)
	pair := ours.Issue(t, "server", "127.0.0.1")
	path := tokenPath(t)
	token := addToken(t, path, server.Scope{Role: server.RoleRead})
	scopes := map[string]server.Scope{"reader": {Role: server.RoleRead}, "worker": {Role: server.RoleWorker, Studies: []string{"theirs"}}}
	options := func(o server.Options) server.Options {
		o.CertFile, o.KeyFile, o.ClientCAFile = pair.CertFile, pair.KeyFile, ours.CAFile
		return o
	}
	only := start(t, withStudies(t), options(server.Options{ClientScopes: scopes}))
	either := start(t, withStudies(t), options(server.Options{ClientScopes: scopes, TokenFile: path}))
	both := start(t, withStudies(t), options(server.Options{TokenFile: path}))
	anonymous := context.Background()
	bearer := as(anonymous, token)
	for _, c := range []struct {
		name   string
		server *running
		ctx    context.Context
		client func(*tls.Config)
		want   codes.Code
	}{
		{"a reader", only, anonymous, bearing(t, ours.Issue(t, "reader", "reader")), codes.OK},
		{"a worker of another study", only, anonymous, bearing(t, ours.Issue(t, "worker", "worker")), codes.PermissionDenied},
		{"a name without a scope", only, anonymous, bearing(t, ours.Issue(t, "x", "x")), codes.Unauthenticated},
		{"no certificate", only, anonymous, nil, codes.Unavailable},
		{"a certificate of others", only, anonymous, bearing(t, others.Issue(t, "reader", "reader")), codes.Unavailable},
		{"an expired certificate", only, anonymous, bearing(t, ours.IssueFor(t, "old", time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour), "reader")), codes.Unavailable},
		{"a token where there are none", only, bearer, bearing(t, ours.Issue(t, "reader", "reader")), codes.Unauthenticated},
		{"either: a token", either, bearer, nil, codes.OK},
		{"either: a certificate", either, anonymous, bearing(t, ours.Issue(t, "reader", "reader")), codes.OK},
		{"either: neither", either, anonymous, nil, codes.Unauthenticated},
		{"both: both", both, bearer, bearing(t, ours.Issue(t, "x", "x")), codes.OK},
		{"both: no certificate", both, bearer, nil, codes.Unavailable},
		{"both: no token", both, anonymous, bearing(t, ours.Issue(t, "x", "x")), codes.Unauthenticated},
	} {
		conn := c.server.connect(t, trusting(t, ours, c.client))
		if got := get(c.ctx, conn); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		conn.Close()
	}
}

// TestRotation replaces the certificate and its CA. Old connections continue, new ones
// see the new certificate, and an invalid file changes nothing.
func TestRotation(t *testing.T) {
	first, second := wiretest.NewAuthority(t), wiretest.NewAuthority(t)
	pair := first.Issue(t, "server", "127.0.0.1")
	r := start(t, withStudies(t), server.Options{CertFile: pair.CertFile, KeyFile: pair.KeyFile})
	old := r.connect(t, trusting(t, first, nil))
	if got := get(t.Context(), old); got != codes.OK {
		t.Fatalf("before: %s", got)
	}
	key, err := os.ReadFile(pair.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pair.KeyFile, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := get(t.Context(), r.connect(t, trusting(t, first, nil))); got != codes.OK {
		t.Errorf("with a broken key: %s", got)
	}
	if err := os.WriteFile(pair.KeyFile, key, 0o600); err != nil {
		t.Fatal(err)
	}
	next := second.Issue(t, "server", "127.0.0.1")
	for from, to := range map[string]string{next.CertFile: pair.CertFile, next.KeyFile: pair.KeyFile} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if got := get(t.Context(), old); got != codes.OK {
		t.Errorf("on the old connection: %s", got)
	}
	if got := get(t.Context(), r.connect(t, trusting(t, second, nil))); got != codes.OK {
		t.Errorf("trusting the new authority: %s", got)
	}
	if got := get(t.Context(), r.connect(t, trusting(t, first, nil))); got != codes.Unavailable {
		t.Errorf("trusting the old authority: %s", got)
	}
}
