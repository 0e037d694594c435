package web

import (
	"encoding/json"
	"net/http"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
)

// listMethods lists what a new study can be made with. Each known caller may read it.
func (f *Face) listMethods(w http.ResponseWriter, r *http.Request) {
	if _, err := f.pipe.Admit(r.Context(), callerOf(r), pb.Tuner_GetCaller_FullMethodName); err != nil {
		f.fail(w, r, err)
		return
	}
	data, err := json.Marshal(f.components)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	f.write(w, http.StatusOK, data)
}
