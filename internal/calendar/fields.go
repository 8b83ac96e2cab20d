package calendar

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shared"
)

// Fields are the fields of a rule that say in which periods it counts. The zero value means that it
// counts in an interval.
type Fields struct {
	Per              spec.Per
	Timezone, Starts string
}

// Normalized returns the fields with their defaults, or a [spec.FieldError] for the first invalid
// one.
func (f Fields) Normalized() (Fields, error) {
	switch {
	case !f.Per.Has():
		return f, spec.BadField("per", "%d is unknown: use api.PerDay, api.PerWeek or api.PerMonth", f.Per)
	case f.Per == spec.PerNone && f.Timezone != "":
		return f, spec.BadField("timezone", "has no meaning for a rule without per: remove it, or set per to day, week or month")
	case f.Per == spec.PerNone && f.Starts != "":
		return f, spec.BadField("starts", "has no meaning for a rule without per: remove it, or set per to day, week or month")
	case f.Per == spec.PerNone:
		return f, nil
	}
	if f.Timezone == "" {
		f.Timezone = "UTC"
	}
	if _, err := zone(f.Timezone); err != nil {
		return f, err
	}
	s, err := f.start()
	if err != nil {
		return f, err
	}
	f.Starts = s.text(f.Per)
	return f, nil
}

// Calendar returns the periods of normalized fields, or nil if there are none.
func (f Fields) Calendar() *Calendar {
	if f.Per == spec.PerNone {
		return nil
	}
	s, _ := f.start()
	location, err := zone(f.Timezone)
	if err != nil { // only if the fields are not normalized
		location = time.UTC
	}
	return &Calendar{per: f.Per, location: location, start: s}
}

// start is the point of a period at which it starts.
type start struct {
	day    int // of the week, from Sunday at 0; of the month, from 1
	minute int // of the day
}

// start reads f.Starts.
func (f Fields) start() (s start, err error) {
	day, clock, both := strings.Cut(f.Starts, " ")
	form := ""
	switch f.Per {
	case spec.PerDay:
		if form = `use the time at which a day starts, as in "06:00"`; !both {
			day, clock = "", f.Starts
		}
		err = wrongIf(day != "" || both)
	case spec.PerWeek:
		if form = `use a day of the week and perhaps a time, as in "monday" or "monday 06:00"`; f.Starts == "" {
			day = "monday"
		}
		s.day = slices.Index(weekdays, day)
		err = wrongIf(s.day < 0)
	case spec.PerMonth:
		if form = `use a day of the month from 1 to 31 and perhaps a time, as in "15" or "15 06:00"`; f.Starts == "" {
			day = "1"
		}
		s.day, err = strconv.Atoi(day)
		err = wrongIf(err != nil || s.day < 1 || s.day > 31 || strconv.Itoa(s.day) != day)
	}
	if err == nil && (clock != "" || both) {
		s.minute, err = minuteOf(clock)
	}
	if err != nil {
		return s, spec.BadField("starts", "is %.40q: %s", f.Starts, form)
	}
	return s, nil
}

// text returns the form that start reads, with every part.
func (s start) text(per spec.Per) string {
	clock := fmt.Sprintf("%02d:%02d", s.minute/60, s.minute%60)
	switch per {
	case spec.PerWeek:
		return weekdays[s.day] + " " + clock
	case spec.PerMonth:
		return strconv.Itoa(s.day) + " " + clock
	}
	return clock
}

var weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// minuteOf reads a time such as 06:00.
func minuteOf(clock string) (int, error) {
	hour, minute, _ := strings.Cut(clock, ":")
	h, errHour := strconv.ParseUint(hour, 10, 8)
	m, errMinute := strconv.ParseUint(minute, 10, 8)
	if errHour != nil || errMinute != nil || len(clock) != len("06:00") || len(hour) != 2 || h > 23 || m > 59 {
		return 0, errWrong
	}
	return int(60*h + m), nil
}

var errWrong = spec.BadField("starts", "is wrong")

func wrongIf(wrong bool) error {
	if wrong {
		return errWrong
	}
	return nil
}

// zones caches time zones, which are read from the system's files. Only names that exist are kept.
var zones struct {
	mu    shared.Mutex
	known map[string]*time.Location
}

// zone returns the time zone with that name.
func zone(name string) (*time.Location, error) {
	zones.mu.Lock()
	defer zones.mu.Unlock()
	if l := zones.known[name]; l != nil {
		return l, nil
	}
	if name == "Local" {
		return nil, spec.BadField("timezone", `is "Local", which differs between machines: name the zone, as in "Europe/Berlin", or "UTC"`)
	}
	l, err := time.LoadLocation(name)
	if err != nil {
		return nil, spec.BadField("timezone", `is %.60q, which this program doesn't know: use a name such as "Europe/Berlin" or "UTC", and if the machine has no time zones, import _ "time/tzdata" in the program`, name)
	}
	if zones.known == nil {
		zones.known = make(map[string]*time.Location)
	}
	zones.known[name] = l
	return l, nil
}
