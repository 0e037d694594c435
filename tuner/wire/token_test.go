package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/wire"
)

// No way of printing reveals the text.
func TestTokenHides(t *testing.T) {
	const secret = "canary-0123456789"
	token := wire.NewToken(secret)
	type options struct {
		Name  string
		Token wire.Token
	}
	o := options{"x", token}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+" ", token)
		fmt.Fprintf(&out, verb+" ", &token)
		fmt.Fprintf(&out, verb+" ", o)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("m", "token", token, "options", o, "pointer", &token)
	}
	if err := json.NewEncoder(&out).Encode(o); err != nil {
		t.Fatal(err)
	}
	hex := fmt.Sprintf("%x", secret)
	if s := out.String(); strings.Contains(s, secret) || strings.Contains(s, hex) || !strings.Contains(s, "[token]") {
		t.Errorf("the token shows: %s", s)
	}
	if token.Reveal() != secret || token.IsZero() || !(wire.Token{}).IsZero() {
		t.Error("the token is not what was put in")
	}
}

func TestReadToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	write(" abc\n", 0o600)
	if token, err := wire.ReadToken(path); err != nil || token.Reveal() != "abc" {
		t.Errorf("read %q, %v", token.Reveal(), err)
	}
	write("abc", 0o640)
	if _, err := wire.ReadToken(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that a group can read: %v", err)
	}
	for _, text := range []string{"", "\n", "a b"} {
		write(text, 0o600)
		if _, err := wire.ReadToken(path); err == nil {
			t.Errorf("took %q for a token", text)
		}
	}
}
