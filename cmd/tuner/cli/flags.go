package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/internal/nearest"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// choice is the value of a flag that must be one of a few words.
type choice struct {
	to      *string
	flag    string
	allowed []string
}

func (c *choice) String() string { return *c.to }
func (c *choice) Type() string   { return "choice" }

func (c *choice) Set(word string) error {
	if err := OneOf("--"+c.flag, word, c.allowed...); err != nil {
		return err
	}
	*c.to = word
	return nil
}

// ChoiceVar adds a flag whose value must be one of a few words. The first is the default,
// unless value has one.
func ChoiceVar(fs *pflag.FlagSet, value *string, name, short, usage string, allowed ...string) {
	if *value == "" {
		*value = allowed[0]
	}
	fs.VarP(&choice{value, name, allowed}, name, short, usage+", one of "+strings.Join(allowed, ", "))
}

// FormatFlag adds a --format flag whose first allowed value is the default.
func FormatFlag(cmd *cobra.Command, allowed ...string) *string {
	form := new(string)
	ChoiceVar(cmd.Flags(), form, "format", "f", "`format`", allowed...)
	return form
}

// duration is the value of a flag that also accepts days, and the times of clocks and of Slurm.
type duration struct{ pflag.Value }

// clock is [days-]hours:minutes:seconds.
var clock = regexp.MustCompile(`^(?:(\d+)-)?(\d+):(\d\d):(\d\d)$`)

func (d duration) Set(s string) error {
	if at := clock.FindStringSubmatch(s); at != nil {
		s = cmp.Or(at[1], "0") + "d" + at[2] + "h" + at[3] + "m" + at[4] + "s"
	}
	if text, rest, ok := strings.Cut(s, "d"); ok {
		days, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
			return err
		case 24*days > time.Duration(math.MaxInt64).Hours():
			return strconv.ErrRange
		}
		s = strconv.FormatFloat(24*days, 'f', -1, 64) + "h" + rest
	}
	return d.Value.Set(s)
}

// Finish completes the flags of all commands whose values are one of a few words, and lets
// those of durations accept days and the times of clocks.
func Finish(root *cobra.Command) {
	EachFlag(root, func(cmd *cobra.Command, f *pflag.Flag) {
		if c, ok := f.Value.(*choice); ok {
			Register(cmd, f.Name, Words(c.allowed...))
		} else if f.Value.Type() == "duration" {
			f.Value = duration{f.Value}
			if f.DefValue == "0s" { // which help leaves out only for the type of pflag
				f.DefValue = "0"
			}
		}
	})
}

// EachFlag calls f for the flags of a command and of those below it.
func EachFlag(cmd *cobra.Command, f func(*cobra.Command, *pflag.Flag)) {
	cmd.Flags().SortFlags = false // help lists flags in the order of their definition
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) { f(cmd, flag) })
	for _, sub := range cmd.Commands() {
		EachFlag(sub, f)
	}
}

// StudyName is the study of a command, from the first argument or TUNER_STUDY.
func StudyName(args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	if name := os.Getenv("TUNER_STUDY"); name != "" {
		return name, nil
	}
	return "", Usagef("no study is named; name it as an argument or in TUNER_STUDY")
}

// NoArgs refuses arguments. For a command with subcommands they are unknown subcommands.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if suggestions := cmd.SuggestionsFor(args[0]); len(suggestions) > 0 {
		return Usagef("unknown command %q; did you mean %q?", args[0], cmp.Or(Similar(args[0], suggestions), suggestions[0]))
	}
	return Usagef("unknown command %q; see %s --help", args[0], cmd.CommandPath())
}

// Exactly accepts n arguments.
func Exactly(n int) cobra.PositionalArgs { return Between(n, n) }

// Between accepts low to high arguments. A negative high means any number.
func Between(low, high int) cobra.PositionalArgs {
	needed := strconv.Itoa(low)
	if high < 0 {
		needed += " or more"
	} else if high > low {
		needed += fmt.Sprintf(" to %d", high)
	}
	return func(cmd *cobra.Command, args []string) error {
		if n := len(args); n < low || n > high && high >= 0 {
			return Usagef("%d arguments given, %s needed: %s", n, needed, cmd.UseLine())
		}
		return nil
	}
}

