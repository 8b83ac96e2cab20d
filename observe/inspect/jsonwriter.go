package inspect

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"iter"
)

// jsonWriter writes JSON piece by piece, so that at most one node's text is in memory. After an error
// it writes nothing.
type jsonWriter struct {
	out   *bufio.Writer
	value *json.Encoder // to piece
	piece bytes.Buffer
	node  nodeJSON // the latest
	err   error    // of encoding a value; out keeps its own
}

func newJSONWriter(w io.Writer) *jsonWriter {
	j := &jsonWriter{out: bufio.NewWriter(w)}
	j.value = json.NewEncoder(&j.piece)
	return j
}

func marshal(write func(*jsonWriter)) ([]byte, error) {
	var body bytes.Buffer
	j := newJSONWriter(&body)
	write(j)
	err := j.flush()
	return body.Bytes(), err
}

func (v view) writeJSON(w io.Writer) error {
	j := newJSONWriter(w)
	j.tree(v)
	return j.flush()
}

func (j *jsonWriter) flush() error {
	if j.err != nil {
		return j.err
	}
	return j.out.Flush()
}

// text writes text that is already JSON.
func (j *jsonWriter) text(s string) {
	if j.err == nil {
		_, j.err = j.out.WriteString(s)
	}
}

// encode writes a value, without its last byte if more follows.
func (j *jsonWriter) encode(v any, goesOn bool) {
	if j.err != nil {
		return
	}
	j.piece.Reset()
	if j.err = j.value.Encode(v); j.err != nil {
		return
	}
	end := j.piece.Len() - 1 // a line feed
	if goesOn {
		end--
	}
	_, j.err = j.out.Write(j.piece.Bytes()[:end])
}

func (j *jsonWriter) tree(v view) {
	head := newHeadJSON(v.head)
	j.encode(&head, true)
	j.text(`,"root":`)
	j.nodes(v.calls)
	j.text(`,"resources":[`)
	j.nodes(v.resources)
	j.text(`],"inbound":`)
	j.nodes(v.head.Inbound.visits)
	j.text(`,"rules":[`)
	for i := range v.head.Rules {
		if i > 0 {
			j.text(",")
		}
		rule := newRuleJSON(&v.head.Rules[i], v.head.At)
		j.encode(&rule, false)
	}
	j.text("]}")
}

// nodes writes nodes one after another, each with its descendants.
func (j *jsonWriter) nodes(visits iter.Seq[visit]) {
	open, first := 0, true // open is the number of unfinished nodes
	for v := range visits {
		for ; open > v.depth; open-- {
			j.text("]}")
			first = false
		}
		if !first {
			j.text(",")
		}
		first = v.below > 0
		j.node.of(v.Node)
		j.encode(&j.node, true)
		switch {
		case v.below == 0:
			j.text("}")
		case v.Kind == NodeResource:
			j.text(`,"origins":[`)
			open++
		default:
			j.text(`,"children":[`)
			open++
		}
		if j.err != nil {
			return
		}
	}
	for ; open > 0; open-- {
		j.text("]}")
	}
}
