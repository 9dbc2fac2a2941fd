package weather

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

// fakeAPI answers as api.weather.gov does, from testdata.
type fakeAPI struct {
	*httptest.Server
	t *testing.T

	mu    sync.Mutex
	asked []string
}

func newFakeAPI(t *testing.T) *fakeAPI {
	f := &fakeAPI{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /points/{at}", f.points)
	mux.HandleFunc("GET /gridpoints/LWX/97,71/forecast", func(w http.ResponseWriter, r *http.Request) {
		f.serve(w, http.StatusOK, "gridpoints_LWX_97_71_forecast.json")
	})
	mux.HandleFunc("GET /alerts/active", f.alerts)
	f.Server = httptest.NewServer(f.check(mux))
	t.Cleanup(f.Close)
	return f
}

// check records requests, and refuses requests that the API refuses.
func (f *fakeAPI) check(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.asked = append(f.asked, r.URL.RequestURI())
		f.mu.Unlock()
		if !strings.HasPrefix(r.UserAgent(), "dowel-weather/") {
			http.Error(w, "no User-Agent", http.StatusForbidden)
			return
		}
		if r.Header.Get("Accept") != "application/geo+json" {
			http.Error(w, "not acceptable", http.StatusNotAcceptable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (f *fakeAPI) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.asked...)
}

func (f *fakeAPI) points(w http.ResponseWriter, r *http.Request) {
	switch at := r.PathValue("at"); at {
	case "38.8894,-77.0352":
		f.serve(w, http.StatusOK, "points_38.8894_-77.0352.json")
	case "38.89,-77.04": // the API does so with points that it writes in another way
		w.Header().Set("Location", "/points/38.8894,-77.0352")
		w.WriteHeader(http.StatusMovedPermanently)
	case "1,1":
		http.Redirect(w, r, "http://elsewhere.example/points/1,1", http.StatusMovedPermanently)
	case "2,2":
		http.Redirect(w, r, "/points/2,2", http.StatusMovedPermanently)
	case "3,3":
		fmt.Fprint(w, `{"properties":{"forecast":"https://elsewhere.example/gridpoints/LWX/97,71/forecast"}}`)
	case "4,4":
		fmt.Fprint(w, `{"properties":{"forecast":null}}`)
	case "5,5":
		fmt.Fprint(w, `{"properties":{"forecast":"/gridpoints/LWX/97,71/forecast"}}`)
	case "6,6":
		fmt.Fprint(w, `{"properties":`)
	case "7,7":
		fmt.Fprint(w, strings.Repeat(" ", maxBody), "{}")
	case "8,8":
		f.serve(w, http.StatusServiceUnavailable, "problem_503.json")
	case "9,9":
		<-r.Context().Done()
	case "10,10":
		http.Error(w, "<html>too many</html>", http.StatusTooManyRequests)
	case "11,11":
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "cut short")
	default:
		f.serve(w, http.StatusNotFound, "problem_404.json")
	}
}

func (f *fakeAPI) alerts(w http.ResponseWriter, r *http.Request) {
	switch area := r.URL.Query().Get("area"); area {
	case "CA", "VT":
		f.serve(w, http.StatusOK, "alerts_active_"+area+".json")
	default:
		f.serve(w, http.StatusBadRequest, "problem_400.json")
	}
}

func (f *fakeAPI) serve(w http.ResponseWriter, status int, file string) {
	body, err := os.ReadFile("testdata/" + file)
	if err != nil {
		f.t.Error(err)
	}
	kind := "application/geo+json"
	if status != http.StatusOK {
		kind = "application/problem+json"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	w.Write(body)
}
