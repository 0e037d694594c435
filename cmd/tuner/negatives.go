package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var negative = regexp.MustCompile(`^-(\.?[0-9]|(?i:inf(inity)?$))`)

// guardNegatives lets a negative number be an argument of tell. It becomes =-0.5, which
// is the value of the only objective, and which no flag parser takes for a flag.
func guardNegatives(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil || cmd.Name() != "tell" {
		return args
	}
	args = slices.Clone(args)
	for i, arg := range args {
		switch {
		case arg == "--":
			return args
		case negative.MatchString(arg) && (i == 0 || !takesValue(cmd, args[i-1])):
			args[i] = "=" + arg
		}
	}
	return args
}

// takesValue tells whether an argument is a flag whose value is the next one.
func takesValue(cmd *cobra.Command, arg string) bool {
	if !strings.HasPrefix(arg, "-") || strings.Contains(arg, "=") {
		return false
	}
	var flag *pflag.Flag
	if name, long := strings.CutPrefix(arg, "--"); long {
		if flag = cmd.Flags().Lookup(name); flag == nil {
			flag = cmd.InheritedFlags().Lookup(name)
		}
	} else if len(arg) == 2 {
		if flag = cmd.Flags().ShorthandLookup(arg[1:]); flag == nil {
			flag = cmd.InheritedFlags().ShorthandLookup(arg[1:])
		}
	}
	return flag != nil && flag.NoOptDefVal == ""
}
