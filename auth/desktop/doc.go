// Package desktop is for programs of command-line users: it keeps logins of package auth in
// encrypted files and lets the user log in with a browser.
//
//	store, err := desktop.OpenStore(filepath.Join(stateFolder, "auth"), nil)
//	if err != nil {
//		return err
//	}
//	login := &desktop.Login{Show: func(p desktop.Page) { fmt.Fprintln(os.Stderr, "Log in at", p.URL) }}
//	t, err := auth.NewTransport(url, &auth.Options{Store: store, Login: login})
//
// The files are encrypted with AES-256-GCM. The key is in the desktop's keyring if that answers
// within two seconds when the first record is written, and else in a file beside the records. A
// key file protects the logins in backups and from searches for tokens; it does not protect them
// from other programs of the same user.
package desktop
