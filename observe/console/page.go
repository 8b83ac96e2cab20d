package console

import (
	"bytes"
	"compress/gzip"
	"embed"
	"net/http"
	"strings"
	"sync"
)

// The page consists of these files, without a build step. uPlot draws its charts: a copy of version
// 1.6.32 (https://github.com/leeoniya/uPlot), under its own licence.
//
//go:embed page
var pageFiles embed.FS

// pageFile is a file of the page, with its path and content type.
type pageFile struct{ path, name, contentType string }

var page = []pageFile{
	{"/{$}", "index.html", "text/html; charset=utf-8"},
	{"/console.js", "console.js", "text/javascript; charset=utf-8"},
	{"/console.css", "console.css", "text/css; charset=utf-8"},
	{"/uplot.js", "uplot.js", "text/javascript; charset=utf-8"},
	{"/uplot.css", "uplot.css", "text/css; charset=utf-8"},
	{"/uplot.LICENSE", "uplot.LICENSE", "text/plain; charset=utf-8"},
}

func pageRoutes() (all []route) {
	for _, f := range page {
		small := sync.OnceValue(func() []byte { return compressed(f.read()) })
		all = append(all, route{"GET", f.path, open, func(w http.ResponseWriter, r *http.Request) error {
			h := w.Header()
			h.Set("Content-Type", f.contentType)
			h.Set("Vary", "Accept-Encoding")
			body := f.read()
			if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				h.Set("Content-Encoding", "gzip")
				body = small()
			}
			_, _ = w.Write(body) // fails when the client has disconnected
			return nil
		}})
	}
	return all
}

func (f pageFile) read() []byte {
	body, err := pageFiles.ReadFile("page/" + f.name)
	if err != nil {
		panic(err) // it is embedded
	}
	return body
}

func compressed(body []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a valid level
	_, _ = w.Write(body)                                  // memory never fails
	_ = w.Close()
	return b.Bytes()
}
