// h2spec runs the HTTP/2 conformance suite of that name, its strict cases too, against a gRPC port without TLS, and
// compares the failures with the tables below: one that is in neither, and an exception that no longer fails, are both
// errors.
//
//	h2spec [-table] PORT [GROUP...]     groups as h2spec names them: generic/3.5, http2/6.9.2, hpack ...
//
// Prints each unexpected case, then one line with the counts; ends with 1 when there was any. -table prints all failures
// as rows, for a look at another server. The suite opens streams up to the server's limit: start the server with
// --max-concurrent-streams.
package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"
)

// Cases that fail, and why that is right.
var exceptions = map[string]string{
	"generic/2/2":     "waits for DATA; a gRPC error has none (etcd: the same)",
	"generic/2/3":     "as generic/2/2",
	"http2/3.5/2":     "what does not start with the preface is HTTP/1 on this port, and is told so in HTTP/1",
	"http2/5.1/8":     "frames of a closed stream are ignored: they may have crossed our RST_STREAM (etcd: the same)",
	"http2/5.1/9":     "as http2/5.1/8",
	"http2/5.1/11":    "as http2/5.1/8 (etcd: the same)",
	"http2/5.1/12":    "as http2/5.1/8",
	"http2/5.1.1/2":   "HEADERS of an id below the highest are those of a closed stream: as http2/5.1/8",
	"http2/5.1.2/1":   "its calls are no gRPC, so they are refused at once and never open together (etcd: the same)",
	"http2/8.1.2.2/2": "te is not looked at, as in etcd",
	"http2/8.1.2.3/1": "an empty path is an unknown method, Unimplemented, as in etcd",
	"http2/8.1.2.6/1": "content-length is not looked at, as in etcd: gRPC frames its messages itself",
	"http2/8.1.2.6/2": "as http2/8.1.2.6/1",
}

// Cases that pass or fail as their frames happen to meet ours. Each sends a call that is no gRPC, whose refusal leaves
// at once (etcd: the same), and then the frame under test. When the refusal is out before that frame comes, the stream
// is closed, and the frame is ignored as in http2/5.1/8. Only then may the case fail, which shows in the last frame that
// the suite saw: the refusal, or the RST_STREAM that follows it when the call had not ended and the case notes such
// frames. What the server answers while the stream still stands is tested where nothing can overtake
// (tests/core/wire/grpc_hostile_test.cc).
var overtaken = map[string]*regexp.Regexp{
	"http2/5.1/5":     refusal, // DATA behind END_STREAM
	"http2/5.1/6":     refusal, // HEADERS behind END_STREAM
	"http2/6.1/2":     refusal, // as http2/5.1/5
	"http2/6.1/3":     reset,   // DATA with more padding than payload
	"http2/6.9/2":     refusal, // WINDOW_UPDATE by nothing
	"http2/6.9.1/3":   reset,   // WINDOW_UPDATE beyond the largest window
	"http2/8.1/1":     refusal, // second HEADERS that do not end the stream
	"http2/8.1.2.1/3": refusal, // pseudo-header in trailers
}

// END_HEADERS and END_STREAM: the answer is whole.
var refusal = regexp.MustCompile(`^HEADERS Frame \(length:\d+, flags:0x05, stream_id:1\)$`)
var reset = regexp.MustCompile(`^RST_STREAM Frame \(length:4, flags:0x00, stream_id:1\)$`)

// `last` is what the suite saw instead of what it waited for; empty when it gives no such thing.
type failure struct{ id, name, why, last string }

// The failures of a group and those below, with how many cases ran.
func collect(group *spec.TestGroup, failures *[]failure) (ran int) {
	for index, test := range append(append([]*spec.TestCase{}, group.Tests...), group.StrictTests...) {
		if test.Result == nil {
			continue
		}
		ran++
		if test.Result.Failed {
			why := strings.ReplaceAll(fmt.Sprint(test.Result.Error), "\n", " | ")
			last := ""
			if unmet, ok := test.Result.Error.(*spec.TestError); ok {
				last = unmet.Actual
			}
			*failures = append(*failures, failure{fmt.Sprintf("%s/%d", group.ID(), index+1), test.Desc, why, last})
		}
	}
	for _, below := range group.Groups {
		ran += collect(below, failures)
	}
	return ran
}

func main() {
	words := os.Args[1:]
	table := len(words) > 0 && words[0] == "-table"
	if table {
		words = words[1:]
	}
	var port int
	var err error
	if len(words) > 0 {
		port, err = strconv.Atoi(words[0])
	}
	if len(words) == 0 || err != nil {
		fmt.Fprintln(os.Stderr, "usage: h2spec [-table] PORT [GROUP...]")
		os.Exit(64)
	}
	settings := config.Config{Host: "127.0.0.1", Port: port, Path: "/etcdserverpb.KV/Range", Timeout: 2 * time.Second,
		MaxHeaderLen: 4000, Strict: true, Sections: words[1:]}
	groups := []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()}
	out := os.Stdout
	if os.Stdout, err = os.Open(os.DevNull); err != nil { // the suite's own report, which has no exceptions
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var failures []failure
	ran := 0
	for _, group := range groups {
		group.Test(&settings)
		ran += collect(group, &failures)
	}
	failed := map[string]bool{}
	wrong, excepted, late := 0, 0, 0
	for _, one := range failures {
		failed[one.id] = true
		_, known := exceptions[one.id]
		last, races := overtaken[one.id]
		switch {
		case table:
			fmt.Fprintf(out, "%s  %s: %s\n", one.id, one.name, one.why)
			wrong++
		case known:
			excepted++
		case races && last.MatchString(one.last):
			late++
		default:
			fmt.Fprintf(out, "%s  %s: %s\n", one.id, one.name, one.why)
			wrong++
		}
	}
	if len(settings.Sections) == 0 && !table {
		for id := range exceptions {
			if !failed[id] {
				fmt.Fprintf(out, "%s  is in the table of exceptions and passes\n", id)
				wrong++
			}
		}
	}
	fmt.Fprintf(out, "%d cases, %d unexpected, %d excepted, %d overtaken\n", ran, wrong, excepted, late)
	if wrong > 0 || ran == 0 {
		os.Exit(1)
	}
}
