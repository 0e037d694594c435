package store

import "fmt"

// nameError is the refusal of a study's name.
type nameError struct{ name, rule string }

func (e *nameError) Error() string { return fmt.Sprintf("study name %q: %s", e.name, e.rule) }

func (*nameError) Unwrap() error { return ErrInvalid }

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
		return &nameError{name, "must not be empty; give one such as digits-2"}
	case len(name) > MaxNameBytes:
		return &nameError{name, fmt.Sprintf("must have at most %d bytes, not %d; shorten it", MaxNameBytes, len(name))}
	}
	for i, c := range []byte(name) {
		if alphanumeric(c) {
			continue
		}
		if c != '-' && c != '_' && c != '.' {
			return &nameError{name, "must have no other characters than a-z, 0-9, '-', '_' and '.'; rename it"}
		}
		if i == 0 || i == len(name)-1 {
			return &nameError{name, "must begin and end with a letter or digit; rename it"}
		}
	}
	return nil
}

func alphanumeric(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
