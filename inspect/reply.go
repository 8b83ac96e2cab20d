package inspect

import (
	"net/http"
	"strconv"
)

const (
	plainText = "text/plain; charset=utf-8"
	jsonText  = "application/json; charset=utf-8"
	yamlText  = "application/yaml; charset=utf-8"
)

// reply sends what was rendered, or says why it could not be.
func reply(w http.ResponseWriter, contentType string, body []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // fails when the client has gone
}
