package studies

import (
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/space"
)

// The example of the help is a space, and has every type and key there is.
func TestSpaceHelp(t *testing.T) {
	_, text, _ := strings.Cut(spaceHelp, "\n")
	text, _, _ = strings.Cut(text, "\n\n")
	sp, warnings, err := space.Parse([]byte(text))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v, %v\n%s", err, warnings, text)
	}
	types := map[space.Type]bool{}
	for _, p := range sp.Parameters() {
		types[p.Type] = true
	}
	if len(types) != 5 || !strings.Contains(text, "when: ") || !strings.Contains(text, "step: ") || !strings.Contains(text, "scale: log") {
		t.Errorf("types %v in\n%s", types, text)
	}
}
