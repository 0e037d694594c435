package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// HelpWidth is the most columns of a help page.
const HelpWidth = 80

// Group is a group of flags on a help page.
type Group struct {
	Title string
	See   string // the command whose page lists the flags instead, or "" for this page
}

// The groups that several commands share.
var (
	general    = Group{"General", "tuner --help"}
	connection = Group{Title: "Connection"}
	remote     = Group{"Connection", "tuner help connection"}
)

// groupKey is the annotation of a flag with its group.
const groupKey = "tuner_group"

// FlagGroup calls define and puts the flags that it adds into a group of the help page.
func FlagGroup(cmd *cobra.Command, g Group, define func(fs *pflag.FlagSet)) {
	fs, earlier := cmd.Flags(), 0
	fs.SortFlags = false
	fs.VisitAll(func(*pflag.Flag) { earlier++ })
	define(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		if earlier--; earlier < 0 {
			Assign(f, g)
		}
	})
}

// Assign puts a flag into a group.
func Assign(f *pflag.Flag, g Group) {
	f.Annotations = map[string][]string{groupKey: {g.Title, g.See}}
}

// groupOf is the group of a flag.
func groupOf(f *pflag.Flag) Group {
	if a := f.Annotations[groupKey]; len(a) == 2 {
		return Group{a[0], a[1]}
	}
	return Group{Title: "Flags"}
}

// What a command connects to decides which flags of the connection its page shows.
const (
	ConnectsKey = "tuner_connects"
	ToService   = "service" // a file, a database or a server
	ToPlace     = "place"   // a file or a database
	ToFile      = "file"
	ToDatabase  = "database"
	ToServer    = "server"
)

// Shows tells whether the page of a command shows a flag of the root command.
func Shows(cmd *cobra.Command, f *pflag.Flag) bool {
	to := cmd.Annotations[ConnectsKey]
	switch f.Name {
	case "quiet", "verbose", "color":
		return true
	case "db", "lock-timeout":
		return to == ToService || to == ToFile || to == ToPlace
	case "store":
		return to == ToService || to == ToPlace || to == ToDatabase
	default:
		return to == ToService || to == ToServer
	}
}

// FlagsOf returns the groups of flags that a command's page shows, in order, and the
// pages on which its other flags are.
func FlagsOf(cmd *cobra.Command) (groups []*pflag.FlagSet, see []string) {
	add := func(f *pflag.Flag) {
		g := groupOf(f)
		if g.See != "" && g.See != cmd.CommandPath() && g.See != "tuner help "+cmd.Name() && cmd.HasParent() {
			if !slices.Contains(see, g.See) {
				see = append(see, g.See)
			}
			return
		}
		i := slices.IndexFunc(groups, func(fs *pflag.FlagSet) bool { return fs.Name() == g.Title })
		if i < 0 {
			fs := pflag.NewFlagSet(g.Title, pflag.ContinueOnError)
			fs.SortFlags = false
			i, groups = len(groups), append(groups, fs)
		}
		groups[i].AddFlag(f)
	}
	if cmd.HasParent() {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				add(f)
			}
		})
	}
	for p := cmd.Parent(); p != nil && p.HasParent(); p = p.Parent() {
		p.PersistentFlags().VisitAll(add)
	}
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if cmd.Flags().Lookup(f.Name) == f && Shows(cmd, f) {
			add(f)
		}
	})
	return groups, see
}

// ShowHelp writes the help page of a command.
func ShowHelp(cmd *cobra.Command, _ []string) {
	about, rest := HelpPage(cmd)
	fmt.Fprint(cmd.OutOrStdout(), about, "\n", rest)
}

