package dataset

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Times are seconds since 1970-01-01 in UTC in all formats. A time without a zone is in
// UTC, and a time of day counts from midnight.

// dateOrder is the order of day and month in dates such as 2/1/2026. It is empty where a
// column has only dates that leave it no choice, such as 2026-01-02, 2.1.2026 and 2 Jan 2026.
type dateOrder = string

const (
	dayFirst   dateOrder = "day/month/year"
	monthFirst dateOrder = "month/day/year"
)

// timeLayouts are the layouts of package time for each order of dates.
var timeLayouts = func() map[dateOrder][]string {
	clocks := []string{""}
	for _, clock := range []string{" 15:04:05", "T15:04:05", ", 15:04:05", " 15:04", "T15:04", ", 15:04"} {
		for _, zone := range []string{"", "Z07:00", "Z07", "Z0700", " -0700", " UTC", " GMT"} {
			clocks = append(clocks, clock+zone)
		}
	}
	clocks = append(clocks, " 3:04:05 PM", " 3:04 PM", " 3:04:05 pm", " 3:04 pm", ", 3:04:05 PM", ", 3:04 PM", ", 3:04:05 pm", ", 3:04 pm")
	out := map[dateOrder][]string{}
	for order, dates := range map[dateOrder][]string{
		"": {
			"2006-1-2", "2006/1/2", "2006.1.2", "2006-Jan-2", "2.1.2006", "2.1.2006.", "2. 1. 2006", "2.1.06",
			"2-Jan-2006", "2 Jan 2006", "2 Jan, 2006", "2 January 2006", "2. January 2006", "2-Jan-06",
			"Jan 2, 2006", "Jan 2 2006", "January 2, 2006", "January 2 2006",
			"Mon, 2 Jan 2006", "Mon 2 Jan 2006", "Mon, Jan 2, 2006", "Monday, 2 January 2006", "Monday, January 2, 2006",
		},
		dayFirst:   {"2/1/2006", "2-1-2006", "2/1/06"},
		monthFirst: {"1/2/2006", "1-2-2006", "1/2/06"},
	} {
		for _, date := range dates {
			for _, clock := range clocks {
				out[order] = append(out[order], date+clock)
			}
		}
	}
	out[""] = append(out[""], "2006-01", "1/2006", "Jan 2006", "Jan-2006", "January 2006", "2/Jan/2006", "2/Jan/2006:15:04:05 -0700",
		"15:04:05", "15:04", "15:04:05Z07:00", "15:04:05Z07", "3:04:05 PM", "3:04 PM", "3:04:05 pm", "3:04 pm",
		"20060102T150405", "20060102T150405Z0700", "20060102T150405Z07:00", "20060102T1504",
		"Mon Jan _2 15:04:05 2006", "Mon Jan _2 15:04:05 UTC 2006", "Mon Jan _2 15:04:05 GMT 2006", "Mon Jan _2 15:04:05 -0700 2006")
	for _, order := range []dateOrder{dayFirst, monthFirst} {
		out[order] = append(out[order], out[""]...)
	}
	return out
}()

// times reads the times of a column.
type times struct {
	order   dateOrder
	asked   bool   // for this order
	decided bool   // by a day that is no month
	last    string // the layout of the last one
}

// why tells where the order comes from.
func (t *times) why() string {
	switch {
	case t.order == "":
		return ""
	case t.decided:
		return "the data decide"
	case t.asked:
		return "as asked"
	}
	return ambiguous
}

const ambiguous = "ambiguous; set DayFirst for day/month/year"

func (t *times) found(at time.Time) (float64, bool) {
	t.decided = t.decided || t.order != "" && at.Day() > 12 && !slices.Contains(timeLayouts[""], t.last)
	return secondsOf(at), true
}

// parse returns the seconds of a time, and whether it is one.
func (t *times) parse(s []byte) (float64, bool) {
	if len(s) < len("1:00") || len(s) > 40 || !bytes.ContainsAny(s, "0123456789") {
		return 0, false
	}
	text := string(s)
	if t.last != "" {
		if at, err := time.Parse(t.last, text); err == nil {
			return t.found(at)
		}
	}
	for _, layout := range timeLayouts[t.order] {
		if at, err := time.Parse(layout, text); err == nil {
			t.last = layout
			return t.found(at)
		}
	}
	return 0, false
}

func secondsOf(t time.Time) float64 {
	if t.Year() == 0 { // a time of day
		t = t.AddDate(1970, 0, 0)
	}
	return seconds(t.Unix(), int64(t.Nanosecond()))
}

// seconds returns whole seconds and nanoseconds as one number.
func seconds(whole, nano int64) float64 { return float64(whole) + float64(nano)/1e9 }

// timeText is a time as text.
func timeText(v float64) string {
	whole, part := math.Modf(v)
	t := time.Unix(int64(whole), int64(math.Round(part*1e6))*1000).UTC()
	return strings.TrimSuffix(t.Format("2006-01-02 15:04:05.999999"), " 00:00:00")
}

// dateText is a text that may have a date or a time.
var dateText = regexp.MustCompile(`(^|\D)(19|20)\d\d|\d:\d\d`)

// dateNumber returns the date that a number such as 20240131 or 20240131120000 may mean, or "".
func dateNumber(v float64) string {
	for _, layout := range []string{"20060102", "20060102150405"} {
		if at, err := time.Parse(layout, strconv.FormatFloat(v, 'f', -1, 64)); err == nil && at.Year() >= 1900 && at.Year() < 2100 {
			return timeText(secondsOf(at))
		}
	}
	return ""
}

// truth reads a truth value as 1 or 0.
func truth(s []byte) (float64, bool) {
	switch strings.ToLower(string(s)) {
	case "true":
		return 1, true
	case "false":
		return 0, true
	}
	return 0, false
}

// detectWords returns the reader of the times in some cells, or whether they are truth
// values. Cells that are neither give neither. Dates whose order is open have the
// preferred order, or the month first.
func detectWords(cells [][]byte, preferred dateOrder) (t *times, boolean bool) {
	if len(cells) == 0 {
		return nil, false
	}
	all := func(is func([]byte) (float64, bool)) bool {
		return !slices.ContainsFunc(cells, func(s []byte) bool {
			_, ok := is(s)
			return !ok
		})
	}
	if all(truth) {
		return nil, true
	}
	for _, order := range []dateOrder{"", preferred, monthFirst, dayFirst} {
		if t := (&times{order: order, asked: order == preferred}); all(t.parse) {
			return t, false
		}
	}
	return nil, false
}
