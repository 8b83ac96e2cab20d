package rules

import (
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// checkText reports text that isn't UTF-8, in any format.
func (d *decoder) checkText(data []byte) (ok bool) {
	if utf8.Valid(data) {
		return true
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			d.add(placeAt(data, i), "", "is not UTF-8 text: the byte %#02x", data[i])
			break
		}
		i += size
	}
	return false
}

// checkTree reports features that a rule file doesn't need and that could make a small file expand to
// a large one. depth is the depth of n, starting at 1.
func (d *decoder) checkTree(n *yaml.Node, depth int) {
	at := placeOf(n)
	switch {
	case d.full():
		return
	case depth > MaxDepth:
		d.add(at, "", "is nested deeper than %d levels", MaxDepth)
		return
	case n.Kind == yaml.AliasNode:
		d.add(at, "", "the alias *%s: aliases are not supported, write the value out", clip(n.Value))
	case n.Anchor != "":
		d.add(at, "", "the anchor &%s: anchors are not supported, remove it", clip(n.Anchor))
	case n.Tag == "!!merge":
		d.add(at, "", "the merge key <<: merge keys are not supported, write the keys out")
	case n.Style&yaml.TaggedStyle != 0:
		d.add(at, "", "the tag %s: tags are not supported, remove it", clip(n.Tag))
	}
	for _, child := range n.Content {
		d.checkTree(child, depth+1)
	}
}
