package cli

import (
	"fmt"
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

// Output has the flags about the result.
var Output = Group{Title: "Output"}

const (
	// generalPage has the flags that all commands have.
	generalPage = "tuner --help"
	groupKey    = "tuner_group" // annotation of a flag with its group
	connectKey  = "tuner_connects"
)

// FlagGroup calls define and puts the flags that it adds into a group of the help page.
func FlagGroup(cmd *cobra.Command, g Group, define func(fs *pflag.FlagSet)) {
	fs := pflag.NewFlagSet(g.Title, pflag.ContinueOnError)
	define(fs)
	fs.SortFlags, cmd.Flags().SortFlags = false, false
	fs.VisitAll(func(f *pflag.Flag) { Assign(f, g) })
	cmd.Flags().AddFlagSet(fs)
}

// Assign puts a flag into a group.
func Assign(f *pflag.Flag, g Group) { f.Annotations = map[string][]string{groupKey: {g.Title, g.See}} }

// Place is what a command connects to, as its help page says it.
type Place string

const (
	ToService  Place = "--db file, --store URL, --server host:port"
	ToPlace    Place = "--db file, --store URL" // a file or a database
	ToFile     Place = "--db file"
	ToDatabase Place = "--store URL"
	ToServer   Place = "--server host:port"
)

// Connects says what commands connect to, and returns them.
func Connects(to Place, commands ...*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		cmd.Annotations = map[string]string{connectKey: string(to)}
	}
	return commands
}

// Shows tells whether a flag of the root command has an effect on a command.
func Shows(cmd *cobra.Command, f *pflag.Flag) bool {
	name := f.Name
	switch name {
	case "quiet", "verbose", "color":
		return true
	case "lock-timeout":
		name = "db"
	case "db", "store":
	default:
		name = "server"
	}
	return strings.Contains(cmd.Annotations[connectKey], "--"+name)
}

// flagsOf returns the groups of flags that a command's page shows, in order, and the
// pages on which its other flags are.
func flagsOf(cmd *cobra.Command) (groups []*pflag.FlagSet, see []string) {
	add := func(f *pflag.Flag) {
		g := Group{Title: "Flags"}
		if a := f.Annotations[groupKey]; len(a) == 2 {
			g = Group{a[0], a[1]}
		}
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
	root := cmd.Root().PersistentFlags()
	if cmd.HasParent() {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && root.Lookup(f.Name) != f {
				add(f)
			}
		})
		if parent := cmd.Parent(); parent.HasParent() {
			parent.PersistentFlags().VisitAll(add)
		}
	}
	root.VisitAll(func(f *pflag.Flag) {
		if Shows(cmd, f) && (f.Annotations[groupKey][1] == generalPage || cmd.IsAdditionalHelpTopicCommand()) {
			add(f)
		}
	})
	return groups, see
}

// ShowHelp writes the help page of a command.
func ShowHelp(cmd *cobra.Command, _ []string) { fmt.Fprint(cmd.OutOrStdout(), HelpPage(cmd)) }

// HelpPage returns what a command does, with an example, the usage, details and the flags.
func HelpPage(cmd *cobra.Command) string {
	cmd.InheritedFlags() // cobra merges the flags of the parents here
	about, details, _ := strings.Cut(wrapHelp(strings.TrimSpace(cmd.Long)), "\n\n")
	sections := []string{about}
	if cmd.Example != "" {
		sections = append(sections, "Example:\n"+cmd.Example)
	}
	if cmd.HasSubCommands() {
		sections = append(sections, "Usage: "+cmd.CommandPath()+" COMMAND [flags]")
	} else if cmd.Runnable() {
		sections = append(sections, "Usage: "+cmd.UseLine())
	}
	if details != "" {
		sections = append(sections, details)
	}
	lists := commandList(cmd)
	groups, see := flagsOf(cmd)
	for _, fs := range groups {
		lists = append(lists, fs.Name()+":\n"+strings.TrimRight(fs.FlagUsagesWrapped(HelpWidth), "\n"))
	}
	if place := cmd.Annotations[connectKey]; place != "" && cmd.Runnable() {
		lists = append(lists, "Connection: "+place+" (tuner help connection)")
	}
	if len(see) > 0 {
		lists = append(lists, Wrap("More flags: "+strings.Join(see, ", "), HelpWidth, ""))
	}
	return strings.Join(append(sections, strings.Join(lists, "\n")), "\n\n") + "\n"
}

// commandList lists the subcommands in their groups, and then the topics.
func commandList(cmd *cobra.Command) (sections []string) {
	lists, topics := map[string][]string{}, []string{}
	for _, sub := range cmd.Commands() {
		switch {
		case sub.IsAdditionalHelpTopicCommand():
			topics = append(topics, sub.Name())
		case sub.IsAvailableCommand():
			short := Wrap(sub.Short, HelpWidth-17, strings.Repeat(" ", 17))
			lists[sub.GroupID] = append(lists[sub.GroupID], fmt.Sprintf("  %-14s %s", sub.Name(), short))
		}
	}
	for _, g := range append(cmd.Groups(), &cobra.Group{Title: "Commands"}) {
		if len(lists[g.ID]) > 0 {
			sections = append(sections, g.Title+":\n"+strings.Join(lists[g.ID], "\n"))
		}
	}
	if len(topics) > 0 {
		sections = append(sections, Wrap("Topics of tuner help: "+strings.Join(topics, ", "), HelpWidth, ""))
	}
	return sections
}

// wrapHelp breaks the lines of a text anew, but not those of tables.
func wrapHelp(text string) string {
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
	return strings.ContainsAny(paragraph[:min(1, len(paragraph))], " \t") || strings.Contains(paragraph, "\n ") || strings.Contains(paragraph, "\n\t")
}
