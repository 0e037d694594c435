// Package studies has the commands that create, run, steer and delete studies, and the progress of a run.
package studies

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/cmd/tuner/trials"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

func newStudies(g *cli.Globals) *cobra.Command {
	var form *string
	var width func(io.Writer) int
	cmd := &cobra.Command{
		Use:               "studies [STUDY…]",
		Short:             "List studies",
		ValidArgsFunction: cli.Begun(g.Studies),
		Long: `Studies lists all studies, or the named ones, with their state.

A study that cannot be read has the status unread, with the reason. It is damaged,
or it is too large for the memory of the server.

The format names prints one name on each line. The format csv has the table's columns.
The formats json, jsonl and yaml have all settings of a study.`,
		Example: "  tuner studies\n  tuner studies digits -f yaml",
		Args:    cli.Between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.With(cmd, cli.MustExist, func(ctx context.Context, svc tuner.Service) error {
				out := cmd.OutOrStdout()
				t, unread, err := writeStudies(out, *form, width(out), named(ctx, svc, args))
				if err != nil {
					return err
				}
				g.RemarkLeft(cmd, t)
				for _, text := range unread {
					g.Note(cmd, "%s", text)
				}
				return nil
			})
		},
	}
	width = cli.WideFlag(cmd)
	form = cli.FormatFlag(cmd, "table", "csv", "json", "jsonl", "yaml", "names")
	return cmd
}

