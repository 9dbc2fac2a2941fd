package data

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Limits of a Parquet file. Its numbers are checked before anything is allocated by them, since a
// small file could claim pages of gigabytes.
const (
	maxFooter     = 4 << 20  // bytes
	maxItems      = 200_000  // of all lists in the footer
	maxPage       = 16 << 20 // bytes of a page, without compression
	maxPageValues = 2 << 20
	maxOpenPages  = 64 << 20 // bytes of the largest page of each column
	maxPageHeader = 1 << 20  // bytes
	maxThrift     = 16       // levels
)

// checkParquet reads the footer and all page headers of a file, and decompresses each page without
// keeping it.
func checkParquet(t *table) error {
	footer, err := readFooter(t)
	if err != nil {
		return err
	}
	r := new(thrift.CompactProtocol).NewReaderFromBytes(footer)
	items := 0
	if err := walkThrift(r, thrift.STRUCT, maxThrift, &items); err != nil {
		return fmt.Errorf("its footer is damaged: %w", err)
	}
	var metadata format.FileMetaData
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), footer, &metadata); err != nil {
		return fmt.Errorf("its footer is damaged: %w", err)
	}
	for _, group := range metadata.RowGroups {
		var open int64
		for _, chunk := range group.Columns {
			largest, err := checkChunk(t, &chunk.MetaData)
			if err != nil {
				return fmt.Errorf("the column %v: %w", chunk.MetaData.PathInSchema, err)
			}
			open += largest
		}
		if open > maxOpenPages {
			return fmt.Errorf("the pages of its columns have %d MiB together: want at most %d MiB; write it with smaller pages", open>>20, maxOpenPages>>20)
		}
	}
	return nil
}

func readFooter(t *table) ([]byte, error) {
	const magic = "PAR1"
	end := make([]byte, 8)
	if t.size < 12 {
		return nil, errors.New("it is too short for a Parquet file")
	}
	if _, err := t.file.ReadAt(end, t.size-8); err != nil {
		return nil, err
	}
	length := int64(binary.LittleEndian.Uint32(end))
	switch {
	case string(end[4:]) != magic:
		return nil, errors.New("it is not a Parquet file, or it is encrypted")
	case length > maxFooter || length > t.size-12:
		return nil, fmt.Errorf("its footer claims %d bytes: want at most %d", length, maxFooter)
	}
	footer := make([]byte, length)
	_, err := t.file.ReadAt(footer, t.size-8-length)
	return footer, err
}

// walkThrift reads a value and counts the items of its lists. It fails before the package thrift
// would: that package allocates a list by its claimed size, and recurses without a limit.
func walkThrift(r thrift.Reader, kind thrift.Type, levels int, items *int) error {
	if levels == 0 {
		return errors.New("too many levels")
	}
	switch kind {
	case thrift.TRUE, thrift.FALSE:
		return nil // within a structure the type is the value
	case thrift.I8:
		_, err := r.ReadInt8()
		return err
	case thrift.I16, thrift.I32, thrift.I64:
		_, err := r.ReadInt64()
		return err
	case thrift.DOUBLE:
		_, err := r.ReadFloat64()
		return err
	case thrift.BINARY:
		_, err := r.ReadBytes()
		return err
	case thrift.STRUCT:
		for {
			field, err := r.ReadField()
			if err != nil || field.Type == thrift.STOP {
				return err
			}
			if err := walkThrift(r, field.Type, levels-1, items); err != nil {
				return err
			}
		}
	case thrift.LIST:
		return walkList(r, levels, items)
	}
	return fmt.Errorf("the type %d does not occur in Parquet", kind)
}

