package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// looksLikeJSON reports whether data is a JSON object or array. YAML is nearly a superset, but its
// parser refuses JSON's surrogate pairs and long keys.
func looksLikeJSON(data []byte) bool {
	data = bytes.TrimSpace(data)
	return (data[0] == '{' || data[0] == '[') && json.Valid(data)
}

// readJSON returns the root of the JSON text data as the node that a YAML parser would return, or nil
// after reporting an error.
func (d *decoder) readJSON(data []byte) *yaml.Node {
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		at, problem := place{1, 1}, err.Error()
		if offset, ok := syntaxOffset(err); ok {
			at, problem = placeAt(data, offset), jsonProblem(data, offset, err)
		}
		d.add(at, "", "is not JSON: %s", problem)
		return nil
	}
	r := jsonReader{data: data, at: place{1, 1}}
	root, ok := r.value()
	if !ok {
		d.add(r.at, "", "has too many commas and brackets, up to here %d: the maximum is %d", r.items, maxItems)
		return nil
	}
	return root
}

// syntaxOffset returns the offset of the byte at which, according to err, a text stops being JSON.
func syntaxOffset(err error) (offset int, ok bool) {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return 0, false
	}
	return int(syntax.Offset) - 1, true
}

const commentInJSON = "a comment: JSON has no comments: remove it, or write the file as YAML, with # before comments and a name that ends in .yaml"

// jsonProblem describes the error at an offset where data stops being JSON, with advice for habits
// from other formats.
func jsonProblem(data []byte, offset int, err error) string {
	rest := data[min(max(offset, 0), len(data)):]
	switch {
	case beginsComment(rest), bytes.HasPrefix(rest, []byte("#")):
		return commentInJSON
	case bytes.HasPrefix(rest, []byte("'")):
		return `JSON has no single quotes: write "..."`
	case bytes.HasPrefix(rest, []byte("]")), bytes.HasPrefix(rest, []byte("}")):
		if before := bytes.TrimRight(data[:offset], blanks); bytes.HasSuffix(before, []byte(",")) {
			return "a comma before the closing bracket: remove it"
		}
	case strings.HasSuffix(err.Error(), "looking for beginning of object key string"):
		return `a key without quotes: write "..."`
	}
	return err.Error()
}

// blanks are JSON's.
const blanks = " \t\r\n"

func beginsComment(text []byte) bool {
	return bytes.HasPrefix(text, []byte("//")) || bytes.HasPrefix(text, []byte("/*"))
}

// hasJSONComment reports a JavaScript comment in text that is JSON up to there. A YAML parser would
// read the comment as text, with confusing errors later.
func (d *decoder) hasJSONComment(data []byte) bool {
	text := bytes.TrimLeft(data, blanks)
	if !beginsComment(text) && text[0] != '{' && text[0] != '[' {
		return false
	}
	var raw json.RawMessage
	offset, ok := syntaxOffset(json.Unmarshal(data, &raw))
	if !ok || !beginsComment(data[offset:]) || bytes.HasSuffix(bytes.TrimRight(data[:offset], blanks), []byte(":")) {
		return false
	}
	d.add(placeAt(data, offset), "", "is not JSON: %s", commentInJSON)
	return true
}

// jsonReader builds nodes from text that is known to be JSON. So it only needs to find the end of each
// token; encoding/json would take several times the memory.
type jsonReader struct {
	data   []byte
	offset int   // of the next read
	at     place // of the token read last
	seen   int   // the offset that at belongs to
	items  int   // commas and openings, limited like YAML's lines and dashes
}

// value reads the next value, or key. ok is false if there were too many.
func (r *jsonReader) value() (n *yaml.Node, ok bool) {
	first := r.next()
	if first == '{' || first == '[' {
		r.items++
	}
	if r.items > maxItems {
		return nil, false
	}
	n = &yaml.Node{Kind: yaml.ScalarNode, Line: r.at.line, Column: r.at.column}
	switch first {
	case '{', '[':
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if first == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		for r.offset++; r.next() != '}' && r.data[r.offset] != ']'; {
			child, ok := r.value() // a key is a string like another
			if !ok {
				return nil, false
			}
			n.Content = append(n.Content, child)
		}
		r.offset++
	case '"':
		n.Tag, n.Style, n.Value = "!!str", yaml.DoubleQuotedStyle, r.text()
	default:
		end := r.offset
		for end < len(r.data) && !strings.ContainsRune(",]} \t\r\n", rune(r.data[end])) {
			end++
		}
		n.Value = string(r.data[r.offset:end])
		r.offset = end
		n.Tag = "!!float"
		if tag, ok := literals[n.Value]; ok {
			n.Tag = tag
		}
	}
	return n, true
}

var literals = map[string]string{"true": "!!bool", "false": "!!bool", "null": "!!null"}

// next goes to the next token, records its place, and returns its first byte.
func (r *jsonReader) next() byte {
	for strings.ContainsRune(" \t\r\n,:", rune(r.data[r.offset])) {
		if r.data[r.offset] == ',' {
			r.items++
		}
		r.offset++
	}
	passed := r.data[r.seen:r.offset]
	if i := bytes.LastIndexByte(passed, '\n'); i >= 0 {
		r.at = place{r.at.line + bytes.Count(passed, []byte("\n")), 1}
		passed = passed[i+1:]
	}
	r.at.column += utf8.RuneCount(passed)
	r.seen = r.offset
	return r.data[r.offset]
}

// text reads a string.
func (r *jsonReader) text() string {
	start, end, escapes := r.offset+1, r.offset+1, 0
	for ; r.data[end] != '"'; end++ {
		if r.data[end] == '\\' {
			escapes++
			end++
		}
	}
	r.offset = end + 1
	if escapes == 0 {
		return string(r.data[start:end])
	}
	text := make([]byte, 0, end-start)
	for rest := r.data[start:end]; len(rest) > 0; {
		if rest[0] != '\\' {
			text = append(text, rest[0])
			rest = rest[1:]
			continue
		}
		var char rune
		char, rest = unescape(rest)
		text = utf8.AppendRune(text, char)
	}
	return string(text)
}

// unescape reads the escape at the start of text. Half a surrogate pair is U+FFFD, as in
// encoding/json.
func unescape(text []byte) (char rune, rest []byte) {
	if text[1] != 'u' {
		return rune("\"\\/\b\f\n\r\t"[strings.IndexByte(`"\/bfnrt`, text[1])]), text[2:]
	}
	char, rest = hex4(text[2:]), text[6:]
	if !utf16.IsSurrogate(char) {
		return char, rest
	}
	if bytes.HasPrefix(rest, []byte(`\u`)) {
		if pair := utf16.DecodeRune(char, hex4(rest[2:])); pair != utf8.RuneError {
			return pair, rest[6:]
		}
	}
	return utf8.RuneError, rest
}

func hex4(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits[:4]), 16, 16)
	return rune(n)
}