// FlagError is the error of a command line whose flags cannot be parsed.
func FlagError(cmd *cobra.Command, err error) error {
	see := "see " + cmd.CommandPath() + " --help"
	wrong, lacking, unknown := (*pflag.InvalidValueError)(nil), (*pflag.ValueRequiredError)(nil), (*pflag.NotExistError)(nil)
	switch {
	case errors.As(err, &wrong):
		f := wrong.GetFlag()
		if text := valueRule(f.Value.Type(), wrong.GetValue(), wrong.Unwrap()); text != "" {
			return Usagef("--%s %q: %s", f.Name, wrong.GetValue(), text)
		}
		return wrong.Unwrap()
	case errors.As(err, &lacking):
		return Usagef("--%s has no value; %s", lacking.GetFlag().Name, see)
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return Usagef("unknown flag -%s; %s", unknown.GetSpecifiedName(), see)
	case errors.As(err, &unknown):
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := Similar(unknown.GetSpecifiedName(), names); near != "" {
			see = "did you mean --" + near + "?"
		} else if strings.Contains(cmd.Use, " -- ") {
			see = "if it is a flag of your command, write -- in front of that, as in " + cmd.UseLine()
		}
		return Usagef("unknown flag --%s; %s", unknown.GetSpecifiedName(), see)
	}
	return Usagef("%w; %s", err, see)
}

// rules say what the value of a flag of a type must be. The errors of other types name
// the flag themselves.
var rules = map[string]string{
	"int":         "must be a whole number, such as 10",
	"int64":       "must be a whole number, such as 10",
	"count":       "must be a whole number, such as 10",
	"uint64":      "must be a whole number of at least 0, such as 10",
	"float64":     "must be a number with a decimal point, such as 0.5",
	"duration":    "must be a number with a unit, such as 30s, 5m, 12h or 2d, or a time such as 12:00:00",
	"bool":        "must be true or false; leave the value out for true",
	"stringSlice": "must be a list with commas, such as a,b",
}

// durationForm is a number with a unit, which time.ParseDuration refuses only if it is too long.
var durationForm = regexp.MustCompile(`^-?(\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h)$`)

func valueRule(kind, value string, err error) string {
	switch {
	case errors.Is(err, strconv.ErrRange) && strings.HasPrefix(value, "-"):
		return "too far below 0; give a larger number"
	case errors.Is(err, strconv.ErrRange):
		return "too large; give a smaller number"
	case kind == "duration" && durationForm.MatchString(value):
		return "too long; give at most 2562047h, which is 292 years"
	}
	return rules[kind]
}

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

// Similar returns the name that a misspelled name most likely stands for, or "".
func Similar(name string, names []string) string {
	limit := max(2, len(name)/4) + 1
	if len(name) < 4 { // most short words are near to others
		limit = 2
	}
	return nearest.Name(name, names, limit)
}

// specFields are the fields of a study whose flags have other names.
var specFields = map[string]string{"attributes": "attr", "objectives": "minimize and --maximize"}

// fieldAt is the field of a message by which the service refuses a request, with its value.
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
	if cmd.Flag(flag) == nil { // --trials adds to max_trials
		flag = strings.TrimPrefix(flag, "max-")
	}
	first, _, _ := strings.Cut(flag, " ")
	if f := cmd.Flag(first); f == nil || !f.Changed && first == flag {
		return err
	}
	text = strings.TrimPrefix(text, at[0])
	if part := strings.TrimPrefix(strings.TrimPrefix(at[2], "options"), "."); part != "" && part != "name" {
		text = fmt.Sprintf("--%s: %s = %s", flag, part, text)
	} else {
		text = "--" + flag + " " + text
	}
	return Exit(StatusOf(err), errors.New(text))
}
