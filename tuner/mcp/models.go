package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/plots"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

func (t *tools) models() {
	about(t, reads, "diagnose", "Show how well the model of a study fits: noise, coverage, and how much better it can get. Use it when results stop improving.", t.diagnose)
	about(t, reads, "expect", "Predict the outcome of configurations without running them. Use it to weigh your own ideas before enqueue.", t.expect)
	add(t, reads, "importance", "Show which parameters matter. Use it to decide what to fix or to search further.", t.importance)
	about(t, reads, "plot", "Draw a study as a picture. Use it to show the user how the tuning went.", t.plot)
}

func (t *tools) diagnose(ctx context.Context, s tuner.Study, in studyInput) (any, error) {
	d, err := t.svc.Diagnose(ctx, in.Study)
	if err != nil {
		return nil, err
	}
	if d.State != surrogate.Ready && d.Results == 0 {
		return nil, d.State.NoModel(in.Study, d.Missing)
	}
	out := table{Columns: []string{"quantity", "value", "unit"}, Note: strings.Join(head(d.Warnings, 5), "; ")}
	for _, row := range d.Rows(s.Spec.Objectives[0].Name) {
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

type expectInput struct {
	studyInput
	Configs []map[string]any `json:"configs" jsonschema:"at most 20 configurations, each with a value for every active parameter"`
}

func (t *tools) expect(ctx context.Context, s tuner.Study, in expectInput) (any, error) {
	list, err := configs(s.Spec.Space, in.Configs, 20)
	if err != nil {
		return nil, err
	}
	p, err := t.svc.Predict(ctx, in.Study, tuner.PredictQuery{Configs: list})
	if err != nil {
		return nil, err
	}
	if len(p.Configs) == 0 {
		return nil, p.State.NoModel(in.Study, p.Missing)
	}
	out := table{Columns: []string{"config", "quantity", "mean", "sd_of_model", "sd_of_noise"}, Note: fmt.Sprintf("by a model of %d results", p.Results)}
	for i, c := range p.Configs {
		for _, row := range c.Rows(s.Spec.Objectives) {
			out.Rows = append(out.Rows, []any{i, row[0], row[1], row[2], row[3]})
		}
	}
	return out, nil
}

type importanceInput struct {
	studyInput
	Objective string `json:"objective,omitempty" jsonschema:"name of the objective, default the first"`
}

// mostImportant is the most parameters that an answer ranks.
const mostImportant = 30

func (t *tools) importance(ctx context.Context, in importanceInput) (any, error) {
	i, err := t.svc.Importance(ctx, in.Study, tuner.ImportanceQuery{Objective: in.Objective})
	if err != nil {
		return nil, err
	}
	out := table{Columns: []string{"parameter", "alone", "total", "best_trials"}, Rows: []any{}}
	out.Note = "alone and total: shares of the variance of the model; best_trials: difference of the best tenth, without a model"
	if i.State != surrogate.Ready && i.State != 0 {
		out.Note += "; " + i.State.NoModel(in.Study, i.Missing).Error()
	}
	list := i.Ranked()
	for _, p := range list[:min(mostImportant, len(list))] {
		out.Rows = append(out.Rows, p.Row())
	}
	if len(list) > mostImportant {
		out.More = fmt.Sprintf("%d parameters that matter less are left out", len(list)-mostImportant)
	}
	return out, nil
}

type plotInput struct {
	studyInput
	Kind string `json:"kind,omitempty" jsonschema:"history (default), slices, parallel, importance, front, curves or model"`
	Name string `json:"name,omitempty" jsonschema:"which one, where a kind has several, such as the parameter of slices"`
}

// mostPictures is the most pictures of an answer.
const mostPictures = 2

func (t *tools) plot(ctx context.Context, s tuner.Study, in plotInput) (any, error) {
	in.Kind = cmp.Or(in.Kind, plots.Kinds[0])
	if !slices.Contains(plots.Kinds, in.Kind) {
		return nil, fmt.Errorf("kind = %q: must be one of %s", in.Kind, strings.Join(plots.Kinds, ", "))
	}
	drawn, err := plots.Draw(ctx, t.svc, s, in.Kind)
	if err != nil {
		return nil, err
	}
	out := &sdk.CallToolResult{}
	var names, left []string
	for _, p := range drawn {
		_, name, _ := strings.Cut(p.Name, "-")
		switch {
		case p.Empty() || in.Name != "" && in.Name != name:
		case len(names) == mostPictures:
			left = append(left, name)
		default:
			var file bytes.Buffer
			if err := p.WritePNG(&file); err != nil {
				return nil, err
			}
			out.Content = append(out.Content, &sdk.ImageContent{Data: file.Bytes(), MIMEType: "image/png"})
			names = append(names, p.Title)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("there is nothing to draw: the study has no such data yet, or kind and name fit no plot")
	}
	line := strings.Join(names, ", ")
	if len(left) > 0 {
		line += "; more by name: " + strings.Join(head(left, 30), ", ")
	}
	out.Content = append(out.Content, text(line)...)
	return out, nil
}
