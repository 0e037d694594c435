package store_test

import (
	"testing"

	"github.com/bkbtuner/bkb/store"
)

func TestErrorMessages(t *testing.T) {
	for want, err := range map[string]error{
		`there is no study named "mnist"`:                                               &store.NotFoundError{Name: "mnist"},
		`no study has id 7; it may have been deleted`:                                   &store.NotFoundError{Study: 7},
		`a study named "mnist" already exists (id 7)`:                                   &store.ExistsError{Name: "mnist", Study: 7},
		`the log of study 7 ends at position 12, not at 10: another client wrote to it`: &store.ConflictError{Study: 7, Expected: 10, Actual: 12},
		`a record of 40 bytes exceeds the limit of 32`:                                  &store.LimitError{What: "record", Size: 40, Limit: 32},
		`the store holds at most 3 studies; delete some`:                                &store.LimitError{What: "studies", Size: 4, Limit: 3},
		`study 7 is damaged at position 12: the checksum does not match`:                &store.CorruptError{Study: 7, Position: 12, Reason: "the checksum does not match"},

		`study 7 was written by a newer version of this program (format 9 at position 12; this one reads up to format 1): upgrade it`: &store.NewerFormatError{Study: 7, Position: 12, Format: 9},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
