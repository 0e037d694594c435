package trials

import (
	"context"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

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
			to, _, err := parseTarget(args)
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
