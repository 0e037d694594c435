package wiretest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	CAFile string
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
}

// Pair names the files of a certificate and its key.
type Pair struct{ CertFile, KeyFile string }

// NewAuthority makes an authority with its files in a directory of the test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{dir: t.TempDir(), key: newKey(t)}
	template := template("authority", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der := sign(t, template, template, a.key, a.key)
	a.cert, _ = x509.ParseCertificate(der)
	a.CAFile = filepath.Join(a.dir, "ca.pem")
	writePEM(t, a.CAFile, "CERTIFICATE", der)
	return a
}

// Issue signs a certificate for servers and clients that is valid now. Its names are IP
// addresses and DNS names.
func (a *Authority) Issue(t testing.TB, file string, names ...string) Pair {
	t.Helper()
	return a.IssueFor(t, file, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), names...)
}

// IssueFor is Issue with a period of validity.
func (a *Authority) IssueFor(t testing.TB, file string, from, to time.Time, names ...string) Pair {
	t.Helper()
	c := template(file, from, to)
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	key := newKey(t)
	p := Pair{filepath.Join(a.dir, file+".pem"), filepath.Join(a.dir, file+".key")}
	writePEM(t, p.CertFile, "CERTIFICATE", sign(t, c, a.cert, key, a.key))
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, p.KeyFile, "EC PRIVATE KEY", der)
	return p
}

func template(name string, from, to time.Time) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: to}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, c, parent *x509.Certificate, key, by *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// writePEM replaces the file as a whole, as programs that rotate certificates do.
func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
