package diagnose

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/plots"
	"github.com/bkbtuner/bkb/tuner/web"
	"github.com/spf13/cobra"
)

func newPlot(g *cli.Globals) *cobra.Command {
	var png, svg, page string
	var only []string
	cmd := &cobra.Command{
		Use:               "plot [STUDY]",
		Short:             "Draw a study",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Plot draws a study into files named STUDY-PLOT.png or STUDY-PLOT.svg, by default
PNG files in the current folder.

Plots:
  history     result of each trial, and the best so far
  slices      objective over each parameter, with the model through the best
              trial
  parallel    parameters and objective of all completed trials, the best
              hundredth, or the best ten of few trials, in red
  importance  how much each parameter matters
  front       pairs of objectives with the Pareto front
  curves      reports of running, of the best and of pruned trials
  model       predicted before against measured

Plots for which the study has no data are left out. From 5,000 points on, plots
show the density of points.

With --html plot writes the web page of the study into one file. A browser opens it
without a server and without a network.`,
		Example: `  tuner plot digits --png plots
  tuner plot digits --svg plots --only history,slices
  tuner plot digits --html digits.html`,
		Args: cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds := plots.Kinds
			if len(only) > 0 {
				kinds = only
			}
			for _, k := range kinds {
				if !slices.Contains(plots.Kinds, k) {
					return cli.Usagef("--only: there is no plot %q; use some of %s", k, strings.Join(plots.Kinds, ", "))
				}
			}
			if png == "" && svg == "" && page == "" {
				png = "."
			}
			if page != "" && len(only) > 0 && png == "" && svg == "" {
				return cli.Usagef("--only chooses among the plots of --png and --svg; leave it out, because --html has all of them")
			}
			return g.WithView(cmd, args, func(ctx context.Context, svc tuner.Service, view tuner.Study) error {
				if page != "" {
					if err := writePage(ctx, svc, view.Name, g.Connection(), page); err != nil {
						return err
					}
					g.Note(cmd, "Wrote %s.", page)
				}
				if png == "" && svg == "" {
					return nil
				}
				return DrawStudy(ctx, svc, view, g, cmd, kinds, png, svg)
			})
		},
	}
	cmd.Flags().StringVar(&png, "png", "", "`folder` for PNG files (default . without --svg and --html)")
	cmd.Flags().StringVar(&svg, "svg", "", "`folder` for SVG files")
	cmd.Flags().StringVar(&page, "html", "", "`file` for the page with all data")
	cmd.Flags().StringSliceVar(&only, "only", nil, "`plots` to draw, separated by commas (default all)")
	cli.Register(cmd, "only", cli.Words(plots.Kinds...))
	return cmd
}

func writePage(ctx context.Context, svc tuner.Service, name, connection, file string) error {
	var out bytes.Buffer
	if err := web.WriteFile(ctx, svc, name, connection, time.Now(), &out); err != nil {
		return err
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("--html %s cannot be written: %w", file, err)
	}
	return nil
}

// DrawStudy draws plots of a study as PNG and SVG into folders, where a name is given.
func DrawStudy(ctx context.Context, svc tuner.Service, view tuner.Study, g *cli.Globals, cmd *cobra.Command, kinds []string, png, svg string) error {
	drawn, err := plots.Draw(ctx, svc, view, kinds...)
	if err != nil {
		return err
	}
	var files []string
	name := view.Name
	if slices.ContainsFunc(plots.Kinds, func(kind string) bool { return strings.Contains(name, "-"+strings.TrimSuffix(kind, "s")) }) {
		name = strings.ReplaceAll(name, "-", "~") // else a-history and its plots could have files of study a
	}
	for _, form := range []struct {
		folder string
		write  func(name, folder string) ([]string, error)
	}{{png, drawn.WritePNGFiles}, {svg, drawn.WriteSVGFiles}} {
		if form.folder == "" {
			continue
		}
		written, err := form.write(name, form.folder)
		files = append(files, written...)
		if err != nil {
			return err
		}
	}
	for _, f := range files {
		g.Note(cmd, "Wrote %s.", f)
	}
	if len(files) == 0 {
		g.Note(cmd, "Study %s has nothing to draw yet.", view.Name)
	}
	return nil
}
