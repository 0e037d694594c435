package web

import (
	"encoding/json"
	"net/http"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/prune"
)

// component is a proposer or pruner of which a visitor can choose.
type component struct {
	Name    string   `json:"name"`
	Options []string `json:"options,omitempty"`
}

// components lists proposers or pruners with their options.
func components(names []string, options func(string) []string) (out []component) {
	for _, name := range names {
		out = append(out, component{name, options(name)})
	}
	return out
}

// listMethods lists what a new study can be made with. Each known caller may read it.
func (f *Face) listMethods(w http.ResponseWriter, r *http.Request) {
	if _, err := f.pipe.Admit(r.Context(), callerOf(r), pb.Tuner_GetCaller_FullMethodName); err != nil {
		f.fail(w, r, err)
		return
	}
	data, err := json.Marshal(map[string]any{
		"proposers": components(propose.Names(), propose.Options),
		"pruners":   components(prune.Names(), prune.Options),
	})
	if err != nil {
		f.fail(w, r, err)
		return
	}
	f.write(w, http.StatusOK, data)
}
