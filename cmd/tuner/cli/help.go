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
	groupKey   = "tuner_group" // annotation of a flag with its group
	connectKey = "tuner_connects"
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

// Place is what a command connects to. It decides which flags of the connection its help
// page shows.
type Place string

const (
	ToService  Place = "db store server"
	ToPlace    Place = "db store" // a file or a database
	ToFile     Place = "db"
	ToDatabase Place = "store"
	ToServer   Place = "server"
)

// Connects says what commands connect to, and returns them.
func Connects(to Place, commands ...*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		cmd.Annotations = map[string]string{connectKey: string(to)}
	}
	return commands
}

// Shows tells whether the page of a command shows a flag of the root command.
func Shows(cmd *cobra.Command, f *pflag.Flag) bool {
	to := strings.Fields(cmd.Annotations[connectKey])
	switch f.Name {
	case "quiet", "verbose", "color":
		return true
	case "db", "lock-timeout":
		return slices.Contains(to, "db")
	case "store":
		return slices.Contains(to, "store")
	default:
		return slices.Contains(to, "server")
	}
}

// FlagsOf returns the groups of flags that a command's page shows, in order, and the
// pages on which its other flags are.
func FlagsOf(cmd *cobra.Command) (groups []*pflag.FlagSet, see []string) {
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
		if cmd.Flags().Lookup(f.Name) == f && Shows(cmd, f) { // else the command has one of this name
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
	if list := commandList(cmd); len(list) > 0 {
		sections = append(sections, strings.Join(list, "\n"))
	}
	groups, see := FlagsOf(cmd)
	for _, fs := range groups {
		sections = append(sections, fs.Name()+":\n"+strings.TrimRight(fs.FlagUsagesWrapped(HelpWidth), "\n"))
	}
	if len(see) > 0 {
		sections = append(sections, Wrap("More flags: "+strings.Join(see, ", "), HelpWidth, ""))
	}
	return strings.Join(sections, "\n\n") + "\n"
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
