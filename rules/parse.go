package rules

import (
	"bytes"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"
)

// What a rule file may be at most.
const (
	MaxFileSize = 1 << 20 // bytes
	MaxRules    = 10_000  // of all families
	MaxDepth    = 16      // mappings and lists within each other

	// What keeps a small file from becoming a large tree: a file of MaxRules may
	// have five keys in each, one of fewer rules all there are. A tree of so many
	// nodes takes some 30 MiB to make.
	maxItems = 64_000 // lines, commas, brackets and the like, see checkYAML
)

const noRules = "holds no rules: write `flow: []` to remove every rule"

// Parse reads a rule file, YAML or JSON. name is what errors call it; one that
// ends in .json must hold JSON.
//
// Every rule is checked as loading it would. Unknown and repeated keys, wrong
// types, numbers that aren't finite, durations without a unit, rules that are
// there twice, aliases, anchors, tags, a second document, regular expressions
// that mean too much work, and anything beyond [MaxFileSize], [MaxRules] and
// [MaxDepth] are errors; so is a file that holds nothing. The error joins up to 20
// errors of type [*FileError]. On error the Set is zero.
//
// The rules are as written: defaults aren't filled in.
func Parse(name string, data []byte) (Set, error) {
	d := &decoder{faults: &faults{file: name}}
	root := d.tree(data)
	if root == nil {
		return Set{}, d.err()
	}
	d.checkTree(root, 1)
	if d.err() != nil {
		return Set{}, d.err() // the rest would only follow from it
	}
	set := dialectOf(root).decode(d, root)
	if err := d.err(); err != nil {
		return Set{}, err
	}
	return set, nil
}

// tree returns the root node of data, or nil after reporting why there is none.
func (d *decoder) tree(data []byte) *yaml.Node {
	if len(data) > MaxFileSize {
		d.add(place{}, "", "has %d bytes, the most is %d", len(data), MaxFileSize)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF")) // some editors write one
	if len(bytes.TrimSpace(data)) == 0 {
		d.add(place{1, 1}, "", "%s", noRules)
		return nil
	}
	if !d.checkText(data) {
		return nil
	}
	var root *yaml.Node
	if strings.EqualFold(filepath.Ext(d.file), ".json") || looksLikeJSON(data) {
		root = d.readJSON(data)
	} else {
		root = d.readYAML(data)
	}
	if root != nil && isNull(root) {
		d.add(placeOf(root), "", "%s", noRules)
		return nil
	}
	return root
}
