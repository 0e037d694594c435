package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/prune"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// completionTime is the longest wait of a completion for a file that is in use.
const completionTime = 500 * time.Millisecond

// maxCompletions is the most trials that a completion lists.
const maxCompletions = 50

// completion lists the words that may follow args.
type completion func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)

// complete gives the commands below root their completion of studies, trials, metrics,
// parameters and the values of flags.
func (g *globals) complete(root *cobra.Command) {
	positions := map[string]completion{}
	for _, name := range []string{"ask", "best", "trials", "export", "diagnose", "importance", "plot", "replay", "pause", "resume", "finish", "delete-study", "watch"} {
		positions[name] = g.inOrder(g.studyNames)
	}
	positions["studies"] = g.studyNames
	positions["tell"] = g.inOrder(g.studyNames, g.runningTrials, g.metrics)
	positions["report"] = positions["tell"]
	positions["heartbeat"] = g.inOrder(g.studyNames, g.runningTrials)
	positions["stop"] = positions["heartbeat"]
	positions["enqueue"] = g.inOrder(g.studyNames, g.parameters)
	positions["expect"] = positions["enqueue"]
	positions["note"] = g.inOrder(g.studyNames)
	positions["run"] = g.inOrder(g.studyNames, g.placeholders)
	positions["import"] = g.inOrder(g.studyNames, files)
	positions["auto"] = g.inOrder(algorithms)
	flags := map[string]completion{
		"from":     g.studyNames,
		"study":    g.studyNames,
		"proposer": proposers,
		"pruner":   g.pruners,
		"minimize": g.objectives,
		"maximize": g.objectives,
	}
	register(root, "color", words(colorAuto, colorAlways, colorNever))
	for _, cmd := range root.Commands() {
		if f := positions[cmd.Name()]; f != nil {
			cmd.ValidArgsFunction = f
		}
		for name, f := range flags {
			if cmd.Flag(name) != nil {
				register(cmd, name, f)
			}
		}
	}
}

func register(cmd *cobra.Command, flag string, f completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // no such flag, or twice
	}
}

// inOrder completes the first argument by the first function and so on. The last but
// the first of several functions stands for all further arguments.
func (g *globals) inOrder(by ...completion) completion {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		n := len(args)
		if n >= len(by) {
			if len(by) == 1 {
				return nothing()
			}
			n = len(by) - 1
		}
		return by[n](cmd, args, toComplete)
	}
}

func nothing() ([]string, cobra.ShellCompDirective) { return nil, cobra.ShellCompDirectiveNoFileComp }

