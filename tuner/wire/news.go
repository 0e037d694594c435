package wire

import (
	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
)

// DecodeStudyNews reads news of studies.
func DecodeStudyNews(m *pb.WatchStudiesResponse) (tuner.StudyNews, error) {
	news := tuner.StudyNews{Listed: m.GetListed()}
	for _, s := range m.GetStudies() {
		study, err := DecodeStudy(s)
		if err != nil {
			return tuner.StudyNews{}, err
		}
		news.Studies = append(news.Studies, study)
	}
	for _, id := range m.GetDeletedUids() {
		news.Deleted = append(news.Deleted, store.StudyID(id))
	}
	return news, nil
}
