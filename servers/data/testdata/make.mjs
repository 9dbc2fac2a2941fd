// Writes cities.parquet with npm's hyparquet-writer: npm install hyparquet-writer && node make.mjs
import { parquetWriteFile } from 'hyparquet-writer'
parquetWriteFile({ filename: 'cities.parquet', columnData: [
  { name: 'name', data: ['Oslo', 'Rome', null, 'Oslo'], type: 'STRING' },
  { name: 'people', data: [709037, 2746984, 0, null], type: 'INT32' },
  { name: 'area', data: [454.12, 1285.31, 0.5, 1], type: 'DOUBLE' },
  { name: 'capital', data: [true, true, false, true], type: 'BOOLEAN' },
  { name: 'seen', data: [new Date(0), new Date(86400000), null, new Date(1700000000123)], type: 'TIMESTAMP' },
  { name: 'big', data: [9007199254740993n, -1n, 0n, 5n], type: 'INT64' },
] })
