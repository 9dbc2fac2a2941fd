package docs

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the screens in docs anew")

var (
	screenBlock = regexp.MustCompile("(?s)<!-- screen: (\\S+) -->\n```text\n(.*?)```\n")
	emptyRows   = regexp.MustCompile(`\n{4,}`)
)

// The screens in the guides are the screens that the tests of the program see, without long runs of
// empty rows. -update takes them over.
func TestScreensInGuides(t *testing.T) {
	found := 0
	for _, name := range pages(t) {
		text := page(t, name)
		changed := screenBlock.ReplaceAllStringFunc(text, func(block string) string {
			found++
			parts := screenBlock.FindStringSubmatch(block)
			golden, err := os.ReadFile(filepath.Join(root, "internal/cli/testdata/screens", parts[1]+".txt"))
			if err != nil {
				t.Error(err)
				return block
			}
			want := strings.TrimPrefix(emptyRows.ReplaceAllString(string(golden), "\n\n"), "\n")
			if parts[2] != want && !*update {
				t.Errorf("%s shows %s as\n%s\nand the test of the program sees\n%s", name, parts[1], parts[2], want)
			}
			return "<!-- screen: " + parts[1] + " -->\n```text\n" + want + "```\n"
		})
		if *update && changed != text {
			if err := os.WriteFile(filepath.Join(root, name), []byte(changed), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d screens were found", found)
	}
}
