package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
)

// A server whose certificate has an Ed25519 key warns at its start. Another does not.
func TestServeWarnsOfEd25519(t *testing.T) {
	t.Parallel() // it waits more than it computes
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		key  crypto.Signer
		warn bool
	}{{"ed25519", edKey, true}, {"ecdsa", ecKey, false}} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			cert, key := writeCertificate(t, dir, c.key)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var log bytes.Buffer
			watch := writerFunc(func(p []byte) (int, error) {
				if strings.Contains(string(p), "Listening on") {
					cancel()
				}
				return log.Write(p)
			})
			args := []string{"serve", "--db", filepath.Join(dir, "t.db"), "--listen", "127.0.0.1:0", "--cert", cert, "--key", key}
			if status := run(ctx, args, strings.NewReader(""), &bytes.Buffer{}, watch); status != cli.ExitOK {
				t.Fatalf("status %d: %s", status, log.String())
			}
			const want = "the server certificate has an Ed25519 key, so clients with gRPC for Python or C++ cannot connect; use an ECDSA or RSA key"
			if strings.Contains(log.String(), want) != c.warn {
				t.Errorf("the log, which should warn %t:\n%s", c.warn, log.String())
			}
		})
	}
}

// TestHealthTLS asks servers with and without TLS for their health by right and wrong flags. The
// whole text is the reason and what to do, with no flag to leave out that was not given.
func TestHealthTLS(t *testing.T) {
	t.Parallel() // it waits more than it computes
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert, keyFile := writeCertificate(t, t.TempDir(), key)
	other, _ := writeCertificate(t, t.TempDir(), key)
	port := map[bool]string{}
	for _, tls := range []bool{false, true} {
		port[tls] = freePort(t)
		args := []string{"serve", "--db", filepath.Join(t.TempDir(), "t.db"), "--listen", "127.0.0.1:" + port[tls]}
		if tls {
			args = append(args, "--cert", cert, "--key", keyFile)
		}
		defer startInProcess(t, args...).stop()
	}
	const (
		near   = "127.0.0.1"
		far    = "LOCALHOST" // a name that is not known to be this machine's
		secret = `error reading server preface: (.*: )?(EOF|connection reset by peer|broken pipe); it may speak TLS, so `
		plain  = "tls: first record does not look like a TLS handshake; it does not speak TLS, so "
	)
	for _, c := range []struct {
		host   string
		tls    bool
		flags  []string
		status int
		says   string // without the beginning that names the address
	}{
		{near, true, nil, 20, secret + `name the CA certificate that signed its certificate \(--ca\)`},
		{near, true, []string{"--insecure"}, 20, secret + `name the CA certificate that signed its certificate \(--ca\)`},
		{near, true, []string{"--ca", cert}, 0, ""},
		{near, true, []string{"--ca", other}, 20, `tls: failed to verify certificate: x509: certificate signed by unknown authority.*; name the CA certificate that signed the server's \(--ca\)`},
		{near, true, []string{"--ca", cert, "--insecure"}, 2, "--insecure and --ca exclude each other, because a certificate needs TLS; leave one of them out"},
		{near, false, nil, 0, ""},
		{near, false, []string{"--ca", cert}, 20, plain + "leave --ca and --cert out"},
		{far, true, []string{"--insecure"}, 20, secret + "leave --insecure out"},
		{far, true, nil, 20, `tls: failed to verify certificate: x509: .*; .*`},
		{far, false, nil, 20, plain + "use --insecure, without --ca and --cert, if others may listen"},
		{far, false, []string{"--insecure"}, 0, ""},
	} {
		var stdout, stderr bytes.Buffer
		at := c.host + ":" + port[c.tls]
		status := run(t.Context(), append([]string{"--server", at, "health"}, c.flags...), strings.NewReader(""), &stdout, &stderr)
		want := "tuner: "
		if c.status == 20 {
			want += "cannot reach " + at + ": "
		}
		want = "^" + want + c.says + "\n$"
		if c.status == 0 {
			want = "^$"
		}
		if status != c.status || !regexp.MustCompile(want).MatchString(stderr.String()) || (status == 0) != (stdout.String() == "SERVING\n") {
			t.Errorf("%s, TLS %t, %q: it ends with %d, not %d, and says %q%q, not %q", c.host, c.tls, c.flags, status, c.status, stdout.String(), stderr.String(), want)
		}
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// writeCertificate writes a certificate for 127.0.0.1 and its key as PEM files.
func writeCertificate(t *testing.T, dir string, key crypto.Signer) (certFile, keyFile string) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}