func walkList(r thrift.Reader, levels int, items *int) error {
	list, err := r.ReadList()
	if err != nil {
		return err
	}
	if *items += int(list.Size); list.Size < 0 || *items > maxItems {
		return fmt.Errorf("its lists have more than %d items", maxItems)
	}
	for range list.Size {
		if list.Type == thrift.TRUE || list.Type == thrift.FALSE {
			_, err = r.ReadInt8()
		} else {
			err = walkThrift(r, list.Type, levels-1, items)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decodedValue is the size of the levels and the dictionary index of a value.
const decodedValue = 6

// checkChunk checks the pages of a column chunk and returns the memory that its largest page needs
// together with its dictionary.
func checkChunk(t *table, m *format.ColumnMetaData) (largest int64, err error) {
	offset, end := m.DataPageOffset, m.TotalCompressedSize
	if m.DictionaryPageOffset > 0 {
		offset = min(offset, m.DictionaryPageOffset)
	}
	if offset < 4 || end < 0 || offset > t.size || end > t.size-offset {
		return 0, errors.New("its pages are outside the file")
	}
	var dictionary int64
	for end += offset; offset < end; {
		page, bodyOffset, err := readPageHeader(t, offset, end)
		if err != nil {
			return 0, err
		}
		if err := checkPage(t, m.Codec, page, bodyOffset); err != nil {
			return 0, err
		}
		size := int64(page.UncompressedPageSize)
		if page.Type == format.DictionaryPage {
			dictionary = size
		}
		values, _ := pageValues(page)
		largest = max(largest, size+decodedValue*int64(values))
		offset = bodyOffset + int64(page.CompressedPageSize)
	}
	return largest + dictionary, nil
}

// readPageHeader returns the header of a page and the offset of the page's body. Most headers are
// short; one with statistics of long texts may be as long as these.
func readPageHeader(t *table, offset, end int64) (page *format.PageHeader, body int64, err error) {
	for length := int64(4 << 10); length <= maxPageHeader; length *= 16 {
		raw := make([]byte, min(length, end-offset))
		if _, err := t.file.ReadAt(raw, offset); err != nil {
			return nil, 0, err
		}
		if page, body, err = decodePageHeader(raw); err == nil {
			break
		}
	}
	if err != nil {
		return nil, 0, fmt.Errorf("the header of a page is damaged: %w", err)
	}
	body += offset
	if page.CompressedPageSize < 0 || int64(page.CompressedPageSize) > end-body {
		return nil, 0, errors.New("a page is outside the file")
	}
	return page, body, nil
}

func decodePageHeader(raw []byte) (page *format.PageHeader, length int64, err error) {
	protocol, items := new(thrift.CompactProtocol), 0
	r := protocol.NewReaderFromBytes(raw)
	if err := walkThrift(r, thrift.STRUCT, maxThrift, &items); err != nil {
		return nil, 0, err
	}
	page = new(format.PageHeader)
	err = thrift.Unmarshal(protocol, raw[:r.BytesRead()], page)
	return page, int64(r.BytesRead()), err
}

func checkPage(t *table, codec format.CompressionCodec, page *format.PageHeader, offset int64) error {
	values, encoding := pageValues(page)
	switch {
	case page.UncompressedPageSize < 0 || page.UncompressedPageSize > maxPage:
		return fmt.Errorf("a page has %d bytes: want at most %d", page.UncompressedPageSize, maxPage)
	case values < 0 || values > maxPageValues:
		return fmt.Errorf("a page has %d values: want at most %d", values, maxPageValues)
	case encoding == format.DeltaByteArray:
		return errors.New("the encoding DELTA_BYTE_ARRAY is not supported, because its size is not bounded")
	}
	compressed := int(page.CompressedPageSize)
	plain := int(page.UncompressedPageSize)
	if h, ok := page.DataPageHeaderV2.Get(); ok { // its levels are not compressed
		levels := int(h.RepetitionLevelsByteLength) + int(h.DefinitionLevelsByteLength)
		if levels < 0 || levels > compressed || levels > plain {
			return errors.New("a page is shorter than its levels")
		}
		offset, compressed, plain = offset+int64(levels), compressed-levels, plain-levels
		if compressed == 0 || h.IsCompressed.Valid && !h.IsCompressed.V {
			codec = format.Uncompressed
		}
	}
	if compressed > maxPage+maxPage/4 {
		return fmt.Errorf("a page has %d bytes: want at most %d", compressed, maxPage)
	}
	return checkBody(io.NewSectionReader(t.file, offset, int64(compressed)), codec, plain)
}

// pageValues returns the number of values in a page, and their encoding.
func pageValues(page *format.PageHeader) (int32, format.Encoding) {
	if h, ok := page.DataPageHeader.Get(); ok {
		return h.NumValues, h.Encoding
	}
	if h, ok := page.DataPageHeaderV2.Get(); ok {
		return h.NumValues, h.Encoding
	}
	if h, ok := page.DictionaryPageHeader.Get(); ok {
		return h.NumValues, h.Encoding
	}
	return 0, format.Plain
}

// checkBody fails unless a compressed page has as many bytes as its header says.
func checkBody(body *io.SectionReader, codec format.CompressionCodec, plain int) error {
	var source io.Reader
	switch codec {
	case format.Uncompressed:
		return nil
	case format.Snappy:
		start := make([]byte, min(binary.MaxVarintLen64, body.Size()))
		if _, err := body.ReadAt(start, 0); err != nil {
			return err
		}
		if length, err := snappy.DecodedLen(start); err != nil || length > plain {
			return errors.New("a page is larger than its header says")
		}
		return nil
	case format.Gzip:
		r, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		source = r
	case format.Zstd:
		r, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return err
		}
		defer r.Close()
		source = r
	default:
		return fmt.Errorf("the compression %v is not supported: want none, SNAPPY, GZIP or ZSTD", codec)
	}
	n, err := io.Copy(io.Discard, io.LimitReader(source, int64(plain)+1))
	if err != nil {
		return err
	}
	if n > int64(plain) {
		return errors.New("a page is larger than its header says")
	}
	return nil
}
