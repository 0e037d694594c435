package server

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/internal/atomicfile"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// TokenInfo describes a token without its secret.
type TokenInfo struct {
	ID      string    `json:"id"` // public, for logs and [RevokeToken]
	Label   string    `json:"label,omitempty"`
	Scope   Scope     `json:"scope"`
	Workers []string  `json:"workers,omitempty"` // names bound to the token
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero if it never expires
}

// Expired reports whether the token has expired at the time now.
func (t TokenInfo) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// The limits of a token file.
const (
	MaxTokens        = 1_000
	maxLabelBytes    = 128
	maxWorkers       = 100 // worker names per token
	maxTokenBytes    = 256 // of the token text in a call
	maxTokenFileSize = 1 << 20
)

const tokenPrefix = "bkb_" // so that scanners for leaked secrets recognise a token

// tokenFile is the contents of the file, in JSON. There is one format so far.
type tokenFile struct {
	Version int           `json:"version"`
	Tokens  []storedToken `json:"tokens"`

	bound map[string]bool // worker names bound to any token
}

type storedToken struct {
	TokenInfo
	SHA256 string `json:"sha256"` // of the token text, in hex
	digest [sha256.Size]byte
}

// AddToken makes a token and adds it to a file, which it creates if needed. The token
// is returned here only. A zero time means no expiry. A token for workers works under their names
// only, and callers without the token cannot use these. A running server accepts the token at once.
func AddToken(path string, scope Scope, label string, expires time.Time, workers ...string) (wire.Token, TokenInfo, error) {
	if err := checkWorkers(scope, workers); err != nil {
		return wire.Token{}, TokenInfo{}, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	if err := scope.Validate(); err != nil {
		return wire.Token{}, TokenInfo{}, err
	}
	if len(label) > maxLabelBytes {
		return wire.Token{}, TokenInfo{}, fmt.Errorf("the label must have at most %d bytes, and has %d", maxLabelBytes, len(label))
	}
	if !expires.IsZero() && !expires.After(now) {
		return wire.Token{}, TokenInfo{}, fmt.Errorf("the expiry %s must be in the future", expires.Format(time.RFC3339))
	}
	var bits [32]byte
	rand.Read(bits[:])
	token := wire.NewToken(tokenPrefix + base64.RawURLEncoding.EncodeToString(bits[:]))
	digest := sha256.Sum256([]byte(token.Reveal()))
	info := TokenInfo{Label: label, Scope: scope, Workers: workers, Created: now, Expires: expires.UTC()}
	if expires.IsZero() {
		info.Expires = time.Time{}
	}
	err := editTokens(path, true, func(f *tokenFile) error {
		if len(f.Tokens) >= MaxTokens {
			return fmt.Errorf("%s holds %d tokens, which is the limit; revoke some first", path, MaxTokens)
		}
		var err error
		if info.ID, err = f.newID(rand.Reader); err != nil {
			return err
		}
		f.Tokens = append(f.Tokens, storedToken{TokenInfo: info, SHA256: hex.EncodeToString(digest[:])})
		return nil
	})
	if err != nil {
		return wire.Token{}, TokenInfo{}, err
	}
	return token, info, nil
}

// checkWorkers refuses invalid worker names, worker names for other roles, and a role
// that no token may have.
func checkWorkers(scope Scope, workers []string) error {
	switch {
	case scope.Role == RolePeer:
		return errors.New("the scope peer is for certificates of servers only; give tokens the scope admin, read or worker")
	case len(workers) == 0:
		return nil
	case scope.Role != RoleWorker:
		return fmt.Errorf("worker names need a token of scope worker, not %s", scope)
	case len(workers) > maxWorkers:
		return fmt.Errorf("a token may have at most %d worker names, and this has %d", maxWorkers, len(workers))
	}
	for _, name := range workers {
		if name == "" || len(name) > study.MaxNameBytes {
			return fmt.Errorf("the worker name %q must have 1 to %d bytes", name, study.MaxNameBytes)
		}
	}
	return nil
}

// ListTokens returns the tokens of a file, oldest first.
func ListTokens(path string) ([]TokenInfo, error) {
	f, err := readTokens(path)
	if err != nil {
		return nil, err
	}
	infos := make([]TokenInfo, len(f.Tokens))
	for i, t := range f.Tokens {
		infos[i] = t.TokenInfo
	}
	return infos, nil
}

// RevokeToken removes a token from a file. A running server refuses it at once.
func RevokeToken(path, id string) error {
	return editTokens(path, false, func(f *tokenFile) error {
		n := len(f.Tokens)
		f.Tokens = slices.DeleteFunc(f.Tokens, func(t storedToken) bool { return t.ID == id })
		if len(f.Tokens) == n {
			return fmt.Errorf("%s holds no token with the id %q", path, id)
		}
		return nil
	})
}

// newID returns an id that no token has. random has as many bytes as it takes.
func (f *tokenFile) newID(random io.Reader) (string, error) {
	for {
		var b [4]byte
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return "", err
		}
		id := hex.EncodeToString(b[:])
		if !slices.ContainsFunc(f.Tokens, func(t storedToken) bool { return t.ID == id }) {
			return id, nil
		}
	}
}

