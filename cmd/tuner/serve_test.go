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
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
)

// A server whose certificate has an Ed25519 key warns at its start. Another does not.
func TestServeWarnsOfEd25519(t *testing.T) {
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
