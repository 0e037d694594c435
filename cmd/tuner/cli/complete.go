package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/prune"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// completionTime is the longest wait of a completion for a file that is in use.
const completionTime = 500 * time.Millisecond

// maxCompletions is the most trials that a completion lists.
const maxCompletions = 50

// completion lists the words that may follow args.
type completion func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)

// Complete gives the commands below root their completion of studies, trials, metrics,
// parameters and the values of flags.
func (g *Globals) Complete(root *cobra.Command) {
	positions := map[string]completion{}
	for _, name := range []string{"ask", "best", "trials", "export", "diagnose", "importance", "plot", "replay", "pause", "resume", "finish", "delete-study", "watch"} {
		positions[name] = g.InOrder(g.studyNames)
	}
	positions["studies"] = g.studyNames
	positions["tell"] = g.InOrder(g.studyNames, g.runningTrials, g.metrics)
	positions["report"] = positions["tell"]
	positions["heartbeat"] = g.InOrder(g.studyNames, g.runningTrials)
	positions["stop"] = positions["heartbeat"]
	positions["enqueue"] = g.InOrder(g.studyNames, g.parameters)
	positions["expect"] = positions["enqueue"]
	positions["note"] = g.InOrder(g.studyNames)
	positions["run"] = g.InOrder(g.studyNames, g.placeholders)
	positions["import"] = g.InOrder(g.studyNames, files)
	flags := map[string]completion{
		"from":     g.studyNames,
		"study":    g.studyNames,
		"proposer": proposers,
		"pruner":   g.pruners,
		"minimize": g.objectives,
		"maximize": g.objectives,
	}
	Register(root, "color", Words(colorAuto, colorAlways, colorNever))
	for _, cmd := range root.Commands() {
		if f := positions[cmd.Name()]; f != nil {
			cmd.ValidArgsFunction = f
		}
		for name, f := range flags {
			if cmd.Flag(name) != nil {
				Register(cmd, name, f)
			}
		}
	}
}

func Register(cmd *cobra.Command, flag string, f completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // no such flag, or twice
	}
}

// InOrder completes the first argument by the first function and so on. The last but
// the first of several functions stands for all further arguments.
func (g *Globals) InOrder(by ...completion) completion {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		n := len(args)
		if n >= len(by) {
			if len(by) == 1 {
				return Nothing()
			}
			n = len(by) - 1
		}
		return by[n](cmd, args, toComplete)
	}
}

func Nothing() ([]string, cobra.ShellCompDirective) { return nil, cobra.ShellCompDirectiveNoFileComp }