// named yields the studies of these names, or all if there are none.
func named(ctx context.Context, svc tuner.Service, names []string) iter.Seq2[tuner.Study, error] {
	if len(names) == 0 {
		return cli.AllStudies(ctx, svc)
	}
	return func(yield func(tuner.Study, error) bool) {
		for _, name := range names {
			s, err := svc.Study(ctx, name)
			if err != nil {
				err = cli.Explain(ctx, svc, name, err)
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// writeStudies writes studies. It returns the table, which is empty for other forms, and
// why studies of the table could not be read.
func writeStudies(out io.Writer, form string, width int, all iter.Seq2[tuner.Study, error]) (t *cli.Table, unread []string, err error) {
	t = cli.NewTable(out, "STUDY", "STATUS", "TRIALS", "RUN", "QUEUE", "FAIL", "OBJECTIVES", "CREATED")
	t.Width, t.Colors = width, map[int]func(string) string{1: cli.StateColor}
	t.Least, t.Drop = map[int]int{0: 12, 6: 12}, []int{7, 4, 3, 6}
	list := cli.ListSink{Out: out, Format: form}
	rows := csv.NewWriter(out)
	if form == "csv" {
		err = rows.Write([]string{"study", "status", "trials", "added", "max_trials", "running", "queued", "failed", "objectives", "created"})
	}
	for s, err := range all {
		switch {
		case err != nil:
		case form == "names":
			_, err = fmt.Fprintln(out, s.Name)
		case form == "table" && s.Unread != "":
			t.Row(s.Name, "unread", "", "", "", "", "", "")
			unread = append(unread, fmt.Sprintf("Study %s cannot be read: %s.", s.Name, s.Unread))
		case form == "csv":
			err = rows.Write(studyCells(s))
		case form == "table":
			t.Row(studyRow(s)...)
		case s.Unread != "":
			err = list.Put(record.OfUnread(s))
		default:
			err = list.Put(record.OfStudy(s))
		}
		if err != nil {
			return t, unread, err
		}
	}
	switch form {
	case "table":
		err = t.End()
	case "csv":
		rows.Flush()
		err = rows.Error()
	case "names":
	default:
		err = list.End()
	}
	return t, unread, err
}

func studyRow(s tuner.Study) []string {
	count := fmt.Sprint(s.Trials)
	if s.Spec.MaxTrials > 0 {
		count = fmt.Sprintf("%d/%d", s.Counted, s.Spec.MaxTrials)
		if s.Added > 0 {
			count += fmt.Sprintf(" +%d", s.Added)
		}
	}
	return []string{
		s.Name, trials.StatusText(s), count, fmt.Sprint(s.Counts[study.Running]), fmt.Sprint(s.Counts[study.Queued]),
		fmt.Sprint(s.Counts[study.Failed]), objectivesText(s.Spec), s.Created.Local().Format(time.DateOnly),
	}
}

// studyCells are the cells of a study as CSV. One that cannot be read has its status alone.
func studyCells(s tuner.Study) []string {
	cells := []string{s.Name, trials.StatusText(s)}
	if s.Unread != "" {
		cells = []string{s.Name, "unread"}
	}
	for _, n := range []int{s.Trials, s.Added, s.Spec.MaxTrials, s.Counts[study.Running], s.Counts[study.Queued], s.Counts[study.Failed]} {
		cells = append(cells, strconv.Itoa(n))
	}
	return append(cells, objectivesText(s.Spec), s.Created.Format(time.RFC3339))
}

func objectivesText(spec study.Spec) string {
	words := make([]string, len(spec.Objectives))
	for i, o := range spec.Objectives {
		words[i] = "min " + o.Name
		if o.Direction == study.Maximize {
			words[i] = "max " + o.Name
		}
	}
	return strings.Join(words, ", ")
}

func newDeleteStudy(g *cli.Globals) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:               "delete-study STUDY",
		Short:             "Delete a study with all its trials",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Delete-study deletes a study with all its trials. It needs --yes.

A deleted study cannot be restored. Export it first, or make a backup.`,
		Example: "  tuner export digits -f jsonl > digits.jsonl && tuner delete-study digits --yes",
		Args:    cli.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				return cli.Usagef("this would delete study %s with all its trials; add --yes to confirm", args[0])
			}
			return g.WithStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
				if err := svc.DeleteStudy(ctx, name); err != nil {
					return err
				}
				g.Note(cmd, "Deleted study %s.", name)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "confirmation")
	return cmd
}

// Commands returns the commands in the order of the help page.
func Commands(g *cli.Globals) []*cobra.Command {
	return append(cli.Connects(cli.ToService,
		newCreateStudy(g), newStudies(g), newRun(g), newPause(g), newResume(g), newFinish(g), newExtend(g), newDeleteStudy(g)), newSpace(g))
}

// newSwitch makes a command that changes a study's status.
func newSwitch(g *cli.Globals, cmd *cobra.Command, done string, f func(ctx context.Context, svc tuner.Service, name string) (tuner.Study, error)) *cobra.Command {
	cmd.Args = cli.Between(0, 1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return g.WithStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
			_, err := f(ctx, svc, name)
			if tuner.CodeOf(err) == tuner.Finished {
				return cli.Exit(cli.StatusOf(err), fmt.Errorf("study %[1]s: %[2]w; tuner extend %[1]s continues one that reached a limit or was finished by hand, and tuner create-study NAME --from %[1]s makes a new one", name, err))
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
		Long: `Finish ends a study. It hands out no more trials until tuner extend.

Running trials are told to stop at their next report or heartbeat, and their results are
still accepted. All results are kept.`,
		Example: "  tuner finish digits --detail 'good enough'",
	}, "Finished", func(ctx context.Context, svc tuner.Service, name string) (tuner.Study, error) {
		return svc.Finish(ctx, name, study.Finish{Detail: detail})
	})
	cmd.Flags().StringVar(&detail, "detail", "", "`text` that says why")
	return cmd
}

func newExtend(g *cli.Globals) *cobra.Command {
	c := study.Extend{More: true}
	cmd := newSwitch(g, &cobra.Command{
		Use:               "extend [STUDY]",
		Short:             "Raise the limits of a study, also of one that has finished",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Extend adds to the limits of a study, and continues the study if it has finished. Where
the time or the cost is over its limit, it adds to that.

There must be room for more trials afterwards. A study that was finished by hand needs no
flag. One that has tried all configurations, or whose gap is small enough, stays finished.`,
		Example: "  tuner extend digits --trials 20",
	}, "Extended", func(ctx context.Context, svc tuner.Service, name string) (tuner.Study, error) {
		return svc.Extend(ctx, name, c)
	})
	cmd.Flags().IntVar(&c.MaxTrials, "trials", 0, "number of trials to add")
	cmd.Flags().DurationVar(&c.Timeout, "timeout", 0, "time to add")
	cmd.Flags().Float64Var(&c.MaxCost, "cost", 0, "cost to add")
	return cmd
}
