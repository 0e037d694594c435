package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/internal/record"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

func newStudies(g *globals) *cobra.Command {
	var form *format
	var width func(io.Writer) int
	cmd := &cobra.Command{
		Use:   "studies [STUDY…]",
		Short: "List studies",
		Long: `Studies lists all studies, or the named ones, with their state.

A study that cannot be read has the status unread, with the reason. It is damaged,
or it is too large for the memory of the server. A study that Optuna made through
tuner serve --optuna has the status optuna. Optuna reads its trials, or tuner import.

The format names prints one name on each line. The formats json, jsonl and yaml have
all settings of a study.`,
		Example: "  tuner studies\n  tuner studies digits -f yaml",
		Args:    between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.with(cmd, mustExist, func(ctx context.Context, svc tuner.Service) error {
				out := studySink(cmd.OutOrStdout(), form.value, width(cmd.OutOrStdout()))
				if err := putStudies(ctx, svc, args, out); err != nil {
					return err
				}
				if err := out.end(); err != nil {
					return err
				}
				if t, ok := out.(*studyTable); ok {
					g.remarkLeft(cmd, t.table)
					for _, text := range t.unread {
						g.note(cmd, "%s", text)
					}
				}
				return nil
			})
		},
	}
	width = wideFlag(cmd)
	form = formatFlag(cmd, "table", "json", "jsonl", "yaml", "names")
	return cmd
}

func putStudies(ctx context.Context, svc tuner.Service, names []string, out sink) error {
	for _, name := range names {
		s, err := svc.Study(ctx, name)
		if err != nil {
			return explain(ctx, svc, name, err)
		}
		if err := out.put(s); err != nil {
			return err
		}
	}
	if len(names) > 0 {
		return nil
	}
	for s, err := range allStudies(ctx, svc) {
		if err != nil {
			return err
		}
		if err := out.put(s); err != nil {
			return err
		}
	}
	return nil
}

func studySink(out io.Writer, form string, width int) sink {
	switch form {
	case "names":
		return &nameSink{out}
	case "table":
		t := newTable(out, "STUDY", "STATUS", "TRIALS", "RUN", "QUEUE", "FAIL", "OBJECTIVES", "CREATED")
		t.width, t.colors = width, map[int]func(string) string{1: stateColor}
		t.least, t.drop = map[int]int{0: 12, 6: 12}, []int{7, 4, 3, 6}
		return &studyTable{table: t}
	default:
		return &studyList{listSink{out: out, format: form}}
	}
}

type nameSink struct{ out io.Writer }

func (s *nameSink) put(v any) error {
	_, err := fmt.Fprintln(s.out, v.(tuner.Study).Name)
	return err
}

func (s *nameSink) end() error { return nil }

type studyList struct{ listSink }

func (s *studyList) put(v any) error {
	if s := v.(tuner.Study); s.Unread != "" {
		v = record.OfUnread(s)
	} else {
		v = record.OfStudy(s)
	}
	return s.listSink.put(v)
}

// studyTable collects why studies could not be read.
type studyTable struct {
	*table
	unread []string
}

func (t *studyTable) put(v any) error {
	s := v.(tuner.Study)
	if s.Unread != "" {
		t.row(s.Name, "unread", "", "", "", "", "", "")
		t.unread = append(t.unread, fmt.Sprintf("Study %s cannot be read: %s.", s.Name, s.Unread))
		return nil
	}
	trials := fmt.Sprint(s.Trials)
	if s.Spec.MaxTrials > 0 { // added trials do not count towards it
		trials = fmt.Sprintf("%d/%d", s.Trials-s.Added, s.Spec.MaxTrials)
		if s.Added > 0 {
			trials += fmt.Sprintf(" +%d", s.Added)
		}
	}
	t.row(s.Name, statusText(s), trials, fmt.Sprint(s.Counts[study.Running]), fmt.Sprint(s.Counts[study.Queued]),
		fmt.Sprint(s.Counts[study.Failed]), objectivesText(s.Spec), s.Created.Local().Format(time.DateOnly))
	return nil
}

func statusText(s tuner.Study) string {
	if s.Status == study.StatusFinished {
		return fmt.Sprintf("finished (%s)", s.Finished.Reason)
	}
	return record.Status(s.Status, s.Spec)
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

func newDeleteStudy(g *globals) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete-study STUDY",
		Short: "Delete a study with all its trials",
		Long: `Delete-study deletes a study with all its trials. It needs --yes.

A deleted study cannot be restored. Export it first, or make a backup.`,
		Example: "  tuner export digits -f jsonl > digits.jsonl && tuner delete-study digits --yes",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				return usagef("this would delete study %s with all its trials; add --yes to confirm", args[0])
			}
			return g.withStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
				if err := svc.DeleteStudy(ctx, name); err != nil {
					return err
				}
				g.note(cmd, "Deleted study %s.", name)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "confirmation")
	return cmd
}
