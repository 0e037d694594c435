package wire

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// EncodeStudy encodes a study. Its Trials is the sum of its Counts and is not sent.
func EncodeStudy(s tuner.Study) (*pb.Study, error) {
	resource, err := StudyName(s.Name)
	if err != nil {
		return nil, err
	}
	m, err := encode[*pb.Study](s)
	m.Name, m.FinishReason, m.FinishDetail = resource, pb.FinishReason(s.Finished.Reason), s.Finished.Detail
	for state, n := range s.Counts {
		m.ProtoReflect().Set(counted(state), protoreflect.ValueOfInt64(int64(n)))
	}
	return m, err
}

// counted returns the field of a study with its number of trials in a state.
func counted(state study.TrialState) protoreflect.FieldDescriptor {
	return (*pb.Study)(nil).ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(state.String()))
}

// DecodeStudy reads a study.
func DecodeStudy(m *pb.Study) (tuner.Study, error) {
	name, err := ParseStudyName(m.GetName())
	if err != nil {
		return tuner.Study{}, err
	}
	s, err := decode[tuner.Study](m)
	if err != nil {
		return tuner.Study{}, err
	}
	s.Name = name
	reason := m.GetFinishReason()
	if pb.FinishReason_name[int32(reason)] == "" {
		return tuner.Study{}, invalid("finish_reason", reason, "is unknown to this version")
	}
	s.Finished = study.Finished{Reason: study.FinishReason(reason), Detail: m.GetFinishDetail()}
	for state := study.Queued; state <= study.Pruned; state++ {
		if n := int(m.ProtoReflect().Get(counted(state)).Int()); n != 0 {
			if s.Counts == nil {
				s.Counts = make(map[study.TrialState]int)
			}
			s.Counts[state] = n
			s.Trials += n
		}
	}
	return s, nil
}

// DecodeStudies reads studies.
func DecodeStudies(in []*pb.Study) ([]tuner.Study, error) { return each(in, DecodeStudy) }

// EncodeCreated encodes the answer to the creation of a study.
func EncodeCreated(c tuner.Created) (*pb.Study, error) {
	m, err := EncodeStudy(c.Study)
	if err != nil {
		return nil, err
	}
	m.Warnings, err = each(c.Warnings, encode[*pb.SpaceWarning])
	return m, err
}

// DecodeCreated reads the answer to the creation of a study.
func DecodeCreated(m *pb.Study) (c tuner.Created, err error) {
	if c.Study, err = DecodeStudy(m); err != nil {
		return tuner.Created{}, err
	}
	c.Warnings, err = each(m.GetWarnings(), decode[space.Warning, *pb.SpaceWarning])
	return c, err
}

// DecodeStudyNews reads news of studies.
func DecodeStudyNews(m *pb.WatchStudiesResponse) (tuner.StudyNews, error) {
	news := tuner.StudyNews{Listed: m.GetListed()}
	for _, id := range m.GetDeletedUids() {
		news.Deleted = append(news.Deleted, store.StudyID(id))
	}
	var err error
	news.Studies, err = DecodeStudies(m.GetStudies())
	return news, err
}
