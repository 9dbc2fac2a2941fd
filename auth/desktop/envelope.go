package desktop

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"

	"github.com/dowel-mcp/dowel/auth"
)

// envelopeVersion is the format of the files of records.
const envelopeVersion = 1

// envelope is the content of a record's file: JSON, with the record in Data.
type envelope struct {
	Version int    `json:"version"`
	Key     string `json:"key"` // id of the key
	Nonce   []byte `json:"nonce"`
	Data    []byte `json:"data"`
}

func parseEnvelope(text []byte) (*envelope, error) {
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, err
	}
	if e.Version == 0 {
		return nil, errors.New("it has no version")
	}
	return &e, nil
}

// sealRecord encrypts a record. The id of the record is authenticated, so a file does not count
// under another name.
func sealRecord(key *storeKey, id string, r *auth.Record) ([]byte, error) {
	plain, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	gcm, err := key.cipher()
	if err != nil {
		return nil, err
	}
	e := envelope{Version: envelopeVersion, Key: key.id, Nonce: make([]byte, gcm.NonceSize())}
	_, _ = rand.Read(e.Nonce) // never fails
	e.Data = gcm.Seal(nil, e.Nonce, plain, sealedFor(id))
	return json.Marshal(&e)
}

// decryptRecord decrypts the record with an id.
func (e *envelope) decryptRecord(key *storeKey, id string) (*auth.Record, error) {
	gcm, err := key.cipher()
	if err != nil {
		return nil, err
	}
	if len(e.Nonce) != gcm.NonceSize() {
		return nil, errors.New("the nonce has a wrong length")
	}
	plain, err := gcm.Open(nil, e.Nonce, e.Data, sealedFor(id))
	if err != nil {
		return nil, err
	}
	r := new(auth.Record)
	if err := json.Unmarshal(plain, r); err != nil {
		return nil, errors.New("its content is no record") // the error might quote a secret
	}
	return r, nil
}

// sealedFor returns the additional data of a record's encryption.
func sealedFor(id string) []byte { return []byte("dowel login 1\n" + id) }

func (k *storeKey) cipher() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.bytes)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
