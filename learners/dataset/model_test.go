package dataset

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bkbtuner/bkb/learners/data"
)

// Data for a model have the columns and kinds of the model, whatever their cells look like.
func TestModelDecidesKinds(t *testing.T) {
	const rows = "007,5,01/02/2024,true,1\n7,7,13/02/2024,false,2\n070,9,02/02/2024,true,4\n"
	train := opened(t, Options{Categorical: []string{"zip"}}, file(t, "a.csv", "zip,n,when,ok,y\n"+rows))
	e := fitted(t, train, nil, data.EncodingOptions{Missing: data.FillMedian, Unknown: data.UnknownZero})
	want, _ := pairs(t, applied(t, e, train))
	for name, text := range map[string]string{
		"one row, no line feed":  "zip,n,when,ok\n007,5,01/02/2024,true",
		"carriage returns":       "zip,n,when,ok\r\n007,5,01/02/2024,true\r\n",
		"carriage returns alone": "zip,n,when,ok\r007,5,01/02/2024,true\r",
		"another order":          "ok;when;n;zip\nTRUE;1/2/2024;5;007\n",
		"another form of dates":  "zip,n,when,ok\n007,5,2024-02-01,1\n",
		"a target of texts":      "zip,n,when,ok,y\n007,5,01/02/2024,true,?\n",
	} {
		table := opened(t, Options{Model: e}, file(t, "b.csv", text))
		src, err := table.EncodeInputs(background, e)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if x, _ := pairs(t, src); len(x) != 1 || !cmp.Equal(x[0], want[0], near15) {
			t.Errorf("%s: %v, want %v", name, x, want[0])
		}
	}
	// A missing value has the rule of training, also in a column that had none then.
	gaps := opened(t, Options{Model: e}, file(t, "b.csv", "zip,n,when,ok\n007,,,\n"))
	src, err := gaps.EncodeInputs(background, e)
	if err != nil {
		t.Fatal(err)
	}
	// The inputs are three one-hot ones, n and when, whose medians are 7 and 02/02.
	if x, _ := pairs(t, src); !cmp.Equal(x[0][3], want[1][3], near15) || !cmp.Equal(x[0][4], want[2][4], near15) {
		t.Errorf("filled in: %v, training rows %v", x, want)
	}
	strict := fitted(t, train, nil, data.EncodingOptions{})
	for text, want := range map[string][]string{
		"zip,n,when,ok\n007,,01/02/2024,true\n":    {`row 1`, `"n"`, "without a rule", "fill it in"},
		"zip,n,when,ok\n007,x,01/02/2024,true\n":   {`row 1 (line 2), column "n"`, `"x" is not a number, and the model has numbers`},
		"zip,n,when,ok\n007,5,02/13/2024,true\n":   {`row 1 (line 2), column "when"`, "day/month/year"},
		"zip,n,when,ok,w\n7,5,01/02/2024,true,3\n": {`not known to the model "w"`, "IgnoreExtra"},
		"zip,n,ok\n007,5,true\n":                   {`missing "when"`},
	} {
		table, err := Open(background, Options{Model: strict}, file(t, "b.csv", text))
		if err == nil {
			_, err = table.EncodeInputs(background, strict)
		}
		refused(t, text, err, want...)
	}
	strict.IgnoreExtra = true // and what is ignored is not read
	opened(t, Options{Model: strict}, file(t, "b.csv", "zip,n,when,ok,w\n007,5,01/02/2024,true,1\n007,5,01/02/2024,true,word\n"))
}

// Categories that training lacked are told once, with the number of rows.
func TestUnseenCategories(t *testing.T) {
	train := opened(t, Options{}, file(t, "a.csv", "c,d,y\nx,p,1\nz,q,2\nx,p,3\n"))
	e := fitted(t, train, nil, data.EncodingOptions{Unknown: data.UnknownZero})
	for text, want := range map[string][]string{
		"c,d\nx,p\nz,q\n":            nil,
		"c,d\nx,p\nnew,q\nother,q\n": {`input "c": 2 rows with a category that training lacked, such as "new"`},
		"c,d\nu,v\nx,v\n":            {`input "c": 1 row with`, `input "d": 2 rows with`},
	} {
		notes, err := opened(t, Options{Model: e}, file(t, "b.csv", text)).Unseen(background, e)
		if err != nil || len(notes) != len(want) {
			t.Errorf("%q: %q, %v", text, notes, err)
		}
		for i, w := range want {
			if i < len(notes) && !strings.HasPrefix(notes[i], w) {
				t.Errorf("%q: %q, want %q", text, notes[i], w)
			}
		}
	}
}

