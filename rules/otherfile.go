package rules

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// isOtherFile reports a file that contains rules, or refers to them, but is not a rule file itself. It
// also reports a rule outside a list.
func (d *decoder) isOtherFile(root *yaml.Node) bool {
	if root.Kind != yaml.MappingNode {
		return false
	}
	for _, is := range []func(*yaml.Node) bool{d.isKubernetes, d.isConfiguration, d.isAnswer, d.isSingleRule} {
		if is(root) {
			return true
		}
	}
	return false
}

// isKubernetes reports an object of Kubernetes, or a component of Dapr, which looks like one.
func (d *decoder) isKubernetes(root *yaml.Node) bool {
	version, kind := valueOf(root, "apiVersion"), valueOf(root, "kind")
	if version == nil || kind == nil || !isText(kind) {
		return false
	}
	switch data := valueOf(root, "data"); {
	case strings.HasPrefix(version.Value, "dapr.io/"):
		d.addDapr(root)
	case kind.Value == "ConfigMap" && (data == nil || data.Kind != yaml.MappingNode || len(data.Content) == 0):
		d.add(placeOf(keyOf(root, "kind")), "kind", "this is a Kubernetes ConfigMap, and its data is missing: rules are the text under data")
	case kind.Value == "ConfigMap":
		d.add(placeOf(data.Content[0]), "data", "this is a Kubernetes ConfigMap: its rules are the text under data, here %s: write that text to a separate file, or mount the ConfigMap and name the mounted file", someKeys(data))
	default:
		at, path, where := keyOf(root, "kind"), "kind", ""
		if valueOf(root, "spec") != nil {
			at, path, where = keyOf(root, "spec"), "spec", ", here under spec"
		}
		d.add(placeOf(at), path, "this is a Kubernetes object, %s: a rule file has only its rules%s: write them to a separate file", clip(kind.Value), where)
	}
	return true
}

// addDapr reports where a component of Dapr has its rules.
func (d *decoder) addDapr(root *yaml.Node) {
	at, here := root, ""
	if spec := valueOf(root, "spec"); spec != nil {
		if all := valueOf(spec, "metadata"); all != nil && all.Kind == yaml.SequenceNode {
			for _, item := range all.Content {
				if name := valueOf(item, "name"); name != nil && knownLists[listName(name.Value)] != 0 {
					if at = item; here == "" {
						here = ", here " + clip(name.Value)
						break
					}
				}
			}
		}
	}
	d.add(placeOf(at), "spec.metadata", "this is a Dapr component: its rules are the text of values in spec.metadata%s: write that text to a separate file", here)
}

// isConfiguration reports a file that configures Sentinel.
func (d *decoder) isConfiguration(root *yaml.Node) bool {
	if golang := valueOf(root, "sentinel"); golang != nil && golang.Kind == yaml.MappingNode {
		d.add(placeOf(keyOf(root, "sentinel")), "sentinel", "this configures sentinel-golang, and has no rules: they are in the files that the program's data sources read")
		return true
	}
	spring := valueOf(root, "spring")
	if spring == nil || spring.Kind != yaml.MappingNode {
		return false
	}
	at, path, here := keyOf(root, "spring"), "spring", "spring.cloud.sentinel.datasource names"
	node := spring
	for _, key := range []string{"cloud", "sentinel", "datasource"} {
		next := valueOf(node, key)
		if next == nil {
			break
		}
		at, path, node = keyOf(node, key), path+"."+key, next
	}
	if strings.HasSuffix(path, ".datasource") {
		here = "its datasources name"
		if node.Kind == yaml.MappingNode && len(node.Content) > 0 {
			here += ", here " + someKeys(node)
		}
	}
	d.add(placeOf(at), path, "this configures Spring, and has no rules: they are in the places that %s", here)
	return true
}

// isAnswer reports whether the file is a dashboard's response to a request for rules, and if so adds
// a problem.
func (d *decoder) isAnswer(root *yaml.Node) bool {
	if valueOf(root, "data") == nil || valueOf(root, "success") == nil && valueOf(root, "code") == nil {
		return false
	}
	d.add(placeOf(keyOf(root, "data")), "data", "this is a response from Sentinel's dashboard: the rules are the list under data: write that list to a separate file")
	return true
}

const oneRule = "this is one rule: put it in [ ], as a list of rules"

// isSingleRule reports a file that is a rule and not a list of them. The system rule of Java is
// read so.
func (d *decoder) isSingleRule(root *yaml.Node) bool {
	if isSystemObject(root) || !looksLikeRule(root) {
		return false
	}
	may := everyDialect
	for i := 0; i < len(root.Content); i += 2 {
		if tell := knownKeys[root.Content[i].Value]; tell != 0 {
			may &= tell
		}
	}
	problem := oneRule
	if may&(1<<Native) != 0 && valueOf(root, wrapperKey) == nil {
		problem = "this is one rule: put it in a list under its family, as in `flow: [{...}]`"
	}
	d.add(placeOf(root), "", "%s", problem)
	return true
}

// looksLikeRule reports whether a mapping has keys of a rule, and no list of them.
func looksLikeRule(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	fields := 0
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, n.Content[i+1]
		switch {
		case value.Kind != yaml.ScalarNode && key != wrapperKey && speakersOfList(key) != 0:
			return false
		case value.Kind == yaml.ScalarNode && (key == "resource" || key == "Resource" || key == "apiName"), value.Kind == yaml.MappingNode && key == wrapperKey:
			fields += 2
		case value.Kind == yaml.ScalarNode && knownKeys[key] != 0:
			fields++
		}
	}
	return fields >= 2
}

// someKeys names the first keys of a mapping.
func someKeys(mapping *yaml.Node) string {
	const most = 3
	var names []string
	for i := 0; i < len(mapping.Content); i += 2 {
		if len(names) == most {
			return strings.Join(names, ", ") + " and others"
		}
		names = append(names, clip(mapping.Content[i].Value))
	}
	return strings.Join(names, ", ")
}