// editTokens changes a file under its lock. Readers see it before or after the change.
func editTokens(path string, create bool, edit func(*tokenFile) error) error {
	beside, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if ok, err := lock(beside, time.Minute); !ok {
		return cmp.Or(err, fmt.Errorf("%s: another process has had it locked for a minute; stop that process, or try again", beside.Name()))
	}
	defer beside.Close()
	f, err := readTokens(path)
	if create && errors.Is(err, fs.ErrNotExist) {
		f, err = tokenFile{Version: 1}, nil
	}
	if err != nil {
		return err
	}
	if err := edit(&f); err != nil {
		return err
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, 0o600, func(w io.Writer) error {
		_, err := w.Write(append(data, '\n'))
		return err
	})
}

// readTokens reads a file and refuses unknown fields.
func readTokens(path string) (tokenFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return tokenFile{}, err
	}
	if err := wire.CheckPrivate(path, info); err != nil {
		return tokenFile{}, err
	}
	if info.Size() > maxTokenFileSize {
		return tokenFile{}, fmt.Errorf("%s has %d bytes; a token file has at most %d", path, info.Size(), maxTokenFileSize)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return tokenFile{}, err
	}
	var f tokenFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return tokenFile{}, fmt.Errorf("%s is not a token file: %w", path, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return tokenFile{}, fmt.Errorf("%s is not a token file: data follow after its end", path)
	}
	return f, f.check(path)
}

// check refuses a file of another version, and computes the digests.
func (f *tokenFile) check(path string) error {
	if f.Version != 1 {
		return fmt.Errorf("%s has version %d, and this program reads version 1; use the program that wrote it", path, f.Version)
	}
	if len(f.Tokens) > MaxTokens {
		return fmt.Errorf("%s holds %d tokens and may hold %d", path, len(f.Tokens), MaxTokens)
	}
	seen := make(map[string]bool, len(f.Tokens))
	for i := range f.Tokens {
		t := &f.Tokens[i]
		if seen[t.ID] {
			return fmt.Errorf("%s: two tokens have the id %q, so remove one of them", path, t.ID)
		}
		seen[t.ID] = true
		digest, err := hex.DecodeString(t.SHA256)
		if err != nil || len(digest) != sha256.Size {
			return fmt.Errorf("%s: token %q: sha256 must be 64 hexadecimal digits", path, t.ID)
		}
		copy(t.digest[:], digest)
		if err := errors.Join(t.Scope.Validate(), checkWorkers(t.Scope, t.Workers)); err != nil {
			return fmt.Errorf("%s: token %q: %w", path, t.ID, err)
		}
		for _, name := range t.Workers {
			if f.bound == nil {
				f.bound = make(map[string]bool)
			}
			f.bound[name] = true
		}
	}
	return nil
}

// find returns the token with this text. It takes the same time for every text that is
// not a token.
func (f *tokenFile) find(text string) (TokenInfo, bool) {
	digest := sha256.Sum256([]byte(text))
	found := -1
	for i := range f.Tokens {
		if subtle.ConstantTimeCompare(f.Tokens[i].digest[:], digest[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return TokenInfo{}, false
	}
	return f.Tokens[found].TokenInfo, true
}
