package main

import (
	"context"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// newSwitch makes a command that changes a study's status.
func newSwitch(g *globals, cmd *cobra.Command, done string, f func(ctx context.Context, svc tuner.Service, name string) (tuner.Study, error)) *cobra.Command {
	cmd.Args = between(0, 1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return g.withStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
			if _, err := f(ctx, svc, name); err != nil {
				return err
			}
			g.note(cmd, "%s study %s.", done, name)
			return nil
		})
	}
	return cmd
}

func newPause(g *globals) *cobra.Command {
	return newSwitch(g, &cobra.Command{
		Use:     "pause [STUDY]",
		Short:   "Hand out no trials for now",
		Long:    `Pause makes asks fail with exit status 12 until resume. Trials that run go on.`,
		Example: "  tuner pause digits",
	}, "Paused", func(ctx context.Context, svc tuner.Service, name string) (tuner.Study, error) {
		return svc.Pause(ctx, name, study.Pause{})
	})
}

func newResume(g *globals) *cobra.Command {
	return newSwitch(g, &cobra.Command{
		Use:     "resume [STUDY]",
		Short:   "Hand out trials again",
		Long:    `Resume ends a pause.`,
		Example: "  tuner resume digits",
	}, "Resumed", func(ctx context.Context, svc tuner.Service, name string) (tuner.Study, error) {
		return svc.Resume(ctx, name, study.Resume{})
	})
}

func newFinish(g *globals) *cobra.Command {
	var detail string
	cmd := newSwitch(g, &cobra.Command{
		Use:   "finish [STUDY]",
		Short: "End a study for good",
		Long: `Finish ends a study: it hands out no more trials, ever. Trials that run are told to
stop at their next report or sign of life, and can still be told. What was measured
stays.`,
		Example: "  tuner finish digits --detail 'good enough'",
	}, "Finished", func(ctx context.Context, svc tuner.Service, name string) (tuner.Study, error) {
		return svc.Finish(ctx, name, study.Finish{Detail: detail})
	})
	cmd.Flags().StringVar(&detail, "detail", "", "why, for people")
	return cmd
}
