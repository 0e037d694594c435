package dataset

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bkbtuner/bkb/learners/data"
)

// Dates and times in texts are seconds since 1970, in each form that pandas and DuckDB
// write and in common local ones.
func TestTimesInText(t *testing.T) {
	const day, noon = 1709164800, 1709208000.0 // of 2024-02-29
	for _, c := range []struct {
		cells string
		order string
		want  []float64
	}{
		{"2024-02-29|1969-12-31", "", []float64{day, -86400}},
		{"2024/2/29|1969/12/31", "", []float64{day, -86400}},
		{"2024-02-29 12:00:00|1969-12-31 23:59:59.25", "", []float64{noon, -0.75}},
		{"2024-02-29T12:00:00Z|1969-12-31T23:59:59.250000Z", "", []float64{noon, -0.75}},
		{"2024-02-29 14:00:00+02:00|2024-02-29 12:00:00+00", "", []float64{noon, noon}},
		{"2024-02-29 12:00|2024-02-29 12:00:00 UTC", "", []float64{noon, noon}},
		{"29.2.2024|31.12.1969", "", []float64{day, -86400}},
		{"1.2.2024 12:00|29.02.2024 12:00", "", []float64{noon - 28*86400, noon}},
		{"02/03/2024|29/02/2024", dayFirst, []float64{day + 2*86400, day}},
		{"03/02/2024|02/29/2024", monthFirst, []float64{day + 2*86400, day}},
		{"2/29/2024 12:00:00 PM|2/29/24", monthFirst, []float64{noon, day}},
		{"2/29/2024 12:00:00 pm|2/29/2024 12:00 pm", monthFirst, []float64{noon, noon}},
		{"2024-02-29 12:00 am|2024-02-29 12:00:00 pm", "", []float64{day, noon}},
		{"20240229T120000|20240229T120000Z", "", []float64{noon, noon}},
		{"20240229T140000+0200|20240229T1200", "", []float64{noon, noon}},
		{"Thu, 29 Feb 2024|Thu, 29 Feb 2024 12:00:00 GMT", "", []float64{day, noon}},
		{"Thu Feb 29 12:00:00 2024|Fri Mar  1 12:00:00 2024", "", []float64{noon, noon + 86400}},
		{"Thu Feb 29 12:00:00 UTC 2024|Thu Feb 29 14:00:00 +0200 2024", "", []float64{noon, noon}},
		{"12:00:01 AM|12:30 pm", "", []float64{1, 45000}},
		{"29-Feb-2024|29 Feb 2024", "", []float64{day, day}},
		{"Feb 29, 2024|March 2, 2024", "", []float64{day, day + 2*86400}},
		{"2024-03|Feb 2024", "", []float64{day + 86400, day - 28*86400}},
		{"29/Feb/2024|29/Feb/2024:14:00:00 +0200", "", []float64{day, noon}},
		{"00:00:01|12:30", "", []float64{1, 45000}},
		{"29/02/2024, 12:00:00|1/3/2024, 12:00", dayFirst, []float64{noon, noon + 86400}},
		{"2/29/2024, 12:00:00 PM|2/29/2024, 12:00 PM", monthFirst, []float64{noon, noon}},
		{"29. 2. 2024|29.2.2024.", "", []float64{day, day}},
		{"29. February 2024|29 Feb, 2024", "", []float64{day, day}},
		{"Feb 29 2024|2024-Feb-29", "", []float64{day, day}},
		{"12:00:00+00|14:30:00+02:00", "", []float64{43200, 45000}},
		{"03/2024|Mar-2024", "", []float64{day + 86400, day + 86400}},
	} {
		table := opened(t, Options{NoTarget: true, Header: HeaderNo, Delimiter: ','}, file(t, "t.csv", "\""+strings.ReplaceAll(c.cells, "|", "\"\n\"")+"\"\n"))
		col, rows := table.Columns()[0], cells(t, table)
		if col.Kind != data.Time || col.Dates != c.order {
			t.Errorf("%s: %s, %s", c.cells, col.Kind, col.Dates)
		} else if diff := cmp.Diff(c.want, []float64{rows[0][0], rows[1][0]}); diff != "" {
			t.Errorf("%s: %s", c.cells, diff)
		}
	}
	for _, text := range []string{"2024-02-30\n2024-02-01\n", "a1\nb2\n", "1-2-3\n4-5-6\n", "31/31/2024\n1/1/2024\n", "10.0.0.1\n10.0.0.2\n"} {
		if col := opened(t, Options{NoTarget: true, Header: HeaderNo}, file(t, "t.csv", text)).Columns()[0]; col.Kind != data.Categorical {
			t.Errorf("%q is %s", text, col.Kind)
		}
	}
}

