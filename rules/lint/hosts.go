package lint

import (
	"net/http"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/netname"
)

// hosts finds host names in a spelling that no adapter of clients uses.
func (l *linter) hosts() {
	for _, x := range l.lists {
		for i, info := range x.infos {
			if info.Mode == spec.Off {
				continue
			}
			check := func(field, name string) {
				if want := spelled(name); want != name {
					l.add("PN025", Warning, x.family, i, field, "%q names a host in a spelling that no client uses: write %q", name, want)
				}
			}
			if info.Named() {
				check("resource", info.Resource)
			}
			for _, name := range info.Exclude {
				check("exclude", name)
			}
		}
	}
}

// spelled returns the name in the spelling of client adapters if it names a host: after a method, or
// with a dot or a default port at the end. A program may have chosen any other name itself.
func spelled(name string) string {
	for _, separator := range []string{" ", ":"} {
		if method, host, found := strings.Cut(name, separator); found && slices.Contains(methods, method) && isHost(host) {
			return method + separator + netname.Host(host)
		}
	}
	dotted := strings.HasSuffix(name, ".") && strings.Contains(strings.TrimRight(name, "."), ".")
	if isHost(name) && (dotted || strings.HasSuffix(name, ":80") || strings.HasSuffix(name, ":443")) {
		return netname.Host(name)
	}
	return name
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodConnect, http.MethodOptions, http.MethodTrace, "_OTHER",
}

// isHost reports whether text may be a host with or without a port.
func isHost(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:[]") == ""
}
