package skills_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/skills"
)

// exampleFolder returns a new folder with a skill.
func exampleFolder() (dir string, err error) {
	dir, err = os.MkdirTemp("", "skills-")
	if err != nil {
		return "", err
	}
	text := "---\nname: greet\ndescription: How to greet a guest\n---\nSay hello as words.md says.\n"
	return dir, errors.Join(os.Mkdir(filepath.Join(dir, "greet"), 0o755),
		os.WriteFile(filepath.Join(dir, "greet", "SKILL.md"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(dir, "greet", "words.md"), []byte("Good day."), 0o644))
}

func Example() {
	ctx := context.Background()
	dir, err := exampleFolder()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s := server.New("hotel", "1.0.0", nil)
	stop, err := skills.Serve(s, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	c, err := client.Dial(ctx, s, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	for skill, err := range skills.List(ctx, c) {
		if err != nil {
			fmt.Println(err)
			return
		}
		words, err := skill.Read(ctx, c, "words.md")
		fmt.Println(skill.URI, skill.Description, words.Text, err)
	}
	// Output: skill://greet/SKILL.md How to greet a guest Good day. <nil>
}

func TestChangedFilesAreUnverified(t *testing.T) {
	dir, err := exampleFolder()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s := server.New("hotel", "1.0.0", nil)
	stop, err := skills.Serve(s, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := skills.Serve(s, dir); err == nil {
		t.Error("a server serves two folders")
	}
	if _, err := skills.Serve(server.New("other", "1", nil), filepath.Join(dir, "none")); err == nil {
		t.Error("a missing folder is served")
	}
	c, err := client.Dial(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	old, err := skills.Get(t.Context(), c, "skill://greet/SKILL.md")
	if err != nil || old.Name != "greet" || len(old.Files) != 2 {
		t.Fatalf("%+v, %v", old, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "greet", "words.md"), []byte("Go away!!"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := old.Read(t.Context(), c, "words.md"); !errors.Is(err, skills.ErrUnverified) || got.Text != "" {
		t.Errorf("%+v, %v: want ErrUnverified", got, err)
	}
	if _, err := new(skills.Skill).Read(t.Context(), c, "SKILL.md"); !errors.Is(err, skills.ErrUnverified) {
		t.Errorf("a zero skill: %v", err)
	}
}
