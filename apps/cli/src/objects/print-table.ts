import type { ServerTable, TableColumn, TableRow } from '../cluster/server-table.ts'
import { plainText } from '../text/plain-text.ts'

export interface TablePrinterOptions {
  /** Shows all columns that the server has. */
  readonly wide: boolean
  readonly withNamespace: boolean
  readonly withLabels: boolean
  readonly withHeader: boolean
  /** Put before each name, when several kinds are printed. */
  readonly namePrefix?: string | undefined
}

export interface TablePrinter {
  /** The text of some more rows; the first time with the header. Widths never shrink, so that a watch stays readable. */
  print(table: ServerTable): string
}

const GAP = 3

/** Prints the server's tables as kubectl does. */
export function createTablePrinter(options: TablePrinterOptions): TablePrinter {
  let columns: readonly TableColumn[] | undefined
  let widths: number[] = []
  return {
    print({ columnDefinitions, rows }) {
      const isFirst = columns === undefined
      const known = columns ?? columnDefinitions
      columns = known
      const lines = rows.map((row) => cellsOf(row, known, options))
      if (isFirst && options.withHeader) lines.unshift(headerOf(known, options))
      widths = widthsOf(lines, widths)
      return lines.map((line) => `${padded(line, widths)}\n`).join('')
    },
  }
}

/** Rows of texts with aligned columns; the first row may be a header. */
export function alignedRows(rows: readonly (readonly string[])[]): string[] {
  const widths = widthsOf(rows, [])
  return rows.map((row) => padded(row, widths))
}

function headerOf(columns: readonly TableColumn[], options: TablePrinterOptions): string[] {
  const names = shown(columns, options).map(({ column }) => column.name.toUpperCase())
  return [...(options.withNamespace ? ['NAMESPACE'] : []), ...names, ...(options.withLabels ? ['LABELS'] : [])]
}

function cellsOf({ cells, object }: TableRow, columns: readonly TableColumn[], options: TablePrinterOptions): string[] {
  const texts = shown(columns, options).map(({ index }) => `${index === 0 ? (options.namePrefix ?? '') : ''}${cellText(cells[index])}`)
  const labels = Object.entries(object?.metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`)
  return [
    ...(options.withNamespace ? [object?.metadata.namespace ?? ''] : []),
    ...texts,
    ...(options.withLabels ? [labels.sort().join(',') || '<none>'] : []),
  ]
}

function shown(columns: readonly TableColumn[], { wide }: TablePrinterOptions): { column: TableColumn; index: number }[] {
  return columns.map((column, index) => ({ column, index })).filter(({ column }) => wide || (column.priority ?? 0) === 0)
}

function cellText(cell: unknown): string {
  if (cell === null || cell === undefined) return '<none>'
  return typeof cell === 'string' ? plainText(cell) : JSON.stringify(cell)
}

function widthsOf(rows: readonly (readonly string[])[], before: readonly number[]): number[] {
  const widths = [...before]
  for (const row of rows) for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, [...cell].length)
  return widths
}

function padded(row: readonly string[], widths: readonly number[]): string {
  return row
    .map((cell, index) => cell + ' '.repeat((widths[index] ?? 0) - [...cell].length + GAP))
    .join('')
    .trimEnd()
}
