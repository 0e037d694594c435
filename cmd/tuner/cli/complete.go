package cli

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// completionTime is the longest wait of a completion for a file that is in use.
const completionTime = 500 * time.Millisecond

const (
	noFile  = cobra.ShellCompDirectiveNoFileComp
	noSpace = noFile | cobra.ShellCompDirectiveNoSpace // a value follows
)

// Folders and Files complete directories and files.
var (
	Folders = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	Files   = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
)

// Register completes the value of a flag.
func Register(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, Begun(f)); err != nil {
		panic(err) // no such flag, or twice
	}
}

// Args completes the first argument by the first function and so on. The last but the
// first of several functions stands for all further arguments.
func Args(by ...cobra.CompletionFunc) cobra.CompletionFunc {
	return Begun(func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && len(by) == 1 {
			return nil, noFile
		}
		return by[min(len(args), len(by)-1)](cmd, args, toComplete)
	})
}

// Begun leaves out the words that do not begin as the word to complete.
func Begun(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		list, directive := f(cmd, args, toComplete)
		return slices.DeleteFunc(slices.Clone(list), func(word string) bool { return !strings.HasPrefix(word, toComplete) }), directive
	}
}

// Words completes one of a few words.
func Words(list ...string) cobra.CompletionFunc { return cobra.FixedCompletions(list, noFile) }

// Assignments completes name= for the names that are not given yet. After name= it
// completes one of the values, which are words such as kernel=gaussian.
func Assignments(names, values, given []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if strings.Contains(toComplete, "=") {
		return values, noFile
	}
	var out []string
	for _, name := range names {
		if !slices.ContainsFunc(given, func(word string) bool { return strings.HasPrefix(word, name+"=") }) {
			out = append(out, name+"=")
		}
	}
	return out, noSpace
}

// Component completes NAME:option=value,option=… of a proposer or pruner.
func Component(names func() []string, options func(name string) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		name, given, ok := strings.Cut(toComplete, ":")
		if !ok {
			return names(), noFile
		}
		items := strings.Split(given, ",")
		last := items[len(items)-1]
		words, directive := Assignments(options(name), nil, items[:len(items)-1], last)
		for i := range words {
			words[i] = strings.TrimSuffix(toComplete, last) + words[i]
		}
		return words, directive
	}
}

// look opens the service for a completion. A prompt has no place for errors.
func (g *Globals) look(cmd *cobra.Command, f func(ctx context.Context, svc tuner.Service) ([]string, error)) (list []string) {
	g.LockTimeout, g.RetryFor, g.Quiet = completionTime, 0, true
	err := g.With(cmd, MustExist, func(ctx context.Context, svc tuner.Service) (err error) {
		list, err = f(ctx, svc)
		return err
	})
	if err != nil {
		return nil
	}
	return list
}

func words[T any](items iter.Seq2[T, error], of func(T) []string) (out []string, err error) {
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		out = append(out, of(item)...)
	}
	return out, nil
}

// Studies completes studies that args do not name yet.
func (g *Globals) Studies(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return g.look(cmd, func(ctx context.Context, svc tuner.Service) ([]string, error) {
		return words(AllStudies(ctx, svc), func(s tuner.Study) []string {
			if slices.Contains(args, s.Name) {
				return nil
			}
			return []string{cobra.CompletionWithDesc(s.Name, fmt.Sprintf("%d trials", s.Trials))}
		})
	}), noFile
}

// Running completes the running trials of the study that args name.
func (g *Globals) Running(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return g.look(cmd, func(ctx context.Context, svc tuner.Service) ([]string, error) {
		running := AllTrials(ctx, svc, args[0], tuner.Filter{States: []study.TrialState{study.Running}})
		return words(running, func(t study.Trial) []string {
			return []string{cobra.CompletionWithDesc(strconv.Itoa(t.Number), Clean(t.Worker))}
		})
	}), noFile
}

func (g *Globals) ofStudy(cmd *cobra.Command, name string, of func(spec study.Spec) []string) []string {
	return g.look(cmd, func(ctx context.Context, svc tuner.Service) ([]string, error) {
		s, err := svc.Study(ctx, name)
		if err != nil {
			return nil, err
		}
		return of(s.Spec), nil
	})
}

func objectives(spec study.Spec) (names []string) {
	for _, o := range spec.Objectives {
		names = append(names, o.Name)
	}
	return names
}

// Metrics completes the objectives of a trial's study that are not given yet, as loss=.
func (g *Globals) Metrics(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return Assignments(g.ofStudy(cmd, args[0], objectives), nil, args[2:], toComplete)
}

// Costs completes the metric of a cost, which is seconds or an objective of the study.
func (g *Globals) Costs(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	list := []string{runner.CostSeconds}
	if len(args) > 0 {
		list = distinct(append(list, g.ofStudy(cmd, args[0], objectives)...))
	}
	return list, noFile
}

func distinct(list []string) (out []string) {
	for _, word := range list {
		if !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}

// Objectives completes an objective of the new study. The candidates are those of the
// study in --from, else of all studies.
func (g *Globals) Objectives(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	if from := cmd.Flag("from"); from != nil && from.Changed {
		return g.ofStudy(cmd, from.Value.String(), objectives), noFile
	}
	return distinct(g.look(cmd, func(ctx context.Context, svc tuner.Service) ([]string, error) {
		return words(AllStudies(ctx, svc), func(s tuner.Study) []string { return objectives(s.Spec) })
	})), noFile
}

// Placeholders completes {lr} in the command of tuner run, and files.
func (g *Globals) Placeholders(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	i := strings.LastIndexByte(toComplete, '{')
	if i < 0 || len(args) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return g.ofStudy(cmd, args[0], func(spec study.Spec) (out []string) {
		for _, p := range spec.Space.Parameters() {
			out = append(out, toComplete[:i]+"{"+p.Name+"}")
		}
		return append(out, toComplete[:i]+"{args}")
	}), noFile
}

// Parameters completes the parameters that are not given yet, as lr=, and the values of
// lists, as optimizer=adam.
func (g *Globals) Parameters(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	var values []string
	names := g.ofStudy(cmd, args[0], func(spec study.Spec) (out []string) {
		for _, p := range spec.Space.Parameters() {
			if p.Type != space.TypeConstant {
				out = append(out, p.Name)
			}
			for _, v := range p.Values {
				values = append(values, p.Name+"="+v.String())
			}
		}
		return out
	})
	return Assignments(names, values, args[1:], toComplete)
}
