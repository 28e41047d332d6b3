// rawcall sends one gRPC call whose body is any bytes, and prints what came back. Unlike curl it sees an answer that
// comes before the body was sent.
//
//	rawcall URL PATH < BODY
//
// Prints a JSON object: http (status), code (grpc-status), text (grpc-message), error (of the connection).
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"golang.org/x/net/http2"
)

func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil || len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: rawcall URL PATH < BODY")
		os.Exit(64)
	}
	answer := map[string]any{}
	if err := call(os.Args[1]+os.Args[2], body, answer); err != nil {
		answer["error"] = err.Error()
	}
	line, _ := json.Marshal(answer)
	fmt.Println(string(line))
}

func call(target string, body []byte, answer map[string]any) error {
	transport := &http2.Transport{
		AllowHTTP: true,
		DialTLSContext: func(ctx context.Context, network, address string, _ *tls.Config) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "POST", target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("Te", "trailers")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	answer["http"] = response.StatusCode
	for _, header := range []http.Header{response.Header, response.Trailer} {
		if code := header.Get("Grpc-Status"); code != "" {
			text, _ := url.PathUnescape(header.Get("Grpc-Message"))
			answer["code"], answer["text"] = code, text
		}
	}
	return err
}
