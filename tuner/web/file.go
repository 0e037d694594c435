package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// The trials whose reports a file has, as the view of curves chooses them.
const (
	fileBest    = 20
	fileRunning = 30
	filePruned  = 10
)

// fileTrials is the most trials that a file has in full, with messages, replicates and notes.
// Of the others it has the columns.
const fileTrials = 5000

// WriteFile writes the page of a study with its data in one document, which a browser opens
// without a server. The document cannot change the study. connection has the flags with
// which the commands that it shows reach the study.
func WriteFile(ctx context.Context, svc tuner.Service, name, connection string, now time.Time, w io.Writer) error {
	s, err := svc.Study(ctx, name)
	if err != nil {
		return err
	}
	c, err := svc.Columns(ctx, name, tuner.ColumnQuery{})
	if err != nil {
		return err
	}
	answers, err := fileAnswers(ctx, svc, s, c)
	if err != nil {
		return err
	}
	all, err := axes(s.Spec.Space)
	if err != nil {
		return err
	}
	columns, err := encodeColumns(c, all)
	if err != nil {
		return err
	}
	data, err := json.Marshal(map[string]any{"study": name, "time": now.UnixMilli(), "answers": answers})
	if err != nil {
		return err
	}
	return writeDocument(w, name, connection, data, columns)
}

// fileAnswers has the answers to the calls of the page, by the keys of offline.js. It leaves
// out what the proposer or the version of the server does not support.
func fileAnswers(ctx context.Context, svc tuner.Service, s tuner.Study, c tuner.Columns) (map[string]json.RawMessage, error) {
	out := make(map[string]json.RawMessage)
	var failed error
	add := func(key string, m proto.Message, err error) {
		if err == nil {
			out[key], err = encode(m)
		}
		if tuner.CodeOf(err) != tuner.Unsupported {
			failed = cmp.Or(failed, err)
		}
	}
	m, err := wire.EncodeStudy(s)
	add("GetStudy", m, err)
	d, err := svc.Diagnose(ctx, s.Name)
	add("GetDiagnosis", wire.EncodeDiagnosis(d), err)
	p, err := svc.Predict(ctx, s.Name, tuner.PredictQuery{Slices: &tuner.SliceQuery{}})
	add("Predict", wire.EncodePredictions(p), err)
	if err == nil && len(p.Slices) > 0 {
		p, err = svc.Predict(ctx, s.Name, tuner.PredictQuery{Configs: []space.Config{p.Through}})
		add("Predict best", wire.EncodePredictions(p), err)
	}
	for _, o := range s.Spec.Objectives {
		i, err := svc.Importance(ctx, s.Name, tuner.ImportanceQuery{Objective: o.Name})
		add("GetImportance "+o.Name, wire.EncodeImportance(i), err)
	}
	running, _, err := svc.Trials(ctx, s.Name, tuner.Filter{States: []study.TrialState{study.Running}, Limit: fileRunning})
	if err != nil {
		return nil, err
	}
	full, err := firstTrials(ctx, svc, s.Name)
	if err != nil {
		return nil, err
	}
	for _, t := range running {
		if !slices.ContainsFunc(full, func(f study.Trial) bool { return f.Number == t.Number }) {
			full = append(full, t)
		}
	}
	list, err := wire.EncodeTrials(s.Name, full)
	add("ListTrials", &pb.ListTrialsResponse{Trials: list}, err)
	for _, n := range reporting(s, c, running) {
		var all []study.Report
		for more := true; more; {
			var page []study.Report
			var err error
			if page, more, err = svc.Reports(ctx, s.Name, n, len(all), 0); err != nil {
				return nil, err
			}
			all = append(all, page...)
		}
		name, err := wire.TrialName(s.Name, n)
		if err != nil {
			return nil, err
		}
		reports, err := wire.EncodeReports(all)
		add("ListReports "+name, &pb.ListReportsResponse{Reports: reports}, err)
	}
	return out, failed
}

// firstTrials are those that a file has in full.
func firstTrials(ctx context.Context, svc tuner.Service, name string) (all []study.Trial, err error) {
	for more := true; more && len(all) < fileTrials; {
		var page []study.Trial
		if page, more, err = svc.Trials(ctx, name, tuner.Filter{First: len(all)}); err != nil {
			return nil, err
		}
		all = append(all, page...)
	}
	return all, nil
}

