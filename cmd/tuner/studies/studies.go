// Package studies has the commands that create, run, steer and delete studies, and the progress of a run.
package studies

import (
	"context"
	"fmt"
	"io"
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

The format names prints one name on each line. The formats json, jsonl and yaml have
all settings of a study.`,
		Example: "  tuner studies\n  tuner studies digits -f yaml",
		Args:    cli.Between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.With(cmd, cli.MustExist, func(ctx context.Context, svc tuner.Service) error {
				out := studySink(cmd.OutOrStdout(), *form, width(cmd.OutOrStdout()))
				if err := putStudies(ctx, svc, args, out); err != nil {
					return err
				}
				if err := out.End(); err != nil {
					return err
				}
				if t, ok := out.(*studyTable); ok {
					g.RemarkLeft(cmd, t.Table)
					for _, text := range t.unread {
						g.Note(cmd, "%s", text)
					}
				}
				return nil
			})
		},
	}
	width = cli.WideFlag(cmd)
	form = cli.FormatFlag(cmd, "table", "json", "jsonl", "yaml", "names")
	return cmd
}

func putStudies(ctx context.Context, svc tuner.Service, names []string, out cli.Sink) error {
	for _, name := range names {
		s, err := svc.Study(ctx, name)
		if err != nil {
			return cli.Explain(ctx, svc, name, err)
		}
		if err := out.Put(s); err != nil {
			return err
		}
	}
	if len(names) > 0 {
		return nil
	}
	for s, err := range cli.AllStudies(ctx, svc) {
		if err != nil {
			return err
		}
		if err := out.Put(s); err != nil {
			return err
		}
	}
	return nil
}

func studySink(out io.Writer, form string, width int) cli.Sink {
	switch form {
	case "names":
		return &nameSink{out}
	case "table":
		t := cli.NewTable(out, "STUDY", "STATUS", "TRIALS", "RUN", "QUEUE", "FAIL", "OBJECTIVES", "CREATED")
		t.Width, t.Colors = width, map[int]func(string) string{1: cli.StateColor}
		t.Least, t.Drop = map[int]int{0: 12, 6: 12}, []int{7, 4, 3, 6}
		return &studyTable{Table: t}
	default:
		return &studyList{cli.ListSink{Out: out, Format: form}}
	}
}

type nameSink struct{ out io.Writer }

func (s *nameSink) Put(v any) error {
	_, err := fmt.Fprintln(s.out, v.(tuner.Study).Name)
	return err
}

func (s *nameSink) End() error { return nil }

type studyList struct{ cli.ListSink }

func (s *studyList) Put(v any) error {
	if s := v.(tuner.Study); s.Unread != "" {
		v = record.OfUnread(s)
	} else {
		v = record.OfStudy(s)
	}
	return s.ListSink.Put(v)
}

// studyTable collects why studies could not be read.
type studyTable struct {
	*cli.Table
	unread []string
}

func (t *studyTable) Put(v any) error {
	s := v.(tuner.Study)
	if s.Unread != "" {
		t.Row(s.Name, "unread", "", "", "", "", "", "")
		t.unread = append(t.unread, fmt.Sprintf("Study %s cannot be read: %s.", s.Name, s.Unread))
		return nil
	}
	count := fmt.Sprint(s.Trials)
	if s.Spec.MaxTrials > 0 { // added trials do not count towards it
		count = fmt.Sprintf("%d/%d", s.Trials-s.Added, s.Spec.MaxTrials)
		if s.Added > 0 {
			count += fmt.Sprintf(" +%d", s.Added)
		}
	}
	t.Row(s.Name, trials.StatusText(s), count, fmt.Sprint(s.Counts[study.Running]), fmt.Sprint(s.Counts[study.Queued]),
		fmt.Sprint(s.Counts[study.Failed]), objectivesText(s.Spec), s.Created.Local().Format(time.DateOnly))
	return nil
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
		newCreateStudy(g), newStudies(g), newRun(g), newPause(g), newResume(g), newFinish(g), newDeleteStudy(g)), newSpace(g))
}

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
