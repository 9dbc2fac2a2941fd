package tasklist

import (
	"slices"
	"time"
)

// SetOpen replaces the list of tasks that a conversation waits for. It removes other tasks that
// only this conversation has waited for. Names, times and other conversations of known tasks stay.
// If nothing changes, the file is not written.
func (f File) SetOpen(conversation string, tasks []Entry) error {
	all, err := f.Read()
	if err != nil || sameOpen(all, conversation, tasks) {
		return err
	}
	return f.change(func(all []Entry) []Entry {
		all = slices.DeleteFunc(all, func(e Entry) bool {
			return slices.Equal(e.Conversations, []string{conversation}) && findID(tasks, e.ID) < 0
		})
		for i := range all {
			if findID(tasks, all[i].ID) < 0 {
				all[i].removeConversation(conversation)
			}
		}
		for _, task := range tasks {
			if i := findID(all, task.ID); i >= 0 {
				all[i].removeConversation(conversation)
				all[i].Conversations = append(all[i].Conversations, conversation)
				continue
			}
			task.Name, task.Conversations = nextName(all), []string{conversation}
			task.Started = time.Now().UTC().Truncate(time.Second)
			all = appendEntry(all, task)
		}
		return all
	})
}

// Release keeps tasks in the list that a conversation does not wait for any more.
func (f File) Release(conversation string, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	return f.change(func(all []Entry) []Entry {
		for i := range all {
			if slices.Contains(ids, all[i].ID) {
				all[i].removeConversation(conversation)
			}
		}
		return all
	})
}

// sameOpen reports whether the list has exactly these tasks for a conversation.
func sameOpen(all []Entry, conversation string, tasks []Entry) bool {
	listed := 0
	for i := range all {
		if slices.Contains(all[i].Conversations, conversation) {
			if listed++; findID(tasks, all[i].ID) < 0 {
				return false
			}
		}
	}
	return listed == len(tasks)
}

func findID(all []Entry, id string) int {
	return slices.IndexFunc(all, func(e Entry) bool { return e.ID == id })
}

func (e *Entry) removeConversation(id string) {
	e.Conversations = slices.DeleteFunc(e.Conversations, func(other string) bool { return other == id })
}
