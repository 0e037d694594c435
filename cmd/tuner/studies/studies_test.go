package studies

import (
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestUnreadStudy checks how a study that could not be read is listed beside another one.
func TestUnreadStudy(t *testing.T) {
	const reason = "record 1 of study 7 is damaged"
	for form, want := range map[string]string{
		"names": "bad\ngood\n",
		"jsonl": `{"name":"bad","status":"unread","reason":"` + reason + `"}`,
		"yaml":  "- name: bad\n  status: unread\n  reason: " + reason,
		"table": "bad    unread",
	} {
		var out strings.Builder
		_, unread, err := writeStudies(&out, form, 80, func(yield func(tuner.Study, error) bool) {
			_ = yield(tuner.Study{Name: "bad", ID: 7, Unread: reason}, nil) && yield(tuner.Study{Name: "good", Status: study.StatusActive}, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "good") {
			t.Errorf("%s: %s", form, out.String())
		}
		if form == "table" && (len(unread) != 1 || !strings.Contains(unread[0], reason)) {
			t.Errorf("the notes are %q", unread)
		}
	}
}
