package wire

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
)

// Token is a bearer token. If it is printed, logged or marshalled in any form, only a
// placeholder appears. Only [Token.Reveal] returns its text. The zero Token is no token.
type Token struct{ text string }

const redacted = "[token]"

// NewToken makes a Token from its text.
func NewToken(text string) Token { return Token{text: text} }

// ReadToken reads a token from a file that only its owner can read. Spaces and line ends
// around it are ignored.
func ReadToken(path string) (Token, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Token{}, err
	}
	if err := CheckPrivate(path, info); err != nil {
		return Token{}, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Token{}, err
	}
	text := strings.TrimSpace(string(data))
	if text == "" || strings.ContainsAny(text, " \t\r\n") {
		return Token{}, fmt.Errorf("%s must hold one token and nothing else", path)
	}
	return NewToken(text), nil
}

// Reveal returns the secret text.
func (t Token) Reveal() string { return t.text }

// IsZero reports whether t is no token.
func (t Token) IsZero() bool { return t.text == "" }

// Format implements [fmt.Formatter] for all verbs.
func (t Token) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) }

// LogValue implements [slog.LogValuer].
func (t Token) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements [encoding.TextMarshaler]. It does not reveal the token.
func (t Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }
