package protostruct_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/protostruct"
	"google.golang.org/protobuf/types/descriptorpb"
)

// option stands for [descriptorpb.UninterpretedOption], and part for a part of its name.
type option struct {
	Name   []part
	Word   *string
	Plain  *uint64
	Double *float64
	Text   []byte
}

type part struct {
	NamePart *string
	Extended *bool
}

func newTable() *protostruct.Table {
	t := &protostruct.Table{Optional: []string{"NegativeIntValue", "AggregateValue"}}
	t.Names(option{}, "IdentifierValue=Word", "PositiveIntValue=Plain", "DoubleValue=Double", "StringValue=Text")
	t.Names(part{}, "IsExtension=Extended")
	return t
}

func TestCopy(t *testing.T) {
	word, yes, n := "w", true, uint64(7)
	want := option{Name: []part{{NamePart: &word, Extended: &yes}, {}}, Word: &word, Plain: &n, Text: []byte("x")}
	var m descriptorpb.UninterpretedOption
	if err := newTable().Encode(&m, &want); err != nil {
		t.Fatal(err)
	}
	if m.GetIdentifierValue() != "w" || m.GetPositiveIntValue() != 7 || len(m.GetName()) != 2 || !m.GetName()[0].GetIsExtension() || string(m.GetStringValue()) != "x" {
		t.Fatalf("the message is %v", &m)
	}
	var got option
	if err := newTable().Decode(nil, &got, &m); err != nil {
		t.Fatal(err)
	}
	if len(got.Name) != 2 || *got.Name[0].NamePart != "w" || got.Name[1].NamePart != nil || *got.Plain != 7 || got.Double != nil {
		t.Fatalf("came back as %+v", got)
	}
	m.Name = nil
	if err := newTable().Decode(nil, &got, &m); err != nil || got.Name != nil {
		t.Fatalf("an empty list came back as %+v, %v", got.Name, err)
	}
}

// Fields without a counterpart are found at the first use, on both sides.
func TestForgottenField(t *testing.T) {
	for want, copy := range map[string]func(){
		"DoubleValue": func() {
			_ = new(protostruct.Table).Encode(new(descriptorpb.UninterpretedOption), &struct{ Name []part }{})
		},
		"Other": func() {
			_ = new(protostruct.Table).Encode(new(descriptorpb.UninterpretedOption_NamePart), &struct {
				NamePart    *string
				IsExtension *bool
				Other       int
			}{})
		},
		"no way": func() {
			_ = new(protostruct.Table).Encode(new(descriptorpb.UninterpretedOption_NamePart), &struct{ NamePart, IsExtension int }{})
		},
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, "precondition") || want != "DoubleValue" && !strings.Contains(text, want) {
					t.Errorf("%s: the panic is %q", want, text)
				}
			}()
			copy()
		}()
	}
}

// Numbers that do not fit saturate on the way out, and are refused with their path on the way in.
func TestNumbers(t *testing.T) {
	type span struct{ Start, End int8 }
	type message struct{ Range []span }
	table := &protostruct.Table{Optional: []string{"Name", "Field", "Extension", "NestedType", "EnumType", "OneofDecl", "Options", "ReservedName", "ExtensionRange", "Visibility"}}
	table.Names(message{}, "ReservedRange=Range")
	protostruct.Convert(table, func(n int8) (*int32, error) { m := int32(n); return &m, nil }, func(_ any, m *int32) (int8, error) {
		if m != nil && *m > math.MaxInt8 {
			return 0, &protostruct.FieldError{Value: *m, Rule: "is too large"}
		}
		return 0, nil
	})
	large := int32(1000)
	err := table.Decode(nil, new(message), &descriptorpb.DescriptorProto{ReservedRange: []*descriptorpb.DescriptorProto_ReservedRange{{End: &large}}})
	if e := (*protostruct.FieldError)(nil); !errors.As(err, &e) || e.Field != "reserved_range.end" || e.Rule != "is too large" {
		t.Errorf("the error is %v", err)
	}
}
