package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzTokenFile reads token files. An accepted file holds only contents that could have
// been written, and an invalid one is refused as a whole.
func FuzzTokenFile(f *testing.F) {
	digest := strings.Repeat("ab", 32)
	f.Add([]byte(`{"version":1,"tokens":[]}`))
	f.Add([]byte(`{"version":1,"tokens":[{"id":"1","role":"admin","sha256":"` + digest + `"}]}`))
	f.Add([]byte(`{"version":1,"tokens":[{"id":"1","role":"root","sha256":"` + digest + `"}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"version":1}{"version":1}`))
	f.Add([]byte(`{"version":1,"tokens":[]}]`))
	path := filepath.Join(f.TempDir(), "tokens")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := readTokens(path)
		if err != nil {
			return
		}
		if !json.Valid(data) || file.Version != 1 || len(file.Tokens) > MaxTokens {
			t.Errorf("taken: %+v", file)
		}
		for _, token := range file.Tokens {
			if err := token.Scope.Validate(); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzAuthorization sends authorization headers. No caller is admitted without the
// token.
func FuzzAuthorization(f *testing.F) {
	path := filepath.Join(f.TempDir(), "tokens")
	token, _, err := AddToken(path, Scope{Role: RoleAdmin}, "", time.Time{})
	if err != nil {
		f.Fatal(err)
	}
	a, err := newAuthenticator(Options{TokenFile: path}, func(error) {})
	if err != nil {
		f.Fatal(err)
	}
	secret := token.Reveal()
	for _, header := range []string{"", "Bearer", "Bearer ", "Bearer " + secret, "bearer " + secret, "Bearer  " + secret, "Basic " + secret, "Bearer " + secret[:len(secret)-1]} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		id, why := a.byToken(header)
		scheme, text, _ := strings.Cut(header, " ")
		known := strings.EqualFold(scheme, "bearer") && text == secret
		if known != (why == nil) || known && id.scope.Role != RoleAdmin {
			t.Errorf("%q: %+v, %+v", header, id, why)
		}
		if why != nil && len(text) > 8 && strings.Contains(why.text+why.kind, text) {
			t.Errorf("the refusal repeats %q", text)
		}
	})
}
