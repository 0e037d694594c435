package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/tuner"
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
	_ = g.With(cmd, MustExist, func(ctx context.Context, svc tuner.Service) (err error) {
		list, err = f(ctx, svc)
		return err
	})
	return list
}

// Studies completes studies that args do not name yet.
func (g *Globals) Studies(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return g.look(cmd, func(ctx context.Context, svc tuner.Service) (out []string, err error) {
		for s, err := range AllStudies(ctx, svc) {
			if err != nil {
				return nil, err
			}
			if !slices.Contains(args, s.Name) {
				out = append(out, cobra.CompletionWithDesc(s.Name, fmt.Sprintf("%d trials", s.Trials)))
			}
		}
		return out, nil
	}), noFile
}

// Running completes the running trials of the study that args name.
func (g *Globals) Running(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return g.look(cmd, func(ctx context.Context, svc tuner.Service) (out []string, err error) {
		for t, err := range AllTrials(ctx, svc, args[0], tuner.Filter{States: []study.TrialState{study.Running}}) {
			if err != nil {
				return nil, err
			}
			out = append(out, cobra.CompletionWithDesc(strconv.Itoa(t.Number), Clean(t.Worker)))
		}
		return out, nil
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

// Metrics completes the objectives of a trial's study that are not given yet, as loss=.
func (g *Globals) Metrics(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	names := g.ofStudy(cmd, args[0], func(spec study.Spec) (names []string) {
		for _, o := range spec.Objectives {
			names = append(names, o.Name)
		}
		return names
	})
	return Assignments(names, nil, args[2:], toComplete)
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
