package main

import (
	"context"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/skills"
)

// listSkills lists the skills, and loads none.
func listSkills(ctx context.Context, c *client.Client) error {
	_, err := client.All(skills.List(ctx, c))
	return err
}

// useSkills loads each skill, and then reads its other files.
func useSkills(ctx context.Context, c *client.Client) error {
	for skill, err := range skills.List(ctx, c) {
		if err != nil {
			return err
		}
		if _, err := skill.Read(ctx, c, "SKILL.md"); err != nil {
			return err
		}
		for _, uri := range skill.Files {
			if _, err := skill.Read(ctx, c, uri); err != nil {
				return err
			}
		}
	}
	return nil
}
