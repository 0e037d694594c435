package diagnose

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/shared"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// replayer is a service that can recompute a study from its log.
type replayer interface {
	Replay(ctx context.Context, name string, progress func(study.Position)) (engine.ReplayReport, error)
}

func newReplay(g *cli.Globals) *cobra.Command {
	return &cobra.Command{
		Use:               "replay [STUDY]",
		Short:             "Recompute a study from its log and compare",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Replay recomputes a study from its log and compares the result with the log.

It repeats every suggestion and every model with the data that the proposer had then. It
prints OK with counts if all are the same. Otherwise it prints each difference and fails.
It works on a file or a database.`,
		Example: "  tuner replay digits",
		Args:    cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.WithStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
				report, err := replay(ctx, svc, name)
				if err != nil {
					return err
				}
				return printReplay(cmd, name, report)
			})
		},
	}
}

func replay(ctx context.Context, svc tuner.Service, name string) (report engine.ReplayReport, err error) {
	file, ok := svc.(*shared.Service)
	if !ok {
		return report, fmt.Errorf("replay on a server: %w", tuner.ErrUnsupported)
	}
	err = file.Do(ctx, func(svc tuner.Service) (err error) {
		r, ok := svc.(replayer)
		if !ok {
			return fmt.Errorf("replay: %w", tuner.ErrUnsupported)
		}
		report, err = r.Replay(ctx, name, nil)
		return err
	})
	return report, err
}

func printReplay(cmd *cobra.Command, name string, r engine.ReplayReport) error {
	out := cmd.OutOrStdout()
	for _, d := range r.Differences {
		if _, err := fmt.Fprintln(out, cli.Clean(fmt.Sprintf("trial %d: stored %s, recomputed %s", d.Trial, d.Stored, d.Recomputed))); err != nil {
			return err
		}
	}
	for _, at := range r.ModelDifferences {
		if _, err := fmt.Fprintf(out, "event %d: the recomputed model differs\n", at); err != nil {
			return err
		}
	}
	if n := len(r.Differences); n == 0 && len(r.ModelDifferences) > 0 {
		return cli.Exit(cli.ExitDamaged, fmt.Errorf("study %s: %d of %d models differ; another version or machine may round differently", name, len(r.ModelDifferences), r.Models))
	}
	if n := len(r.Differences); n > 0 {
		return cli.Exit(cli.ExitDamaged, fmt.Errorf("study %s: %d of %d suggestions differ; another version or machine may round differently", name, n, r.Suggestions))
	}
	models := ""
	if r.Models > 0 {
		models = fmt.Sprintf("%d models and ", r.Models)
	}
	_, err := fmt.Fprintf(out, "OK: %d events, %s%d suggestions recomputed, %d fallbacks not\n", r.Events, models, r.Suggestions, r.Fallbacks)
	return err
}