func files(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// Words completes one of a few words.
func Words(list ...string) completion {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return Beginning(list, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
}

// Folders completes directories.
func Folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// Beginning are the words of a list that have a prefix.
func Beginning(list []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(word string) bool { return !strings.HasPrefix(word, prefix) })
}

// look opens the service for a completion. A prompt has no place for errors.
func (g *Globals) look(cmd *cobra.Command, f func(svc tuner.Service) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	g.LockTimeout, g.RetryFor, g.Quiet = completionTime, 0, true
	svc, err := g.Open(cmd, MustExist)
	if err != nil {
		return Nothing()
	}
	defer svc.Close()
	list, err := f(svc)
	if err != nil {
		return Nothing()
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// lookAt is look for a study.
func (g *Globals) lookAt(cmd *cobra.Command, name string, f func(svc tuner.Service, s tuner.Study) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	return g.look(cmd, func(svc tuner.Service) ([]string, error) {
		s, err := svc.Study(cmd.Context(), name)
		if err != nil {
			return nil, err
		}
		return f(svc, s)
	})
}

func (g *Globals) studyNames(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return g.look(cmd, func(svc tuner.Service) ([]string, error) {
		var out []string
		for s, err := range AllStudies(cmd.Context(), svc) {
			if err != nil {
				return nil, err
			}
			if strings.HasPrefix(s.Name, toComplete) && !slices.Contains(args, s.Name) {
				out = append(out, cobra.CompletionWithDesc(s.Name, fmt.Sprintf("%d trials", s.Trials)))
			}
		}
		return out, nil
	})
}

func (g *Globals) runningTrials(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return g.look(cmd, func(svc tuner.Service) ([]string, error) {
		var out []string
		filter := tuner.Filter{States: []study.TrialState{study.Running}}
		for t, err := range AllTrials(cmd.Context(), svc, args[0], filter) {
			if err != nil {
				return nil, err
			}
			if number := strconv.Itoa(t.Number); strings.HasPrefix(number, toComplete) && len(out) < maxCompletions {
				out = append(out, cobra.CompletionWithDesc(number, Clean(t.Worker)))
			}
		}
		return out, nil
	})
}

// metrics completes the objectives that are not given yet, as loss=.
func (g *Globals) metrics(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	list, directive := g.objectivesOf(cmd, args[0])
	return Assignments(list, args[2:], toComplete), directive | cobra.ShellCompDirectiveNoSpace
}

// objectivesOf are the objectives of a study.
func (g *Globals) objectivesOf(cmd *cobra.Command, name string) ([]string, cobra.ShellCompDirective) {
	return g.lookAt(cmd, name, func(_ tuner.Service, s tuner.Study) ([]string, error) {
		var out []string
		for _, o := range s.Spec.Objectives {
			out = append(out, o.Name)
		}
		return out, nil
	})
}

// Costs completes the metric of a cost, which is seconds or an objective of the study.
func (g *Globals) Costs(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	list := []string{runner.CostSeconds}
	if len(args) > 0 {
		more, _ := g.objectivesOf(cmd, args[0])
		list = append(list, slices.DeleteFunc(more, func(name string) bool { return name == runner.CostSeconds })...)
	}
	return Beginning(list, toComplete), cobra.ShellCompDirectiveNoFileComp
}

// objectives completes an objective of the new study. The candidates are those of the
// study in --from, else of all studies.
func (g *Globals) objectives(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if from := cmd.Flag("from"); from != nil && from.Changed {
		list, directive := g.objectivesOf(cmd, from.Value.String())
		return Beginning(list, toComplete), directive
	}
	return g.look(cmd, func(svc tuner.Service) ([]string, error) {
		var out []string
		for s, err := range AllStudies(cmd.Context(), svc) {
			if err != nil {
				return nil, err
			}
			for _, o := range s.Spec.Objectives {
				if strings.HasPrefix(o.Name, toComplete) && !slices.Contains(out, o.Name) {
					out = append(out, o.Name)
				}
			}
		}
		return out, nil
	})
}

// proposers completes a proposer, and after NAME: its options.
func proposers(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if strings.Contains(toComplete, ":") {
		return options(toComplete, propose.Options)
	}
	return Words(propose.Names()...)(cmd, nil, toComplete)
}

// options completes the last of NAME:option=value,option=….
func options(toComplete string, of func(name string) []string) ([]string, cobra.ShellCompDirective) {
	name, given, _ := strings.Cut(toComplete, ":")
	known := of(name)
	items := strings.Split(given, ",")
	last := items[len(items)-1]
	var out []string
	for _, word := range Assignments(known, items[:len(items)-1], last) {
		out = append(out, strings.TrimSuffix(toComplete, last)+word)
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// pruners completes a pruner, after NAME: its options, and after NAME:metric= an objective
// of the new study.
func (g *Globals) pruners(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	before, _, ok := strings.Cut(toComplete, "metric=")
	if !ok && strings.Contains(toComplete, ":") {
		return options(toComplete, prune.Options)
	}
	if !ok {
		return Words(prune.Names()...)(cmd, nil, toComplete)
	}
	var names []string
	for _, flag := range []string{"minimize", "maximize"} {
		if list, err := cmd.Flags().GetStringSlice(flag); err == nil {
			names = append(names, list...)
		}
	}
	if len(names) == 0 {
		names, _ = g.objectives(cmd, nil, "")
	}
	var out []string
	for _, name := range names {
		out = append(out, before+"metric="+name)
	}
	return Beginning(out, toComplete), cobra.ShellCompDirectiveNoFileComp
}

// placeholders completes {lr} in the command of tuner run, and files.
func (g *Globals) placeholders(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	i := strings.LastIndexByte(toComplete, '{')
	if i < 0 || len(args) == 0 {
		return files(cmd, args, toComplete)
	}
	list, directive := g.lookAt(cmd, args[0], func(_ tuner.Service, s tuner.Study) ([]string, error) {
		var out []string
		for _, p := range s.Spec.Space.Parameters() {
			out = append(out, toComplete[:i]+"{"+p.Name+"}")
		}
		return append(out, toComplete[:i]+"{args}"), nil
	})
	return Beginning(list, toComplete), directive
}

// parameters completes the parameters that are not given yet, as lr=, and the values of
// lists, as optimizer=adam.
func (g *Globals) parameters(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	var values []string
	list, directive := g.lookAt(cmd, args[0], func(_ tuner.Service, s tuner.Study) ([]string, error) {
		var out []string
		for _, p := range s.Spec.Space.Parameters() {
			if p.Type != space.TypeConstant {
				out = append(out, p.Name)
			}
			for _, v := range p.Values {
				if word := p.Name + "=" + v.String(); strings.HasPrefix(word, toComplete) {
					values = append(values, word)
				}
			}
		}
		return out, nil
	})
	if strings.Contains(toComplete, "=") {
		return values, directive
	}
	return Assignments(list, args[1:], toComplete), directive | cobra.ShellCompDirectiveNoSpace
}

// Assignments are name= for the names that have a prefix and are not given yet.
func Assignments(names, given []string, toComplete string) []string {
	var out []string
	for _, name := range names {
		if strings.HasPrefix(name, toComplete) && !slices.ContainsFunc(given, func(word string) bool { return strings.HasPrefix(word, name+"=") }) {
			out = append(out, name+"=")
		}
	}
	return out
}
