package screen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// captureTimeout bounds the time for a picture.
const captureTimeout = 30 * time.Second

// captureScreen reads the screen of the environment.
func captureScreen(ctx context.Context) (image.Image, error) {
	ctx, cancel := context.WithTimeout(ctx, captureTimeout)
	defer cancel()
	switch wayland, display := os.Getenv("WAYLAND_DISPLAY"), os.Getenv("DISPLAY"); {
	case runtime.GOOS == "darwin":
		return captureByFile(ctx)
	case runtime.GOOS == "windows":
		return nil, errors.New("pictures of the screen are not supported on Windows")
	case wayland != "": // an X server beside Wayland shows its own windows only
		return captureByOutput(ctx, "grim", "-")
	case display != "":
		return captureX11(ctx, display)
	}
	return nil, errors.New("there is no screen: neither DISPLAY nor WAYLAND_DISPLAY is set")
}

// captureByOutput runs a program that writes the picture to its standard output.
func captureByOutput(ctx context.Context, program string, words ...string) (image.Image, error) {
	out, err := exec.CommandContext(ctx, program, words...).Output()
	if err != nil {
		return nil, explainProgram(program, err)
	}
	return decodePicture(out)
}

// captureByFile runs screencapture of macOS, which writes files only.
func captureByFile(ctx context.Context) (image.Image, error) {
	folder, err := os.MkdirTemp("", "dowel-screen-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	file := folder + "/screen.png"
	if _, err := exec.CommandContext(ctx, "screencapture", "-x", "-t", "png", file).Output(); err != nil {
		return nil, explainProgram("screencapture", err)
	}
	out, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return decodePicture(out)
}

// explainProgram says why a program took no picture.
func explainProgram(program string, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%s is not installed; it takes the picture of the screen", program)
	}
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && len(failed.Stderr) > 0 {
		return fmt.Errorf("%s took no picture: %s", program, bytes.TrimSpace(failed.Stderr[:min(len(failed.Stderr), 500)]))
	}
	return fmt.Errorf("%s took no picture: %w", program, err)
}

// decodePicture decodes a PNG of bounded size.
func decodePicture(data []byte) (image.Image, error) {
	c, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("the picture of the screen: %w", err)
	}
	if err := checkSize(c.Width, c.Height); err != nil {
		return nil, err
	}
	return png.Decode(bytes.NewReader(data))
}

func checkSize(width, height int) error {
	if width <= 0 || height <= 0 || width > maxPixels/height {
		return fmt.Errorf("the screen has %d × %d pixels: want at most %d in all", width, height, maxPixels)
	}
	return nil
}
