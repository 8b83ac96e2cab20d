package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Where programs are asked, unless the command line says otherwise, and how.
const (
	usualURL   = "http://127.0.0.1:8719"
	tokenName  = "PENSTOCK_TOKEN"
	askTimeout = 5 * time.Second
	mostAnswer = 64 << 20 // bytes
	watchEvery = time.Second
)

// program is a running program that is asked by the JSON of its console.
type program struct {
	at     *url.URL
	token  string
	client *http.Client
}

// program is the one that an argument is the address of.
func (c *command) program(address string) (*program, error) {
	address = cmp.Or(address, usualURL)
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("%q is no address of a program: write one as in %s", address, usualURL)
	}
	return &program{at, c.env(tokenName), &http.Client{
		Timeout:   askTimeout,
		Transport: c.transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the token must go nowhere else
		},
	}}, nil
}

// isAddress reports whether an argument is the address of a program, and no file.
func isAddress(arg string) bool {
	return strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://")
}

// ask returns the answer to a question.
func (p *program) ask(ctx context.Context, path string, query url.Values) ([]byte, error) {
	at := p.at.JoinPath(path)
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if p.token != "" {
		request.Header.Set("Authorization", "Bearer "+p.token)
	}
	response, err := p.client.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			err = fmt.Errorf("%w; does the program serve a console there? See docs/console.md", err)
		}
		return nil, fmt.Errorf("%s doesn't answer: %w", p.at.Host, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s breaks off: %w", p.at.Host, err)
	case len(body) > mostAnswer:
		return nil, fmt.Errorf("%s answers more than %d MiB", p.at.Host, mostAnswer>>20)
	case response.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%s wants a token: set %s", p.at.Host, tokenName)
	case response.StatusCode != http.StatusOK:
		var answer struct{ Error string }
		if json.Unmarshal(body, &answer) == nil && answer.Error != "" {
			return nil, fmt.Errorf("%s: %s", p.at.Host, safe(answer.Error, mostShown))
		}
		return nil, fmt.Errorf("%s answers %s: is there a console of Penstock?", p.at.Host, safe(response.Status, mostShown))
	}
	return body, nil
}

const mostShown = 200 // columns of a text that comes from the program

// answer reads the answer to a question.
func answer[T any](ctx context.Context, p *program, path string, query url.Values) (v T, err error) {
	body, err := p.ask(ctx, path, query)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return v, fmt.Errorf("%s answers what is no JSON of a console: %w", p.at.Host, err)
	}
	return v, nil
}

// What the console answers, as far as it is shown.
type (
	figuresJSON struct {
		Pass, Block, Complete, Exception int64
		AvgRTMs                          float64
		percentilesJSON
	}
	// percentilesJSON are nil where percentiles are not counted, or nothing completed.
	percentilesJSON struct{ P50Ms, P95Ms, P99Ms *float64 }
	historyJSON     struct {
		Pass, Block []int64
		RTMs        []float64
	}
	resourceJSON struct {
		Name               string
		Overflow           bool
		InFlight, Waiting  int64
		LastSecond, Minute figuresJSON
		Marks              []string
		History            historyJSON
	}
	resourcesJSON struct {
		At          time.Time
		Total       int
		Percentiles bool
		Resources   []resourceJSON
	}
	detailJSON struct {
		resourceJSON
		At      time.Time
		Limit   *float64
		Origins []struct {
			Name               string
			Overflow           bool
			InFlight           int64
			LastSecond, Minute figuresJSON
		}
		HotValues []struct {
			Rule, Value     string
			Passed, Refused int64
			Full            *float64
		}
		Rules    []ruleJSON
		Refusals []struct {
			Last                  time.Time
			Count                 int64
			Reason, Origin, Value string
		}
	}
	ruleJSON struct {
		Kind, ID, Resource, Mode string
		Refused, ShadowBlocked   int64
		Full                     *float64
		Measures                 []measureJSON
		StoreAway                bool
	}
	measureJSON struct {
		Of              string
		Measured, Limit float64
		Unit            string
		AtHand          bool
	}
	rulesJSON struct {
		At       time.Time
		Revision uint64
		Hash     string
		Sources  []struct {
			Source    string
			OK        bool
			LastError string
			Rules     int
		}
		Rules []ruleJSON
	}
)

// watching repeats f once a second, above what it has written before, until it is interrupted.
func (c *command) watching(watch bool, f func(ctx context.Context, out io.Writer) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	pause := c.pause
	if pause == nil {
		pause = func(d time.Duration) bool {
			select {
			case <-ctx.Done():
				return false
			case <-time.After(d):
				return true
			}
		}
	}
	for first := true; ; first = false {
		var text strings.Builder
		if err := f(ctx, &text); err != nil {
			if ctx.Err() != nil && watch {
				return nil
			}
			return err
		}
		before := ""
		switch {
		case c.terminal(c.out) && watch:
			before = "\x1b[H\x1b[2J" // the screen, from its top
		case !first:
			before = "\n"
		}
		if _, err := io.WriteString(c.out, before+text.String()); err != nil {
			return err
		}
		if !watch || !pause(watchEvery) {
			return nil
		}
	}
}

// indented is JSON as it came, for people.
func indented(out io.Writer, body []byte) error {
	var v any
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return err
	}
	return writeJSON(out, v)
}
