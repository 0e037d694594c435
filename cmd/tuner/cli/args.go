package cli

import (
	"os"

	"github.com/spf13/cobra"
)

func StudyName(args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	if name := os.Getenv("TUNER_STUDY"); name != "" {
		return name, nil
	}
	return "", Usagef("there is no study; name it as an argument or in TUNER_STUDY")
}

// NoArgs refuses arguments. For a command with subcommands they are unknown subcommands.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if suggestions := cmd.SuggestionsFor(args[0]); len(suggestions) > 0 {
		return Usagef("unknown command %q; did you mean %q?", args[0], suggestions[0])
	}
	return Usagef("unknown command %q; see %s --help", args[0], cmd.CommandPath())
}

// Exactly accepts n arguments.
func Exactly(n int) cobra.PositionalArgs {
	return Between(n, n)
}

// Between accepts low to high arguments. A negative high means any number.
func Between(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		n := len(args)
		switch {
		case n >= low && (n <= high || high < 0):
			return nil
		case low == high:
			return Usagef("%d arguments given, %d needed: %s", n, low, cmd.UseLine())
		case high < 0:
			return Usagef("%d arguments given, %d or more needed: %s", n, low, cmd.UseLine())
		default:
			return Usagef("%d arguments given, %d to %d needed: %s", n, low, high, cmd.UseLine())
		}
	}
}
