package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/internal/record"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

func newStudies(g *globals) *cobra.Command {
	var form *format
	cmd := &cobra.Command{
		Use:   "studies [STUDY…]",
		Short: "List studies",
		Long: `Studies lists all studies, or those named, with how they stand. The form names has
nothing but a name on each line; json, jsonl and yaml have everything a study was
made with.`,
		Example: "  tuner studies\n  tuner studies digits -f yaml\n  for s in $(tuner studies -f names); do tuner best \"$s\"; done",
		Args:    between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.with(cmd, mustExist, func(ctx context.Context, svc tuner.Service) error {
				out := studySink(cmd.OutOrStdout(), form.value)
				if err := putStudies(ctx, svc, args, out); err != nil {
					return err
				}
				return out.end()
			})
		},
	}
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

func studySink(out io.Writer, form string) sink {
	switch form {
	case "names":
		return &nameSink{out}
	case "table":
		return &studyTable{newTable(out, "STUDY", "STATUS", "TRIALS", "RUNNING", "QUEUED", "FAILED", "OBJECTIVES", "CREATED")}
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

func (s *studyList) put(v any) error { return s.listSink.put(record.OfStudy(v.(tuner.Study))) }

type studyTable struct{ *table }

func (t *studyTable) put(v any) error {
	s := v.(tuner.Study)
	trials := fmt.Sprint(s.Trials)
	if s.Spec.MaxTrials > 0 { // added ones do not count towards it
		trials = fmt.Sprintf("%d/%d", s.Trials-s.Added, s.Spec.MaxTrials)
		if s.Added > 0 {
			trials += fmt.Sprintf(" +%d", s.Added)
		}
	}
	t.row(s.Name, statusText(s), trials, fmt.Sprint(s.Counts[study.Running]), fmt.Sprint(s.Counts[study.Queued]),
		fmt.Sprint(s.Counts[study.Failed]), objectivesText(s.Spec), s.Created.Local().Format("2006-01-02 15:04"))
	return nil
}

func statusText(s tuner.Study) string {
	if s.Status == study.StatusFinished {
		return fmt.Sprintf("finished (%s)", s.Finished.Reason)
	}
	return s.Status.String()
}

func objectivesText(spec study.Spec) string {
	words := make([]string, len(spec.Objectives))
	for i, o := range spec.Objectives {
		words[i] = o.Direction.String() + " " + o.Name
	}
	return strings.Join(words, ", ")
}

func newDeleteStudy(g *globals) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete-study STUDY",
		Short: "Delete a study with all its trials, for good",
		Long: `Delete-study deletes a study with all its trials. Nothing brings it back: export it
before, or make a backup. It wants --yes.`,
		Example: "  tuner export digits -f jsonl > digits.jsonl && tuner delete-study digits --yes",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				return usagef("this deletes study %s with all its trials, for good: say --yes if that is meant", args[0])
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
	cmd.Flags().BoolVar(&yes, "yes", false, "it is meant")
	return cmd
}