// Labels are texts unless all are plain integers, so that no two of them merge.
func TestLabels(t *testing.T) {
	for _, c := range []struct {
		labels string
		task   data.Task
		want   []string
		plain  bool
	}{
		{"7 07", "", []string{"07", "7"}, false},
		{"007 008", "", []string{"007", "008"}, false},
		{"9007199254740993 9007199254740992", "", []string{"9007199254740992", "9007199254740993"}, false},
		{"7 07 8", data.Classification, []string{"07", "7", "8"}, false},
		{"123456789012345678 123456789012345679 5", data.Classification, []string{"123456789012345678", "123456789012345679", "5"}, false},
		{"1 1.0 2", data.Classification, []string{"1", "1.0", "2"}, false},
		{"10 9 -1", data.Classification, []string{"-1", "9", "10"}, true},
		{"0.0 1.0", "", []string{"0", "1"}, true},
		{"0 1", "", []string{"0", "1"}, true},
	} {
		var text strings.Builder
		text.WriteString("x,y\n")
		for i, label := range strings.Fields(c.labels + " " + c.labels) {
			text.WriteString(formatNumber(float64(i)) + "," + label + "\n")
		}
		path := file(t, "a.csv", text.String())
		table := opened(t, Options{Task: c.task}, path)
		e := fitted(t, table, nil, data.EncodingOptions{Task: c.task})
		if diff := cmp.Diff(c.want, e.Classes); diff != "" || e.Task != data.Classification || (e.ClassNumbers != nil) != c.plain {
			t.Errorf("%s: %s %v, %v: %s", c.labels, e.Task, e.Classes, e.ClassNumbers, diff)
		}
		_, want := pairs(t, applied(t, e, table))
		_, again := pairs(t, applied(t, e, opened(t, Options{Model: e}, path)))
		if !slices.Equal(want, again) {
			t.Errorf("%s: for the model the classes are %v, want %v", c.labels, again, want)
		}
	}
	// So are those of libsvm, also for a model.
	for labels, want := range map[string][]string{
		"7 07":                              {"07", "7"},
		"9007199254740993 9007199254740992": {"9007199254740992", "9007199254740993"},
		"1 1.0":                             {"1", "1.0"},
		"+1 -1":                             {"-1", "1"},
		"+1 0 1":                            {"0", "1"},
	} {
		var text strings.Builder
		for i, label := range strings.Fields(labels + " " + labels) {
			fmt.Fprintf(&text, "%s 1:%d\n", label, i+1)
		}
		path := file(t, "a.libsvm", text.String())
		table := opened(t, Options{}, path)
		e := fitted(t, table, nil, data.EncodingOptions{})
		_, y := pairs(t, applied(t, e, table))
		_, again := pairs(t, applied(t, e, opened(t, Options{Model: e}, path)))
		if diff := cmp.Diff(want, e.Classes) + cmp.Diff(y, again); diff != "" || !slices.Contains(y, -1) || !slices.Contains(y, 1) {
			t.Errorf("%s: %v: %s", labels, y, diff)
		}
	}
	// Three numbers are a regression, however they are written.
	if e := fitted(t, opened(t, Options{}, file(t, "a.csv", "x,y\n1,07\n2,8\n3,9\n")), nil, data.EncodingOptions{}); e.Task != data.Regression {
		t.Errorf("%s", e.Task)
	}
	// Standard input is read once.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w.WriteString("x,y\n1,7\n2,07\n")
	w.Close()
	old := os.Stdin
	os.Stdin = r
	defer func() { os.Stdin = old; r.Close() }()
	_, err = Open(background, Options{}, "-")
	refused(t, "standard input", err, `target "y"`, "Categorical")
}

// A model trained with weights takes files with and without their column, which may have
// anything there, and another column too many is still refused.
func TestWeightsOfAModel(t *testing.T) {
	rows := "1,0.5,10\n2,3,20\n4,1,50\n"
	for _, c := range []struct {
		header string
		good   []string // with the inputs 1, 2 and 4
		bad    string
	}{
		{
			"a,w,y\n",
			[]string{"a,w,y\n" + rows, "a,y\n1,10\n2,20\n4,50\n", "w,a\n,1\nx,2\n3,4\n", "a\n1\n2\n4\n"},
			"a,v,y\n" + rows,
		},
		{"", []string{rows, "1,10\n2,20\n4,50\n", "1\n2\n4\n"}, "1,2,3,4\n2,3,4,5\n"},
	} {
		e := fitted(t, opened(t, Options{Weights: "2"}, file(t, "t.csv", c.header+rows)), nil, data.EncodingOptions{KeepInputs: true})
		for _, text := range c.good {
			table, err := Open(background, Options{Model: e}, file(t, "t.csv", text))
			if err != nil {
				t.Errorf("%q: %v", text, err)
				continue
			}
			src, err := table.EncodeInputs(background, e)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := pairs(t, src); !cmp.Equal(got, [][]float64{{1}, {2}, {4}}) || table.Weights() != nil {
				t.Errorf("%q: %v", text, got)
			}
		}
		weighed := opened(t, Options{Model: e, Weights: "2"}, file(t, "t.csv", c.header+rows))
		if !slices.Equal(weighed.Weights(), []float64{0.5, 3, 1}) {
			t.Errorf("%q: weights %v", c.header, weighed.Weights())
		}
		if _, err := Open(background, Options{Model: e}, file(t, "t.csv", c.bad)); err == nil {
			t.Errorf("%q has a column too many and is taken", c.bad)
		}
	}
}
