package store

// An interner keeps at most this many strings, none longer than this.
const (
	maxInterned      = 1 << 14
	maxInternedBytes = 128
)

// interner lets equal strings share memory.
type interner map[string]string

func (n interner) intern(s string) string {
	if s == "" || len(s) > maxInternedBytes {
		return s
	}
	if t, ok := n[s]; ok {
		return t
	}
	if len(n) < maxInterned {
		n[s] = s
	}
	return s
}
