package store

import "fmt"

// CheckName tells whether name can name a study: 1 to [MaxNameBytes] bytes out
// of a–z, 0–9, '-', '_' and '.', the first and the last of them a letter or
// digit. The error wraps [ErrInvalid] and says what is wrong.
//
// Names appear in resource names (studies/{study}/trials/7), addresses, file
// names and shells, and are compared by people: so there is one case only,
// nothing that needs quoting, and nothing that looks like an option, a hidden
// file or a path.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: a study's name must not be empty", ErrInvalid)
	case len(name) > MaxNameBytes:
		return fmt.Errorf("%w: a study's name has at most %d bytes, not %d", ErrInvalid, MaxNameBytes, len(name))
	}
	for i, c := range []byte(name) {
		if alphanumeric(c) {
			continue
		}
		if c != '-' && c != '_' && c != '.' {
			return fmt.Errorf("%w: study name %q: only a-z, 0-9, '-', '_' and '.' are allowed", ErrInvalid, name)
		}
		if i == 0 || i == len(name)-1 {
			return fmt.Errorf("%w: study name %q must begin and end with a letter or digit", ErrInvalid, name)
		}
	}
	return nil
}

func alphanumeric(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