// A cell that is no time is named if the first ones are times, and words of truth values
// are 0 and 1.
func TestWordsOfAColumn(t *testing.T) {
	many := strings.Repeat("2024-02-29,True,1\n2024-03-01,FALSE,2\n", 150)
	for more, want := range map[string][]string{
		"yesterday,true,1\n":   {`row 301 (line 302), column "when"`, `"yesterday" is not a time`},
		"2024-03-01,maybe,1\n": {`row 301 (line 302), column "ok"`, `"maybe" is neither true nor false`},
	} {
		_, err := Open(background, Options{}, file(t, "t.csv", "when,ok,y\n"+many+more))
		refused(t, more, err, append(want, "Missing", "Categorical")...)
	}
	table := opened(t, Options{}, file(t, "t.csv", "when,ok,y\n,,1\n"+many))
	if row := cells(t, table)[1]; !cmp.Equal(row, []float64{1709164800, 1, 1}) || table.Columns()[1].Kind != data.Boolean {
		t.Errorf("%v, %s", row, table.Columns()[1].Kind)
	}
	for _, word := range []string{"NaT", "nat", "", "NULL"} {
		table := opened(t, Options{}, file(t, "t.csv", "when,y\n"+word+",1\n2024-02-29,2\n2024-03-01,3\n"))
		if col := table.Columns()[0]; col.Kind != data.Time || col.Missing != 1 {
			t.Errorf("%q: %s, %d missing", word, col.Kind, col.Missing)
		}
	}
	truthful := opened(t, Options{}, file(t, "t.csv", "x,y\n1,true\n2,false\n3,true\n"))
	if e := fitted(t, truthful, nil, data.EncodingOptions{}); !cmp.Equal(e.Classes, []string{"false", "true"}) {
		t.Errorf("classes %q", e.Classes)
	}
}

// The order of dates has a reason, and that of a model is the one for other data.
func TestOrderOfDates(t *testing.T) {
	of := func(dates ...string) string {
		return "when,y\n" + strings.Join(dates, ",1\n") + ",2\n"
	}
	open, iso := of("01/02/2024", "03/02/2024"), of("2024-02-01", "2024-03-01")
	for _, c := range []struct {
		text, order, why string
		dayFirst         bool
	}{
		{open, monthFirst, ambiguous, false},
		{open, dayFirst, "as asked", true},
		{of("01/02/2024", "13/02/2024"), dayFirst, "the data decide", false},
		{of("01-02-2024", "02-13-2024"), monthFirst, "the data decide", false},
		{of("01/02/2024", "2024-02-13"), monthFirst, ambiguous, false},
		{iso, "", "", false},
	} {
		table := opened(t, Options{DayFirst: c.dayFirst}, file(t, "t.csv", c.text))
		if col := table.Columns()[0]; col.Dates != c.order || col.DatesWhy != c.why {
			t.Errorf("%q: %q, %q", c.text, col.Dates, col.DatesWhy)
		}
		e := fitted(t, table, nil, data.EncodingOptions{})
		if told := strings.Contains(strings.Join(e.Notes, "\n"), "read as "+c.order+": "+c.why); told != (c.order != "") {
			t.Errorf("%q: %q", c.text, e.Notes)
		}
		// For data with open dates the model's order counts, or a note says which one does.
		path := file(t, "new.csv", open)
		for _, asked := range []bool{false, true} {
			table, err := Open(background, Options{Model: e, DayFirst: asked}, path)
			if asked && c.order == monthFirst {
				refused(t, c.text, err, `"when"`, monthFirst, "leave DayFirst out")
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			notes, err := table.Unseen(background, e)
			if noted := strings.Contains(strings.Join(notes, "\n"), ambiguous); err != nil || noted != (c.order == "" && !asked) {
				t.Errorf("%q, %v: %q, %v", c.text, asked, notes, err)
			}
			days := map[bool]float64{true: 31, false: 1} // from the first of February or the second of January
			if got, first := cells(t, table)[0][0], table.Columns()[0].Dates == dayFirst; got != 1704067200+86400*days[first] || first != (c.order == dayFirst || asked) {
				t.Errorf("%q, %v: %v as %s", c.text, asked, got, table.Columns()[0].Dates)
			}
		}
	}
}

// Inputs that may be dates and count as numbers or categories are named, with a form that is read.
func TestLikelyDates(t *testing.T) {
	for want, form := range map[string]string{
		`"when" has numbers such as 20240101, which count as numbers; for dates write 2024-01-01`:             "202401%02d",
		`"when" has numbers such as 20240101123000, which count as numbers; for dates write 2024-01-01 12:30`: "202401%02d123000",
		`"when" has 31 different texts in 62 rows, each an input of its own, such as "2024/W01"`:              "2024/W%02d",
		"": "%02d",
	} {
		text := "when,y\n"
		for i := range 62 {
			text += fmt.Sprintf(form+",%d\n", i%31+1, i)
		}
		e := fitted(t, opened(t, Options{}, file(t, "t.csv", text)), nil, data.EncodingOptions{})
		if got := strings.Join(e.Notes, "\n"); !strings.Contains(got, want) || (got == "") != (want == "") || strings.Contains(form, "W") && !strings.Contains(got, "write dates as 2024-01-31 12:30") {
			t.Errorf("%q: %q", form, got)
		}
	}
}
