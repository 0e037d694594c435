package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagError is the error of a command line whose flags cannot be parsed.
func FlagError(cmd *cobra.Command, err error) error {
	see := "see " + cmd.CommandPath() + " --help"
	if wrong := (*pflag.InvalidValueError)(nil); errors.As(err, &wrong) {
		f := wrong.GetFlag()
		if text := valueRule(f.Value.Type(), wrong.GetValue(), wrong.Unwrap()); text != "" {
			return Usagef("--%s %q: %s", f.Name, wrong.GetValue(), text)
		}
		return wrong.Unwrap()
	}
	if lacking := (*pflag.ValueRequiredError)(nil); errors.As(err, &lacking) {
		return Usagef("--%s has no value; %s", lacking.GetFlag().Name, see)
	}
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		if letters := unknown.GetSpecifiedShortnames(); letters != "" {
			return Usagef("unknown flag -%s; %s", unknown.GetSpecifiedName(), see)
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := Similar(unknown.GetSpecifiedName(), names); near != "" {
			see = "did you mean --" + near + "?"
		}
		return Usagef("unknown flag --%s; %s", unknown.GetSpecifiedName(), see)
	}
	return Usagef("%w; %s", err, see)
}

// valueRule says what the value of a flag must be, by the type of the flag. It is empty
// for types whose errors name the flag themselves.
func valueRule(kind, value string, err error) string {
	switch {
	case errors.Is(err, strconv.ErrRange) && strings.HasPrefix(value, "-"):
		return "too far below 0; give a larger number"
	case errors.Is(err, strconv.ErrRange):
		return "too large; give a smaller number"
	case kind == "duration" && durationForm.MatchString(value):
		return "too long; give at most 2562047h, which is 292 years"
	}
	switch kind {
	case "int", "int64", "count":
		return "must be a whole number, such as 10"
	case "uint64":
		return "must be a whole number of at least 0, such as 10"
	case "float64":
		return "must be a number with a decimal point, such as 0.5"
	case "duration":
		return "must be a number with a unit, such as 30s, 5m or 12h"
	case "bool":
		return "must be true or false; leave the value out for true"
	case "stringSlice":
		return "must be a list with commas, such as a,b"
	default:
		return ""
	}
}

// durationForm is a number with a unit, which time.ParseDuration refuses only if it is
// too long.
var durationForm = regexp.MustCompile(`^-?(\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h)$`)

// OneOf refuses a value that is not allowed. what is the flag or argument.
func OneOf(what, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	text := allowed[0]
	if last := len(allowed) - 1; last > 0 {
		text = strings.Join(allowed[:last], ", ") + " or " + allowed[last]
	}
	if near := Similar(value, allowed); near != "" {
		text += "; did you mean " + near + "?"
	}
	return Usagef("%s %q: must be %s", what, value, text)
}

// specFields are the fields of a study whose flags have other names.
var specFields = map[string]string{"attributes": "attr", "objectives": "minimize and --maximize"}

// fieldAt is the field of a message by which the service refuses a request, with its
// value.
var fieldAt = regexp.MustCompile(`^([a-z_]+)(?:\[\d+\])?\.?([\w.]*) = `)

// NameFlag names the flag in an error about a field of a request, if the flag was given.
func NameFlag(cmd *cobra.Command, err error) error {
	if tuner.CodeOf(err) != tuner.Invalid {
		return err
	}
	text := err.Error()
	at := fieldAt.FindStringSubmatch(text)
	if at == nil {
		return err
	}
	flag, ok := specFields[at[1]]
	if !ok {
		flag = strings.ReplaceAll(at[1], "_", "-")
	}
	first, _, _ := strings.Cut(flag, " ")
	if f := cmd.Flag(first); f == nil || !f.Changed && first == flag {
		return err
	}
	text = strings.TrimPrefix(text, at[0])
	if part := strings.TrimPrefix(strings.TrimPrefix(at[2], "options"), "."); part != "" && part != "name" {
		return Exit(StatusOf(err), fmt.Errorf("--%s: %s = %s", flag, part, text))
	}
	return Exit(StatusOf(err), fmt.Errorf("--%s %s", flag, text))
}