func files(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// words completes one of a few words.
func words(list ...string) completion {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return beginning(list, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
}

func algorithms(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, a := range training.Algorithms() {
		out = append(out, cobra.CompletionWithDesc(a.Name, a.Summary))
	}
	return beginning(out, toComplete), cobra.ShellCompDirectiveNoFileComp
}

// folders completes directories.
func folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// kernelNames are the kernels of the learners.
func kernelNames() []string {
	for _, p := range training.Algorithms()[0].Parameters {
		if p.Name == "kernel" {
			return p.Choices
		}
	}
	return nil
}

// hyperParameters completes the hyper-parameters of the algorithm that args name, as
// lambda=, and the values of choices, as kernel=gaussian.
func hyperParameters(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nothing()
	}
	a, err := training.Find(args[0])
	if err != nil {
		return nothing()
	}
	var names, values []string
	for _, p := range a.Parameters {
		names = append(names, p.Name)
		for _, choice := range p.Choices {
			values = append(values, p.Name+"="+choice)
		}
	}
	if strings.Contains(toComplete, "=") {
		return beginning(values, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
	return assignments(names, nil, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// beginning are the words of a list that have a prefix.
func beginning(list []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(word string) bool { return !strings.HasPrefix(word, prefix) })
}

// look opens the service for a completion. A prompt has no place for errors.
func (g *globals) look(cmd *cobra.Command, f func(svc tuner.Service) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	g.lockTimeout, g.retryFor, g.quiet = completionTime, 0, true
	svc, err := g.open(cmd, mustExist)
	if err != nil {
		return nothing()
	}
	defer svc.Close()
	list, err := f(svc)
	if err != nil {
		return nothing()
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// lookAt is look for a study.
func (g *globals) lookAt(cmd *cobra.Command, name string, f func(svc tuner.Service, s tuner.Study) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	return g.look(cmd, func(svc tuner.Service) ([]string, error) {
		s, err := svc.Study(cmd.Context(), name)
		if err != nil {
			return nil, err
		}
		return f(svc, s)
	})
}

func (g *globals) studyNames(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return g.look(cmd, func(svc tuner.Service) ([]string, error) {
		var out []string
		for s, err := range allStudies(cmd.Context(), svc) {
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

func (g *globals) runningTrials(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return g.look(cmd, func(svc tuner.Service) ([]string, error) {
		var out []string
		filter := tuner.Filter{States: []study.TrialState{study.Running}}
		for t, err := range allTrials(cmd.Context(), svc, args[0], filter) {
			if err != nil {
				return nil, err
			}
			if number := strconv.Itoa(t.Number); strings.HasPrefix(number, toComplete) && len(out) < maxCompletions {
				out = append(out, cobra.CompletionWithDesc(number, clean(t.Worker)))
			}
		}
		return out, nil
	})
}

// metrics completes the objectives that are not given yet, as loss=.
func (g *globals) metrics(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	list, directive := g.objectivesOf(cmd, args[0])
	return assignments(list, args[2:], toComplete), directive | cobra.ShellCompDirectiveNoSpace
}

// objectivesOf are the objectives of a study.
func (g *globals) objectivesOf(cmd *cobra.Command, name string) ([]string, cobra.ShellCompDirective) {
	return g.lookAt(cmd, name, func(_ tuner.Service, s tuner.Study) ([]string, error) {
		var out []string
		for _, o := range s.Spec.Objectives {
			out = append(out, o.Name)
		}
		return out, nil
	})
}

// costs completes the metric of a cost, which is seconds or an objective of the study.
func (g *globals) costs(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	list := []string{runner.CostSeconds}
	if len(args) > 0 {
		more, _ := g.objectivesOf(cmd, args[0])
		list = append(list, slices.DeleteFunc(more, func(name string) bool { return name == runner.CostSeconds })...)
	}
	return beginning(list, toComplete), cobra.ShellCompDirectiveNoFileComp
}

// objectives completes an objective of the new study. The candidates are those of the
// study in --from, else of all studies.
func (g *globals) objectives(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if from := cmd.Flag("from"); from != nil && from.Changed {
		list, directive := g.objectivesOf(cmd, from.Value.String())
		return beginning(list, toComplete), directive
	}
	return g.look(cmd, func(svc tuner.Service) ([]string, error) {
		var out []string
		for s, err := range allStudies(cmd.Context(), svc) {
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
	return words(propose.Names()...)(cmd, nil, toComplete)
}

// options completes the last of NAME:option=value,option=….
func options(toComplete string, of func(name string) []string) ([]string, cobra.ShellCompDirective) {
	name, given, _ := strings.Cut(toComplete, ":")
	known := of(name)
	items := strings.Split(given, ",")
	last := items[len(items)-1]
	var out []string
	for _, word := range assignments(known, items[:len(items)-1], last) {
		out = append(out, strings.TrimSuffix(toComplete, last)+word)
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// pruners completes a pruner, after NAME: its options, and after NAME:metric= an objective
// of the new study.
func (g *globals) pruners(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	before, _, ok := strings.Cut(toComplete, "metric=")
	if !ok && strings.Contains(toComplete, ":") {
		return options(toComplete, prune.Options)
	}
	if !ok {
		return words(prune.Names()...)(cmd, nil, toComplete)
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
	return beginning(out, toComplete), cobra.ShellCompDirectiveNoFileComp
}

// placeholders completes {lr} in the command of tuner run, and files.
func (g *globals) placeholders(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
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
	return beginning(list, toComplete), directive
}

// parameters completes the parameters that are not given yet, as lr=, and the values of
// lists, as optimizer=adam.
func (g *globals) parameters(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
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
	return assignments(list, args[1:], toComplete), directive | cobra.ShellCompDirectiveNoSpace
}

// assignments are name= for the names that have a prefix and are not given yet.
func assignments(names, given []string, toComplete string) []string {
	var out []string
	for _, name := range names {
		if strings.HasPrefix(name, toComplete) && !slices.ContainsFunc(given, func(word string) bool { return strings.HasPrefix(word, name+"=") }) {
			out = append(out, name+"=")
		}
	}
	return out
}