// reporting lists trials with reports, the best of each objective, the running ones and
// those pruned last.
func reporting(s tuner.Study, c tuner.Columns, running []study.Trial) []int {
	var out []int
	state := c.Find("state")
	for _, o := range s.Spec.Objectives {
		value, reported := c.Find("value/"+o.Name), c.Find("report/"+o.Name)
		if state == nil || value == nil || reported == nil {
			continue
		}
		var best, pruned []int
		for i := range c.Rows {
			switch has := reported.At(i) == reported.At(i); {
			case has && state.At(i) == float64(study.Completed) && value.At(i) == value.At(i):
				best = append(best, i)
			case has && state.At(i) == float64(study.Pruned):
				pruned = append(pruned, i)
			}
		}
		slices.SortStableFunc(best, func(a, b int) int { return o.Direction.Compare(value.At(a), value.At(b)) })
		out = append(append(out, best[:min(len(best), fileBest)]...), pruned[max(0, len(pruned)-filePruned):]...)
	}
	for _, t := range running {
		out = append(out, t.Number)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// writeDocument writes the document with its files inside. Its policy permits that style
// and that script, and no request.
func writeDocument(w io.Writer, name, connection string, data, columns []byte) error {
	script, err := bundle("file.js", map[string]string{"api.js": "offline.js"})
	if err != nil {
		return err
	}
	style, err := static.ReadFile("static/style.css")
	if err != nil {
		return err
	}
	for _, text := range [][]byte{script, style} {
		if bytes.Contains(text, []byte("</s")) || bytes.Contains(text, []byte("<!--")) {
			return fmt.Errorf("a file of the page has a text that would end its element")
		}
	}
	hash := func(text []byte) string {
		sum := sha256.Sum256(text)
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	policy := "default-src 'none'; script-src " + hash(script) + "; style-src " + hash(style) + "; img-src data: blob:; form-action 'none'; base-uri 'none'; require-trusted-types-for 'script'"
	var out bytes.Buffer
	fmt.Fprintf(&out, `<!doctype html>
<html lang="en" data-file="1">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="connection" content="%s">
<title>%s · BKB Tuner</title>
<style>%s</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header><span class="brand">BKB Tuner</span><span id="live" role="status"></span></header>
<main id="main" tabindex="-1"></main>
<script type="application/json" id="data">%s</script>
<script type="text/plain" id="columns">%s</script>
<script>%s</script>
</body>
</html>
`, policy, html.EscapeString(connection), html.EscapeString(name), style, data, base64.StdEncoding.EncodeToString(columns), script)
	_, err = out.WriteTo(w)
	return err
}

var (
	importLine = regexp.MustCompile(`(?m)^import \{([^}]*)\} from "\./([a-z]+\.js)";$`)
	exportWord = regexp.MustCompile(`(?m)^export (?:(?:async )?function|const|let|class) (\w+)`)
)

// bundle makes one script of a module and of those that it imports. Others stand in for
// some of them. Each module becomes a function that returns what it exports.
func bundle(entry string, instead map[string]string) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("\"use strict\";\n")
	const begun, done = 1, 2
	state := make(map[string]int)
	variable := func(file string) string { return "module_" + strings.TrimSuffix(file, path.Ext(file)) }
	var add func(file string) error
	add = func(file string) error {
		switch state[file] {
		case begun:
			return fmt.Errorf("the module %s imports itself through others", file)
		case done:
			return nil
		}
		state[file] = begun
		text, err := static.ReadFile("static/" + file)
		if err != nil {
			return err
		}
		for _, m := range importLine.FindAllSubmatch(text, -1) {
			if err := add(cmp.Or(instead[string(m[2])], string(m[2]))); err != nil {
				return err
			}
		}
		var names []string
		for _, m := range exportWord.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
		body := importLine.ReplaceAllFunc(text, func(line []byte) []byte {
			m := importLine.FindSubmatch(line)
			from := cmp.Or(instead[string(m[2])], string(m[2]))
			return fmt.Appendf(nil, "const {%s} = %s;", strings.ReplaceAll(string(m[1]), " as ", ": "), variable(from))
		})
		body = exportWord.ReplaceAllFunc(body, func(text []byte) []byte { return bytes.TrimPrefix(text, []byte("export ")) })
		fmt.Fprintf(&out, "const %s = (() => {\n%s\nreturn { %s };\n})();\n", variable(file), body, strings.Join(names, ", "))
		state[file] = done
		return nil
	}
	err := add(entry)
	return out.Bytes(), err
}
