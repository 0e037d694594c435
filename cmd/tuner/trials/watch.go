package trials

import (
	"context"
	"fmt"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

func newWatch(g *cli.Globals) *cobra.Command {
	var after uint64
	var untilFinished bool
	var form *string
	cmd := &cobra.Command{
		Use:               "watch [STUDY]",
		Short:             "Follow the events of a study",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Watch writes a line for each event of a study, from now on or from a position of its
log on.

It ends with Ctrl-C. With --until-finished it ends when the study has finished and no
trial is running.`,
		Example: "  tuner watch digits\n  tuner watch digits --after 0 -f jsonl --until-finished",
		Args:    cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.WithView(cmd, args, func(ctx context.Context, svc tuner.Service, view tuner.Study) error {
				w := Watching{Cmd: cmd, Form: *form, Spec: view.Spec, Judge: record.NewJudge(view.Spec), untilFinished: untilFinished}
				from := view.Position
				if cmd.Flags().Changed("after") {
					from = study.Position(after)
				} else if untilFinished && quiet(view) {
					return nil
				}
				return w.run(ctx, svc, view.Name, tuner.From{Study: view.ID, After: from})
			})
		},
	}
	cmd.Flags().Uint64Var(&after, "after", 0, "`position` of the log to begin after, 0 for the whole log (default now)")
	cmd.Flags().BoolVar(&untilFinished, "until-finished", false, "end once the study has finished")
	form = cli.FormatFlag(cmd, "text", "jsonl")
	return cmd
}

// quiet tells whether no more events of a study are expected.
func quiet(s tuner.Study) bool {
	return s.Status == study.StatusFinished && s.Counts[study.Running] == 0
}

type Watching struct {
	Cmd           *cobra.Command
	Form          string
	Spec          study.Spec
	Judge         record.Judge
	untilFinished bool
}

func (w *Watching) run(ctx context.Context, svc tuner.Service, name string, from tuner.From) error {
	for h, err := range svc.Watch(ctx, name, from) {
		if ctx.Err() != nil {
			return cli.Exit(cli.ExitInterrupted, nil) // the usual end
		}
		if err != nil {
			return err
		}
		if err := w.Print(h); err != nil {
			return err
		}
		if !w.untilFinished || h.Status != study.StatusFinished {
			continue
		}
		view, err := svc.Study(ctx, name)
		if err != nil {
			return err
		}
		if quiet(view) && h.Position >= view.Position {
			return nil
		}
	}
	return nil
}

type event struct {
	Position uint64        `json:"position"`
	Time     time.Time     `json:"time"`
	Kind     string        `json:"kind"`
	Caller   string        `json:"caller,omitempty"`
	Status   string        `json:"status"`
	Trial    *record.Trial `json:"trial,omitempty"`
}

func (w *Watching) Print(h tuner.Event) error {
	if w.Form == "jsonl" {
		out := event{Position: uint64(h.Position), Time: h.Time, Kind: h.Kind, Caller: h.Caller, Status: h.Status.String()}
		if h.Trial != nil {
			r := w.Judge.OfTrial(*h.Trial)
			out.Trial = &r
		}
		return cli.WriteJSON(w.Cmd.OutOrStdout(), out)
	}
	text := h.String()
	if h.Trial != nil && h.Kind == "started" && h.Trial.Worker != "" {
		text += "  (" + h.Trial.Worker + ")"
	}
	if h.Trial != nil && (h.Kind == "told" || h.Kind == "added") && w.Judge.Breaks(*h.Trial) {
		text += "  breaks a constraint"
	}
	if h.Caller != "" {
		text += "  by " + h.Caller
	}
	_, err := fmt.Fprintf(w.Cmd.OutOrStdout(), "%s  %6d  %s\n", h.Time.Local().Format(time.DateTime), h.Position, cli.Clean(text))
	return err
}
