package store

import "fmt"

// CheckName returns an error that wraps [ErrInvalid] if name is not valid for a study.
// A valid name has 1 to [MaxNameBytes] bytes out of a–z, 0–9, '-', '_' and '.', and
// begins and ends with a letter or digit.
//
// Names appear in resource names (studies/{study}/trials/7), addresses, file names and
// shells, and people compare them. That is why there is only one case, nothing needs
// quoting, and nothing looks like an option, a hidden file or a path.
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
