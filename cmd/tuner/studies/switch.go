package studies

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// newSwitch makes a command that changes a study's status.
func newSwitch(g *cli.Globals, cmd *cobra.Command, done string, f func(ctx context.Context, svc tuner.Service, name string) (tuner.Study, error)) *cobra.Command {
	cmd.Args = cli.Between(0, 1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return g.WithStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
			_, err := f(ctx, svc, name)
			if tuner.CodeOf(err) == tuner.Finished {
				return cli.Exit(cli.StatusOf(err), fmt.Errorf("study %s has finished and stays so; continue it in a new one with tuner create-study NAME --from %s", name, name))
			} else if err != nil {
				return err
			}
			g.Note(cmd, "%s study %s.", done, name)
			return nil
		})
	}
	return cmd
}

func newPause(g *cli.Globals) *cobra.Command {
	return newSwitch(g, &cobra.Command{
		Use:               "pause [STUDY]",
		Short:             "Pause a study",
		ValidArgsFunction: cli.Args(g.Studies),
		Long:              `Pause makes asks fail until tuner resume. Running trials continue.`,
		Example:           "  tuner pause digits",
	}, "Paused", func(ctx context.Context, svc tuner.Service, name string) (tuner.Study, error) {
		return svc.Pause(ctx, name, study.Pause{})
	})
}

func newResume(g *cli.Globals) *cobra.Command {
	return newSwitch(g, &cobra.Command{
		Use:               "resume [STUDY]",
		Short:             "Resume a paused study",
		ValidArgsFunction: cli.Args(g.Studies),
		Long:              `Resume ends the pause of a study, so that it hands out trials again.`,
		Example:           "  tuner resume digits",
	}, "Resumed", func(ctx context.Context, svc tuner.Service, name string) (tuner.Study, error) {
		return svc.Resume(ctx, name, study.Resume{})
	})
}

func newFinish(g *cli.Globals) *cobra.Command {
	var detail string
	cmd := newSwitch(g, &cobra.Command{
		Use:               "finish [STUDY]",
		Short:             "Finish a study",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Finish ends a study. It hands out no more trials, and cannot be resumed.

Running trials are told to stop at their next report or heartbeat, and their results are
still accepted. All results are kept.`,
		Example: "  tuner finish digits --detail 'good enough'",
	}, "Finished", func(ctx context.Context, svc tuner.Service, name string) (tuner.Study, error) {
		return svc.Finish(ctx, name, study.Finish{Detail: detail})
	})
	cmd.Flags().StringVar(&detail, "detail", "", "`text` that says why")
	return cmd
}
