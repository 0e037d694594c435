package wire

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// StudyName returns the resource name studies/{study}. A name that no study can have and
// the wire cannot carry is a [store.NotFoundError].
func StudyName(name string) (string, error) {
	if name == "" || strings.Contains(name, "/") || !utf8.ValidString(name) {
		return "", &store.NotFoundError{Name: name}
	}
	return "studies/" + name, nil
}

// TrialName returns the resource name studies/{study}/trials/{number}. A negative number is
// an error with the code NotFound.
func TrialName(name string, number int) (string, error) {
	parent, err := StudyName(name)
	if err != nil {
		return "", err
	}
	if number < 0 {
		return "", &tuner.RemoteError{Code: tuner.NotFound, Message: fmt.Sprintf("there is no trial %d", number)}
	}
	return parent + "/trials/" + strconv.Itoa(number), nil
}

// ParseStudyName parses studies/{study}.
func ParseStudyName(resource string) (name string, err error) {
	name, number, err := parseName(resource)
	if err == nil && number == study.OfStudy {
		return name, nil
	}
	return "", invalid("name", resource, "must be studies/{study}")
}

// ParseTrialName parses studies/{study}/trials/{number}.
func ParseTrialName(resource string) (name string, number int, err error) {
	name, number, err = parseName(resource)
	if err == nil && number != study.OfStudy {
		return name, number, nil
	}
	return "", 0, invalid("name", resource, "must be studies/{study}/trials/{number}")
}

// parseName parses the name of a study, with the number [study.OfStudy], or of a trial.
// Each name can be written in one way only.
func parseName(resource string) (name string, number int, err error) {
	parts := strings.Split(resource, "/")
	switch {
	case !utf8.ValidString(resource): // the name of no study
	case len(parts) == 2 && parts[0] == "studies" && parts[1] != "":
		return parts[1], study.OfStudy, nil
	case len(parts) == 4 && parts[0] == "studies" && parts[1] != "" && parts[2] == "trials":
		n, err := strconv.Atoi(parts[3])
		if err == nil && n >= 0 && strconv.Itoa(n) == parts[3] {
			return parts[1], n, nil
		}
	}
	return "", 0, invalid("name", resource, "must be studies/{study} or studies/{study}/trials/{number}")
}

// StudyOf returns the study that a resource name belongs to. If it is not a resource name,
// ok is false.
func StudyOf(resource string) (name string, ok bool) {
	name, _, err := parseName(resource)
	return name, err == nil
}

func invalid(field string, value any, rule string) error {
	text := fmt.Sprint(value)
	if s, ok := value.(string); ok {
		text = fmt.Sprintf("%.60q", s)
	}
	return &study.InvalidError{Field: field, Value: text, Rule: rule}
}
