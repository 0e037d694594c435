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
		sink := studySink(&out, form, 80)
		for _, s := range []tuner.Study{{Name: "bad", ID: 7, Unread: reason}, {Name: "good", Status: study.StatusActive}} {
			if err := sink.Put(s); err != nil {
				t.Fatal(err)
			}
		}
		if err := sink.End(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "good") {
			t.Errorf("%s: %s", form, out.String())
		}
		if table, ok := sink.(*studyTable); ok && (len(table.unread) != 1 || !strings.Contains(table.unread[0], reason)) {
			t.Errorf("the notes are %q", table.unread)
		}
	}
}
