package trials

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

func newEnqueue(g *cli.Globals) *cobra.Command {
	var c study.Enqueue
	var attributes []string
	cmd := &cobra.Command{
		Use:               "enqueue STUDY name=value… | JSON",
		Short:             "Queue a configuration of your own",
		ValidArgsFunction: cli.Args(g.Studies, g.Parameters),
		Long: `Enqueue queues a configuration and prints the number of its trial. Queued trials are
handed out before new suggestions.

Give a value for each active parameter. Constants can be left out.`,
		Example: `  tuner enqueue digits lr=0.01 batch=32 optimizer=adam
  tuner enqueue digits '{"lr": 0.01, "batch": 32, "optimizer": "adam"}'`,
		Args: cli.Between(2, -1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if c.Config, err = ParseConfig(args[1:]); err != nil {
				return err
			}
			if c.Attributes, err = cli.ParseAttributes(attributes); err != nil {
				return err
			}
			return g.WithView(cmd, args[:1], func(ctx context.Context, svc tuner.Service, view tuner.Study) error {
				if c.Config, err = record.Complete(view.Spec.Space, c.Config); err != nil {
					return err
				}
				t, err := svc.Enqueue(ctx, view.Name, c)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), t.Number)
				return err
			})
		},
	}
	cmd.Flags().StringArrayVar(&attributes, "attr", nil, "note on the trial, `key=value` (repeatable)")
	cmd.Flags().StringVar(&c.RequestID, "request-id", "", "`id` that makes it safe to repeat the request")
	return cmd
}

// ParseConfig reads name=value words, or one JSON object.
func ParseConfig(words []string) (c space.Config, err error) {
	if len(words) == 1 && strings.HasPrefix(strings.TrimSpace(words[0]), "{") {
		err = c.UnmarshalJSON([]byte(words[0]))
		return c, err
	}
	var entries []space.Assignment
	seen := make(map[string]bool)
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return c, cli.Usagef("%q is not name=value", word)
		}
		if seen[name] {
			return c, cli.Usagef("%s is given twice", name)
		}
		seen[name] = true
		entries = append(entries, space.Assignment{Name: name, Value: space.String(value)})
	}
	return space.NewConfig(entries...), nil
}

func newNote(g *cli.Globals) *cobra.Command {
	var requestID string
	cmd := &cobra.Command{
		Use:               "note STUDY [TRIAL] key=value…",
		Short:             "Write notes on a study or trial",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Note writes notes on a study, or on one of its trials.

A note has a key and a text. A new text replaces the old one, and an empty text removes
the note. See tuner trials -f json for the notes on trials and tuner studies -f json for
those on studies.`,
		Example: `  tuner note digits owner=anna
  tuner note digits 12 seen=yes
  tuner note digits 12 seen=`,
		Args: cli.Between(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := study.SetAttributes{RequestID: requestID, Trial: study.OfStudy}
			pairs := args[1:]
			if !strings.Contains(pairs[0], "=") {
				n, err := strconv.Atoi(pairs[0])
				if err != nil || n < 0 {
					return cli.Usagef("%q is neither key=value nor the number of a trial", pairs[0])
				}
				c.Trial, pairs = n, pairs[1:]
			}
			if len(pairs) == 0 {
				return cli.Usagef("there is no note; write one as key=value")
			}
			var err error
			if c.Attributes, err = cli.ParseAttributes(pairs); err != nil {
				return err
			}
			return g.WithStudy(cmd, args[:1], func(ctx context.Context, svc tuner.Service, name string) error {
				return svc.SetAttributes(ctx, name, c)
			})
		},
	}
	cmd.Flags().StringVar(&requestID, "request-id", "", "`id` that makes it safe to repeat the request")
	return cmd
}

func newStop(g *cli.Globals) *cobra.Command {
	var reason string
	var withdraw bool
	cmd := &cobra.Command{
		Use:               "stop STUDY TRIAL",
		Short:             "Ask a running trial to stop",
		ValidArgsFunction: cli.Args(g.Studies, g.Running),
		Long: `Stop asks a running trial to stop.

Its worker learns of it at the next report or heartbeat, and tuner run then ends the
command. The request is the note ` + study.StopAttribute + ` of the trial. It stays until the trial ends,
also if the lease expires and another worker takes the trial over. With --withdraw the
trial may go on.`,
		Example: "  tuner stop digits 12 --reason 'the loss diverges'",
		Args:    cli.Exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := parseTarget(args, 0)
			if err != nil {
				return err
			}
			if withdraw {
				reason = ""
			} else if reason == "" {
				return cli.Usagef("--reason is empty; say why the trial should stop, or leave the flag out")
			}
			return g.WithStudy(cmd, args[:1], func(ctx context.Context, svc tuner.Service, name string) error {
				t, err := svc.Trial(ctx, name, to.trial)
				if err != nil {
					return err
				}
				if t.State != study.Running {
					err := &study.TrialStateError{Trial: to.trial, State: t.State, Rule: "only a running trial can be asked to stop", Remedy: "see tuner trials " + name + " --state running"}
					return cli.Exit(cli.StatusOf(err), err)
				}
				return svc.SetAttributes(ctx, name, study.SetAttributes{Trial: to.trial, Attributes: study.Attributes{study.StopAttribute: reason}})
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", study.StopReason, "`text` that the worker is told")
	cmd.Flags().BoolVar(&withdraw, "withdraw", false, "take the request back")
	return cmd
}
