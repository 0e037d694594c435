package server

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// TestHTTPDocs compares the table of methods in docs/http.md with the service and with the
// permissions.
func TestHTTPDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Methods\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := make(map[string][]string)
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|(.*)\\|(.*)\\|(.*)\\|$").FindAllStringSubmatch(table, -1) {
		rows[m[1]] = m[2:]
	}
	quoted := func(text string) (names []string) {
		for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		slices.Sort(names)
		return names
	}
	scopes := map[wire.Need]string{wire.NeedAny: "any", wire.NeedRead: "read", wire.NeedReadAll: "read, all studies", wire.NeedWork: "worker", wire.NeedWorkTrials: "worker, or admin for a study", wire.NeedAdmin: "admin"}
	listed := pb.File_proto_tuner_v1_tuner_proto.Services().ByName("Tuner").Methods()
	for i := range listed.Len() {
		d := listed.Get(i)
		name := string(d.Name())
		row, ok := rows[name]
		if !ok {
			t.Errorf("docs/http.md does not list %s", name)
			continue
		}
		delete(rows, name)
		if want := scopes[methods()["/"+pb.Tuner_ServiceDesc.ServiceName+"/"+name].Need]; strings.TrimSpace(row[0]) != want {
			t.Errorf("%s: the scope is %q, want %q", name, row[0], want)
		}
		var fields []string
		for k := range d.Input().Fields().Len() {
			fields = append(fields, d.Input().Fields().Get(k).JSONName())
		}
		slices.Sort(fields)
		if got := quoted(row[1]); !slices.Equal(got, fields) {
			t.Errorf("%s: the fields are %q, want %q", name, got, fields)
		}
		answer := "`" + string(d.Output().Name()) + "`"
		if d.IsStreamingServer() {
			answer = "stream of " + answer
		}
		if got := strings.TrimSpace(row[2]); got != answer {
			t.Errorf("%s: the answer is %s, want %s", name, got, answer)
		}
	}
	for name := range rows {
		t.Errorf("docs/http.md lists %s, which does not exist", name)
	}
}
