package accesslog

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func learned(style Style, paths ...string) *Namer {
	n := NewNamer(style)
	for _, p := range paths {
		n.Learn("GET", []byte(p))
	}
	return n
}

func TestLearnedNames(t *testing.T) {
	paths := []string{
		"/", "/users/1", "/users/me", "/users/17/orders/3f2a9c11", "/a//b/", "/a/b", "/d/2026-03-01", "/2026/03/01/x",
		"/u/123e4567-e89b-12d3-a456-426614174000", "/h/d41d8cd98f00b204e9800998ecf8427e", "/t/AbCdEfGh0123456789Zy", "/deface/facade/v1", "/s/" + strings.Repeat("x", 65),
	}
	n := learned(Braces, paths...)
	for path, want := range map[string]string{
		"/": "GET /", "/users/1": "GET /users/{id}", "/users/99": "GET /users/{id}", "/users/me": "GET /users/me",
		"/users/17/orders/3f2a9c11": "GET /users/{id}/orders/{id2}", "/a//b/": "GET /a/b/", "/a/b": "GET /a/b", "/d/2026-03-01": "GET /d/{id}",
		"/2026/03/01/x": "GET /{id}/{id2}/{id3}/x", "/u/123e4567-e89b-12d3-a456-426614174000": "GET /u/{id}",
		"/h/d41d8cd98f00b204e9800998ecf8427e": "GET /h/{id}", "/t/AbCdEfGh0123456789Zy": "GET /t/{id}", "/deface/facade/v1": "GET /deface/facade/v1",
		"/s/" + strings.Repeat("x", 65): "GET /s/{id}", "*": "GET __unmatched__", "": "GET __unmatched__", "/never/seen": "GET /{path...}", "/users/new": "GET /users/{path...}",
	} {
		assert.Equal(t, want, n.Name("GET", []byte(path)), path)
	}
	n = learned(Colons, paths...)
	assert.Equal(t, "POST /users/:id/orders/:id2", n.Name("POST", []byte("/users/17/orders/3f2a9c11")))
	assert.Equal(t, "GET /*path", n.Name("GET", []byte("/never/seen")))
	deep := strings.Repeat("/a", 20)
	n = learned(Braces, deep)
	assert.Equal(t, "GET "+strings.Repeat("/a", 12)+"/{path...}", n.Name("GET", []byte(deep)))
}

// A place with more than 50 segments is folded, with everything below it; the names don't depend on
// the order of the lines.
func TestFolding(t *testing.T) {
	var paths []string
	for i := range 60 {
		paths = append(paths, fmt.Sprintf("/blog/post-%c%c/comments", 'g'+i/20, 'g'+i%20), fmt.Sprintf("/blog/post-%c%c/", 'g'+i/20, 'g'+i%20))
		if i < 50 {
			paths = append(paths, fmt.Sprintf("/few/g%c%c", 'g'+i/20, 'g'+i%20))
		}
		paths = append(paths, fmt.Sprintf("/wide/x%c%c/only", 'g'+i/20, 'g'+i%20), fmt.Sprintf("/wide/xgg/y%c%c", 'g'+i/20, 'g'+i%20))
		for j := range 3 { // few below each, many together
			paths = append(paths, fmt.Sprintf("/deep/x%c%c/y%c%c%c/z", 'g'+i/20, 'g'+i%20, 'g'+i/20, 'g'+i%20, 'g'+j))
		}
	}
	paths = append(paths, "/blog/", "/blog/7/edit", "/about")
	names := func() map[string]string {
		n := learned(Braces, paths...)
		all := make(map[string]string)
		for _, p := range paths {
			all[p] = n.Name("GET", []byte(p))
		}
		return all
	}
	first := names()
	assert.Equal(t, "GET /blog/{id}/comments", first["/blog/post-gg/comments"])
	assert.Equal(t, "GET /blog/{id}/", first["/blog/post-gg/"])
	assert.Equal(t, "GET /blog/{id}/edit", first["/blog/7/edit"])
	assert.Equal(t, "GET /blog/", first["/blog/"])
	assert.Equal(t, "GET /few/ggg", first["/few/ggg"])
	assert.Equal(t, "GET /deep/{id}/{id2}/z", first["/deep/xgg/yggg/z"])
	assert.Equal(t, "GET /wide/{id}/{id2}", first["/wide/xgh/only"], "one of them is folded by itself")
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		require.Equal(t, first, names())
	}
}

// Memory is bounded however many paths there are.
func TestNamerIsBounded(t *testing.T) {
	n := NewNamer(Braces)
	random := rand.New(rand.NewPCG(1, 3))
	word := func() string {
		return string([]byte{'g' + byte(random.IntN(20)), 'g' + byte(random.IntN(20)), 'g'})
	}
	for range 200_000 {
		n.Learn("GET", []byte("/"+word()[:1]+"/"+word()[:1]+"/"+word()[:1]+"/"+word()[:1]+"/"+word()))
	}
	assert.LessOrEqual(t, n.places, maxPlaces+2*maxValues)
	var size func(p *place) int
	size = func(p *place) int {
		if p == nil {
			return 0
		}
		all := 1 + size(p.any)
		for _, next := range p.segments {
			all += size(next)
		}
		return all
	}
	assert.Equal(t, n.places, size(n.learned)-1)
}

func TestListedRoutes(t *testing.T) {
	n := NewNamer(Braces)
	for _, r := range []string{"GET /users/{id}", "GET /users/me", "/any/{x}", "GET /files/{path...}", "POST /files/{id}/lock", "GET /static/", "GET /{$}", "DELETE /users/{id}", "GET /a/{x}/c", "GET /a/b/d"} {
		require.NoError(t, n.List(r))
	}
	n.Learn("GET", []byte("/other/1"))
	for request, want := range map[string]string{
		"GET /users/7": "GET /users/{id}", "GET /users/me": "GET /users/me", "DELETE /users/me": "DELETE /users/{id}", "HEAD /users/7": "GET /users/{id}",
		"PUT /any/7": "PUT /any/{x}", "GET /files/a/b": "GET /files/{path...}", "GET /files/": "GET /files/{path...}", "POST /files/7/lock": "POST /files/{id}/lock",
		"GET /static/x/y": "GET /static/", "GET /": "GET /{$}", "GET /a/b/c": "GET /a/{x}/c", "GET /a/b/d": "GET /a/b/d", "GET /other/2": "GET /other/{id}",
	} {
		verb, path, _ := strings.Cut(request, " ")
		assert.Equal(t, want, n.Name(verb, []byte(path)), request)
	}
	n.ListedOnly()
	assert.Equal(t, "GET __unmatched__", n.Name("GET", []byte("/other/2")))
	gin := NewNamer(Colons)
	for _, r := range []string{"GET /users/:id", "GET /files/*path", "GET /"} {
		require.NoError(t, gin.List(r))
	}
	gin.ListedOnly()
	assert.Equal(t, "GET /users/:id", gin.Name("GET", []byte("/users/7")))
	assert.Equal(t, "GET /files/*path", gin.Name("GET", []byte("/files/a/b")))
	assert.Equal(t, "GET /", gin.Name("GET", []byte("/")))
	assert.Equal(t, "HEAD __unmatched__", gin.Name("HEAD", []byte("/users/7")))
	for _, bad := range []string{"", "orders", "FETCH /x", "sql orders.select"} {
		assert.ErrorContains(t, n.List(bad), "is not a route: use a method and a path", bad)
	}
}