// HelpPage returns the page in two parts. The first says what the command does. The
// second has an example, the usage, the details and the flags.
func HelpPage(cmd *cobra.Command) (about, rest string) {
	cmd.InheritedFlags() // cobra merges the flags of the parents here
	about, details, _ := strings.Cut(wrap(strings.TrimSpace(cmd.Long)), "\n\n")
	var b strings.Builder
	if cmd.Example != "" {
		fmt.Fprintf(&b, "Example:\n%s\n\n", cmd.Example)
	}
	if use := useLine(cmd); use != "" {
		fmt.Fprintf(&b, "Usage: %s\n\n", use)
	}
	if details != "" {
		b.WriteString(details + "\n\n")
	}
	writeCommands(&b, cmd)
	groups, see := FlagsOf(cmd)
	for _, fs := range groups {
		fmt.Fprintf(&b, "%s:\n%s\n", fs.Name(), FlagLines(fs))
	}
	if len(see) > 0 {
		b.WriteString(wrap("More flags: "+strings.Join(see, ", ")) + "\n")
	}
	return about + "\n", strings.TrimRight(b.String(), "\n") + "\n"
}

// useLine is how a command is called.
func useLine(cmd *cobra.Command) string {
	switch {
	case cmd.HasSubCommands():
		return cmd.CommandPath() + " COMMAND [flags]"
	case cmd.Runnable():
		return cmd.UseLine()
	}
	return ""
}

// FlagLines lists flags in two columns.
func FlagLines(fs *pflag.FlagSet) string {
	var left, right []string
	width := 0
	fs.VisitAll(func(f *pflag.Flag) {
		name, usage := pflag.UnquoteUsage(f)
		text := "  --" + f.Name
		if f.Shorthand != "" {
			text = "  -" + f.Shorthand + ", --" + f.Name
		}
		if name != "" && f.NoOptDefVal == "" {
			text += " " + name
		}
		if !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
			usage += " (default " + strings.Replace(f.DefValue, "m0s", "m", 1) + ")"
		}
		left, right = append(left, text), append(right, usage)
		if n := len(text); n <= flagColumn {
			width = max(width, n)
		}
	})
	var b strings.Builder
	for i := range left {
		indent := strings.Repeat(" ", width+2)
		text := strings.ReplaceAll(Wrap(right[i], HelpWidth-width-2, ""), "\n", "\n"+indent)
		if pad := width - len(left[i]); pad >= 0 {
			b.WriteString(left[i] + strings.Repeat(" ", pad+2) + text + "\n")
		} else {
			b.WriteString(left[i] + "\n" + indent + text + "\n")
		}
	}
	return b.String()
}

// flagColumn is the most columns of the flags themselves.
const flagColumn = 34

// wrap breaks the lines of a text anew. Paragraphs with indented lines are tables and
// stay as they are.
func wrap(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !IsTable(p) {
			paragraphs[i] = Wrap(p, HelpWidth, "")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// IsTable tells whether a paragraph of a help text has indented lines.
func IsTable(paragraph string) bool {
	return strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ")
}

// writeCommands lists the subcommands in their groups, and then the topics.
func writeCommands(out io.Writer, cmd *cobra.Command) {
	list := func(title string, of func(sub *cobra.Command) bool) {
		var b strings.Builder
		for _, sub := range cmd.Commands() {
			if of(sub) {
				b.WriteString(ListLine(sub.Name(), sub.Short) + "\n")
			}
		}
		if b.Len() > 0 {
			fmt.Fprintf(out, "%s:\n%s", title, b.String())
		}
	}
	for _, g := range cmd.Groups() {
		list(g.Title, func(sub *cobra.Command) bool { return sub.GroupID == g.ID && sub.IsAvailableCommand() })
	}
	list("Commands", func(sub *cobra.Command) bool { return sub.GroupID == "" && sub.IsAvailableCommand() })
	var topics []string
	for _, sub := range cmd.Commands() {
		if sub.IsAdditionalHelpTopicCommand() {
			topics = append(topics, sub.Name())
		}
	}
	if len(topics) > 0 {
		fmt.Fprintln(out, Wrap("Topics of tuner help: "+strings.Join(topics, ", "), HelpWidth, ""))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintln(out)
	}
}

// ListLine is an entry of a list, which may have several lines.
func ListLine(name, text string) string {
	const column = 15
	return fmt.Sprintf("  %-*s%s", column, name, strings.ReplaceAll(Wrap(text, HelpWidth-column-2, ""), "\n", "\n"+strings.Repeat(" ", column+2)))
}

// Output has the flags about the result.
var Output = Group{Title: "Output"}
